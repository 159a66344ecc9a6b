"""A real S3 server for tests: S3Proxy, one jar that Maven brings, on 127.0.0.1 and files of its own, for as long as it is held.

It honours conditional puts, as measured by races. Servers that let two writers win (moto, S3Mock) are of no use for what is tested here.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Self

from benchmarks.environments import cache
from benchmarks.java_project import JavaUnavailable, java_tool
from tests.stores.local_server import LocalServer, free_port

ARTIFACT = "org.gaul:s3proxy:4.1.0:jar:jar-with-dependencies"
IDENTITY, SECRET = "AKIATESTSONLY", "only/known+to=tests-5a17c0de"
BUCKET = "tests"
_PATIENCE = 200
_START_SECONDS = 60


class S3Server(LocalServer):
    """A running server; ``port`` of 127.0.0.1, buckets as directories of ``folder``."""

    name = "S3Proxy"

    def __enter__(self) -> Self:
        self._make_folder("s3")
        (self.folder / "data" / BUCKET).mkdir(parents=True)
        self.start()
        return self

    def start(self) -> None:
        """Start, on the port of before if there was one."""
        self.port = self.port or free_port()
        self._run(self._command())
        if not self._answers_within(_START_SECONDS, self._answers):
            self._give_up()

    def _command(self) -> list[str]:
        settings = {
            "s3proxy.endpoint": f"http://127.0.0.1:{self.port}",
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": IDENTITY,
            "s3proxy.credential": SECRET,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(self.folder / "data"),
        }
        configuration = self.folder / "s3proxy.conf"
        configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return [str(java_tool("java")), "-Xmx256m", "-jar", str(fetched(ARTIFACT)), "--properties", str(configuration)]

    def _answers(self) -> bool:
        with suppress(urllib.error.HTTPError):  # it answers: not to strangers
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=5).close()
        return True

    def options(self, port: int | None = None) -> dict[str, str]:
        """``storage_options`` that reach it, or the proxy on ``port``."""
        return {
            "s3.endpoint": f"http://127.0.0.1:{port or self.port}",
            "s3.access-key": IDENTITY,
            "s3.secret-key": SECRET,
            "s3.path.style.access": "true",
        }

    def environment(self) -> dict[str, str]:
        """Variables by which a process reaches it without being told."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": IDENTITY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def objects(self) -> list[Path]:
        """Files that it holds for its bucket, those of unfinished uploads too."""
        return sorted(path for path in (self.folder / "data" / BUCKET).rglob("*") if path.is_file())


def fetched(artifact: str) -> Path:
    """A jar, without what it depends on, brought once for this user. Raises ``JavaUnavailable``."""
    _, name, version, *kind = artifact.split(":")
    home = cache() / name
    found = home / f"{'-'.join([name, version, *kind[1:]])}.jar"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if found.exists():
            return found
        maven = shutil.which("mvn")
        if maven is None or java_tool("java") is None:
            raise JavaUnavailable(f"{name} needs Java and Maven")
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            command = [maven, "-B", "-q", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={scratch}"]
            told = ""
            for extra in (["-o"], []):
                done = subprocess.run([*command, *extra], capture_output=True, text=True, check=False, timeout=_PATIENCE)
                told = done.stdout + done.stderr
                if done.returncode == 0 and (Path(scratch) / found.name).exists():
                    (Path(scratch) / found.name).rename(found)
                    return found
    raise JavaUnavailable(f"{name} is not at hand and cannot be fetched: {told[-300:]}")
