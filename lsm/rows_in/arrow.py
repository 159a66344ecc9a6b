"""Rows from outside as streams of Arrow batches.

Sources are Arrow, pandas and polars, dicts, and iterables of these. Python values get the types of the table, Arrow columns keep theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lsm.rows_in.lossless_cast import LossyCast, lossless_cast, may_cast
from lsm.rows_in.policy import DEFAULT_POLICY, RowPolicy, wider_hint
from lsm.rows_in.python_types import CONVERSION_ERRORS, InvalidValue, without_nan
from lsm.rows_in.python_values import is_number_type, python_array
from manifest.io.errors import SchemaMismatch
from manifest.types.data_type import DataField
from paimon_base.errors import InvalidArgument
from paimon_base.texts import count_text
from paimon_base.thresholds import thresholds

if TYPE_CHECKING:
    import pandas as pd

ACCEPTED = (
    "a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, an iterable of RecordBatches, a list of dicts, a dict of lists, "
    "a pandas DataFrame, one of polars, Spark or pandas-on-Spark, or another object with an Arrow C stream"
)
"""Sources of rows, for errors."""
COLUMN_SET = "_column_set"
"""Column with the number of each row's set in ``ArrowRows.column_sets``."""
_PYTHON_VALUES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_integer, "int, cast texts like this: int(value)"),
    (pa.types.is_floating, "float, cast texts like this: float(value)"),
    (pa.types.is_decimal, "decimal.Decimal, cast texts like this: Decimal(value)"),
    (pa.types.is_date, "datetime.date"),
    (pa.types.is_timestamp, "datetime.datetime, cast ISO texts like this: datetime.fromisoformat(value)"),
    (pa.types.is_time, "datetime.time"),
    (pa.types.is_boolean, "bool"),
    (pa.types.is_string, "str, cast others like this: str(value)"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_map, "a dict, or pairs (key, value), whose keys are not None"),
    (pa.types.is_list, "a list"),
    (pa.types.is_struct, "a dict"),
)


