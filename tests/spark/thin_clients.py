"""Every public method at a server of this checkout, from thin clients of every Python that the machine has: ``make test-thin``.

Each client is an environment of its own with what ``pyspark-paimon[client]`` installs, and pandas 2; warnings are errors there.
"""

import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from thin_client import ROOT, interpreters, thin_python

from pyspark_paimon.spark.client.serve import ConnectServer, ServerSettings

PROGRAM = Path(__file__).with_name("every_method.py")
MORE = ("duckdb", "pandas<3")


def main() -> int:
    """Run the program with every interpreter; how many failed."""
    token, failed, found = secrets.token_hex(8), 0, interpreters()
    with (
        tempfile.TemporaryDirectory(prefix="paimon-thin-") as folder,
        ConnectServer(ServerSettings(port=0, token=token, master="local[2]", memory="1g"), lambda _: None) as server,
    ):
        for at, python in enumerate(found):
            environment = {
                name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "JAVA_", "PYTHON"))
            }
            command = [thin_python(python, MORE), "-W", "error", str(PROGRAM), f"{server.address}/;token={token}", f"{folder}/{at}"]
            (Path(folder) / str(at)).mkdir()
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, cwd=folder,
                env={**environment, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            )  # fmt: skip
            print(done.stdout.strip() if done.returncode == 0 else f"{python} failed:\n{done.stderr[-4000:]}", flush=True)  # noqa: T201  # a command
            failed += done.returncode != 0
    print(f"{len(found) - failed} of {len(found)} clients did everything")  # noqa: T201  # as above
    return failed or not found


if __name__ == "__main__":
    sys.exit(main())
