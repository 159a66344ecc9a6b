"""Aggregates of groups of rows, by columns or expressions.

Each batch is folded to one row a group. Folded batches are folded again, so memory holds groups, not rows. Like Spark: nulls are one group,
NaN is one group, -0.0 equals 0.0. Unlike Spark, sums of integers and decimals are exact at any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.predicate.tree import ColumnRef
from lsm.aggregate.names import AggregateName
from manifest.io.errors import OutOfMemory
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument, InvalidFilter
from paimon_base.texts import size_text
from paimon_base.thresholds import thresholds
from pyspark_paimon.filter.scope import ColumnScope, stored_name
from pyspark_paimon.jobs.aggregates import (
    DISTINCT,
    UNGROUPED,
    Function,
    Measures,
    averages,
    computed_aggregates,
    named_table,
    sum_type,
    too_large,
)
from sparkexpr.expression.compute import compute
from sparkexpr.expression.nested import column_part
from sparkexpr.expression.tree import ColumnValue, Expression, column_values
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS, ColumnType, Kind
from sparkexpr.values.float_order import sortable_bits, spark_order
from sparkexpr.values.plain_value import canonical_array

_WORD = 32
_LOW = 2**_WORD - 1
_HASHED = {"min": "min", "max": "max"}
ROWS = "rows"
_NO_MEASURES = Measures({}, {})


@dataclass(frozen=True)
class Grouping:
    """Keys by name, and the aggregates of values.

    ``schema``: schema of the table, whose columns they use.

    >>> from pyspark_paimon.example import cities
    >>> schema = cities().table_schema
    >>> scope = ColumnScope(schema)
    >>> grouping = Grouping.of("country", Measures.of({"id": "avg", "n": "count"}, scope), scope, schema)
    >>> rows = pa.record_batch({"country": ["NO", None, "NO"], "id": pa.array([1, 2, 4])})
    >>> grouping.result(grouping.fold_all([rows], "t"), {}).to_pylist()
    [{'country': None, 'n': 1, 'id_avg': 2.0}, {'country': 'NO', 'n': 2, 'id_avg': 2.5}]
    """

    schema: TableSchema
    keys: Mapping[str, Expression]
    measures: Measures

    @classmethod
    def of(cls, by: object, measures: Measures, scope: ColumnScope, schema: TableSchema) -> Grouping:
        """Bind the keys: names of columns and parts of columns, or expressions by name.

        Raises ``InvalidArgument``, ``InvalidFilter``, ``UnknownColumn``.
        """
        keys: dict[str, Expression] = {}
        for name, value in by.items() if isinstance(by, Mapping) else [(name, None) for name in _names(by)]:
            try:
                spelled, key = scope.named(name) if value is None else (str(name), scope.bind(value))
            except InvalidFilter as error:
                raise InvalidFilter(f"aggregate: by '{name}': {error}") from error
            if key.type.kind in UNGROUPED:
                raise InvalidArgument(f"aggregate: '{name}' of type {key.type.kind} cannot be grouped; group by its fields or elements")
            keys[spelled] = key
        return cls(schema, keys, measures)

    @classmethod
    def of_columns(cls, by: Sequence[str], counted: Sequence[str], schema: TableSchema) -> Grouping:
        """Return the grouping by columns, with counts of the values of columns among them."""
        values: dict[str, Expression] = {name: ColumnValue(name, None, schema.field(name).type.column_type) for name in {*by, *counted}}
        return cls(
            schema,
            {key_name(position): values[name] for position, name in enumerate(by)},
            Measures(dict.fromkeys(counted, ("count",)), {name: values[name] for name in counted}),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that the grouping reads, at least one."""
        used = [column.name for value in (*self.keys.values(), *self.values.values()) for column in column_values(value)]
        return tuple(dict.fromkeys(used)) or self.schema.names[:1]

    @property
    def values(self) -> Mapping[str, Expression]:
        """Aggregated values by name."""
        return {name: self.measures.values[name] for name in self.parts}

    @property
    def parts(self) -> Mapping[str, Sequence[AggregateName]]:
        """Aggregates that the functions are computed from, by the name of the value."""
        # The sum of no values is null, not 0: only the count shows that there are none.
        return {
            name: (*parts, "count") if "sum" in parts and "count" not in parts else parts
            for name, parts in computed_aggregates(self.measures.functions.items()).items()
        }

    @property
    def counted_keys(self) -> tuple[ColumnRef, ...] | None:
        """Columns whose values and row counts are enough for the groups. None: rows are necessary."""
        if not all(isinstance(key, ColumnValue) for key in self.keys.values()):
            return None
        keys = tuple(ColumnRef(key.name, key.key) for key in self.keys.values() if isinstance(key, ColumnValue))
        counted = all(self.values[name] in self.keys.values() and set(parts) == {"count"} for name, parts in self.parts.items())
        return keys if keys and counted and all(map(stored_name, self.values.values())) else None

    def fold_counts(self, keys: Sequence[Any], rows: Any) -> pa.Table:
        """Return one row a group, of values of ``counted_keys`` and how many rows have them."""
        has_rows = np.asarray(rows) > 0
        arrays: dict[str, Any] = {}
        for position, (key, array) in enumerate(zip(self.keys.values(), keys, strict=True)):
            arrays[key_name(position)] = sortable(canonical_array(array, key.type), key.type)
        arrays[ROWS] = rows
        for name, value in self.values.items():
            position = next(position for position, key in enumerate(self.keys.values()) if key == value)
            arrays[f"{name}.count"] = pc.if_else(arrays[key_name(position)].is_valid(), rows, 0)
        return self.fold(pa.table(arrays).filter(pa.array(has_rows)))

    def fold_all(self, batches: Iterable[pa.RecordBatch], path: str) -> pa.Table:
        """Return one row for each group of the batches' rows.

        ``path``: the table, for the error. Raises ``OutOfMemory`` if the groups exceed ``thresholds.grouped_bytes``.
        """
        folded: list[pa.Table] = []
        size = groups_size = 0
        for batch in batches:
            folded.append(self.fold(self._prepared(batch)))
            size += folded[-1].nbytes
            if size > max(thresholds.folded_bytes, 2 * groups_size):
                folded = [self.fold(pa.concat_tables(folded))]
                size = groups_size = folded[0].nbytes
            if groups_size > thresholds.grouped_bytes:
                raise OutOfMemory(
                    path,
                    f"the groups of aggregate(by={list(self.keys)}) need more than {size_text(thresholds.grouped_bytes)}; filter the scan, "
                    "group by fewer columns, or use to_duckdb() or to_spark(), which spill to disk",
                )
        return self.fold(pa.concat_tables(folded) if folded else self._prepared(_empty(self)))

    def fold(self, rows: pa.Table) -> pa.Table:
        """Return one row a group, of prepared or folded rows."""
        keys = [key_name(position) for position in range(len(self.keys))]
        functions = {name: _HASHED.get(name.rpartition(".")[2], "sum") for name in rows.column_names if name not in keys}
        if not keys:  # one group, also of no rows
            counted = pc.ScalarAggregateOptions(min_count=0)
            options = {"sum": counted, "min": None, "max": None}
            folded = rows.group_by([]).aggregate([(name, function, options[function]) for name, function in functions.items()])
        else:
            folded = rows.group_by(keys, use_threads=False).aggregate(list(functions.items()))
        folded = folded.rename_columns([name.rpartition("_")[0] if name not in keys else name for name in folded.column_names])
        return self._carried(folded.select(rows.column_names))

    def _prepared(self, batch: pa.RecordBatch) -> pa.Table:
        """Return a batch's keys and values as they are folded."""

        def column(reference: ColumnValue) -> Any:
            return column_part(batch.column(reference.name), reference.key)

        arrays = {
            key_name(position): sortable(compute(key, column, batch.num_rows), key.type) for position, key in enumerate(self.keys.values())
        }
        arrays[ROWS] = pa.array(np.ones(batch.num_rows, np.int64))
        for name, functions in self.parts.items():
            value = self.values[name]
            array = column(value) if isinstance(value, ColumnValue) else compute(value, column, batch.num_rows)
            for function in functions:
                arrays |= _values(name, function, array, value.type)
        return pa.table(arrays)

    def _carried(self, folded: pa.Table) -> pa.Table:
        """Return the groups with the carries of each word added to the next."""
        for name, functions in self.parts.items():
            count = word_count(self.values[name].type) if "sum" in functions else 0
            for word_index in range(count - 1):
                low, high = (np.asarray(folded.column(word(name, part))) for part in (word_index, word_index + 1))
                for part, values in ((word_index, low & _LOW), (word_index + 1, high + (low >> _WORD))):
                    position = folded.column_names.index(word(name, part))
                    folded = folded.set_column(position, word(name, part), pa.array(values))
        return folded

    def with_values_of(self, name: str) -> Grouping:
        """Return the grouping by the same keys, and by a value behind them."""
        return Grouping(self.schema, {**self.keys, f"distinct {name}": self.measures.values[name]}, _NO_MEASURES)

    def distinct_values(self, folded: pa.Table) -> pa.Array:
        """Return the number of values in each group, in the order of ``result``.

        ``folded``: groups of ``with_values_of``.
        """
        keys = {key_name(position): folded.column(key_name(position)) for position in range(len(self.keys))}
        present = folded.column(key_name(len(self.keys))).is_valid().cast(pa.int64())
        if not keys:
            return pa.array([pc.sum(present, min_count=0).as_py()], pa.int64())
        counted = Grouping(self.schema, self.keys, _NO_MEASURES)
        return counted._ordered(counted.fold(pa.table({**keys, ROWS: present}))).column(ROWS).combine_chunks()

    def _ordered(self, folded: pa.Table) -> pa.Table:
        if not self.keys:
            return folded.combine_chunks()
        order = [(key_name(position), "ascending", "at_start") for position in range(len(self.keys))]
        return folded.take(pc.sort_indices(folded, sort_keys=order)).combine_chunks()

    def result(self, folded: pa.Table, distinct: Mapping[str, pa.Array]) -> pa.Table:
        """Return the aggregates, ordered by the keys.

        ``distinct``: numbers of distinct values by name. Raises ``OutOfRange`` for a sum that does not fit its type.
        """
        rows = self._ordered(folded)
        names: list[str] = [*self.keys, *self.measures.row_counts]
        arrays = [_original(rows.column(key_name(position)).combine_chunks(), key.type) for position, key in enumerate(self.keys.values())]
        arrays += [rows.column(ROWS) for _ in self.measures.row_counts]
        for name, functions in self.measures.functions.items():
            for function in functions:
                names.append(f"{name}_{function}")
                arrays.append(distinct[name] if function == DISTINCT else self._value(rows, name, function))
        return named_table(arrays, names)

    def _value(self, rows: pa.Table, name: str, function: Function) -> Any:
        column_type = self.measures.values[name].type
        if function == "count":
            return rows.column(f"{name}.count")
        if function in _HASHED:
            return _original(rows.column(f"{name}.{function}").combine_chunks(), column_type)
        counts = np.asarray(rows.column(f"{name}.count"))
        if column_type.kind in FLOATS:
            sums = np.asarray(rows.column(word(name, 0)))
            with np.errstate(all="ignore"):
                numbers = sums if function == "sum" else sums / counts
            return pa.array(numbers, mask=counts == 0)
        words = np.stack([np.asarray(rows.column(word(name, position))) for position in range(word_count(column_type))])
        if function == "avg":
            # A group, not a row, costs Python here: the quotient is exact before it is rounded.
            return averages(list(zip(_whole_numbers(words), counts.tolist(), strict=True)), column_type)
        return _sums(words, counts == 0, name, column_type)


