"""A Spark Connect server that serves Paimon tables, as one process to start, watch and stop.

What it takes is in the pip package of Spark; this starts it with this Python, the package on its path and the settings that the package
wants, and is its keeper: Spark's warnings and errors are passed on, the rest is told in lines of its own.
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

from fileindex.base.errors import InvalidArgument
from manifest.storage.allowed_roots import ROOTS
from pyspark_paimon.spark.client.address import DEFAULT_PORT, LOOPBACK_HOSTS, Address
from pyspark_paimon.spark.client.facts import server_of
from pyspark_paimon.spark.client.session import DRIVER_MEMORY, RUNTIME_CONF, package_root, require_java, spark_session
from pyspark_paimon.spark.wire.errors import SparkUnavailable

TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105  # the variable's name
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STARTED = re.compile(r"Spark Connect server started at: \S+:(\d+)")
_LINE = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (\w+) ")
_TOLD = frozenset({"WARN", "ERROR", "FATAL"})
_PATIENCE_SECONDS = 15.0
_LAST_LINES = 20
_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104  # asked for by who starts it


@dataclass(frozen=True)
class ServerSettings:
    """What a server is started with; ``repr`` shows no token. Raises ``InvalidArgument`` for what would not be safe."""

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
                f"host {self.host}: whoever reaches the server could read and write every table; set a token, in the variable {TOKEN_VARIABLE}"
            )

    def command(self) -> list[str]:
        """The command that starts Spark's own server class; the token is not in it."""
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
        """Its variables: this Python, this package, the token, the directories that it allows."""
        path = os.pathsep.join([package_root(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
        wanted = {"SPARK_HOME": str(_spark_home()), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path, "SPARK_CONNECT_MODE": "0"}
        wanted |= {TOKEN_VARIABLE: self.token} if self.token else {}
        wanted |= {ROOTS: self.roots} if self.roots else {}
        return {**os.environ, **wanted}


class ConnectServer:
    """A running server; a context manager that stops it. ``tell`` gets a line for people now and then."""

    def __init__(self, settings: ServerSettings, tell: Callable[[str], None]) -> None:
        self.settings = settings
        self.port = 0
        self._tell = tell
        self._last: list[str] = []
        self._started = threading.Event()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Start it and wait until it listens. Raises ``SparkUnavailable``."""
        require_java()
        _refuse_used_port(self.settings)
        self._tell(f"starting Spark {_spark_version()} on {self.settings.master} with {self.settings.memory} of memory")
        self._process = subprocess.Popen(  # noqa: S603  # Spark's own script
            self.settings.command(), env=self.settings.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        threading.Thread(target=self._watch, name="paimon-serve", daemon=True).start()
        self._started.wait()
        if not self.port:
            self.stop()
            raise SparkUnavailable("the server ended before it listened: " + " | ".join(self._last))
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Where clients find it, without the token."""
        return f"sc://{self.settings.host}:{self.port}"

    def check(self) -> str | None:
        """What ``check`` says of it; None where it listens at one address of the network only, where a token would need TLS."""
        local = self.settings.host in LOOPBACK_HOSTS | _EVERYWHERE
        return check(f"sc://localhost:{self.port}", self.settings.token) if local else None

    def wait(self) -> int:
        """Wait until the server ends by itself; its exit code."""
        assert self._process is not None, "it is waited for inside the block"
        return self._process.wait()

    def stop(self) -> None:
        """End it and all that it started: asked first, killed after some seconds."""
        process = self._process
        if process is None:
            return
        for number, patience in ((signal.SIGTERM, _PATIENCE_SECONDS), (signal.SIGKILL, None)):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience)
                return

    def _watch(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in log_lines(self._process.stdout, self._listens):
            self._last = [*self._last[1 - _LAST_LINES :], line]
            self._tell(line)
        self._started.set()

    def _listens(self, port: int) -> None:
        self.port = port
        self._started.set()


def log_lines(log: Iterator[str], listens: Callable[[int], None]) -> Iterator[str]:
    """The lines of Spark's log that people should see: warnings and errors with what belongs to them; ``listens`` is told the port.

    >>> log = iter(["26/01/31 10:00:00 INFO A: fine", "26/01/31 10:00:01 ERROR B: bad", "  at C", "26/01/31 10:00:02 INFO A: fine"])
    >>> list(log_lines(log, print))
    ['26/01/31 10:00:01 ERROR B: bad', '  at C']
    """
    shown = True
    for line in log:
        found = _STARTED.search(line)
        if found:
            listens(int(found.group(1)))
        level = _LINE.match(line)
        shown = level.group(1) in _TOLD if level else shown
        if shown and line.strip():
            yield line.rstrip()


def check(address: str, token: str | None) -> str:
    """What the server at ``address`` answers: Spark's version and ours. Raises ``SparkUnavailable``, also where the package is missing."""
    session = spark_session(address, token=token, new=True)
    try:
        facts = server_of(session)
        if facts is None:
            raise SparkUnavailable(f"{Address.parse(address)}: a Spark server answers, but does not know format 'paimon'")
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


__all__ = ["TOKEN_VARIABLE", "ConnectServer", "ServerSettings", "check", "log_lines"]
