"""A disk that kills or fails at its N-th operation: what Python's ``os`` does below one directory, counted and cut short.

It stands below ``LocalFileIO``, so that what that makes of an error is tried as well. One ``write`` of a file is several operations
here (open, write, fsync, fsync of the directory), and so are the temporary file and the link of a commit.
"""

from __future__ import annotations

import builtins
import errno
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

MUTATIONS = frozenset({"create", "write", "fsync", "link", "unlink", "replace", "rename", "mkdir", "rmdir"})
READS = frozenset({"open", "read", "scandir", "stat"})
ALLOCATING = frozenset({"create", "write", "link", "mkdir"})
_REAL = {name: getattr(os, name) for name in ("open", "write", "fsync", "link", "unlink", "replace", "rename", "mkdir", "rmdir")}
_REAL |= {name: getattr(os, name) for name in ("scandir", "stat", "pread", "close")}
_REAL_OPEN = builtins.open
_REAL_FILE = pa.OSFile


@dataclass(frozen=True)
class Operation:
    """The ``number``-th operation on the disk, from 1."""

    number: int
    name: str
    path: str


@dataclass(frozen=True)
class Kill:
    """SIGKILL before, after or inside the N-th operation that changes something; inside a write half of the bytes are there."""

    number: int
    when: str

    def watches(self, name: str) -> bool:
        return name in MUTATIONS

    def __call__(self, operation: Operation, perform: Callable[[], Any], half: Callable[[], Any] | None) -> Any:
        if operation.number != self.number:
            return perform()
        if self.when == "inside" and half is not None:
            half()
        elif self.when != "before":
            perform()
        os.kill(os.getpid(), signal.SIGKILL)
        return None


FAULTS = {
    "EIO": (errno.EIO, MUTATIONS | READS),
    "ENOSPC": (errno.ENOSPC, ALLOCATING),
    "EACCES": (errno.EACCES, (MUTATIONS | READS) - {"write", "fsync", "read"}),
    "short write": (errno.ENOSPC, frozenset({"write"})),
    "after the effect": (errno.EIO, MUTATIONS),
    "full": (errno.ENOSPC, ALLOCATING),
}
"""Kinds of faults: the error, and the operations that it can meet. ``full`` stays so until the disk is healed."""


@dataclass
class Fault:
    """The N-th operation fails; ``struck`` is that operation."""

    number: int
    kind: str
    struck: Operation | None = None
    healed: bool = False

    def watches(self, name: str) -> bool:
        return True

    def __call__(self, operation: Operation, perform: Callable[[], Any], half: Callable[[], Any] | None) -> Any:
        code, names = FAULTS[self.kind]
        due = operation.number >= self.number if self.kind == "full" else operation.number == self.number
        if self.healed or not due or operation.name not in names:
            return perform()
        self.struck = self.struck or operation
        if self.kind == "after the effect":
            perform()
        elif self.kind == "short write" and half is not None:
            half()
        raise OSError(code, os.strerror(code), operation.path)


@dataclass
class Count:
    """Nothing fails; ``seen`` are the operations."""

    seen: list[Operation]

    def watches(self, name: str) -> bool:
        return True

    def __call__(self, operation: Operation, perform: Callable[[], Any], half: Callable[[], Any] | None) -> Any:
        self.seen.append(operation)
        return perform()


@dataclass(frozen=True)
class Stop:
    """SIGSTOP before the N-th operation; whoever sends SIGCONT lets it go on. ``kills``: SIGKILL instead."""

    number: int
    kills: bool = False

    def watches(self, name: str) -> bool:
        return True

    def __call__(self, operation: Operation, perform: Callable[[], Any], half: Callable[[], Any] | None) -> Any:
        if operation.number == self.number:
            os.kill(os.getpid(), signal.SIGKILL if self.kills else signal.SIGSTOP)
        return perform()


Act = Kill | Fault | Count | Stop


