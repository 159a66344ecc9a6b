"""A server for tests: a process that listens on 127.0.0.1, with a folder of its own, for as long as it is held."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

import pytest

_Server = TypeVar("_Server", bound="LocalServer")
_PAUSE_SECONDS = 0.05


@dataclass
class LocalServer:
    """A server's ``port``, its ``folder``, which goes with it, and its process."""

    port: int = 0
    folder: Path = Path()
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        """Start it."""
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        self.kill()
        if self.folder != Path():  # it was never made: never the directory of this process
            shutil.rmtree(self.folder, ignore_errors=True)

    def _make_folder(self, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"paimon-{name}-"))

    def _run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start the process. What it prints goes to ``log``."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)

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

    def _give_up(self, name: str, error: type[Exception], told: str | None = None) -> None:
        """Stop, and raise ``error`` with the end of what the server told; None: of its log."""
        last = (self.folder / "log").read_text() if told is None else told
        self.__exit__()
        raise error(f"{name} did not start: {last[-500:]}")

    def kill(self) -> None:
        """Stop at once, as a machine that goes."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def held(server: _Server, unavailable: type[Exception]) -> Iterator[_Server]:
    """The body of a fixture: the running server; skips where it is ``unavailable``."""
    try:
        server.__enter__()
    except unavailable as error:
        server.__exit__()
        pytest.skip(str(error))
    try:
        yield server
    finally:
        server.__exit__()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


__all__ = ["LocalServer", "free_port", "held"]
