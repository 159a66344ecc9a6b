"""Rebuild of file indexes for existing files (Paimon's ``FileIndexProcessor``).

Indexes follow the table's current options. The header of a file's container lists the existing ones. Matching indexes are kept byte
for byte. Only missing indexes or those with other options are built, from the columns they need. A data file without missing
indexes is not opened. Columns are mapped by field id; a container has the column names of its file.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from fileindex.build.options import FileIndexOptions, IndexSpec
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ROW_BLOCKS, ContainerEntry, StoredIndex, container_size, worth_storing, write_index_container
from fileindex.format.registry import INDEX_TYPES
from fileindex.format.row_blocks import pays
from fileindex.format.same_options import has_same_options
from fileindex.predicate.evaluate_rows import type_of
from fileindex.predicate.tree import ColumnRef
from lsm.data_files.writer import INDEX_SUFFIX
from lsm.file_index.locate import IndexPlace, index_place
from lsm.read.data_file import DataFileRead
from lsm.read.metrics import ReadReport
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta, ManifestEntry
from manifest.schema.table_schema import TableSchema
from manifest.store import FileStore
from paimon_base.errors import PaimonError

_BLOOM = "bloom-filter"

Key = tuple[str, str]
"""Column or map entry as written in containers, and index type."""


@dataclass(frozen=True, slots=True)
class RewrittenIndex:
    """Result for one data file.

    ``message`` None means that the index was not changed. ``bytes_read`` counts files, ``bytes_written`` the new container.
    """

    message: CommitMessage | None = None
    bytes_read: int = 0
    bytes_written: int = 0


@dataclass(frozen=True)
class FileIndexRewriter:
    """Rewriter of the indexes of data files. Thread-safe.

    Args:
        store: Store of the table, with its newest schema.
        commit_id: Part of the names of side files, to identify the files of a killed job.
        base_snapshot_id: Snapshot that the files were listed from.
    """

    store: FileStore
    commit_id: str
    base_snapshot_id: int
    _attempt: str = field(default_factory=lambda: str(uuid.uuid4()))
    _required_by_schema: dict[tuple[int, tuple[str, ...] | None], _RequiredIndexes] = field(default_factory=dict, repr=False, compare=False)

    def rewrite(self, entry: ManifestEntry) -> RewrittenIndex:
        """Build the missing indexes of one live file.

        A new side file is durable on return.

        Raises:
            CorruptFile, UnsupportedTable: The data file must be read and cannot be.
        """
        required, old = self._required(entry.file), _Existing.of(self.store, entry)
        reusable = old.built_as(required, entry.file.row_count)
        if reusable.issuperset(map(_key, required.specs)) and self._is_in_place(entry.file, old, reusable):
            return RewrittenIndex()
        payloads = old.payloads(reusable)
        if len(payloads) < len(reusable):
            reusable = set()
        missing = [spec for spec in required.specs if _key(spec) not in payloads]
        report = ReadReport()
        payloads |= self._build(entry, required, missing, report)
        bytes_read = report.bytes_read + old.bytes_read
        if set(payloads) == reusable and self._is_in_place(
            entry.file, old, reusable
        ):  # the missing indexes do not support this file's values
            return RewrittenIndex(bytes_read=bytes_read)
        keys = [key for spec in required.specs for key in _keys(spec) if key in payloads]
        indexes = [(*key, payloads[key]) for key in keys]
        return self._store_indexes(entry, worth_storing(indexes, self.store.schema.file_index.in_manifest_threshold), bytes_read)

    def _required(self, file: DataFileMeta) -> _RequiredIndexes:
        required = self._required_by_schema.get((file.schema_id, file.write_cols))
        if required is None:
            schema = self.store.schemas.get(file.schema_id)
            required = self._required_by_schema[file.schema_id, file.write_cols] = _RequiredIndexes.of(
                self.store.schema, schema, file.write_cols
            )
        return required

    def _is_in_place(self, file: DataFileMeta, old: _Existing, keys: Collection[Key]) -> bool:
        """Return whether the container has the right indexes and location.

        It must have exactly ``keys``, and be embedded if small. Without keys there must be no container.
        """
        places = [file.embedded_index is not None, *(name.endswith(INDEX_SUFFIX) for name in file.extra_files)].count(True)
        if not keys:
            return places == 0
        small = old.size <= self.store.schema.file_index.in_manifest_threshold
        return places == 1 and old.entries.keys() == set(keys) and (file.embedded_index is not None) == small

    def _build(
        self, entry: ManifestEntry, required: _RequiredIndexes, specs: Sequence[IndexSpec], report: ReadReport
    ) -> dict[Key, bytes | None]:
        """Build index payloads from the file's rows.

        None for an empty index. Indexes that do not support the values are omitted.
        """
        writer = DataFileIndexWriter.create(FileIndexOptions(tuple(specs)), required.schema.column_types)
        if writer is None:
            return {}
        columns = list(dict.fromkeys(spec.column.name for spec in specs))
        seen_by_file = self.store.with_schema(required.schema)
        rows = DataFileRead(seen_by_file, entry.partition, entry.bucket, entry.file, columns, use_index=False, report=report)
        for batch in rows.batches():
            writer.write(batch)
        return {(column, index_type): payload for column, index_type, payload in writer.finish()}

    def _store_indexes(self, entry: ManifestEntry, indexes: Sequence[StoredIndex], bytes_read: int) -> RewrittenIndex:
        file = entry.file
        extra_files = tuple(name for name in file.extra_files if not name.endswith(INDEX_SUFFIX))
        embedded, container = None, b""
        if indexes and container_size(indexes) <= self.store.schema.file_index.in_manifest_threshold:
            embedded = container = write_index_container(indexes)
        elif indexes:
            name = side_file_name(file, self.commit_id, self._attempt)
            data_path = self.store.physical_files(entry.partition, entry.bucket, file)[0]
            container = write_index_container(indexes, name)
            self.store.file_io.write(self.store.paths.extra_file(data_path, name), container)
            extra_files = (*extra_files, name)
        message = CommitMessage(
            partition=entry.partition,
            bucket=entry.bucket,
            total_buckets=entry.total_buckets,
            compact_before=(file,),
            compact_after=(file.model_copy(update={"extra_files": extra_files, "embedded_index": embedded}),),
            base_snapshot_id=self.base_snapshot_id,
        )
        return RewrittenIndex(message, bytes_read, len(container))


def side_file_name(file: DataFileMeta, commit_id: str, attempt: str) -> str:
    """Return the name of a data file's next index file.

    The number continues the present one, like Paimon's names. No other attempt uses the same name.

    >>> file = DataFileMeta(file_name="data-1.parquet", file_size=1, row_count=1, extra_files=("data-1.parquet-1.index",))
    >>> side_file_name(file, "c", "a")
    'data-1.parquet-c-a-2.index'
    """
    # A reused name could be deleted by an expiry that still refers to it.
    number = (file.index_file or "").removesuffix(INDEX_SUFFIX).rpartition("-")[2]
    counted = int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0
    return f"{file.file_name}-{commit_id}-{attempt}-{counted + 1}{INDEX_SUFFIX}"


@dataclass(frozen=True, slots=True)
class _RequiredIndexes:
    """Required indexes of files of one schema.

    ``schema`` is the schema of the files with the current table options.
    """

    schema: TableSchema
    specs: tuple[IndexSpec, ...]

    @classmethod
    def of(cls, table: TableSchema, file: TableSchema, written: Collection[str] | None) -> Self:
        """Return the required indexes for files of schema ``file``.

        ``written`` are the columns of the files. None: all.
        """
        by_id = {column.id: column.name for column in file.fields if written is None or column.name in written}
        specs: list[IndexSpec] = []
        for spec in table.file_index.specs:
            name = by_id.get(table.field(spec.column.name).id)
            if name is None:
                continue
            in_file = spec.of(ColumnRef(name, spec.column.key), file.column_types)
            fits = INDEX_TYPES[spec.index_type].supports(type_of(in_file.column, file.column_types))
            if fits and not in_file.is_hidden_by(file.column_types):
                specs.append(in_file)
        return cls(file.model_copy(update={"options": table.options}), tuple(specs))


@dataclass(frozen=True, slots=True)
class _Existing:
    """Current container of a file.

    Has no entries if there is no readable container.
    """

    location: IndexPlace | None = None
    entries: Mapping[Key, ContainerEntry] = field(default_factory=dict)

    @classmethod
    def of(cls, store: FileStore, entry: ManifestEntry) -> Self:
        """Read the header of an entry's container."""
        try:
            location = index_place(store, entry)
            indexes = () if location is None else location.container.entries()
        except (PaimonError, OSError):
            return cls()
        return cls(location, {(index.column, index.index_type): index for index in indexes})

    @property
    def size(self) -> int:
        """Bytes of the container."""
        return 0 if self.location is None else self.location.container.size

    @property
    def bytes_read(self) -> int:
        """Bytes read from a side file."""
        return 0 if self.location is None or self.location.path is None else self.location.container.bytes_read

    def built_as(self, required: _RequiredIndexes, row_count: int) -> set[Key]:
        """Return the indexes that match the options, with row blocks.

        Only the first bytes of an index are compared.
        """
        matching_keys: set[Key] = set()
        for spec in required.specs:
            if self._is_as(_key(spec), spec, required.schema, row_count) and self._has_blocks_as(spec, required.schema, row_count):
                matching_keys |= set(_keys(spec)) & self.entries.keys()
        return matching_keys

    def _has_blocks_as(self, spec: IndexSpec, schema: TableSchema, row_count: int) -> bool:
        """Return whether the row blocks match the options.

        Blocks exist if and only if they pay for a file of this size. An index in the manifest may have no room for them.
        """
        if spec.index_type != _BLOOM:
            return True
        pay = pays(spec.block_rows, row_count, self.entries[_key(spec)].length)
        blocks = _keys(spec)[1]
        if blocks in self.entries:
            return pay and self._is_as(blocks, spec, schema, row_count)
        return not pay or self.location is None or self.location.path is None

    def _is_as(self, key: Key, spec: IndexSpec, schema: TableSchema, row_count: int) -> bool:
        index = self.entries.get(key)
        if index is None or self.location is None:
            return False
        column_type = type_of(spec.column, schema.column_types)
        try:
            payload = None if index.is_empty else self.location.container.payload(index)
            return has_same_options(index.index_type, payload, column_type, spec.options, row_count)
        except (PaimonError, OSError):
            return False

    def payloads(self, keys: Collection[Key]) -> dict[Key, bytes | None]:
        """Return the payloads of ``keys``, None for empty indexes.

        The result is empty unless all payloads can be read.
        """
        if self.location is None:
            return {}
        container = self.location.container
        try:
            return {key: None if (index := self.entries[key]).is_empty else container.payload(index).whole() for key in keys}
        except (PaimonError, OSError):
            return {}


def _key(spec: IndexSpec) -> Key:
    return str(spec.column), spec.index_type


def _keys(spec: IndexSpec) -> tuple[Key, ...]:
    """Return the keys of an index and its row blocks.

    Only bloom filters have row blocks.
    """
    return (_key(spec), (str(spec.column), ROW_BLOCKS)) if spec.index_type == _BLOOM else (_key(spec),)