@dataclass(frozen=True)
class ArrowRows:
    """A stream of Arrow batches in this process.

    It is read once and never held whole in memory.
    """

    reader: pa.RecordBatchReader
    column_sets: tuple[frozenset[str], ...] = ()
    """Different sets of keys of the given dicts. Empty: all rows have all columns."""
    rejected: list[pa.Table] = field(default_factory=list)
    """Rows that a cast leaves out while they are read."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the stream."""
        return self.reader.schema

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the stream as rows from outside."""
        return self.reader.__arrow_c_stream__(requested_schema)

    def without_numbers(self) -> ArrowRows:
        """Return the rows without ``COLUMN_SET``."""
        names = [name for name in self.schema.names if name != COLUMN_SET]
        if len(names) == len(self.schema.names):
            return self
        plain = pa.schema([self.schema.field(name) for name in names])
        return replace(self, reader=pa.RecordBatchReader.from_batches(plain, (batch.select(names) for batch in self.reader)))


def joined_rows(parts: Sequence[ArrowRows]) -> ArrowRows:
    """Return rows of different columns one after the other, in memory.

    Rows of different columns have the column ``COLUMN_SET``.

    >>> parts = [ArrowRows(pa.table({"id": [1], "n": [5]}).to_reader()), ArrowRows(pa.table({"id": [2]}).to_reader())]
    >>> joined_rows(parts).reader.read_all().to_pylist()
    [{'id': 1, 'n': 5, '_column_set': 0}, {'id': 2, 'n': None, '_column_set': 1}]
    """
    number_by_set: dict[frozenset[str], int] = {}
    tables, rejected = [], [table for part in parts for table in part.rejected]
    for part in parts:
        table, names = part.reader.read_all(), part.schema.names
        numbers = [number_by_set.setdefault(names, len(number_by_set)) for names in part.column_sets or (frozenset(names),)]
        own = table.column(COLUMN_SET) if COLUMN_SET in names else pa.repeat(pa.scalar(0, pa.int32()), table.num_rows)
        table = table.drop_columns([COLUMN_SET]) if COLUMN_SET in names else table
        tables.append(table.append_column(COLUMN_SET, pa.array(numbers, pa.int32()).take(own)))
    try:
        rows = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise SchemaMismatch(f"columns of one name have different types in rows of different columns: {error}") from error
    if len(number_by_set) == 1:
        rows = rows.drop_columns([COLUMN_SET])
        lacks_some = len(next(iter(number_by_set))) < rows.num_columns
        return ArrowRows(rows.to_reader(), tuple(number_by_set) if lacks_some else (), rejected)
    rows = rows.select([*(name for name in rows.schema.names if name != COLUMN_SET), COLUMN_SET])
    return ArrowRows(rows.to_reader(), tuple(number_by_set), rejected)


def arrow_rows(data: Any, schema: pa.Schema, policy: RowPolicy = DEFAULT_POLICY) -> ArrowRows:
    """Return rows of this process as a stream.

    Of an iterable, reads only the first batch now. ``policy``: as for ``python_array``. With ``missing="keep"`` rows of different columns
    get the column ``COLUMN_SET``, and an iterable of batches may have them, too.

    Raises:
        InvalidArgument: The type of ``data`` is not supported.
        SchemaMismatch: A value does not fit.

    >>> arrow_rows([{"id": 1}, {"id": 2}], pa.schema([("id", pa.int8())])).schema
    id: int8
    """
    match data:
        case ArrowRows():
            return data
        case pa.Table():
            return ArrowRows(data.to_reader())
        case pa.RecordBatch():
            return ArrowRows(pa.RecordBatchReader.from_batches(data.schema, [data]))
        case pa.RecordBatchReader():
            return ArrowRows(data)
    if is_a(data, "pandas", "DataFrame"):
        return _pandas_rows(data, schema, policy)
    if is_a(data, "polars", "LazyFrame"):
        data = data.collect()
    if is_a(data, "pyarrow._dataset", "Dataset"):
        return ArrowRows(data.scanner().to_reader())
    if isinstance(data, Mapping):
        return ArrowRows(_named_columns(data, schema, policy).to_reader())
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return ArrowRows(pa.RecordBatchReader.from_stream(data))
        except pa.ArrowInvalid as error:  # a stream of one column's values
            raise InvalidArgument(f"rows cannot be written from {type(data).__name__}: {error}; use {ACCEPTED}") from error
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _iterable_rows(data, schema, policy)
    raise InvalidArgument(f"rows cannot be written from {type(data).__name__}; use {ACCEPTED}")


def _iterable_rows(data: Iterable[object], schema: pa.Schema, policy: RowPolicy) -> ArrowRows:
    items = iter(data)
    first = next(items, None)
    if first is None:
        return ArrowRows(pa.RecordBatchReader.from_batches(schema, []))
    if isinstance(first, Mapping):
        dicts: list[Any] = [first, *items]
        rows, column_sets = _dict_rows(dicts, schema, policy), _column_sets(dicts)
        if policy.missing == "keep" and column_sets:
            number_by_set = {names: number for number, names in enumerate(column_sets)}
            rows = rows.append_column(COLUMN_SET, pa.array([number_by_set[frozenset(row)] for row in dicts], pa.int32()))
        return ArrowRows(rows.to_reader(), column_sets)
    if not isinstance(first, pa.RecordBatch | pa.Table):
        raise InvalidArgument(f"rows cannot be written from an iterable of {type(first).__name__}; use {ACCEPTED}")
    if policy.missing == "keep":
        return joined_rows([arrow_rows(part, schema) for part in chain([first], items)])

    def batches() -> Iterator[pa.RecordBatch]:
        for item in chain([first], items):
            if not isinstance(item, pa.RecordBatch | pa.Table):
                raise InvalidArgument(
                    f"an iterable of batches has an item of type {type(item).__name__}: give record batches or tables only"
                )
            if not item.schema.equals(first.schema):
                raise SchemaMismatch(f"the batches differ: one has ({_shown(first.schema)}), another ({_shown(item.schema)})")
            yield from item.to_batches() if isinstance(item, pa.Table) else (item,)

    return ArrowRows(pa.RecordBatchReader.from_batches(first.schema, batches()))


def is_a(data: object, module: str, name: str) -> bool:
    """Return whether a base class has this module and name.

    Importing pandas, polars or datasets takes longer than a small write.
    """
    return any(f"{kind.__module__}.".startswith(f"{module}.") and kind.__name__ == name for kind in type(data).__mro__)


def _dict_rows(rows: Sequence[Any], schema: pa.Schema, policy: RowPolicy) -> pa.Table:
    """Convert dicts to a table. Missing keys are null."""
    if wrong := next((row for row in rows if not isinstance(row, Mapping)), None):
        raise InvalidArgument(f"an iterable of dicts has {wrong!r:.40} of type {type(wrong).__name__}; give all rows as dicts, or none")
    names = dict.fromkeys(chain.from_iterable(rows))
    return _named_columns({name: [row.get(name) for row in rows] for name in names}, schema, policy)


def _column_sets(rows: Sequence[Any]) -> tuple[frozenset[str], ...]:
    """Return the different sets of keys of the dicts. Empty: all have the same."""
    names = set(chain.from_iterable(rows))
    return () if all(len(row) == len(names) for row in rows) else tuple(set(map(frozenset, rows)))


def _named_columns(columns: Mapping[Any, Any], schema: pa.Schema, policy: RowPolicy) -> pa.Table:
    """Convert columns by name to the table's types.

    Dicts are MAP entries where the table has a MAP column.
    """
    if wrong := [name for name in columns if not isinstance(name, str)]:
        raise InvalidArgument(f"columns are given by their names, not by {wrong[0]!r}")
    arrays = {}
    for name, values in columns.items():
        arrow_type = _table_type(name, schema)
        if not hasattr(values, "__iter__") or isinstance(values, str | bytes) or getattr(values, "ndim", 1) == 0:
            raise InvalidArgument(f"column '{name}' is given as {type(values).__name__}; a list of values is wanted: {{'{name}': [...]}}")
        arrays[name] = python_column(name, values, arrow_type, policy=policy)
    try:
        return pa.table(arrays)
    except pa.ArrowInvalid as error:
        lengths = ", ".join(f"{name} {len(array)}" for name, array in arrays.items())
        raise SchemaMismatch(f"the columns have different lengths: {lengths}") from error


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _pandas_rows(frame: pd.DataFrame, schema: pa.Schema, policy: RowPolicy) -> ArrowRows:
    """Convert columns and index levels of a frame by name.

    Columns of Python objects get the table's types.
    """
    levels = index_levels(frame.index.names, [str(name) for name in frame.columns], schema.names)
    if any(levels):
        frame = frame.reset_index(level=[position for position, level in enumerate(levels) if level is not None])
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        return ArrowRows(pa.RecordBatchReader.from_batches(pa.schema([(name, pa.null()) for name in names]), []))
    types = [_table_type(name, schema) for name in names]
    step = thresholds.pandas_rows
    first = _pandas_batch(frame.iloc[:step] if len(frame) > step and not policy.merges else frame, names, types, 0, policy)
    step = max(step, first.num_rows)

    def batches() -> Iterator[pa.RecordBatch]:
        yield first
        for start in range(step, len(frame), step):
            batch = _pandas_batch(frame.iloc[start : start + step], names, first.schema.types, start, DEFAULT_POLICY)
            yield _same_types(batch, first.schema)

    return ArrowRows(pa.RecordBatchReader.from_batches(first.schema, batches()))


def index_levels(
    index_names: Sequence[object], columns: Sequence[str], table_columns: Sequence[str], index_col: str | Sequence[str] | None = None
) -> list[str | None]:
    """Return the column of each level of an index.

    None: the level is left out. Raises the errors of ``spark_frame``.

    >>> index_levels(["id", None], ["city"], ["id", "city"]), index_levels([None], ["city"], ["id", "city"], "id")
    (['id', None], ['id'])
    >>> index_levels(["town"], ["id"], ["id", "city"])
    Traceback (most recent call last):
    pyspark_paimon.SchemaMismatch: index 'town' is no column of the table, which has: id, city; ...
    """
    if index_col is not None:
        level_names = [index_col] if isinstance(index_col, str) else list(index_col)
        if len(level_names) != len(index_names):
            raise InvalidArgument(
                f"index_col has {count_text(len(level_names), 'name')} ({', '.join(level_names)}), but the index has {count_text(len(index_names), 'level')}; name each level"
            )
        levels: list[str | None] = [*level_names]
    else:
        levels = [None if name is None or frame_column(name) in columns else frame_column(name) for name in index_names]
    for level in filter(None, levels):
        if level in columns:
            raise SchemaMismatch(
                f"'{level}' is both a column and an index of the frame; drop the index with reset_index(drop=True), or rename it"
            )
        if level not in table_columns:
            what = f"index '{level}' is no column of the table, which has: {', '.join(table_columns)}"
            raise SchemaMismatch(f"{what}; drop it with reset_index(drop=True), or name its column by index_col")
    repeated = [level for level, times in Counter(filter(None, levels)).items() if times > 1]
    if repeated:
        raise SchemaMismatch(f"several levels of the index are named {', '.join(repeated)}; rename them")
    return levels


def frame_column(label: object) -> str:
    """Return the column name that pandas-on-Spark gives a label."""
    if isinstance(label, tuple):
        return str(label[0]) if len(label) == 1 else f"({', '.join(map(str, label))})"
    return str(label)


def _table_type(name: str, schema: pa.Schema) -> pa.DataType | None:
    index = schema.get_field_index(name)
    return schema.field(index).type if index >= 0 else None


def _pandas_batch(
    frame: pd.DataFrame, names: Sequence[str], types: Sequence[pa.DataType | None], start: int, policy: RowPolicy
) -> pa.RecordBatch:
    arrays = []
    for position, (name, arrow_type) in enumerate(zip(names, types, strict=True)):
        array = python_column(name, frame.iloc[:, position], arrow_type, first_row=start, policy=policy)
        arrays.append(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
    return pa.record_batch(arrays, names=list(names)) if arrays else pa.record_batch({})


def _same_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a later batch to the types of the first.

    Raises ``SchemaMismatch`` where values would change.
    """
    arrays = []
    for name, array, arrow_type in zip(schema.names, batch.columns, schema.types, strict=True):
        try:
            arrays.append(lossless_cast(array, arrow_type) if may_cast(array.type, arrow_type) else array)
        except LossyCast as error:
            raise SchemaMismatch(f"column '{name}' of the pandas DataFrame holds values of several types: {error}") from error
        if arrays[-1].type != arrow_type:
            raise SchemaMismatch(f"column '{name}' of the pandas DataFrame holds values of several types: {arrow_type} and {array.type}")
    return pa.record_batch(arrays, schema=schema)


