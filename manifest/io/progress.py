"""Progress of reading and writing data files."""

from __future__ import annotations

from dataclasses import dataclass


class ProgressListener:
    """Listener of read bytes and written rows, from any thread.

    This base class ignores them.
    """

    # Called once per batch, so that callers need not check for a listener.
    def read(self, size: int, *, files: int = 0) -> None:
        """Report read bytes of data files, and completely read files."""

    def wrote(self, rows: int) -> None:
        """Report rows written to data files."""


IGNORE_PROGRESS = ProgressListener()


@dataclass(slots=True)
class FileProgress:
    """Progress within one file of ``size`` bytes and ``rows`` rows.

    Reports the whole file to ``listener``, including skipped rows.

    >>> class Printing(ProgressListener):
    ...     def read(self, size, *, files=0):
    ...         print(size, files)
    >>> progress = FileProgress(Printing(), size=100, rows=10)
    >>> progress(3)
    30 0
    >>> progress.end()
    70 1
    """

    listener: ProgressListener
    size: int
    rows: int
    _reported: int = 0

    def __call__(self, row: int) -> None:
        """Report that all rows before ``row`` are processed."""
        upto = self.size * min(row, self.rows) // max(self.rows, 1)
        self.listener.read(upto - self._reported)
        self._reported = upto

    def end(self) -> None:
        """Report that the file is processed."""
        self.listener.read(self.size - self._reported, files=1)
        self._reported = self.size
