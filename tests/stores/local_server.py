"""A server for tests: a process that listens on 127.0.0.1, with a folder of its own, for as long as it is held."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self, TypeVar

import pytest

from benchmarks.java_project import JavaUnavailable

_Server = TypeVar("_Server", bound="LocalServer")
_PAUSE_SECONDS = 0.05
CATALOG = "PAIMON_TEST_CATALOG"
"""Variable with the options of a server's catalog as JSON, its warehouse included."""


class ServerUnavailable(Exception):  # a reason to skip, not an error
    """The server cannot run on this machine; the text is one line that says why."""


UNAVAILABLE = (ServerUnavailable, JavaUnavailable)


@dataclass
class LocalServer:
    """A server's ``port``, its ``folder``, which goes with it, and its process."""

    name: ClassVar[str]
    port: int = 0
    folder: Path = Path()
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        """Start it. Raises one of ``UNAVAILABLE``."""
        raise NotImplementedError

    def options(self) -> dict[str, str]:
        """Options that reach it: of a store, or of a catalog without its warehouse."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Variables by which a process reaches it."""
        return {CATALOG: json.dumps(self.options() | {"warehouse": str(self.folder / "tables")})}

    def __exit__(self, *_: object) -> None:
        self.kill()
        if self.folder != Path():  # it was never made: never the directory of this process
            shutil.rmtree(self.folder, ignore_errors=True)

    def _make_folder(self, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"paimon-{name}-"))

    def _run(self, command: Sequence[str], environment: Mapping[str, str] | None = None, user: str | None = None) -> None:
        """Start the process. What it prints goes to ``log``. ``user`` None: the one of this process."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, user=user
            )

    def _answers_within(self, seconds: float, answers: Callable[[], bool]) -> bool:
        """Wait until the server answers. False: it ended, or the time did. An ``OSError`` is no answer yet."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            try:
                if answers():
                    return True
            except OSError:
                pass
            time.sleep(_PAUSE_SECONDS)
        return False

    def _listens(self) -> bool:
        socket.create_connection(("127.0.0.1", self.port), 5).close()
        return True

    def _give_up(self, told: str | None = None) -> None:
        """Stop, and raise ``ServerUnavailable`` with the end of what the server told; None: of its log."""
        last = (self.folder / "log").read_text() if told is None else told
        self.__exit__()
        raise ServerUnavailable(f"{self.name} did not start: {last[-500:]}")

    def kill(self) -> None:
        """Stop at once, as a machine that goes."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def held(server: _Server) -> Iterator[_Server]:
    """The body of a fixture: the running server; skips where it is unavailable."""
    try:
        server.__enter__()
    except UNAVAILABLE as error:
        server.__exit__()
        pytest.skip(str(error))
    try:
        yield server
    finally:
        server.__exit__()


def require_driver(server: str, module: str) -> None:
    """Raise ``ServerUnavailable`` if Python's driver of a database is not installed."""
    if importlib.util.find_spec(module) is None:
        raise ServerUnavailable(f"{server} is asked through {module}, which is not installed")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


__all__ = ["CATALOG", "UNAVAILABLE", "LocalServer", "ServerUnavailable", "free_port", "held", "require_driver"]
