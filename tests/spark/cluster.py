"""A standalone Spark cluster with a Connect server on it, of the processes that the pip package starts, on 127.0.0.1.

One master, two workers of a core each, and a server whose Python finds this checkout. Everything listens on ports of its own and
ends with the test run: by ``stop``, and by the kernel where the run is killed.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark
from thin_client import ROOT, thin_python

SPARK_HOME = Path(pyspark.__file__).parent
SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER_CLASS = "org.apache.spark.deploy.master.Master"
WORKER_CLASS = "org.apache.spark.deploy.worker.Worker"
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a test run is over before the optimising compiler pays
CONF = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.memory": "768m",
    "spark.executor.cores": "1",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # both workers take part in the first job
    "spark.executor.extraJavaOptions": _QUICK_JVM,
}
_PATIENCE_SECONDS = 90


@dataclass
class Daemon:
    """A process of ours that writes a log, and leads a process group."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, command: list[str], log: Path, environment: Mapping[str, str]) -> Daemon:
        with log.open("wb") as output:
            process = subprocess.Popen(
                _tied(command), stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env=dict(environment), cwd=log.parent, start_new_session=True,
            )  # fmt: skip
        return cls(process, log)

    def wait_for(self, pattern: str) -> str:
        """The first group of the first match of ``pattern`` in the log. Raises ``RuntimeError`` with its end."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            found = re.search(pattern, self.log.read_text(errors="replace"))
            if found:
                return found.group(1)
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"{self.log.name} never said '{pattern}':\n{self.log.read_text(errors='replace')[-3000:]}")

    def family(self) -> list[psutil.Process]:
        """The process and all below it, the eldest first; Spark's Python daemons leave the group, not the family."""
        with suppress(psutil.NoSuchProcess):
            eldest = psutil.Process(self.process.pid)
            return [eldest, *eldest.children(recursive=True)]
        return []


