"""Index manifests: all index files of a snapshot (Paimon's ``IndexManifestFile``).

Index files are hash indexes, deletion vectors, and payloads of secondary indexes. Those of other types are carried along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from manifest.avro.container import AVRO, WriterSchema, blocks_of, encode_records, in_format, read_container, write_avro
from manifest.avro.schemas import INDEX_MANIFEST
from manifest.io.file_io import FileIO
from manifest.io.paths import FileNames, TablePaths
from manifest.snapshot.snapshot import FileName
from paimon_base.errors import CorruptFile

DELETION_VECTORS: Final = "DELETION_VECTORS"
HASH: Final = "HASH"

_VERSION = 1
_WRITER_SCHEMA = WriterSchema.of(INDEX_MANIFEST)


class DeletionVectorRange(BaseModel):
    """Position of a deletion vector in its index file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_file: str
    offset: NonNegativeInt
    length: NonNegativeInt
    cardinality: int | None = None


class IndexedColumn(BaseModel):
    """What a payload of an index says about its rows (Paimon's ``GlobalIndexMeta``).

    Args:
        first_row: First row that the payload covers.
        last_row: Last row, inclusive.
        field_id: Id of the indexed column.
        extra_field_ids: Ids of more columns, of other engines' indexes.
        index_meta: Bytes that the format of the payload defines, as its first and last key.
        source_meta: The data files of a secondary index. None: another kind of index, or written by Paimon 1.4.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    first_row: int
    last_row: int
    field_id: int
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None
    source_meta: bytes | None = None

    def to_avro(self) -> dict[str, Any]:
        """Return the record inside an index manifest's record."""
        return {
            "_ROW_RANGE_START": self.first_row,
            "_ROW_RANGE_END": self.last_row,
            "_INDEX_FIELD_ID": self.field_id,
            "_EXTRA_FIELD_IDS": None if self.extra_field_ids is None else list(self.extra_field_ids),
            "_INDEX_META": self.index_meta,
            "_SOURCE_META": self.source_meta,
        }

    @classmethod
    def from_avro(cls, record: Mapping[str, Any]) -> IndexedColumn:
        """Return the value of a record. Older ones have fewer fields."""
        return cls(
            first_row=record["_ROW_RANGE_START"],
            last_row=record["_ROW_RANGE_END"],
            field_id=record["_INDEX_FIELD_ID"],
            extra_field_ids=record.get("_EXTRA_FIELD_IDS"),
            index_meta=record.get("_INDEX_META"),
            source_meta=record.get("_SOURCE_META"),
        )


class IndexFile(BaseModel):
    """An index file.

    ``vectors`` is for deletion vectors only, ``indexed`` for payloads of indexes.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    file_name: FileName
    file_size: NonNegativeInt
    row_count: NonNegativeInt
    vectors: tuple[DeletionVectorRange, ...] | None = None
    external_path: str | None = None
    indexed: IndexedColumn | None = None


class IndexManifestEntry(IndexFile):
    """One live index file of a (partition, bucket)."""

    partition: bytes
    bucket: int
    index_type: str

    @classmethod
    def of(cls, file: IndexFile, partition: bytes, bucket: int, index_type: str) -> IndexManifestEntry:
        """Return the entry of ``file`` in its bucket."""
        values = {name: getattr(file, name) for name in IndexFile.model_fields}
        return cls(partition=partition, bucket=bucket, index_type=index_type, **values)

    @property
    def file(self) -> IndexFile:
        """The file without its bucket, as in commit messages."""
        return IndexFile(**{name: getattr(self, name) for name in IndexFile.model_fields})

    @property
    def may_have_values(self) -> bool:
        """Whether the file may have values of rows.

        Deletion vectors have positions, and hash indexes have hashes of keys. Payloads of indexes have values.
        """
        return self.index_type not in {DELETION_VECTORS, HASH}

    def to_avro(self) -> dict[str, Any]:
        """Return the record of an index manifest."""
        vectors = self.vectors
        return {
            "_VERSION": _VERSION,
            "_KIND": 0,
            "_PARTITION": self.partition,
            "_BUCKET": self.bucket,
            "_INDEX_TYPE": self.index_type,
            "_FILE_NAME": self.file_name,
            "_FILE_SIZE": self.file_size,
            "_ROW_COUNT": self.row_count,
            "_DELETIONS_VECTORS_RANGES": None
            if vectors is None
            else [{"f0": v.data_file, "f1": v.offset, "f2": v.length, "_CARDINALITY": v.cardinality} for v in vectors],
            "_EXTERNAL_PATH": self.external_path,
            "_GLOBAL_INDEX": None if self.indexed is None else self.indexed.to_avro(),
        }

    @classmethod
    def from_avro(cls, record: Mapping[str, Any]) -> IndexManifestEntry:
        """Return the entry of a record.

        Raises ``KeyError``, ``ValueError`` or ``ValidationError``.
        """
        if record["_VERSION"] != _VERSION or record["_KIND"] != 0:
            raise ValueError(f"version {record['_VERSION']} and kind {record['_KIND']} instead of {_VERSION} and 0")
        ranges, indexed = record.get("_DELETIONS_VECTORS_RANGES"), record.get("_GLOBAL_INDEX")
        return cls(
            partition=record["_PARTITION"],
            bucket=record["_BUCKET"],
            index_type=record["_INDEX_TYPE"],
            file_name=record["_FILE_NAME"],
            file_size=record["_FILE_SIZE"],
            row_count=record["_ROW_COUNT"],
            vectors=None if ranges is None else tuple(_range(item) for item in ranges if item is not None),
            external_path=record.get("_EXTERNAL_PATH"),
            indexed=None if indexed is None else IndexedColumn.from_avro(indexed),
        )


@dataclass(frozen=True, slots=True)
class IndexManifest:
    """Reads and writes the index manifests of a table.

    ``names`` belongs to one committer.
    """

    file_io: FileIO
    paths: TablePaths
    codec: str
    level: int
    names: FileNames
    file_format: str = AVRO

    def read(self, name: str | None) -> list[IndexManifestEntry]:
        """Return the index files of a snapshot, [] for None.

        Raises ``FileNotFoundError``, ``CorruptFile``.
        """
        if name is None:
            return []
        path = self.paths.manifest(name)
        try:
            return [IndexManifestEntry.from_avro(record) for record in read_container(path, self.file_io.read(path)).records()]
        except (ValidationError, ValueError, LookupError, TypeError) as error:
            raise CorruptFile(path, f"a record is not an index file ({error})") from error

    def write(self, entries: Iterable[IndexManifestEntry]) -> str | None:
        """Write an index manifest and return its name.

        Writes no file and returns None for no entries.
        """
        records = encode_records(_WRITER_SCHEMA, (entry.to_avro() for entry in entries))
        if not records:
            return None
        name = self.names.next()
        container = write_avro(INDEX_MANIFEST, blocks_of(records), codec=self.codec, level=self.level, name=name)
        data = in_format(name, container, INDEX_MANIFEST, self.file_format, self.codec)
        self.file_io.write(self.paths.manifest(name), data)
        return name


def _range(record: Mapping[str, Any]) -> DeletionVectorRange:
    return DeletionVectorRange(data_file=record["f0"], offset=record["f1"], length=record["f2"], cardinality=record.get("_CARDINALITY"))
