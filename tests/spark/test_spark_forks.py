"""The fork server: daemons and stream workers that Spark asks for are forks of one process, with their own environment, and end as Spark wants it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.connect.session")
psutil = pytest.importorskip("psutil")

from faults import wait_until  # noqa: E402  # needs pyspark

from pyspark_paimon.spark.client import serve  # noqa: E402  # as above
from pyspark_paimon.spark.client.forks import ForkServer, can_fork  # noqa: E402  # as above
from pyspark_paimon.spark.client.session import package_root  # noqa: E402  # as above
from pyspark_paimon.spark.launcher import STREAM_WORKERS, TOKEN_VARIABLE  # noqa: E402  # as above

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")

WORKER = "pyspark.sql.worker.create_data_source"
SECRET = "s3cret"
BASE = {**os.environ, "PYTHONPATH": package_root()}


@pytest.fixture(scope="module")
def forks():
    made = ForkServer(BASE)
    wait_until(Path(made.python).with_name("socket").exists, "a socket")
    yield made
    made.stop()
    assert not Path(made.python).exists()


@pytest.fixture(scope="module")
def short_lived():
    """A fork server whose daemons end as soon as they have no worker."""
    made = ForkServer(BASE, idle_seconds=2)
    wait_until(Path(made.python).with_name("socket").exists, "a socket")
    yield made
    made.stop()


@contextmanager
def daemon(forks, module="pyspark.daemon", **more):
    """A daemon as Spark starts it: its port is the first thing that it writes, and it ends when its input does."""
    environment = {**BASE, "PYTHONHASHSEED": "0", "SPARK_REUSE_WORKER": "1", "PYTHON_WORKER_FACTORY_SECRET": SECRET, **more}
    with subprocess.Popen([forks.python, "-m", module, WORKER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as made:
        yield made, int.from_bytes(made.stdout.read(4), "big")


def worker(port: int):
    """A connection to a new worker, and its process."""
    connection = socket.create_connection(("127.0.0.1", port))
    process = psutil.Process(int.from_bytes(connection.recv(4), "big"))
    connection.sendall(len(SECRET).to_bytes(4, "big") + SECRET.encode())
    assert connection.recv(6)[-2:] == b"ok"
    return connection, process


@pytest.mark.parametrize("module", ["pyspark.daemon", "pyspark_paimon.spark.daemon"])
def test_a_daemon_and_its_workers_are_forks_and_end_with_their_input(forks, module):
    with daemon(forks, module) as (launched, port):
        connection, forked = worker(port)
        with connection:
            assert [each.pid for each in forked.parents()][1] == forks.process.pid
            assert forked.environ().get("PYTHONHASHSEED") == "0"
            launched.stdin.close()
            assert launched.wait(20) == 0
            assert wait_until(lambda: not forked.is_running() or forked.status() == psutil.STATUS_ZOMBIE, "the end of the worker")
    assert forks.process.poll() is None


def test_a_daemon_ends_with_the_process_that_spark_knows(forks):
    with daemon(forks) as (launched, port):
        connection, forked = worker(port)
        [manager] = [each for each in forked.parents() if each.ppid() == forks.process.pid]
        connection.close()
        launched.terminate()
        assert launched.wait(20) == 0
        assert wait_until(lambda: not manager.is_running() or manager.status() == psutil.STATUS_ZOMBIE, "the end of the daemon")


def test_a_daemon_with_a_worker_stays_and_an_idle_one_ends_and_keeps_its_port(short_lived):
    with daemon(short_lived) as (launched, port):
        connection, forked = worker(port)
        with connection:
            [manager] = [each for each in forked.parents() if each.ppid() == short_lived.process.pid]
            with pytest.raises(subprocess.TimeoutExpired):
                launched.wait(6)
        assert launched.wait(20) == 0  # its input is still open
        assert wait_until(lambda: not manager.is_running() or manager.status() == psutil.STATUS_ZOMBIE, "the end of the daemon")
        assert launched.stdout.read() == b""
    # Spark asks for another daemon when it is refused. Another process at this port would answer instead.
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with daemon(short_lived) as (launched, again):
        assert again != port
        assert launched.wait(20) == 0  # without any worker


def test_a_daemon_with_variables_that_libraries_read_is_started_by_python(forks):
    with daemon(forks, MALLOC_ARENA_MAX="2") as (launched, port):
        connection, started = worker(port)
        with connection:
            assert started.ppid() == launched.pid
            assert psutil.Process(launched.pid).environ()["MALLOC_ARENA_MAX"] == "2"
            assert psutil.Process(launched.pid).cmdline()[0] == sys.executable
            launched.stdin.close()


@pytest.mark.slow("pyspark.sql.streaming.python_streaming_source_runner")
@pytest.mark.parametrize("module", sorted(STREAM_WORKERS))
def test_the_worker_of_a_stream_is_a_fork_that_ends_with_its_connection(forks, module):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        port = str(server.getsockname()[1])
        environment = {**BASE, "PYTHONHASHSEED": "0", "PYTHON_WORKER_FACTORY_SECRET": SECRET, "PYTHON_WORKER_FACTORY_PORT": port}
        with subprocess.Popen([forks.python, "-m", module], env=environment, stderr=subprocess.DEVNULL) as launched:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as received:
                assert received.read(4 + len(SECRET))[4:] == SECRET.encode()
                connection.sendall(b"\0\0\0\2ok")
                assert psutil.Process(int.from_bytes(received.read(4), "big")).ppid() == forks.process.pid
            assert launched.wait(20) == 0


def test_no_process_for_code_of_clients_has_the_servers_token(forks):
    assert TOKEN_VARIABLE == serve.TOKEN_VARIABLE
    with daemon(forks, **{TOKEN_VARIABLE: "t0ken"}) as (launched, port):
        connection, forked = worker(port)
        with connection:
            assert b"t0ken" not in Path(f"/proc/{forked.pid}/environ").read_bytes() if sys.platform == "linux" else True
            launched.stdin.close()
    shown = [forks.python, "-c", f"import os; print(os.environ.get('{TOKEN_VARIABLE}'))"]
    assert subprocess.run(shown, env={**BASE, TOKEN_VARIABLE: "t0ken"}, capture_output=True, text=True, check=True).stdout == "None\n"


@pytest.mark.parametrize("arguments", [["-c", "print(6 * 7)"], ["-m", "calendar", "2026", "11"]])
def test_other_commands_are_those_of_python(forks, arguments):
    own, python = (
        subprocess.run([each, *arguments], capture_output=True, text=True, check=True) for each in (forks.python, sys.executable)
    )
    assert own.stdout == python.stdout != ""


@pytest.mark.slow
def test_without_a_fork_server_python_starts_the_daemon(forks, tmp_path):
    alone = tmp_path / "python"
    alone.write_text(Path(forks.python).read_text().replace(str(Path(forks.python).with_name("socket")), "/nowhere"))
    alone.chmod(0o700)
    gone = type("Gone", (), {"python": str(alone)})
    with daemon(gone) as (launched, port):
        connection, started = worker(port)
        connection.close()
        assert started.ppid() == launched.pid
        launched.stdin.close()


@pytest.mark.slow
def test_a_daemon_that_fails_says_why(forks):
    environment = {**BASE, "PYTHONHASHSEED": "0", "PYTHON_UNIX_DOMAIN_ENABLED": "true"}
    with subprocess.Popen([forks.python, "-m", "pyspark.daemon", WORKER], env=environment, stdout=-1, stderr=-1, text=True) as made:
        assert "PYTHON_WORKER_FACTORY_SOCK_DIR" in made.communicate(timeout=20)[1]


@pytest.mark.slow
def test_a_launcher_that_is_killed_while_it_asks_ends_no_fork_server(forks):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(Path(forks.python).with_name("socket")))
    with daemon(forks) as (launched, port):
        connection, forked = worker(port)
        with connection:
            assert [each.pid for each in forked.parents()][1] == forks.process.pid
            launched.stdin.close()


@pytest.mark.slow
def test_python_runs_where_temporary_files_may_not_be_programs(monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    made = ForkServer(BASE)
    made.stop()
    assert made.python == sys.executable


@pytest.mark.slow
def test_only_masters_of_this_machine_fork():
    assert [can_fork(master) for master in ("local", "local[2]", "local-cluster[1,1,1024]", "spark://h:7077", "yarn")] == [
        True,
        True,
        False,
        False,
        False,
    ]