class Disk:
    """``os`` below ``root``, from ``install`` until this process ends; meant for a fork."""

    def __init__(self, root: str, act: Act) -> None:
        self._root = root.rstrip("/")
        self._act = act
        self._paths: dict[int, str] = {}
        self._number = 0
        self._lock = threading.Lock()

    def install(self) -> None:
        for name in ("link", "replace", "rename"):
            setattr(os, name, self._between(name))
        for name in ("unlink", "mkdir", "rmdir", "scandir", "stat"):
            setattr(os, name, self._at(name))
        os.remove = os.unlink
        os.open, os.close, os.write, os.fsync, os.pread = self._open, self._close, self._write, self._fsync, self._pread
        builtins.open = self._open_file  # type: ignore[assignment]
        pa.OSFile = self._arrow_file

    def _under(self, path: object) -> bool:
        return isinstance(path, str) and (path == self._root or path.startswith(self._root + "/"))

    def _do(self, name: str, path: str, perform: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
        if not self._act.watches(name):
            return perform()
        with self._lock:
            self._number += 1
            operation = Operation(self._number, name, path)
        return self._act(operation, perform, half)

    def _at(self, name: str) -> Callable[..., Any]:
        real = _REAL[name]

        def call(path: Any = ".", *arguments: Any, **how: Any) -> Any:
            place = path if how.get("dir_fd") is None else f"{self._paths.get(how['dir_fd'], '')}/{path}"
            place = self._paths.get(place, "") if isinstance(place, int) else place
            if not self._under(place):
                return real(path, *arguments, **how)
            return self._do(name, place, lambda: real(path, *arguments, **how))

        return call

    def _between(self, name: str) -> Callable[..., Any]:
        real = _REAL[name]

        def call(source: Any, target: Any, **how: Any) -> Any:
            if not self._under(target):
                return real(source, target, **how)
            return self._do(name, target, lambda: real(source, target, **how))

        return call

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        place = path if dir_fd is None else f"{self._paths.get(dir_fd, '')}/{path}"
        if not self._under(place):
            return int(_REAL["open"](path, flags, mode, dir_fd=dir_fd))

        def perform() -> int:
            descriptor: int = _REAL["open"](path, flags, mode, dir_fd=dir_fd)
            self._paths[descriptor] = place
            return descriptor

        return int(self._do("create" if flags & os.O_CREAT else "open", place, perform))

    def _close(self, descriptor: int) -> None:
        self._paths.pop(descriptor, None)
        _REAL["close"](descriptor)

    def _write(self, descriptor: int, data: Any) -> int:
        path = self._paths.get(descriptor)
        if path is None:
            return int(_REAL["write"](descriptor, data))
        view = memoryview(data)
        written: int = self._do(
            "write", path, lambda: _REAL["write"](descriptor, view), lambda: _REAL["write"](descriptor, view[: len(view) // 2])
        )
        return written

    def _fsync(self, descriptor: int) -> None:
        path = self._paths.get(descriptor)
        if path is None:
            _REAL["fsync"](descriptor)
        else:
            self._do("fsync", path, lambda: _REAL["fsync"](descriptor))

    def _pread(self, descriptor: int, length: int, offset: int) -> bytes:
        path = self._paths.get(descriptor)
        if path is None:
            return bytes(_REAL["pread"](descriptor, length, offset))
        return bytes(self._do("read", path, lambda: _REAL["pread"](descriptor, length, offset)))

    def _open_file(self, path: Any, *arguments: Any, **how: Any) -> Any:
        if not self._under(path):
            return _REAL_OPEN(path, *arguments, **how)
        return self._do("read", path, lambda: _REAL_OPEN(path, *arguments, **how))

    def _arrow_file(self, path: str, mode: str = "r") -> Any:
        if not self._under(path):
            return _REAL_FILE(path, mode)
        if mode.startswith("w"):
            return pa.PythonFile(_Output(self, path), mode="w")
        return pa.PythonFile(_Input(self, path), mode="r")


class _Output:
    """What Arrow writes to, by way of the disk."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._descriptor = disk._open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._disk = disk
        self._at = 0
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        while view:
            done = self._disk._write(self._descriptor, view)
            self._at += done
            view = view[done:]
        return len(memoryview(data).cast("B"))

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._disk._close(self._descriptor)

    def __del__(self) -> None:
        with suppress(OSError):
            self.close()


class _Input:
    """What Arrow reads from, by way of the disk."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._descriptor = disk._open(path, os.O_RDONLY)
        self._disk = disk
        self._at = 0
        self.closed = False

    def read(self, length: int = -1) -> bytes:
        length = os.fstat(self._descriptor).st_size - self._at if length is None or length < 0 else length
        data = self._disk._pread(self._descriptor, length, self._at)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._at, os.fstat(self._descriptor).st_size)[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._disk._close(self._descriptor)

    def __del__(self) -> None:
        with suppress(OSError):
            self.close()
