"""How far a job has come with its data files: told by those who read and write them, to whoever watches."""

from __future__ import annotations

from dataclasses import dataclass


class Meter:
    """Told of rows and bytes, from any thread; this one keeps nothing. Each call is a batch's, so that nobody asks first whether anyone listens."""

    def read(self, size: int, *, files: int = 0) -> None:
        """So many bytes of data files have been gone through, and so many files to their end."""

    def wrote(self, rows: int) -> None:
        """So many rows have gone into data files."""


UNMETERED = Meter()


@dataclass(slots=True)
class FileProgress:
    """How far one file of ``size`` bytes and ``rows`` rows has been gone through; tells ``meter`` of the whole file, whatever is skipped.

    >>> class Printing(Meter):
    ...     def read(self, size, *, files=0):
    ...         print(size, files)
    >>> progress = FileProgress(Printing(), size=100, rows=10)
    >>> progress(3)
    30 0
    >>> progress.end()
    70 1
    """

    meter: Meter
    size: int
    rows: int
    _told: int = 0

    def __call__(self, row: int) -> None:
        """All rows before ``row`` are done with."""
        upto = self.size * min(row, self.rows) // max(self.rows, 1)
        self.meter.read(upto - self._told)
        self._told = upto

    def end(self) -> None:
        """So is the file."""
        self.meter.read(self.size - self._told, files=1)
        self._told = self.size


__all__ = ["UNMETERED", "FileProgress", "Meter"]
