"""Writers of one data file, from rows to ``DataFileMeta``.

Format, statistics, key range and file index are written in one pass. Paimon's ``KeyValueDataFileWriter`` and ``RowDataFileWriter``.
Call ``write`` at least once, then ``close`` or ``abort``.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.build.options import FileIndexOptions
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import container_size, worth_storing, write_index_container
from lsm.arrow.row_kind import retracts
from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND
from lsm.parquet.write.writer import ParquetFileWriter
from lsm.schema.parquet_schema import KEY_PREFIX, file_schema, key_value_fields, needs_int96
from manifest.entry.data_file import DataFileMeta, FileSource, wall_clock_millis
from manifest.io.file_io import FileIO
from manifest.io.paths import FileNames
from manifest.options.core_options import PARQUET, CoreOptions
from manifest.row.binary_row import encode_row
from manifest.stats.collector import StatsCollector
from manifest.store import FileStore
from manifest.types.data_type import DataField
from paimon_base.lazy import cached_property
from paimon_base.log import logger_of
from paimon_base.plugins import plugin
from paimon_base.thresholds import thresholds
from sparkexpr.values.plain_value import from_scalar

INDEX_SUFFIX = ".index"
_LOG = logger_of(__name__)
_ADVISED: set[tuple[str, str]] = set()
_LAYOUT = "columns of data files"
"""Name in ``TableSchema.derived``."""


def data_file_names(store: FileStore, commit_id: str | None = None) -> FileNames:
    """Return names for data files of one attempt, without extensions."""
    return FileNames(store.options.data_file_prefix, commit_id=commit_id or str(uuid.uuid4()))


class DataFileWriter(Protocol):
    """Interface of a file writer, for a rolling writer."""

    def write(self, rows: Any) -> None:
        """Append rows."""

    @property
    def bytes_written(self) -> int:
        """Estimated size of the file."""

    def end_row_group(self) -> None:
        """Encode the pending rows."""

    def close(self) -> DataFileMeta:
        """Finish the file and its side files durably."""

    def abort(self) -> None:
        """Delete the file and its side files."""


@dataclass(frozen=True, kw_only=True)
class FileTarget:
    """Target directory and format of the files of one bucket.

    Shared by all files of one writer.
    """

    store: FileStore
    directory: str
    names: FileNames
    target_size: int
    columns: tuple[str, ...] | None = None
    """Columns of the files, in the order of the schema. None: all."""

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Trimmed primary key. Empty for append tables."""
        return tuple(self.store.schema.trimmed_primary_keys)

    @cached_property
    def thin(self) -> bool:
        """Whether files lack the ``_KEY_`` columns."""
        return self.store.options.data_file_thin_mode

    @property
    def _layout(self) -> tuple[tuple[DataField, ...], Any]:
        """Columns of the files, and their Arrow schema."""
        schema = self.store.schema
        if self.columns is not None:
            return self._fields, file_schema(self._fields)
        layout: tuple[tuple[DataField, ...], Any] | None = schema.derived.get(_LAYOUT)
        if layout is None:
            fields = key_value_fields(schema.fields, self.keys, thin=self.thin) if self.keys else schema.fields
            layout = schema.derived[_LAYOUT] = fields, file_schema(fields)
        return layout

    @cached_property
    def index_options(self) -> FileIndexOptions:
        """File indexes to build.

        Unsupported indexes of other engines are excluded.
        """
        options = self.store.schema.file_index
        if self.columns is None:
            return options
        return replace(options, specs=tuple(spec for spec in options.specs if spec.column.name in self.columns))

    @property
    def _fields(self) -> tuple[DataField, ...]:
        schema = self.store.schema
        return schema.fields if self.columns is None else tuple([schema.field(name) for name in self.columns])

    def stats(self, level: int) -> StatsCollector:
        """Return a statistics collector for one file of ``level``."""
        options = self.store.options
        fields = self._fields
        modes, rows = options.stats_modes(tuple([field.name for field in fields]), level), options.format_at(level) != PARQUET
        dense = options.stats_dense_store or self.columns is not None  # sparse ones would have all columns of the table
        return StatsCollector(fields, modes, dense=dense, rows=rows, keys=self.keys)

    def name(self, level: int) -> str:
        """Return a name for a new file.

        Its last extension is the format.
        """
        options = self.store.options
        codec = options.compression_at(level) if options.file_suffix_include_compression else "none"
        extension = options.format_at(level)
        return self.names.next() + (f".{extension}" if codec == "none" else f".{codec}.{extension}")

    def encoder(self, name: str, level: int, plain: frozenset[str]) -> FileEncoder:
        """Return the encoder of a new file."""
        path = f"{self.directory}/{name}"
        store, size = self.store, self.target_size
        fields, schema = self._layout
        return file_encoder(store.file_io, path, store.options, fields, schema, level=level, target=size, plain=plain, table=store.root)


