"""A file that is being written: opened for its first bytes, made durable when it is finished, taken back when its writer gives up."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from manifest.io.file_io import FileIO
from manifest.io.storage_errors import storage_errors


class OutputFile:
    """One new file at ``path``. Call order: ``open`` (again and again gives the same ``sink``), then ``finish`` or ``abort``."""

    def __init__(self, file_io: FileIO, path: str) -> None:
        self.path = path
        self.sink: Any = None
        self._file_io = file_io

    def open(self) -> Any:
        """Where to write; the file exists from now on."""
        if self.sink is None:
            self.sink = self._file_io.open_output(self.path)
        return self.sink

    @property
    def size(self) -> int:
        """Bytes so far."""
        return 0 if self.sink is None else int(self.sink.tell())

    def finish(self) -> int:
        """Close the file and make it durable; its exact size in bytes."""
        with storage_errors(self.path):
            size = int(self.open().tell())
            self.sink.close()
        self._file_io.sync(self.path)
        return size

    def abort(self) -> None:
        """Delete what was written; never raises, for the cause of the abort is the error to report."""
        if self.sink is None:
            return
        with suppress(Exception):
            getattr(self.sink, "abort", self.sink.close)()  # what is being uploaded is taken back, not finished
        with suppress(Exception):
            self._file_io.delete(self.path)


__all__ = ["OutputFile"]
