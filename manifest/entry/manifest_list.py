"""Manifest lists (Paimon's ``ManifestFileMeta`` and ``ManifestList``).

A list has the manifests of a state or of a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from manifest.avro.container import AVRO, WriterSchema, blocks_of, encode_records, in_format, read_container, write_avro
from manifest.avro.schemas import MANIFEST_LIST
from manifest.entry.column_ranges import ColumnRanges
from manifest.entry.data_file import stats_from_avro, stats_to_avro
from manifest.io.file_io import FileIO
from manifest.io.paths import FileNames, TablePaths
from manifest.snapshot.snapshot import FileName
from manifest.stats.column_stats import SimpleStats
from paimon_base.errors import CorruptFile

_VERSION = 2
_WRITER_SCHEMA = WriterSchema.of(MANIFEST_LIST)


class ManifestFileMeta(BaseModel):
    """Counts and ranges of the entries of a manifest.

    Counts are exact. None: unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file_name: FileName
    file_size: NonNegativeInt
    num_added_files: NonNegativeInt
    num_deleted_files: NonNegativeInt
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None
    column_ranges: ColumnRanges | None = None

    @property
    def num_entries(self) -> int:
        """Number of entries."""
        return self.num_added_files + self.num_deleted_files

    def to_avro(self) -> dict[str, Any]:
        """Return the record of a manifest list."""
        return {
            "_VERSION": _VERSION,
            "_FILE_NAME": self.file_name,
            "_FILE_SIZE": self.file_size,
            "_NUM_ADDED_FILES": self.num_added_files,
            "_NUM_DELETED_FILES": self.num_deleted_files,
            "_PARTITION_STATS": stats_to_avro(self.partition_stats),
            "_SCHEMA_ID": self.schema_id,
            "_MIN_BUCKET": self.min_bucket,
            "_MAX_BUCKET": self.max_bucket,
            "_MIN_LEVEL": self.min_level,
            "_MAX_LEVEL": self.max_level,
            "_MIN_ROW_ID": self.min_row_id,
            "_MAX_ROW_ID": self.max_row_id,
            "_COLUMN_RANGES": None if self.column_ranges is None else self.column_ranges.to_avro(),
        }

    @classmethod
    def from_avro(cls, record: Mapping[str, Any]) -> ManifestFileMeta:
        """Return the manifest of a record.

        Raises ``KeyError``, ``ValueError`` or ``ValidationError``.
        """
        if record["_VERSION"] != _VERSION:
            raise ValueError(f"version {record['_VERSION']} instead of {_VERSION}")
        return cls(
            file_name=record["_FILE_NAME"],
            file_size=record["_FILE_SIZE"],
            num_added_files=record["_NUM_ADDED_FILES"],
            num_deleted_files=record["_NUM_DELETED_FILES"],
            partition_stats=stats_from_avro(record["_PARTITION_STATS"]),
            schema_id=record["_SCHEMA_ID"],
            min_bucket=record.get("_MIN_BUCKET"),
            max_bucket=record.get("_MAX_BUCKET"),
            min_level=record.get("_MIN_LEVEL"),
            max_level=record.get("_MAX_LEVEL"),
            min_row_id=record.get("_MIN_ROW_ID"),
            max_row_id=record.get("_MAX_ROW_ID"),
            column_ranges=ColumnRanges.from_avro(record.get("_COLUMN_RANGES")),
        )


@dataclass(frozen=True, slots=True)
class ManifestList:
    """Reads and writes the manifest lists of a table.

    ``names`` belongs to one committer.
    """

    file_io: FileIO
    paths: TablePaths
    codec: str
    level: int
    names: FileNames
    file_format: str = AVRO

    def read(self, name: str, size: int | None = None) -> list[ManifestFileMeta]:
        """Return the manifests of a list.

        Raises ``FileNotFoundError`` and ``CorruptFile``.
        """
        path = self.paths.manifest(name)
        data = self.file_io.read(path)
        if size is not None and size != len(data):
            raise CorruptFile(path, f"has {len(data)} bytes instead of {size}, as its snapshot records")
        try:
            return [ManifestFileMeta.from_avro(record) for record in read_container(path, data).records()]
        except (ValidationError, ValueError, LookupError, TypeError) as error:
            raise CorruptFile(path, f"a record is not a manifest ({error})") from error

    def write(self, metas: Iterable[ManifestFileMeta]) -> tuple[str, int]:
        """Write a list, possibly empty.

        Returns (name, size in bytes).
        """
        records = encode_records(_WRITER_SCHEMA, (meta.to_avro() for meta in metas))
        name = self.names.next()
        container = write_avro(MANIFEST_LIST, blocks_of(records), codec=self.codec, level=self.level, name=name)
        data = in_format(name, container, MANIFEST_LIST, self.file_format, self.codec)
        self.file_io.write(self.paths.manifest(name), data)
        return name, len(data)