def _advise(table: str, index: str, advice: str) -> None:
    """Log advice about an index, once per table and process."""
    if (table, index) not in _ADVISED:
        _ADVISED.add((table, index))
        _LOG.warning("%s: %s %s", table, index, advice)


class _IndexedFile:
    """A file with its statistics and its file index."""

    def __init__(self, target: FileTarget, level: int, plain: frozenset[str]) -> None:
        self._target = target
        self._level = level
        self.name = target.name(level)
        self._encoder = target.encoder(self.name, level, plain)
        self._index = DataFileIndexWriter.create(target.index_options, target.store.schema.column_types)
        self._index_path: str | None = None
        self.stats = target.stats(level)

    @property
    def bytes_written(self) -> int:
        return self._encoder.bytes_written

    def write(self, rows: Any) -> None:
        self.stats.update(rows)
        if self._index is not None:
            self._index.write(rows)
        self._encoder.write(rows)

    def end_row_group(self) -> None:
        self._encoder.end_row_group()

    def close(self) -> tuple[Any, dict[str, Any]]:
        """Return the footer, and the metadata common to all tables."""
        embedded: bytes | None = None
        extra: tuple[str, ...] = ()
        if self._index is not None:
            indexes = worth_storing(self._index.finish(), self._target.index_options.in_manifest_threshold)
            for line in self._index.omitted:
                _LOG.warning("%s has no index %s", self._encoder.path, line)
            for index, advice in self._index.advice.items():
                _advise(self._target.store.root, index, advice)
            if container_size(indexes) <= self._target.index_options.in_manifest_threshold:
                embedded = write_index_container(indexes)
            else:
                extra = (self.name + INDEX_SUFFIX,)
                self._index_path = self._encoder.path + INDEX_SUFFIX
                self._target.store.file_io.write(self._index_path, write_index_container(indexes, extra[0]))
        footer, size = self._encoder.close()  # with remote storage, the index is uploaded in parallel
        value_stats, columns = self.stats.value_stats(footer)
        return footer, {
            "file_name": self.name,
            "file_size": size,
            "row_count": self._encoder.row_count,
            "value_stats": value_stats,
            "value_stats_cols": columns,
            "schema_id": self._target.store.schema.id,
            "level": self._level,
            "extra_files": extra,
            "embedded_index": embedded,
            "creation_time": wall_clock_millis(),
        }

    def abort(self) -> None:
        self._encoder.abort()
        if self._index_path is not None:
            with suppress(Exception):
                self._target.store.file_io.delete(self._index_path)


@dataclass
class KeyValueDataFileWriter:
    """Writer of one file of a primary-key table.

    Tables must be sorted by key, with each key once over all calls. They have ``_SEQUENCE_NUMBER``, ``_VALUE_KIND`` and the table's columns.
    The ``_KEY_`` columns are added here.
    """

    target: FileTarget
    level: int
    source: FileSource
    _file: _IndexedFile = field(init=False, repr=False)
    _first: Any = field(init=False, default=None, repr=False)
    _last: Any = field(init=False, default=None, repr=False)
    _min_sequence: int = field(init=False, default=2**63 - 1)
    _max_sequence: int = field(init=False, default=-(2**63))
    _deletes: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        keys = self.target.keys
        plain = {KEY_PREFIX + key for key in keys} | {SEQUENCE_NUMBER}
        # The values of a single key column are unique in a file: a dictionary would only cost bytes.
        self._file = _IndexedFile(self.target, self.level, frozenset(plain | set(keys) if len(keys) == 1 else plain))

    @property
    def bytes_written(self) -> int:
        """See ``DataFileWriter``."""
        return self._file.bytes_written

    def write(self, rows: Any) -> None:
        """See ``DataFileWriter``."""
        keys = [] if self.target.thin else self.target.keys
        names = [KEY_PREFIX + key for key in keys] + rows.schema.names
        self._file.write(pa.Table.from_arrays([rows.column(key) for key in keys] + rows.columns, names=names))
        extent = pc.min_max(rows.column(SEQUENCE_NUMBER)).as_py()
        self._min_sequence = min(self._min_sequence, extent["min"])
        self._max_sequence = max(self._max_sequence, extent["max"])
        self._deletes += int(retracts(rows.column(VALUE_KIND)).sum())
        self._first = self._key(rows, 0) if self._first is None else self._first
        self._last = self._key(rows, rows.num_rows - 1)

    def end_row_group(self) -> None:
        """See ``DataFileWriter``."""
        self._file.end_row_group()

    def close(self) -> DataFileMeta:
        """See ``DataFileWriter``."""
        footer, common = self._file.close()
        prefix = "" if self.target.thin else KEY_PREFIX
        return DataFileMeta(
            **common,
            min_key=self._first,
            max_key=self._last,
            key_stats=self._file.stats.key_stats(footer, self.target.keys, prefix),
            min_sequence_number=self._min_sequence,
            max_sequence_number=self._max_sequence,
            delete_row_count=self._deletes,
            file_source=int(self.source),
        )

    def abort(self) -> None:
        """See ``DataFileWriter``."""
        self._file.abort()

    def _key(self, rows: Any, row: int) -> bytes:
        schema = self.target.store.schema
        values = [from_scalar(rows.column(key)[row], schema.column_types[key]) for key in self.target.keys]
        return encode_row(values, schema.key_types)


