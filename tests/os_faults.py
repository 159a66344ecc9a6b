"""The operating system refusing: calls of ``os`` on files below a folder fail as a test wants it, everybody else's go through."""

from __future__ import annotations

import builtins
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

PLACES = (
    "open",
    "write",
    "fsync",
    "link",
    "replace",
    "rename",
    "unlink",
    "scandir",
    "stat",
    "mkdir",
    "pread",
    "read",
    "arrow read",
    "arrow write",
)
Fault = Callable[[], BaseException]


class OsFaults:
    """Which calls fail: those at ``place``, from the one numbered ``first`` on, ``times`` of them."""

    def __init__(self, root: str, place: str, fault: Fault, *, first: int = 0, times: int = 1 << 30) -> None:
        self.root, self.place, self.fault = root, place, fault
        self.window = range(first, first + times)
        self.seen = 0
        self.hit = 0
        self._descriptors: set[int] = set()

    def _meets(self, *arguments: object) -> bool:
        for argument in arguments:
            if isinstance(argument, str | os.PathLike) and os.fspath(argument).startswith(self.root):
                return True
            if isinstance(argument, int) and argument in self._descriptors:
                return True
        return False

    def check(self, place: str, *arguments: object) -> None:
        """Fail if this is a call that shall."""
        if place == self.place and self._meets(*arguments):
            number, self.seen = self.seen, self.seen + 1
            if number in self.window:
                self.hit += 1
                raise self.fault()

    @contextmanager
    def injected(self) -> Iterator[OsFaults]:
        """Have the calls of the block fail."""
        with pytest.MonkeyPatch.context() as patched:
            for name in ("write", "fsync", "link", "replace", "rename", "unlink", "scandir", "stat", "mkdir", "pread"):
                patched.setattr(os, name, self._failing(name, getattr(os, name)))
            patched.setattr(os, "open", self._opening(os.open))
            patched.setattr(os, "close", self._closing(os.close))
            patched.setattr(builtins, "open", self._reading(builtins.open))
            patched.setattr(pa, "OSFile", self._arrow(pa.OSFile))
            yield self

    def _failing(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def failing(*arguments: Any, **options: Any) -> Any:
            self.check(name, *arguments)
            return call(*arguments, **options)

        return failing

    def _opening(self, call: Callable[..., int]) -> Callable[..., int]:
        def opening(path: Any, *arguments: Any, **options: Any) -> int:
            self.check("open", path)
            descriptor = call(path, *arguments, **options)
            if self._meets(path):
                self._descriptors.add(descriptor)
            return descriptor

        return opening

    def _closing(self, call: Callable[[int], None]) -> Callable[[int], None]:
        def closing(descriptor: int) -> None:
            self._descriptors.discard(descriptor)
            call(descriptor)

        return closing

    def _reading(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def reading(path: Any, *arguments: Any, **options: Any) -> Any:
            self.check("read", path)
            found = call(path, *arguments, **options)
            if self._meets(path):
                self._descriptors.add(found.fileno())
            return found

        return reading

    def _arrow(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def arrow(path: str, mode: str = "rb", **options: Any) -> Any:
            if not self.place.startswith("arrow") or not self._meets(path):
                return call(path, mode, **options)
            raw = io.FileIO(path, "r+" if "w" in mode else "r")
            return pa.PythonFile(_Failing(raw, path, self), mode="w" if "w" in mode else "r")

        return arrow


class _Failing:
    """A file object whose reads and writes ask first whether they shall fail."""

    def __init__(self, raw: io.FileIO, path: str, faults: OsFaults) -> None:
        self._raw, self._path, self._faults = raw, path, faults

    def read(self, size: int = -1) -> bytes:
        self._faults.check("arrow read", self._path)
        return self._raw.read(size)

    def write(self, data: Any) -> int:
        self._faults.check("arrow write", self._path)
        return self._raw.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


__all__ = ["PLACES", "OsFaults"]