def python_column(
    name: str, values: Any, target_type: pa.DataType | None, *, first_row: int = 0, policy: RowPolicy = DEFAULT_POLICY
) -> Any:
    """Convert the values of a column to Arrow.

    Columns with an Arrow type keep it: ``conform`` checks them. Python values become ``target_type``. None: infer the type.
    ``policy``: as for ``python_array``. ``first_row`` is the number of the first value in error messages.

    Raises:
        SchemaMismatch: A value does not fit; the message names row and column.

    >>> python_column("n", [1, 2.0], pa.int8()).to_pylist()
    [1, 2]
    >>> python_column("n", [1, 2.5], pa.int8())
    Traceback (most recent call last):
    pyspark_paimon.SchemaMismatch: column 'n', row 1: 2.5 (float) does not fit int8: ...
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    of_pandas = any(kind.__module__.startswith("pandas.") for kind in type(values).__mro__)
    try:
        if isinstance(values, np.ndarray) and values.dtype.kind != "O" and values.ndim == 1:
            return pa.array(values)
        if of_pandas and not _holds_objects(values.dtype):
            return pa.array(values, from_pandas=True)
        if hasattr(values, "__arrow_c_stream__") and not of_pandas:
            return pa.chunked_array(values)
        if hasattr(values, "__arrow_c_array__") and not of_pandas:
            return pa.array(values)
    except CONVERSION_ERRORS as error:
        raise SchemaMismatch(f"column '{name}' cannot be converted to an Arrow type: {error}") from error
    listed: Sequence[Any] = values if isinstance(values, list | tuple) else list(values)
    if of_pandas:
        listed = without_nan(listed)
    try:
        return python_array(listed, target_type, policy)
    except InvalidValue as error:
        where = f"column '{name}{error.path}', row {first_row + error.row}"
        is_number = not error.path and target_type is not None and is_number_type(target_type) and type(listed[error.row]) is not bool
        hint = wider_hint(name) if is_number and isinstance(listed[error.row], Number) else ""
        raise SchemaMismatch(f"{where}: {error.reason}{hint}{'' if error.path else _values_hint(target_type)}") from error


def _holds_objects(dtype: Any) -> bool:
    """Return whether values of a pandas type are Python objects.

    Then the Arrow type depends on the values.
    """
    return str(getattr(getattr(dtype, "categories", None), "dtype", dtype)) == "object"


def python_scalar(name: str, value: Any, target_type: pa.DataType) -> pa.Scalar:
    """Convert one value of a column.

    Raises:
        SchemaMismatch: The value does not fit; the message names the column.
    """
    try:
        return python_array([value], target_type)[0]
    except InvalidValue as error:
        raise SchemaMismatch(f"column '{name}{error.path}': {error.reason}{'' if error.path else _values_hint(target_type)}") from error


def column_scalar(column: DataField, value: Any) -> pa.Scalar:
    """Convert the new value of a column.

    Raises:
        SchemaMismatch: The value does not fit, or is null in a NOT NULL column.
    """
    scalar = python_scalar(column.name, value, column.type.arrow)
    if not scalar.is_valid and not column.type.nullable:
        raise SchemaMismatch(f"column '{column.name}' is {column.type} and cannot be set to null")
    return scalar


def _values_hint(target_type: pa.DataType | None) -> str:
    """Return the hint for Python values refused by Arrow."""
    kinds = (description for is_kind, description in _PYTHON_VALUES if target_type is not None and is_kind(target_type))
    return "".join(f"; give {description}" for description in islice(kinds, 1))
