"""A ``FileIO`` that syncs files in the background."""

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
    """Writes files at once and waits for durability later.

    No metadata may refer to the files before that wait.

    >>> import tempfile
    >>> from manifest.io.file_io import LocalFileIO
    >>> sync, folder = GroupSync(LocalFileIO()), tempfile.mkdtemp()
    >>> sync.write(f"{folder}/a", b"first")
    >>> sync.flush()
    """

    def __init__(self, inner: FileIO) -> None:
        super().__init__(inner)
        self.written: list[str] = []
        """Paths of the files that ``write`` wrote, also of those that failed."""
        self._waiting: list[tuple[str, Future[None]]] = []

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return GroupSync, (self.inner,)

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:
        """Write a whole file. The final wait makes it ``durable``."""
        self.written.append(path)
        if durable and not overwrite:
            self._waiting.append((path, _threads(os.getpid()).submit(self.inner.start_write(path, data))))
        else:
            self.inner.write(path, data, overwrite=overwrite, durable=False)
            if durable:
                self.sync(path)

    def sync(self, path: str) -> None:
        """Start to make a closed file durable.

        Includes its directory entry.
        """
        self._waiting.append((path, _threads(os.getpid()).submit(self.inner.sync, path)))

    def delete(self, path: str) -> bool:
        """Delete a file."""
        # A file that is still being written would reappear after the deletion.
        wait([future for written, future in list(self._waiting) if written == path])
        return self.inner.delete(path)

    def flush(self) -> None:
        """Wait until all files are durable. Raise the first error."""
        waiting = self._waiting
        self.close()
        for _, future in waiting:
            future.result()

    def close(self) -> None:
        """Wait until no write is running, without raising errors."""
        waiting, self._waiting = self._waiting, []
        wait([future for _, future in waiting])


@lru_cache(maxsize=1)
def _threads(process: int) -> WorkerPool:
    """Return the sync threads of this ``process``."""
    # Cached, because starting threads takes about as long as a small commit.
    return WorkerPool(_AT_ONCE, thread_name_prefix=f"paimon-sync-{process}")