def _empty(grouping: Grouping) -> pa.RecordBatch:
    schema = grouping.schema.arrow
    return pa.RecordBatch.from_arrays([pa.array([], schema.field(name).type) for name in grouping.columns], list(grouping.columns))


def _names(by: object) -> Sequence[str]:
    if isinstance(by, str):
        return (by,)
    if not isinstance(by, Sequence) or not all(isinstance(name, str) for name in by):
        raise InvalidArgument(f"aggregate: by must be a column, a list of columns, or a dict of expressions, not {by!r:.60}")
    return by


def key_name(position: int) -> str:
    """Return the name of the column of a key."""
    return f"key {position}"


def word(column: str, position: int) -> str:
    """Return the name of a word of a column's sums."""
    return f"{column}.{position}"


def word_count(column_type: ColumnType) -> int:
    """Return the number of columns that hold sums of a type."""
    # 64-bit columns hold sums of 32-bit words, the last one signed: two billion rows cannot overflow them.
    return 1 if column_type.kind in FLOATS else 4 if column_type.kind is Kind.DECIMAL else 2


def _values(name: str, function: AggregateName, array: Any, column_type: ColumnType) -> dict[str, Any]:
    if function == "count":
        return {f"{name}.count": array.is_valid().cast(pa.int64())}
    array = canonical_array(array, column_type)
    return sum_columns(name, array, column_type) if function == "sum" else {f"{name}.{function}": sortable(array, column_type)}


