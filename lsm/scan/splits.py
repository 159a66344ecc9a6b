"""From the files of a bucket to splits, the units of reading (Paimon's ``DataSplit`` and its ``SplitGenerator`` classes)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from lsm.deletion_vectors.reader import DeletionFile
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.row.binary_row import EMPTY_ROW

T = TypeVar("T")


class DataSplit(BaseModel):
    """Files of one bucket that are read together; ``raw_convertible`` ones need no merge.

    ``branch`` is another branch of the table whose files they are. ``partition`` is a serialised BinaryRow. ``deletion_files`` is None, or has one element (or None) per file. JSON carries
    a split to another process: ``DataSplit.from_json(split.to_json()) == split``.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFileMeta, ...]
    raw_convertible: bool
    deletion_files: tuple[DeletionFile | None, ...] | None = None
    snapshot_id: int = 0
    branch: str | None = None

    @property
    def stands_alone(self) -> bool:
        """Whether each file can be read by itself, as one of the table's own branch."""
        return self.raw_convertible and self.branch is None

    @property
    def row_count(self) -> int:
        """Physical rows, superseded and dead ones included."""
        return sum([file.row_count for file in self.files])

    @property
    def file_size(self) -> int:
        """Bytes of the data files."""
        return sum([file.file_size for file in self.files])

    @property
    def merged_row_count(self) -> int | None:
        """Rows that a read without filter returns; None if only reading can tell.

        Some writers flush deletes without counting them, so of a primary-key table only compacted files are taken at their word.
        """
        if not self.raw_convertible or any(file.delete_row_count != 0 or not is_counted(file) for file in self.files):
            return None
        count = self.row_count
        for vector in self.deletion_files or ():
            if vector is not None and vector.cardinality is None:
                return None
            count -= 0 if vector is None else vector.cardinality or 0
        return count

    def to_json(self) -> str:
        """The split as JSON text."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str) -> DataSplit:
        """The split that ``to_json`` wrote. Raises ``pydantic.ValidationError``."""
        return cls.model_validate_json(text)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that must be read by one reader, and whether they need no merge."""

    files: tuple[DataFileMeta, ...]
    raw_convertible: bool


def pack(items: Iterable[T], weight: Callable[[T], int], target: int) -> list[list[T]]:
    """Put ``items``, in order, into bins that close before they exceed ``target``; an item over it has a bin of its own.

    >>> pack([11, 13, 46, 23, 4, 101], lambda size: size, 40)
    [[11, 13], [46], [23, 4], [101]]
    """
    bins: list[list[T]] = []
    filled = 0
    for item in items:
        size = weight(item)
        if not bins or filled + size > target:
            bins.append([])
            filled = 0
        bins[-1].append(item)
        filled += size
    return bins


def append_groups(files: Sequence[DataFileMeta], target: int, open_cost: int) -> list[FileGroup]:
    """Groups of an append bucket: files in order, by size (at least ``open_cost`` bytes each)."""
    return [FileGroup(tuple(packed), raw_convertible=True) for packed in pack(files, lambda file: max(file.file_size, open_cost), target)]


def is_counted(file: DataFileMeta) -> bool:
    """Whether the file's count of retracting rows can be relied on: compaction counts them, and append files have none."""
    return file.file_source == FileSource.COMPACT or file.min_key == EMPTY_ROW


__all__ = ["DataSplit", "FileGroup", "append_groups", "is_counted", "pack"]
