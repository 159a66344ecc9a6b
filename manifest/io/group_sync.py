"""A ``FileIO`` that syncs files in the background while others are still being written, instead of one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import lru_cache
from typing import Any

from manifest.io.file_io import FileIO
from manifest.io.threads import WorkerPool
from manifest.io.wrapped import WrappedFileIO

_AT_ONCE = 4


class GroupSync(WrappedFileIO):
    """Writes at once, waits for the disk later: nothing may refer to what was written before ``settle`` has returned.

    >>> import tempfile
    >>> from manifest.io.file_io import LocalFileIO
    >>> together, folder = GroupSync(LocalFileIO()), tempfile.mkdtemp()
    >>> together.write(f"{folder}/a", b"first")
    >>> together.settle()
    """

    def __init__(self, inner: FileIO) -> None:
        super().__init__(inner)
        self._waiting: list[tuple[str, Future[None]]] = []

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return GroupSync, (self.inner,)

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:
        """Write a whole file; if it is to be ``durable``, it is after ``settle``."""
        if durable and not overwrite:
            self._waiting.append((path, _threads(os.getpid()).submit(self.inner.start_write(path, data))))
        else:
            self.inner.write(path, data, overwrite=overwrite, durable=False)
            if durable:
                self.sync(path)

    def sync(self, path: str) -> None:
        """Begin to make a closed file and its directory entry durable."""
        self._waiting.append((path, _threads(os.getpid()).submit(self.inner.sync, path)))

    def delete(self, path: str) -> bool:
        """Delete a file; one that is still being written would else appear afterwards."""
        wait([done for written, done in list(self._waiting) if written == path])
        return self.inner.delete(path)

    def settle(self) -> None:
        """Wait until everything is durable; raises the first error of any file."""
        waiting = self._waiting
        self.close()
        for _, done in waiting:
            done.result()

    def close(self) -> None:
        """Wait until nothing is under way; what was deleted meanwhile need not become durable."""
        waiting, self._waiting = self._waiting, []
        wait([done for _, done in waiting])


@lru_cache(maxsize=1)
def _threads(process: int) -> WorkerPool:
    """The threads of this ``process`` that wait for the disk, started once: a small commit takes hardly longer than starting some."""
    return WorkerPool(_AT_ONCE, thread_name_prefix=f"paimon-sync-{process}")


__all__ = ["GroupSync"]