def sum_columns(name: str, array: Any, column_type: ColumnType) -> dict[str, Any]:
    """Return the columns that hold values, or sums, of a column.

    ``array``: Floats, or integers or decimals with the column's scale.
    """
    if column_type.kind in FLOATS:
        return {word(name, 0): array.cast(pa.float64()).fill_null(0.0)}
    words, count = words_of(array), word_count(column_type)
    if len(words) > count:  # a sum of integers as a DECIMAL: its higher words are those of a 64-bit number
        high = np.asarray(words[1]) | (np.asarray(words[2]) << _WORD)
        words = [words[0], pa.array(high)]
    return {word(name, position): part for position, part in enumerate(words)}


def words_of(array: Any) -> list[Any]:
    """Return the words of integers or decimals, lowest first, as INT64 columns. Nulls are 0.

    >>> [word.to_pylist() for word in words_of(pa.array([1, -1, None]))]
    [[1, 4294967295, 0], [0, -1, 0]]
    """
    if pa.types.is_decimal(array.type):
        filled = array.fill_null(pa.scalar(Decimal(0), array.type)) if array.null_count else array
        raw = np.frombuffer(filled.buffers()[1] or b"", np.uint32, 4 * len(filled), 16 * filled.offset).reshape(-1, 4)
    else:
        longs = np.ascontiguousarray(np.asarray(array.cast(pa.int64()).fill_null(0)))
        raw = longs.view(np.uint32).reshape(-1, 2)
    *low, high = raw.T
    return [*(pa.array(part.astype(np.int64)) for part in low), pa.array(high.astype(np.int32).astype(np.int64))]


