"""Spark Connect server for Paimon tables, as a child process.

Starts the server of the pip package of Spark with this Python, this package on its path, and this package's settings.
Forwards Spark's warnings and errors, and reports its own events as lines.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from manifest.storage.allowed_roots import ROOTS
from paimon_base.errors import InvalidArgument
from pyspark_paimon.spark.client.address import DEFAULT_PORT, LOOPBACK_HOSTS, Address
from pyspark_paimon.spark.client.forks import ForkServer, can_fork
from pyspark_paimon.spark.client.session import DRIVER_MEMORY, RUNTIME_CONF, package_root, require_java, server_of, spark_session
from pyspark_paimon.spark.wire.errors import SparkUnavailable

TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105  # the variable's name
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STARTED = re.compile(r"Spark Connect server started at: \S+:(\d+)")
_LINE = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (\w+) ")
_EXPECTED = re.compile(
    r"Failed to open socket to Python daemon|Assuming that daemon unexpectedly quit|ErrorUtils: Spark Connect RPC error during: analyze"
)
"""Warnings after an idle daemon has ended (``spark/fork_server.py``), and errors of statements, which clients receive."""
_FORWARDED_LEVELS = frozenset({"WARN", "ERROR", "FATAL"})
_PATIENCE_SECONDS = 15.0
_ENDS_WITH_INPUT = (
    'exec 3<&0; (read -r _ <&3; trap "" TERM; kill -TERM 0; sleep 15; kill -KILL 0) >/dev/null 2>&1 & exec "$0" "$@" 3<&- </dev/null'
)
"""Shell script that runs a command, and ends its process group when standard input ends: no killed process leaves its server."""
_LAST_LINES = 20
_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104  # users choose it explicitly


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server process; ``repr`` shows no token.

    Raises ``InvalidArgument`` for an invalid port, or for a host of the network without token.
    """

    port: int = DEFAULT_PORT
    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    roots: str | None = None
    master: str = "local[*]"
    memory: str = DRIVER_MEMORY
    conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise InvalidArgument(f"port {self.port}: ports go from 0 (a free one) to 65535")
        if self.host not in LOOPBACK_HOSTS and not self.token:
            raise InvalidArgument(
                f"host {self.host}: every client on the network could read and write all tables. Set a token in the variable {TOKEN_VARIABLE}"
            )

    def command(self) -> list[str]:
        """Return the command that starts Spark's server class.

        The command contains no token.
        """
        settings = {
            "spark.connect.grpc.binding.address": self.host,
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.python.daemon.module": "pyspark_paimon.spark.daemon",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            **RUNTIME_CONF,
            **self.conf,
        }
        flags = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        name = ["--name", "pyspark-paimon", "--master", self.master, "--driver-memory", self.memory]
        return [str(_spark_home() / "bin" / "spark-submit"), *name, "--class", _CLASS, *flags]

    def environment(self) -> dict[str, str]:
        """Return the environment variables of the server process.

        Sets this Python, the path of this package, the token and the allowed directories.
        """
        path = os.pathsep.join([package_root(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
        variables = {"SPARK_HOME": str(_spark_home()), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path, "SPARK_CONNECT_MODE": "0"}
        variables |= {TOKEN_VARIABLE: self.token} if self.token else {}
        variables |= {ROOTS: self.roots} if self.roots else {}
        return {**os.environ, **variables}


class ConnectServer:
    """Running server; a context manager that stops it.

    The callback receives status lines for users.
    """

    def __init__(self, settings: ServerSettings, report: Callable[[str], None]) -> None:
        self.settings = settings
        self.port = 0
        self._report = report
        self._last: list[str] = []
        self._started = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._forks: ForkServer | None = None

    def __enter__(self) -> Self:
        """Start the server and wait until it listens.

        Raises ``SparkUnavailable`` if the server ends before.
        """
        require_java()
        _refuse_used_port(self.settings)
        self._report(f"starting Spark {_spark_version()} on {self.settings.master} with {self.settings.memory} of memory")
        try:
            self._start()
        except BaseException:  # also Ctrl-C and SIGTERM: the server would go on without this process
            self.stop()
            raise
        return self

    def _start(self) -> None:
        environment = self.settings.environment()
        if can_fork(self.settings.master):
            self._forks = ForkServer(environment)
            environment["PYSPARK_PYTHON"] = self._forks.python
        self._process = subprocess.Popen(  # noqa: S603  # Spark's own script
            ["/bin/sh", "-c", _ENDS_WITH_INPUT, *self.settings.command()], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        threading.Thread(target=self._watch, name="paimon-serve", daemon=True).start()
        self._started.wait()
        if not self.port:
            raise SparkUnavailable("the server ended before it listened: " + " | ".join(self._last))

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Address for clients, without the token."""
        return f"sc://{self.settings.host}:{self.port}"

    def check(self) -> str | None:
        """Return the result of ``check`` for this server.

        None: the server listens on one network address only. A token would need TLS there.
        """
        local = self.settings.host in LOOPBACK_HOSTS | _EVERYWHERE
        return check(f"sc://localhost:{self.port}", self.settings.token) if local else None

    def wait(self) -> int:
        """Wait until the server exits; return its exit code."""
        assert self._process is not None, "it is waited for inside the block"
        return self._process.wait()

    def stop(self) -> None:
        """Stop the server and all processes it started.

        Sends SIGTERM, and SIGKILL if the server still runs after 15 seconds.
        """
        if self._process is not None:
            for number, patience in ((signal.SIGTERM, _PATIENCE_SECONDS), (signal.SIGKILL, None)):
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(patience)
                    break
        if self._forks is not None:
            self._forks.stop()
            self._forks = None

    def _watch(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self._process.stdout as log:
            for line in log_lines(log, self._listens):
                self._last = [*self._last[1 - _LAST_LINES :], line]
                self._report(line)
        self._started.set()

    def _listens(self, port: int) -> None:
        self.port = port
        self._started.set()


def log_lines(log: Iterator[str], listens: Callable[[int], None]) -> Iterator[str]:
    """Yield the warnings and errors of Spark's log.

    Continuation lines follow their message. ``listens`` is called with the port when the server starts to listen.

    >>> log = iter(["26/01/31 10:00:00 INFO A: fine", "26/01/31 10:00:01 ERROR B: bad", "  at C", "26/01/31 10:00:02 INFO A: fine"])
    >>> list(log_lines(log, print))
    ['26/01/31 10:00:01 ERROR B: bad', '  at C']
    """
    shown = True
    for line in log:
        match = _STARTED.search(line)
        if match:
            listens(int(match.group(1)))
        level = _LINE.match(line)
        shown = level.group(1) in _FORWARDED_LEVELS and not _EXPECTED.search(line) if level else shown
        if shown and line.strip():
            yield line.rstrip()


def check(address: str, token: str | None) -> str:
    """Return the versions of Spark and of this package.

    ``address`` is the server's address. Raises ``SparkUnavailable``, also if the server lacks the package.
    """
    session = spark_session(address, token=token, new=True)
    try:
        facts = server_of(session)
        if facts is None:
            raise SparkUnavailable(f"{Address.parse(address)}: the Spark server lacks format 'paimon'")
        return f"Spark {session.version}, pyspark-paimon {facts.package}"
    finally:
        with suppress(Exception):
            session.client.release_session()
        session.client.close()


def _refuse_used_port(settings: ServerSettings) -> None:
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise SparkUnavailable(
                f"{settings.host}:{settings.port}: {error.strerror or error}; choose another port, or 0 for a free one"
            ) from error


def _spark_home() -> Path:
    try:
        import pyspark  # noqa: PLC0415  # importing this package must not import Spark
    except ImportError as error:
        raise SparkUnavailable(f"pyspark is missing ({error}); install pyspark-paimon[spark]") from error
    home = Path(pyspark.__file__).parent
    if not (home / "jars").is_dir():
        raise SparkUnavailable("pyspark-client has no server in it; install pyspark-paimon[spark]")
    return home


def _spark_version() -> str:
    import pyspark  # noqa: PLC0415  # as above

    return str(pyspark.__version__)
