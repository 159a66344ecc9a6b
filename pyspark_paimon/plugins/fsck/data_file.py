"""Check of one data file.

Compares its footer with its metadata, and with ``Depth.DEEP`` every row. The file is read with the schema that it was written with, including its
partition columns.

Rows of a primary-key file must be sorted, with each key once. Sequence numbers and counts must match the metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.predicate.tree import TRUE
from lsm.arrow.row_kind import retracts
from lsm.bucket.hash import bucket_hashes, bucket_ids
from lsm.data_file_format import check_format, open_data_file
from lsm.formats.open_data_file import OpenDataFile
from lsm.keys.encoding import WordColumn, one_array
from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND
from lsm.parquet.expected_footer import ExpectedFooter
from lsm.read.metrics import ReadReport
from lsm.read.row_group import RowGroupRead
from lsm.schema.evolution import SchemaMapping, column_types, to_read_schema, way_back
from lsm.schema.parquet_schema import KEY_PREFIX, KIND_FIELD, SEQUENCE_FIELD, key_fields
from manifest.entry.data_file import DataFileMeta
from manifest.io.errors import CastFailed, OutOfMemory, UnsupportedTable
from manifest.io.paths import POSTPONE_BUCKET
from manifest.row.binary_row import encode_row
from manifest.schema.table_schema import TableSchema
from manifest.stats.column_stats import ColumnBounds, PartitionType, decode_bounds
from manifest.store import FileStore
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from paimon_base.lazy import cached_property
from pyspark_paimon.plugins.fsck.indexes import CheckedFileIndexes
from pyspark_paimon.plugins.fsck.manifests import covers
from pyspark_paimon.plugins.fsck.unit import DataUnit, place_of
from pyspark_paimon.results.fsck_depth import Depth
from pyspark_paimon.results.fsck_problem import Findings, ProblemKind
from sparkexpr.values.arrays import Int32s, Mask
from sparkexpr.values.column_type import FLOATS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import from_scalar, plain_array

_BUCKET_FUNCTIONS = frozenset({"default", "mod"})
_KINDS = 4


@dataclass
class CheckedDataFile:
    """Check of one existing file with the right size.

    Args:
        store: Store of the file's branch.
        unit: File to check.
        depth: ``FOOTERS`` or ``DEEP``.
        findings: Collector of problems.
        hashes: Returns the sorted hashes of a bucket's keys, for tables with dynamic buckets.
    """

    store: FileStore
    unit: DataUnit
    depth: Depth
    findings: Findings
    hashes: Callable[[], Int32s | None]
    _partition_wrong: dict[str, int] = field(default_factory=dict)
    _unreadable: set[str] = field(default_factory=set)
    _differing_keys: set[str] = field(default_factory=set)
    _wrong_buckets: int = 0
    _strange_hashes: int = 0

    @property
    def file(self) -> DataFileMeta:
        """Metadata of the file."""
        return self.unit.entry.file

    @cached_property
    def path(self) -> str:
        """Path of the file."""
        return self.store.physical_files(self.unit.entry.partition, self.unit.entry.bucket, self.file)[0]

    @cached_property
    def schema(self) -> TableSchema:
        """Schema that the file was written with.

        Raises:
            CorruptFile: The schema cannot be read.
        """
        return self.store.schemas.get(self.file.schema_id)

    def check(self) -> None:
        """Run all checks and record the problems."""
        try:
            check_format(self.path)
        except UnsupportedTable:
            self.findings.unchecked[f"{self.file.format} files"] += 1
            return
        before = self.findings.total
        try:
            indexes = CheckedFileIndexes(self.store, self.unit, self.schema, self.path, self.findings)
            indexes.open(deep=self.depth is Depth.DEEP)
            with open_data_file(self.store.file_io, self.path) as data:
                if self._has_right_shape(data) and self.depth is Depth.DEEP:
                    self._check_rows(data, indexes)
            if self.findings.total == before:
                self._check_promise()
        except UnsupportedTable:
            self.findings.unchecked["files with values that cannot be read here"] += 1
        except (CorruptFile, OutOfMemory) as error:
            self._wrong(ProblemKind.DATA_FILE, error.reason)
        except (CastFailed, ValueError, OverflowError, pa.ArrowException) as error:
            self._wrong(ProblemKind.DATA_FILE, f"cannot be read ({type(error).__name__}: {error})")

    def _check_promise(self) -> None:
        """Check the footer like a read does.

        Only if no other check has found a problem, because they are more precise.

        Raises:
            CorruptFile: The footer does not match the metadata.
        """
        expected = ExpectedFooter(self.file, self.schema, self.store.partition.names)
        with open_data_file(self.store.file_io, self.path, expected):
            pass

    def _has_right_shape(self, data: OpenDataFile) -> bool:
        """Check row count and columns of the footer."""
        self.findings.counts["footers"] += 1
        if data.num_rows != self.file.row_count:
            self._wrong(ProblemKind.ROW_COUNT, f"has {data.num_rows:,} rows, but its manifest says {self.file.row_count:,}")
            return False
        missing = [name for name in self._required if name not in data.schema.names]
        if missing:
            self._wrong(ProblemKind.DATA_FILE, f"has no columns {', '.join(missing)}")
        return not missing

    @property
    def _required(self) -> list[str]:
        names = [name for name in self.schema.names if self.file.write_cols is None or name in self.file.write_cols]
        return [*([SEQUENCE_NUMBER, VALUE_KIND] if self.schema.kind.has_row_kinds else []), *names]

    def _check_rows(self, data: OpenDataFile, indexes: CheckedFileIndexes) -> None:
        """Check all rows in one pass."""
        schema = self.schema
        keys = schema.trimmed_primary_keys
        types = {column.name: column.type for column in schema.fields}
        names = schema.names if self.file.value_stats_cols is None else self.file.value_stats_cols
        statistics = CheckedStatistics(self._bounds(self.file.value_stats, names), types)
        key_statistics = CheckedStatistics(self._bounds(self.file.key_stats, keys), types, "key ")
        order = KeyOrder(keys, PartitionType(tuple(keys), tuple(schema.key_types)))
        numbers = RowNumbersSeen()
        for rows in self._rows(data):
            if not rows.num_rows:
                continue
            self.findings.counts["rows"] += rows.num_rows
            statistics.write(rows)
            indexes.write(rows)
            self._check_partition(rows)
            self._check_bucket(rows)
            self._check_types(rows)
            if self.schema.kind.has_row_kinds:
                key_statistics.write(rows)
                numbers.write(rows)
                if self.unit.unit == "data":
                    order.write(rows)
                self._check_key_columns(rows)
        for message in (*statistics.wrong(self.file.row_count, data.schema.names), *key_statistics.wrong(self.file.row_count, keys)):
            self._wrong(ProblemKind.COLUMN_STATISTICS, message)
        indexes.finish()
        self._conclude_places()
        if self.schema.kind.has_row_kinds and self.file.row_count:
            self._conclude_keys(order, numbers)

    def _bounds(self, stats: Any, names: Any) -> Any:
        if not all(name in self.schema.names for name in names):
            self._wrong(ProblemKind.COLUMN_STATISTICS, f"its statistics have columns that are missing in its schema: {', '.join(names)}")
            return {}
        try:
            return decode_bounds(stats, names, self.schema.types_of(names), self.file.row_count, unbounded=self.file.unbounded)
        except (ValueError, LookupError) as error:
            self._wrong(ProblemKind.COLUMN_STATISTICS, f"its statistics cannot be decoded ({error})")
            return {}

    def _rows(self, data: OpenDataFile) -> Iterator[Any]:
        fields = [
            *self.schema.fields,
            *(
                (SEQUENCE_FIELD, KIND_FIELD, *key_fields(self.schema.fields, self.schema.trimmed_primary_keys))
                if self.schema.kind.has_row_kinds
                else ()
            ),
        ]
        present = [column for column in fields if column.name in data.schema.names]
        mapping = SchemaMapping.of(present, present, self.file.schema_id)
        columns = [column.name for column in present]
        return RowGroupRead(data, mapping, column_types(present), columns, {}, TRUE, None, False, ReadReport()).batches()

    def _check_partition(self, rows: Any) -> None:
        partition = self.store.partition
        values = partition.decode(self.unit.entry.partition)
        for name, kind, value in zip(partition.names, partition.types, values, strict=True):
            if name not in rows.schema.names:
                continue
            distinct = one_array(rows.column(name)).unique()
            foreign_values = [
                row_value for row_value in (from_scalar(scalar, kind.column_type) for scalar in distinct[:2]) if not _same(row_value, value)
            ]
            if foreign_values:
                self._partition_wrong[name] = self._partition_wrong.get(name, 0) + 1

    def _check_types(self, rows: Any) -> None:
        """Check that values can be read in the newest schema."""
        if self.schema.id == self.store.schema.id:
            return
        read = {column.id: column for column in self.store.schema.fields}
        for column in self.schema.fields:
            current = read.get(column.id)
            if current is None or current.type == column.type or column.name in self._unreadable or column.name not in rows.schema.names:
                continue
            try:
                to_read_schema(one_array(rows.column(column.name)), column.type, current.type)
            except CastFailed as error:
                self._unreadable.add(column.name)
                self._wrong(ProblemKind.DATA_FILE, f"column '{current.name}': {error}; {way_back(current.name, column.type, current.type)}")

    def _check_bucket(self, rows: Any) -> None:
        """Check the bucket of rows.

        Rows of a fixed bucket must hash to it. Keys of a dynamic one must be in its hash index.
        """
        entry, schema = self.unit.entry, self.schema
        if entry.bucket < 0:
            return
        if entry.total_buckets > 0 and schema.bucket_keys:
            if schema.core.bucket_function_type in _BUCKET_FUNCTIONS and all(name in rows.schema.names for name in schema.bucket_keys):
                self._wrong_buckets += int(np.count_nonzero(bucket_ids(rows, schema, entry.total_buckets) != entry.bucket))
            return
        indexed_hashes = self.hashes() if self.unit.hashes is not None else None
        if indexed_hashes is not None:
            hashes = bucket_hashes([rows.column(name) for name in schema.trimmed_primary_keys], schema.key_types)
            self._strange_hashes += int(np.count_nonzero(~np.isin(hashes, indexed_hashes)))

    def _check_key_columns(self, rows: Any) -> None:
        """Compare the ``_KEY_`` columns with the key columns."""
        for name in self.schema.trimmed_primary_keys:
            copy = KEY_PREFIX + name
            if copy in rows.schema.names and not _equal(rows.column(copy), rows.column(name)):
                self._differing_keys.add(name)

    def _conclude_places(self) -> None:
        for name in self._partition_wrong:
            self._wrong(ProblemKind.PARTITION_VALUE, f"has rows of another partition: by their column '{name}'")
        if self._wrong_buckets:
            self._wrong(ProblemKind.WRONG_BUCKET, f"has {self._wrong_buckets:,} rows that belong to another bucket by their bucket key")
        if self._strange_hashes:
            index = self.unit.hashes.file_name if self.unit.hashes is not None else ""
            self._wrong(
                ProblemKind.HASH_INDEX, f"has {self._strange_hashes:,} rows whose keys are not in the hash index {index} of its bucket"
            )
        for name in sorted(self._differing_keys):
            self._wrong(ProblemKind.DATA_FILE, f"its columns '{KEY_PREFIX}{name}' and '{name}' differ")

    def _conclude_order(self, order: KeyOrder) -> None:
        file = self.file
        if order.unordered is not None:
            self._wrong(ProblemKind.KEY_ORDER, f"the key of row {order.unordered} is smaller than the key of the previous row")
        if order.repeated is not None:
            self._wrong(ProblemKind.DUPLICATE_KEY, f"row {order.repeated} has the same key as the previous row")
        if self.unit.unit == "data" and order.unordered is None and not order.is_range(file.min_key, file.max_key):
            self._wrong(ProblemKind.KEY_RANGE, "its first and last keys are not the smallest and greatest keys in its manifest")

    def _conclude_keys(self, order: KeyOrder, numbers: RowNumbersSeen) -> None:
        file = self.file
        if self.unit.entry.bucket != POSTPONE_BUCKET:  # postponed rows are not sorted
            self._conclude_order(order)
        if order.nulls and not self._is_set("primary-key.nullable"):
            self._wrong(ProblemKind.NULL_VALUE, f"has {order.nulls:,} nulls in its key")
        if (numbers.low, numbers.high) != (file.min_sequence_number, file.max_sequence_number) and not self._is_set(
            "sequence.snapshot-ordering"
        ):
            expected = f"{file.min_sequence_number:,} to {file.max_sequence_number:,}"
            self._wrong(
                ProblemKind.SEQUENCE_RANGE, f"has sequence numbers {numbers.low:,} to {numbers.high:,}, but its manifest says {expected}"
            )
        if numbers.unknown_kinds:
            self._wrong(ProblemKind.ROW_KIND, f"has {numbers.unknown_kinds:,} rows of an unknown kind")
        if file.delete_row_count is not None and numbers.retracts != file.delete_row_count:
            self._wrong(ProblemKind.DELETE_COUNT, f"has {numbers.retracts:,} deleted rows, but its manifest says {file.delete_row_count:,}")

    def _is_set(self, option: str) -> bool:
        return self.schema.core.raw.get(option, "").lower() == "true"

    def _wrong(self, kind: ProblemKind, message: str) -> None:
        partition_and_bucket = place_of(self.store, self.unit.entry.partition, self.unit.entry.bucket)
        self.findings.add(
            kind, self.path, message, self.unit.origin, manifest=self.unit.manifest, partition_and_bucket=partition_and_bucket
        )


def _same(value: Any, other: Any) -> bool:
    return bool(value == other or (value != value and other != other))  # noqa: PLR0124  # NaN alone differs from itself


def _equal(column: Any, other: Any) -> bool:
    left, right = one_array(column), one_array(other)
    if left.equals(right):
        return True
    if not pa.types.is_floating(left.type):
        return False
    numbers = [np.nan_to_num(array.fill_null(0).to_numpy(zero_copy_only=False), nan=0.5) for array in (left, right)]
    return bool(np.array_equal(*numbers)) and left.null_count == right.null_count


@dataclass
class KeyOrder:
    """Comparison of each row's key with the next one.

    Works across batches.

    Args:
        keys: Names of the key columns.
        key: Types of the key columns.
    """

    keys: Sequence[str]
    key: PartitionType
    first: bytes | None = None
    last: bytes | None = None
    nulls: int = 0
    unordered: int | None = None
    repeated: int | None = None
    _tail: Any = None
    _rows: int = 0

    def write(self, rows: Any) -> None:
        """Add the next rows, at least one.

        Records the first row that is out of order, and the first that repeats a key.
        """
        columns = [one_array(rows.column(name)) for name in self.keys]
        self.nulls += sum(column.null_count for column in columns)
        self.first = self._encode(columns, 0) if self.first is None else self.first
        self.last = self._encode(columns, rows.num_rows - 1)
        start = self._rows
        joined = columns
        if self._tail is not None:
            joined = [pa.concat_arrays([tail, column.cast(tail.type)]) for tail, column in zip(self._tail, columns, strict=True)]
            start -= 1
        less, equal = _steps([WordColumn.of(column) for column in joined])
        wrong = np.flatnonzero(~less & ~equal)
        same = np.flatnonzero(equal)
        if self.unordered is None and wrong.size:
            self.unordered = start + int(wrong[0]) + 1
        if self.repeated is None and same.size:
            self.repeated = start + int(same[0]) + 1
        self._tail = [column.slice(len(column) - 1) for column in columns]
        self._rows += rows.num_rows

    def _encode(self, columns: Sequence[Any], row: int) -> bytes:
        values = [from_scalar(column[row], kind.column_type) for column, kind in zip(columns, self.key.types, strict=True)]
        return encode_row(values, self.key.types)

    def is_range(self, min_key: bytes, max_key: bytes) -> bool:
        """Return whether these are the first and the last key.

        Raises:
            CorruptFile: A key cannot be decoded.
        """
        assert self.first is not None
        assert self.last is not None
        order = self.key.order
        return order(self.first) == order(min_key) and order(self.last) == order(max_key)


def _steps(columns: Sequence[WordColumn]) -> tuple[Mask, Mask]:
    """Return whether keys are less than or equal the next."""
    count = max(columns[0].length - 1, 0)
    less, equal = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    for column in columns:
        for word in column.words:
            if not equal.any():
                return less, equal
            values = word(None)
            less |= equal & (values[:-1] < values[1:])
            equal &= values[:-1] == values[1:]
    return less, equal


@dataclass
class RowNumbersSeen:
    """Sequence numbers and kinds of the checked rows."""

    low: int | None = None
    high: int | None = None
    retracts: int = 0
    unknown_kinds: int = 0

    def write(self, rows: Any) -> None:
        """Add the next rows, at least one."""
        numbers = one_array(rows.column(SEQUENCE_NUMBER)).to_numpy(zero_copy_only=False)
        low, high = int(numbers.min()), int(numbers.max())
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        kinds = one_array(rows.column(VALUE_KIND)).to_numpy(zero_copy_only=False)
        self.unknown_kinds += int(np.count_nonzero((kinds < 0) | (kinds >= _KINDS)))
        self.retracts += int(retracts(rows.column(VALUE_KIND)).sum())


@dataclass
class SeenBounds:
    """Actual bounds and nulls of a column."""

    type: ColumnType
    least: Plain = None
    greatest: Plain = None
    nulls: int = 0
    has_nan: bool = False

    def add(self, column: Any) -> None:
        """Add the next rows of the column."""
        self.nulls += column.null_count
        values = plain_array(column, self.type)
        if self.type.kind in FLOATS:
            floats = values.drop_null().to_numpy(zero_copy_only=False)
            missing = np.isnan(floats)
            self.has_nan |= bool(missing.any())
            values = pa.array(floats[~missing])
        if len(values) == values.null_count:
            return
        extent = pc.min_max(values)
        low, high = self._plain(extent["min"].as_py()), self._plain(extent["max"].as_py())
        self.least = low if self.least is None or low < self.least else self.least
        self.greatest = high if self.greatest is None or high > self.greatest else self.greatest

    def _plain(self, value: Any) -> Any:
        return int(value) if self.type.kind is Kind.DECIMAL else value

    def bounds(self, rows: int) -> ColumnBounds:
        """Return the bounds of ``rows`` rows.

        NaN is the greatest value.
        """
        greatest = float("nan") if self.has_nan else self.greatest
        least = self.least if self.least is not None or not self.has_nan else float("nan")
        return ColumnBounds(least, greatest, self.nulls, rows)


@dataclass
class CheckedStatistics:
    """Comparison of stored bounds with the rows.

    Args:
        stored: Stored bounds by column of the file.
        types: Types of these columns.
        what: "" or "key ", for messages.
    """

    stored: Mapping[str, ColumnBounds]
    types: Mapping[str, DataType]
    what: str = ""
    _bounds: dict[str, SeenBounds] = field(init=False)

    def __post_init__(self) -> None:
        atomic = {name: self.types[name] for name in self.stored if not self.types[name].is_nested}
        self._bounds = {name: SeenBounds(kind.column_type) for name, kind in atomic.items()}

    def write(self, rows: Any) -> None:
        """Add the next rows, with at least these columns."""
        for name, column_bounds in self._bounds.items():
            if name in rows.schema.names:
                column_bounds.add(rows.column(name))

    def wrong(self, rows: int, present: Iterable[str]) -> list[str]:
        """Return the differences as messages.

        ``rows`` is the row count, ``present`` are the columns of the file.
        """
        messages = []
        for name in set(present).intersection(self._bounds):
            actual, stored = self._bounds[name].bounds(rows), self.stored[name]
            if not covers(stored, actual):
                shown = [_shorten(value) for value in (stored.min, stored.max, actual.min, actual.max)]
                messages.append(
                    f"its {self.what}statistics of '{name}' are {shown[0]} to {shown[1]} with {stored.null_count} nulls, "
                    f"but its rows have {shown[2]} to {shown[3]} with {actual.null_count} nulls"
                )
        return sorted(messages)


def _shorten(value: Plain) -> str:
    return repr(value) if not isinstance(value, str | bytes) or len(value) <= 40 else f"{value[:40]!r}..."