@dataclass
class Cluster:
    """A running cluster; ``cluster`` of conftest.py gives the one of the test run."""

    home: Path
    token: str
    master: Daemon
    servers: list[Daemon] = field(default_factory=list)
    workers_running: list[Daemon] = field(default_factory=list)
    master_url: str = ""
    ports: list[int] = field(default_factory=list)
    logs: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """``sc://host:port``; to any host but this one, Spark's client sends a token over TLS only."""
        return f"sc://localhost:{self.ports[-1]}"

    @property
    def url(self) -> str:
        """The address with the token."""
        return f"{self.address}/;token={self.token}"

    @property
    def workers(self) -> list[int]:
        """Process ids of the cluster's two workers."""
        return [worker.process.pid for worker in self.workers_running]

    @property
    def executors(self) -> list[int]:
        """Process ids of the executors' JVMs, which the workers start and start again."""
        return [each.pid for each in self._below(self.workers_running) if "CoarseGrainedExecutorBackend" in _words(each)]

    @property
    def python_workers(self) -> list[int]:
        """Process ids of the Python processes that run the tasks of executors (not of the daemons that fork them)."""
        daemons = [each for each in self._below(self.workers_running) if "pyspark.daemon" in _words(each)]
        known = {each.pid for each in daemons}
        return [each.pid for each in daemons if _parent(each) in known]

    def kill_worker(self) -> int:
        """Kill a Python process that runs a task, as the kernel does when memory is short; its process id.

        Raises ``AssertionError`` if there is none.
        """
        return _killed(self.python_workers)

    def kill_executor(self) -> int:
        """Kill the JVM of an executor; its worker starts another. The process id."""
        return _killed(self.executors)

    def client(self, code: str, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """What ``code`` prints in a thin client of its own process; ``sys.argv[1]`` is the url, then ``arguments``.

        Raises ``AssertionError`` with what it said if it fails.
        """
        client = self.start_client(code, *arguments, environment=environment)
        try:
            output, errors = client.communicate(timeout=_PATIENCE_SECONDS * 5)
        except subprocess.TimeoutExpired:
            client.kill()
            raise AssertionError("the client never ended:\n" + "\n".join(client.communicate())[-6000:]) from None
        except BaseException:
            client.kill()
            client.wait()
            raise
        assert client.returncode == 0, f"the client failed ({client.returncode}):\n{errors[-6000:]}"
        return output

    def start_client(self, code: str, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """As ``client``, still running: to be waited for, or killed."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_", "JAVA_"))}
        clean |= {"PYTHONPATH": str(ROOT), "PATH": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1"}  # no Java to be found
        program = self._log("client").with_suffix(".py")  # for ``python -c`` pyspark-client looks for jars, as if it ran its own doctests
        program.write_text(code)
        command = [thin_python(), str(program), self.url, *arguments]
        return subprocess.Popen(
            _tied(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.home, env={**clean, **(environment or {})},
        )  # fmt: skip

    def start_server(
        self, environment: Mapping[str, str] | None = None, conf: Mapping[str, str] | None = None, master: str | None = None
    ) -> int:
        """Start a Connect server on this cluster, or on another ``master``; its port. The last one started is where ``address`` leads."""
        settings = CONF | dict(conf or {})
        flags = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master or self.master_url, "--class", SERVER_CLASS, *flags]
        extra = {"SPARK_CONNECT_AUTHENTICATE_TOKEN": self.token, "SPARK_DAEMON_MEMORY": "1g", **self.settings}
        server = Daemon.start(command, self._log("server"), _environment({**extra, **(environment or {})}))
        self.servers.append(server)
        self.ports.append(0)
        self.ports[-1] = int(server.wait_for(r"Spark Connect server started at: \S+:(\d+)"))
        return self.ports[-1]

    def stop_server(self) -> None:
        """End the server started last, and its executors, as a crash would; ``address`` leads to the one before, if any."""
        self.ports.pop()
        _end([self.servers.pop()], signal.SIGKILL)

    def restart_server(self) -> None:
        """End the server and start another at another port; clients of the old one are cut off."""
        self.stop_server()
        self.start_server()

    def start_workers(self, count: int) -> None:
        """Start workers of a core each, without waiting for them; by name they are on two hosts, for Spark speculates on another host only."""
        for _ in range(count):
            log = self._log("worker")
            places = [
                "--host",
                ("127.0.0.1", "localhost")[len(self.workers_running) % 2],
                "--port",
                "0",
                "--webui-port",
                "0",
                "--work-dir",
                str(log.with_suffix(".work")),
            ]
            command = [str(SPARK_HOME / "bin" / "spark-class"), WORKER_CLASS, self.master_url, "--cores", "1", "--memory", "1g", *places]
            self.workers_running.append(Daemon.start(command, log, _environment(self.settings)))

    def stop(self) -> None:
        """End every process."""
        _end([*self.servers, *self.workers_running, self.master], signal.SIGTERM)

    def _log(self, name: str) -> Path:
        self.logs += 1
        return self.home / f"{name}-{self.logs}.log"

    def _below(self, daemons: list[Daemon]) -> list[psutil.Process]:
        return [each for daemon in daemons for each in daemon.family()[1:]]


@contextmanager
def running_cluster(home: Path, settings: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Start a cluster whose logs and work lie in ``home``; all of it ends with the block.

    ``settings`` are variables that whoever runs the machines has set for server and workers.
    """
    log = home / "master.log"
    command = [str(SPARK_HOME / "bin" / "spark-class"), MASTER_CLASS, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    master = Daemon.start(command, log, _environment({}))
    cluster = Cluster(home, secrets.token_hex(16), master, settings=settings or {})
    try:
        cluster.master_url = cluster.master.wait_for(r"Starting Spark master at (spark://\S+)")
        cluster.start_workers(2)
        cluster.start_server()
        yield cluster
    finally:
        cluster.stop()


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    wanted = {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _QUICK_JVM,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }
    return {**clean, **wanted, **extra}


def _end(daemons: list[Daemon], first: int) -> None:
    """Send ``first`` to the daemons' groups, give them a moment, and kill what is left of their families."""
    family = [each for daemon in daemons for each in daemon.family()]
    for daemon in daemons:
        with suppress(ProcessLookupError):
            os.killpg(daemon.process.pid, first)
    for each in _still_running(family):
        with suppress(psutil.NoSuchProcess):
            each.kill()
    for daemon in daemons:
        daemon.process.wait()


def _still_running(family: list[psutil.Process]) -> list[psutil.Process]:
    """Wait up to five seconds. Return the processes that have not ended."""
    for _ in range(3):
        # Opening the descriptor of a process that ends at that moment fails with ENOENT, which psutil passes on.
        with suppress(FileNotFoundError):
            return psutil.wait_procs(family, timeout=5)[1]
    return family


def _killed(pids: list[int]) -> int:
    assert pids, "nothing runs that could be killed"
    os.kill(pids[-1], signal.SIGKILL)
    return pids[-1]


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _parent(process: psutil.Process) -> int:
    try:
        return process.ppid()
    except psutil.Error:
        return 0


def _tied(command: list[str]) -> list[str]:
    """``command``, to be ended by the kernel when the test run is; where util-linux is there to ask for it."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", *command] if setpriv else command
