"""Counters of a write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manifest.entry.data_file import DataFileMeta


@dataclass(slots=True)
class WriteMetrics:
    """Counters of a write.

    ``spilled_bytes`` are bytes on local disk.
    """

    rows: int = 0
    files: int = 0
    bytes_written: int = 0
    bytes_read: int = 0
    spilled_bytes: int = 0
    compactions: int = 0

    def add(self, other: WriteMetrics) -> None:
        """Add the counters of ``other``."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def count_files(self, files: Sequence[DataFileMeta]) -> None:
        """Count new files."""
        self.files += len(files)
        self.bytes_written += sum([file.file_size for file in files])