@dataclass(slots=True)
class RowNumbers:
    """First sequence number of an append bucket's next file."""

    next: int


@dataclass
class RowDataFileWriter:
    """Writer of one file of an append table.

    Rows are numbered in order of arrival.
    """

    target: FileTarget
    source: FileSource
    numbers: RowNumbers
    _file: _IndexedFile = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._file = _IndexedFile(self.target, 0, frozenset())

    @property
    def bytes_written(self) -> int:
        """See ``DataFileWriter``."""
        return self._file.bytes_written

    def write(self, rows: Any) -> None:
        """See ``DataFileWriter``."""
        self._file.write(rows)

    def end_row_group(self) -> None:
        """See ``DataFileWriter``."""
        self._file.end_row_group()

    def close(self) -> DataFileMeta:
        """See ``DataFileWriter``."""
        _, common = self._file.close()
        first = self.numbers.next
        self.numbers.next += common["row_count"]
        return DataFileMeta(
            **common,
            min_sequence_number=first,
            max_sequence_number=self.numbers.next - 1,
            delete_row_count=0,
            file_source=int(self.source),
            write_cols=self.target.columns,
        )

    def abort(self) -> None:
        """See ``DataFileWriter``."""
        self._file.abort()


class FileEncoder(Protocol):
    """Encoder of one file.

    Call ``write`` any number of times, then ``close`` or ``abort``.
    """

    path: str
    row_count: int

    def write(self, rows: Any) -> None:
        """Append a table or batch, with columns by name."""

    @property
    def bytes_written(self) -> int:
        """Estimated size of the file."""

    def end_row_group(self) -> None:
        """Encode the pending rows, if the format has row groups."""

    def close(self) -> tuple[Any, int]:
        """Finish the file and make it durable.

        Returns the footer of a Parquet file, otherwise None, and the file size in bytes.
        """

    def abort(self) -> None:
        """Delete the file. Never raises."""


def file_encoder(
    file_io: FileIO,
    path: str,
    options: CoreOptions,
    fields: tuple[DataField, ...],
    schema: Any,
    *,
    level: int,
    target: int,
    plain: frozenset[str],
    table: str,
) -> FileEncoder:
    """Return the encoder of a new file.

    Args:
        file_io: File system of the file.
        path: Path of the file. It must not exist.
        options: Options of the table.
        fields: Columns of the file.
        schema: Arrow schema of the columns.
        level: Level of the file.
        target: Target size in bytes.
        plain: Columns without dictionaries.
        table: Path of the table.
    """
    compression = options.compression_at(level)
    block = options.file_block_size
    if (file_format := options.format_at(level)) != PARQUET:
        encoder: FileEncoder = plugin("file-format", file_format).create_file(
            file_io, path, fields, schema, options, compression=compression, target=target
        )
        return encoder
    parquet, max_group_bytes = options.parquet, thresholds.group_bytes
    return ParquetFileWriter(
        file_io,
        path,
        schema,
        compression=compression,
        by_sample=not {"file.compression", "file.compression.per.level"} & options.raw.keys(),
        level=options.zstd_level,
        int96=needs_int96(fields),
        row_group_bytes=min(block or parquet.block_bytes or max_group_bytes, max_group_bytes, max(target, 1)),
        plain=plain,
        options=parquet,
        table=table,
    )
