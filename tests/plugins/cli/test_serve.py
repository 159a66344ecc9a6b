"""``pyspark-paimon serve``: what it starts, what it refuses, and (long) a server from start to stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark.sql.connect.session", reason="pyspark[connect] is not installed")

from pyspark_paimon import InvalidArgument, SparkUnavailable
from pyspark_paimon.plugins.cli.app import app
from pyspark_paimon.spark.client import session
from pyspark_paimon.spark.client.serve import ConnectServer, ServerSettings
from tests.children import run_python

ROOT = Path(__file__).parents[3]
CLIENT = """
import sys
from pyspark_paimon import PathNotAllowed, Table, spark_session
spark = spark_session(sys.argv[1], token="hunter2")
table = Table.create(sys.argv[2] + "/t", "id BIGINT", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
table.write(spark.range(10))
print(table.scan().count())
try:
    Table.create("/not/allowed", "id BIGINT", spark=spark)
except PathNotAllowed:
    print("refused")
"""


def test_the_token_is_in_no_command_and_no_repr() -> None:
    settings = ServerSettings(port=0, token="hunter2", roots="/warehouse:s3://b/w", conf={"spark.executor.memory": "3g"})
    command = settings.command()
    assert "hunter2" not in " ".join([*command, repr(settings)])
    assert {"spark.connect.grpc.binding.address=127.0.0.1", "spark.connect.grpc.binding.port=0", "spark.executor.memory=3g"} <= set(command)
    found = settings.environment()
    assert (found["SPARK_CONNECT_AUTHENTICATE_TOKEN"], found["PYSPARK_PAIMON_ROOTS"]) == ("hunter2", "/warehouse:s3://b/w")
    assert found["PYSPARK_PYTHON"] == sys.executable
    assert found["PYTHONPATH"].split(os.pathsep)[0] == str(ROOT)


@pytest.mark.parametrize(("given", "match"), [({"host": "0.0.0.0"}, "token"), ({"port": 70000}, "65535")])
def test_what_would_not_be_safe_is_refused(given, match) -> None:
    with pytest.raises(InvalidArgument, match=match):
        ServerSettings(**given)


@pytest.mark.slow
def test_a_taken_port_and_a_setting_that_is_none_are_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SparkUnavailable, match=f"127.0.0.1:{port}.*choose another port"):
            ConnectServer(ServerSettings(port=port), print).__enter__()
    told = CliRunner().invoke(app, ["serve", "--conf", "spark.executor.memory"])
    assert told.exit_code == 1
    assert "--conf takes key=value" in told.output


def test_a_check_where_nobody_listens_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told = CliRunner().invoke(app, ["serve", "--check", "--port", str(port)])
    assert told.exit_code == 1
    assert "no Spark Connect server answers" in told.output


def test_of_two_processes_that_start_a_server_one_has_sparks_own_port(tmp_path, monkeypatch) -> None:
    place = tmp_path / "claim"
    assert session.claims(place)
    assert session.claims(place), "again in the same process"
    code = "import sys; from pathlib import Path; from pyspark_paimon.spark.client.session import claims; print(claims(Path(sys.argv[1])))"
    other = run_python(code, str(place))
    assert other.stdout.strip() == "False"
    monkeypatch.setattr(session, "claims", lambda _: False)
    monkeypatch.setenv("SPARK_TESTING", "0")  # so that it is unset again in the end
    monkeypatch.delenv("SPARK_TESTING")
    with session._server_environment("1g", "spark://host:7077"):
        assert os.environ["SPARK_TESTING"] == "1", "Spark's way to a free port"


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_is_ready_serves_is_checked_and_stops(tmp_path, number) -> None:
    psutil = pytest.importorskip("psutil")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    environment |= {"PYTHONPATH": str(ROOT), "SPARK_CONNECT_AUTHENTICATE_TOKEN": "hunter2"}
    command = [
        sys.executable,
        "-m",
        "pyspark_paimon",
        "serve",
        "--port",
        "0",
        "--roots",
        str(tmp_path),
        "--master",
        "local[2]",
        "--memory",
        "1g",
    ]
    server = subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        said = []
        for line in server.stderr:
            said.append(line)
            if line.startswith("ready at "):
                break
        assert "pyspark-paimon" in said[-1], "".join(said)
        assert "hunter2" not in "".join(said)
        port = re.search(r"sc://127\.0\.0\.1:(\d+)", said[-1])[1]
        known = {**environment, "PYTHONPATH": str(ROOT)}
        ask = [sys.executable, "-m", "pyspark_paimon", "serve", "--check", "--port", port]
        assert subprocess.run(ask, env=known, cwd=tmp_path, check=False).returncode == 0
        wrong = {**known, "SPARK_CONNECT_AUTHENTICATE_TOKEN": "no"}
        assert subprocess.run(ask, env=wrong, cwd=tmp_path, stderr=subprocess.PIPE, check=False).returncode == 1
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, f"sc://localhost:{port}", str(tmp_path)],
            env=known,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.split() == ["10", "refused"], done.stderr[-3000:]
        family = psutil.Process(server.pid).children(recursive=True)
        server.send_signal(number)
        assert server.wait(60) == 0
        assert "stopped" in server.stderr.read()
        assert psutil.wait_procs(family, timeout=10)[1] == []
    finally:
        server.kill()
        server.communicate()