def sortable(array: Any, column_type: ColumnType) -> Any:
    """Return floats as integers in Spark's order, which has one NaN and one zero; other values as they are."""
    if column_type.kind in STRINGS:
        return array.cast(pa.large_string())
    if column_type.kind in BINARIES:
        return array.cast(pa.large_binary())
    if column_type.kind not in FLOATS:
        return array
    numbers = spark_order(np.asarray(array.cast(pa.float64()).fill_null(0.0)))
    return pa.array(numbers, mask=np.asarray(array.is_null()))


def _original(array: Any, column_type: ColumnType) -> Any:
    """Return the values of ``_sortable`` in their type."""
    if column_type.kind in FLOATS and pa.types.is_integer(array.type):
        bits = sortable_bits(np.asarray(array.fill_null(0)))
        array = pa.array(bits.view(np.float64), mask=np.asarray(array.is_null()))
    return array.cast(column_type.arrow)


def _whole_numbers(words: Any) -> list[int]:
    return [sum(part << (_WORD * position) for position, part in enumerate(parts)) for parts in words.T.tolist()]


def _sums(words: Any, nulls: Any, name: str, column_type: ColumnType) -> pa.Array:
    """Return sums in Spark's type of a sum."""
    total_type, high = sum_type(column_type), words[-1]
    wrong = (high < -(2 ** (_WORD - 1))) | (high >= 2 ** (_WORD - 1))
    raw = np.ascontiguousarray((words & _LOW).T.astype(np.uint32))
    if column_type.kind is not Kind.DECIMAL:
        sums = pa.array(raw.view(np.int64).reshape(-1), mask=nulls)
    else:
        sums = pa.Array.from_buffers(pa.decimal128(38, 0), len(raw), [None, pa.py_buffer(raw)])
        largest = pa.scalar(10**total_type.precision - 1, pa.decimal128(38, 0))
        wrong |= np.asarray(pc.or_(pc.greater(sums, largest), pc.less(sums, pc.negate(largest))))
        sums = pc.if_else(pa.array(nulls | wrong), pa.scalar(None, sums.type), sums).view(total_type.arrow)
    if wrong.any():
        raise too_large(_whole_numbers(words[:, wrong][:, :1])[0], name, column_type)
    return sums
