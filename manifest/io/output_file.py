"""A file that is written, then finished or aborted."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from manifest.io.file_io import FileIO
from manifest.io.storage_errors import storage_errors


class OutputFile:
    """One new file at ``path``.

    Call ``open`` (repeated calls return the same ``sink``), then ``finish`` or ``abort``.
    """

    def __init__(self, file_io: FileIO, path: str) -> None:
        self.path = path
        self.sink: Any = None
        self._file_io = file_io

    def open(self) -> Any:
        """Return the sink. The first call creates the file."""
        if self.sink is None:
            self.sink = self._file_io.open_output(self.path)
        return self.sink

    @property
    def size(self) -> int:
        """Bytes so far."""
        return 0 if self.sink is None else int(self.sink.tell())

    def finish(self) -> int:
        """Close the file durably and return its size in bytes."""
        with storage_errors(self.path):
            size = int(self.open().tell())
            self.sink.close()
        self._file_io.sync(self.path)
        return size

    def abort(self) -> None:
        """Delete the file.

        Never raises, because the cause of the abort is the error to report.
        """
        if self.sink is None:
            return
        with suppress(Exception):
            getattr(self.sink, "abort", self.sink.close)()  # cancel an upload instead of completing it
        with suppress(Exception):
            self._file_io.delete(self.path)
