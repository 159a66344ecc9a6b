"""Metadata of one data file (Paimon's ``DataFileMeta``)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from manifest.snapshot.snapshot import FileName
from manifest.stats.column_stats import SimpleStats
from sparkexpr.values.column_type import FLOATS, Kind

_INDEX_SUFFIX = ".index"
BLOB_FORMAT = ".blob"
"""End of names of files with one BLOB column. They may have a part of the rows of another file."""
ORC_UNBOUNDED = FLOATS | {Kind.CHAR}
"""ORC's statistics omit NaN, and all other values if NaN comes first. CHAR statistics are of padded values."""
FileIdentity: TypeAlias = tuple[int, str, tuple[str, ...], bytes | None, str | None]
ENTRY_VERSION = 2
EntryIdentity: TypeAlias = tuple[bytes, int, FileIdentity]


class FileSource(IntEnum):
    """Origin of a data file."""

    APPEND = 0
    COMPACT = 1


class DataFileMeta(BaseModel):
    """Metadata of a data file.

    ``min_key`` and ``max_key`` are exact: serialised BinaryRows of the trimmed primary key. ``creation_time`` is in
    milliseconds of the writer's local wall clock read as if it were UTC, as Paimon stores it.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    file_name: FileName
    file_size: NonNegativeInt
    row_count: NonNegativeInt
    min_key: bytes = bytes(12)
    max_key: bytes = bytes(12)
    key_stats: SimpleStats = SimpleStats.EMPTY
    value_stats: SimpleStats = SimpleStats.EMPTY
    min_sequence_number: int = 0
    max_sequence_number: int = 0
    schema_id: NonNegativeInt = 0
    level: Annotated[int, "LSM level, 0 for fresh files"] = 0
    extra_files: tuple[FileName, ...] = ()
    creation_time: int | None = None
    delete_row_count: int | None = None
    embedded_index: bytes | None = None
    file_source: int | None = None
    value_stats_cols: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    write_cols_sequences: tuple[int, ...] | None = None

    @property
    def identity(self) -> FileIdentity:
        """Identity of the file in its partition and bucket.

        A DELETE must repeat it exactly.
        """
        return self.level, self.file_name, self.extra_files, self.embedded_index, self.external_path

    @property
    def index_file(self) -> str | None:
        """Name of the file-index side file, the newest of several."""
        return next((name for name in reversed(self.extra_files) if name.endswith(_INDEX_SUFFIX)), None)

    @property
    def file_names(self) -> tuple[str, ...]:
        """All physical files of this entry, the data file first."""
        return self.file_name, *self.extra_files

    @property
    def is_blob(self) -> bool:
        """Whether the file has one BLOB column."""
        return self.file_name.endswith(BLOB_FORMAT)

    @property
    def format(self) -> str:
        """File format: the last extension of the name."""
        return self.file_name.rpartition(".")[2].lower()

    @property
    def unbounded(self) -> frozenset[Kind]:
        """Kinds of columns that the statistics do not bound."""
        return ORC_UNBOUNDED if self.format == "orc" else frozenset()

    def upgrade(self, level: int) -> DataFileMeta:
        """Return the same physical file on another level.

        >>> DataFileMeta(file_name="data-1-0.parquet", file_size=9, row_count=1).upgrade(5).level
        5
        """
        return self.model_copy(update={"level": level})

    def without_statistics(self) -> DataFileMeta:
        """Return the same file without value statistics."""
        return self.model_copy(update={"key_stats": SimpleStats.EMPTY, "value_stats": SimpleStats.EMPTY, "value_stats_cols": ()})

    @classmethod
    def from_trusted(cls, fields: dict[str, Any]) -> DataFileMeta:
        """Return a file from valid values of all its fields.

        The caller has checked the values and must not use ``fields`` again.

        >>> known = DataFileMeta(file_name="data-1-0.parquet", file_size=9, row_count=1)
        >>> DataFileMeta.from_trusted(dict(known)) == known
        True
        """
        # A fifth of the cost of validation.
        file = cls.__new__(cls)
        set_member = object.__setattr__  # the model is frozen
        set_member(file, "__dict__", fields)
        set_member(file, "__pydantic_fields_set__", _FIELDS)
        set_member(file, "__pydantic_extra__", None)
        set_member(file, "__pydantic_private__", None)
        return file

    def to_avro(self) -> dict[str, Any]:
        """Return the ``_FILE`` record of a manifest entry."""
        return {
            "_FILE_NAME": self.file_name,
            "_FILE_SIZE": self.file_size,
            "_ROW_COUNT": self.row_count,
            "_MIN_KEY": self.min_key,
            "_MAX_KEY": self.max_key,
            "_KEY_STATS": stats_to_avro(self.key_stats),
            "_VALUE_STATS": stats_to_avro(self.value_stats),
            "_MIN_SEQUENCE_NUMBER": self.min_sequence_number,
            "_MAX_SEQUENCE_NUMBER": self.max_sequence_number,
            "_SCHEMA_ID": self.schema_id,
            "_LEVEL": self.level,
            "_EXTRA_FILES": list(self.extra_files),
            "_CREATION_TIME": wall_clock_millis() if self.creation_time is None else self.creation_time,
            "_DELETE_ROW_COUNT": self.delete_row_count,
            "_EMBEDDED_FILE_INDEX": self.embedded_index,
            "_FILE_SOURCE": self.file_source,
            "_VALUE_STATS_COLS": _list(self.value_stats_cols),
            "_EXTERNAL_PATH": self.external_path,
            "_FIRST_ROW_ID": self.first_row_id,
            "_WRITE_COLS": _list(self.write_cols),
            "_WRITE_COLS_SEQUENCES": _list(self.write_cols_sequences),
        }

    @classmethod
    def from_avro(cls, record: Mapping[str, Any]) -> DataFileMeta:
        """Return the file of a ``_FILE`` record.

        Nullable fields may be missing. Raises ``KeyError`` or ``ValidationError``.
        """
        return cls(
            file_name=record["_FILE_NAME"],
            file_size=record["_FILE_SIZE"],
            row_count=record["_ROW_COUNT"],
            min_key=record["_MIN_KEY"],
            max_key=record["_MAX_KEY"],
            key_stats=stats_from_avro(record["_KEY_STATS"]),
            value_stats=stats_from_avro(record["_VALUE_STATS"]),
            min_sequence_number=record["_MIN_SEQUENCE_NUMBER"],
            max_sequence_number=record["_MAX_SEQUENCE_NUMBER"],
            schema_id=record["_SCHEMA_ID"],
            level=record["_LEVEL"],
            extra_files=tuple(record["_EXTRA_FILES"]),
            creation_time=record.get("_CREATION_TIME"),
            delete_row_count=record.get("_DELETE_ROW_COUNT"),
            embedded_index=record.get("_EMBEDDED_FILE_INDEX"),
            file_source=record.get("_FILE_SOURCE"),
            value_stats_cols=_tuple(record.get("_VALUE_STATS_COLS")),
            external_path=record.get("_EXTERNAL_PATH"),
            first_row_id=record.get("_FIRST_ROW_ID"),
            write_cols=_tuple(record.get("_WRITE_COLS")),
            write_cols_sequences=_tuple(record.get("_WRITE_COLS_SEQUENCES")),
        )


_FIELDS = set(DataFileMeta.model_fields)


def stats_to_avro(stats: SimpleStats) -> dict[str, Any]:
    """Return a statistics record."""
    # An array even if empty: Paimon cannot read null counts.
    return {"_MIN_VALUES": stats.min_values, "_MAX_VALUES": stats.max_values, "_NULL_COUNTS": list(stats.null_counts)}


def stats_from_avro(record: Mapping[str, Any]) -> SimpleStats:
    """Return the statistics of a record."""
    return SimpleStats(record["_MIN_VALUES"], record["_MAX_VALUES"], tuple(record["_NULL_COUNTS"] or ()))


def wall_clock_millis() -> int:
    """Return the current time as in ``creation_time``.

    The local wall clock in milliseconds, read as if it were UTC.
    """
    now = time.time()
    return int((now + time.localtime(now).tm_gmtoff) * 1000)


def _list(values: tuple[Any, ...] | None) -> list[Any] | None:
    return None if values is None else list(values)  # fastavro reads a tuple in a union as (branch, value)


def _tuple(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


class FileKind(IntEnum):
    """Whether an entry adds or deletes its file."""

    ADD = 0
    DELETE = 1


class ManifestEntry(BaseModel):
    """An added or deleted file of a bucket.

    ``total_buckets`` is the bucket count when the file was written.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> EntryIdentity:
        """(partition, bucket, file identity).

        An ADD and a DELETE of equal identity cancel.
        """
        return self.partition, self.bucket, self.file.identity

    def deleted(self) -> ManifestEntry:
        """Return the DELETE of this ADD."""
        return self.model_copy(update={"kind": FileKind.DELETE})

    def to_avro(self) -> dict[str, Any]:
        """Return the manifest record."""
        return {
            "_VERSION": ENTRY_VERSION,
            "_KIND": int(self.kind),
            "_PARTITION": self.partition,
            "_BUCKET": self.bucket,
            "_TOTAL_BUCKETS": self.total_buckets,
            "_FILE": self.file.to_avro(),
        }

    @classmethod
    def from_avro(cls, record: Mapping[str, Any]) -> ManifestEntry:
        """Return the entry of a manifest record.

        Raises ``KeyError`` or ``ValidationError``.
        """
        return cls(
            kind=FileKind(record["_KIND"]),
            partition=record["_PARTITION"],
            bucket=record["_BUCKET"],
            total_buckets=record["_TOTAL_BUCKETS"],
            file=DataFileMeta.from_avro(record["_FILE"]),
        )
