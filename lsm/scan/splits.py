"""Splits, the units of reading (Paimon's ``DataSplit`` and ``SplitGenerator``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    GetPydanticSchema,
    SerializerFunctionWrapHandler,
    ValidatorFunctionWrapHandler,
    WrapSerializer,
    WrapValidator,
)

from lsm.deletion_vectors.reader import DeletionFile
from lsm.scan.planned_files import PlannedFiles
from lsm.secondary_index.selection import IndexSelection
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.row.binary_row import EMPTY_ROW
from paimon_base.texts import count_text, size_text

T = TypeVar("T")


def _validate(files: object, handler: ValidatorFunctionWrapHandler) -> object:
    return files if isinstance(files, PlannedFiles) else handler(files)


def _serialize(files: Sequence[DataFileMeta], handler: SerializerFunctionWrapHandler) -> object:
    return handler(tuple(files))


_Files: TypeAlias = Annotated[
    Sequence[DataFileMeta],
    GetPydanticSchema(lambda _, handler: handler(tuple[DataFileMeta, ...])),
    WrapValidator(_validate),
    WrapSerializer(_serialize),
]
"""A tuple, or files of a plan that are created on access."""


class DataSplit(BaseModel):
    """Files of one bucket that are read together.

    ``raw_convertible`` splits need no merge. ``branch`` is set if the files belong to another branch of the table. ``partition`` is a
    serialised BinaryRow. ``deletion_files`` has one element or None per file. ``index_selection`` has the rows that secondary indexes selected
    for the filter of the plan. JSON transfers a split to another process: ``DataSplit.from_json(split.to_json()) == split``.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    partition: bytes
    bucket: int
    total_buckets: int
    files: _Files
    raw_convertible: bool
    deletion_files: tuple[DeletionFile | None, ...] | None = None
    index_selection: IndexSelection | None = None
    snapshot_id: int = 0
    branch: str | None = None

    def __repr__(self) -> str:
        """Return the bucket and the sums."""
        merge = "" if self.raw_convertible else ", to merge"
        return f"DataSplit(bucket {self.bucket}: {count_text(len(self.files), 'file')}, {size_text(self.file_size)}{merge})"

    @property
    def has_independent_files(self) -> bool:
        """Whether each file can be read separately.

        False for splits of another branch.
        """
        return self.raw_convertible and self.branch is None

    @property
    def row_count(self) -> int:
        """Physical rows, including deleted and replaced ones."""
        files = self.files
        return files.row_count if isinstance(files, PlannedFiles) else sum([file.row_count for file in files])

    @property
    def file_size(self) -> int:
        """Bytes of the data files."""
        files = self.files
        return files.file_size if isinstance(files, PlannedFiles) else sum([file.file_size for file in files])

    @property
    def merged_row_count(self) -> int | None:
        """Rows that an unfiltered read returns. None: unknown without reading."""
        # Some writers flush deletes without counting them: for a primary-key table trust only compacted files.
        if not self.raw_convertible or any(file.delete_row_count != 0 or not is_counted(file) for file in self.files):
            return None
        count = self.row_count
        for vector in self.deletion_files or ():
            if vector is not None and vector.cardinality is None:
                return None
            count -= 0 if vector is None else vector.cardinality or 0
        return count

    def to_json(self) -> str:
        """Return the split as JSON text."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str) -> DataSplit:
        """Return the split from ``to_json`` text.

        Raises:
            pydantic.ValidationError: The text is not a split.
        """
        return cls.model_validate_json(text)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files for one reader. ``raw_convertible`` ones need no merge."""

    files: tuple[DataFileMeta, ...]
    raw_convertible: bool


def pack(items: Iterable[T], weight: Callable[[T], int], target: int) -> list[list[T]]:
    """Pack ``items``, in order, into bins of at most ``target``.

    A larger item gets a separate bin.

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
    """Group the files of an append bucket, in order.

    Each file counts at least ``open_cost`` bytes.
    """
    return [FileGroup(tuple(packed), raw_convertible=True) for packed in pack(files, lambda file: max(file.file_size, open_cost), target)]


def is_counted(file: DataFileMeta) -> bool:
    """Return whether the file's count of retract rows is reliable."""
    # Compaction counts retract rows, and append files have none.
    return file.file_source == FileSource.COMPACT or file.min_key == EMPTY_ROW
