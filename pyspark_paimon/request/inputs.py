"""Conversion of user data to rows.

Rows are an Arrow stream of this process, or a Spark DataFrame that stays on the server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.leaf_types import with_leaves
from lsm.arrow.row_kind import ROW_KIND, ROW_KINDS
from lsm.rows_in.check import validate_batches
from lsm.rows_in.lossless_cast import LossyCast, lossless_cast, may_cast
from lsm.rows_in.python_column import python_column
from manifest.io.errors import SchemaMismatch
from manifest.schema.partial_rows import PartialRows
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument, UnsupportedType
from paimon_base.thresholds import thresholds
from pyspark_paimon.frames.pandas_frames import index_levels, spark_frame
from pyspark_paimon.request.requests import ArrowRows, CastErrors, CastMode, Rows, SparkRows, WriteRequest
from pyspark_paimon.typing import Data

if TYPE_CHECKING:
    import pandas as pd

_ACCEPTED = (
    "a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, an iterable of RecordBatches, a list of dicts, a dict of lists, "
    "a pandas DataFrame, one of polars, Spark or pandas-on-Spark, or another object with an Arrow C stream"
)


def rows_of(data: Data, schema: pa.Schema, *, widens: bool = False) -> Rows:
    """Return ``data`` as rows for a table with ``schema``.

    Of an iterable, reads only the first batch now. ``widens``: Python numbers that do not fit their column get a wider type.

    Raises:
        InvalidArgument: the type of ``data`` is not supported.
        SchemaMismatch: two columns have one name, or a value does not fit. Reading raises it for a damaged Arrow array.
        UnsupportedType: a Spark column has no Arrow type (intervals of months, for example).

    >>> rows_of(pa.table({"id": [1]}), pa.schema([("id", pa.int64())])).schema.names
    ['id']
    """
    rows = _rows(data, schema, widens)
    if isinstance(rows, ArrowRows):
        rows = replace(rows, reader=validate_batches(rows.reader))
    repeated = [name for name, times in Counter(rows.schema.names).items() if times > 1]
    if repeated:
        raise SchemaMismatch(f"the rows to write have several columns named {', '.join(repeated)}")
    return rows


def castable_rows(
    data: Data, schema: TableSchema, cast: CastMode, errors: CastErrors, *, widens: bool = False
) -> tuple[Rows, list[pa.Table]]:
    """Return ``data`` as rows with the types of the table.

    Also returns a list that gets the rejected rows while the rows are read, for ``errors`` ``collect``. ``widens``: a column of numbers
    gets a wider type where only that has all values. The first batch decides it for a stream.

    Raises:
        InvalidArgument: ``errors`` is unknown, or ``data`` is a Spark DataFrame.
        SchemaMismatch: As for ``rows_of``. Reading raises it for a value that does not fit, if ``errors`` is ``raise``.
    """
    if errors not in get_args(CastErrors):
        raise InvalidArgument(f"errors must be one of {', '.join(get_args(CastErrors))}, not {errors!r}")
    # Types of nested columns help to convert dicts; other Python values keep their own type until the cast.
    nested = [field.with_type(with_leaves(field.type, _castable)) for field in schema.arrow if pa.types.is_nested(field.type)]
    rows = rows_of(data, pa.schema(nested))
    if not isinstance(rows, ArrowRows):
        raise InvalidArgument(
            "cast=True casts rows of this process; cast the columns of a DataFrame in Spark, such as df.withColumn('n', try_cast('n', 'int'))"
        )
    from pyspark_paimon.request.cast_rows import CastRows, widened  # noqa: PLC0415  # few writes cast

    reader = rows.reader
    if widens:
        first_batches = list(islice(reader, 1)) if isinstance(data, Iterator | pa.RecordBatchReader) else list(reader)
        schema = widened(schema, pa.Table.from_batches(first_batches, reader.schema), rounds=cast == "round")
        reader = pa.RecordBatchReader.from_batches(reader.schema, chain(first_batches, reader))
    casts = CastRows(schema, cast == "round", errors)
    return replace(rows, reader=casts.reader(reader)), casts.rejected


def _castable(leaf: pa.DataType) -> pa.DataType:
    """Return the type of Python values that a cast makes values of type ``leaf``."""
    return pa.float64() if pa.types.is_float32(leaf) else leaf


def _rows(data: Any, schema: pa.Schema, widens: bool) -> Rows:
    match data:
        case pa.Table():
            return ArrowRows(data.to_reader())
        case pa.RecordBatch():
            return ArrowRows(pa.RecordBatchReader.from_batches(data.schema, [data]))
        case pa.RecordBatchReader():
            return ArrowRows(data)
    if type(data).__module__.startswith("pyspark."):
        return _spark_rows(data, schema)
    if is_a(data, "pandas", "DataFrame"):
        return _pandas_rows(data, schema, widens)
    if is_a(data, "polars", "LazyFrame"):
        data = data.collect()
    if is_a(data, "pyarrow._dataset", "Dataset"):
        return ArrowRows(data.scanner().to_reader())
    if isinstance(data, Mapping):
        return ArrowRows(_named_columns(data, schema, widens).to_reader())
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return ArrowRows(pa.RecordBatchReader.from_stream(data))
        except pa.ArrowInvalid as error:  # a stream of one column's values
            raise InvalidArgument(f"rows cannot be written from {type(data).__name__}: {error}; use {_ACCEPTED}") from error
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _iterable_rows(data, schema, widens)
    raise InvalidArgument(f"rows cannot be written from {type(data).__name__}; use {_ACCEPTED}")


def _iterable_rows(data: Iterable[object], schema: pa.Schema, widens: bool) -> Rows:
    items = iter(data)
    first = next(items, None)
    if first is None:
        return ArrowRows(pa.RecordBatchReader.from_batches(schema, []))
    if isinstance(first, Mapping):
        dicts = [first, *items]
        return ArrowRows(_dict_rows(dicts, schema, widens).to_reader(), _column_sets(dicts))
    if not isinstance(first, pa.RecordBatch | pa.Table):
        raise InvalidArgument(f"rows cannot be written from an iterable of {type(first).__name__}; use {_ACCEPTED}")

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


def _dict_rows(rows: Sequence[Any], schema: pa.Schema, widens: bool) -> pa.Table:
    """Convert dicts to a table. Missing keys are null."""
    if wrong := next((row for row in rows if not isinstance(row, Mapping)), None):
        raise InvalidArgument(f"an iterable of dicts has {wrong!r:.40} of type {type(wrong).__name__}; give all rows as dicts, or none")
    names = dict.fromkeys(chain.from_iterable(rows))
    return _named_columns({name: [row.get(name) for row in rows] for name in names}, schema, widens)


def _column_sets(rows: Sequence[Any]) -> tuple[frozenset[str], ...]:
    """Return the different sets of keys of the dicts. Empty: all have the same."""
    names = set(chain.from_iterable(rows))
    return () if all(len(row) == len(names) for row in rows) else tuple(set(map(frozenset, rows)))


def partial_rows(rows: Rows, schema: TableSchema) -> tuple[PartialRows, ...]:
    """Return the kinds of rows by the columns that they have."""
    sets = rows.column_sets if isinstance(rows, ArrowRows) else ()
    return tuple(PartialRows(schema, names) for names in sets or (frozenset(rows.schema.names),))


def refuse_ragged(rows: Rows, schema: TableSchema, request: WriteRequest) -> None:
    """Raise ``SchemaMismatch`` for dicts without some of the columns.

    Dicts with row kinds may leave out columns: deletes need only their key.
    """
    kinds = request.row_kinds or schema.core.rowkind_field is not None
    if isinstance(rows, ArrowRows) and rows.column_sets and not (request.fills_null or kinds):
        for refusal in filter(None, (partial.refusal for partial in partial_rows(rows, schema))):
            raise SchemaMismatch(f"some of the rows have other keys: {refusal}")


def _named_columns(columns: Mapping[Any, Any], schema: pa.Schema, widens: bool) -> pa.Table:
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
        arrays[name] = python_column(name, values, arrow_type, widens=widens)
    try:
        return pa.table(arrays)
    except pa.ArrowInvalid as error:
        lengths = ", ".join(f"{name} {len(array)}" for name, array in arrays.items())
        raise SchemaMismatch(f"the columns have different lengths: {lengths}") from error


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _pandas_rows(frame: pd.DataFrame, schema: pa.Schema, widens: bool) -> Rows:
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
    first = _pandas_batch(frame.iloc[:step] if len(frame) > step and not widens else frame, names, types, 0, widens)
    step = max(step, first.num_rows)

    def batches() -> Iterator[pa.RecordBatch]:
        yield first
        for start in range(step, len(frame), step):
            batch = _pandas_batch(frame.iloc[start : start + step], names, first.schema.types, start, False)
            yield _same_types(batch, first.schema)

    return ArrowRows(pa.RecordBatchReader.from_batches(first.schema, batches()))


def _table_type(name: str, schema: pa.Schema) -> pa.DataType | None:
    index = schema.get_field_index(name)
    return schema.field(index).type if index >= 0 else None


def _pandas_batch(
    frame: pd.DataFrame, names: Sequence[str], types: Sequence[pa.DataType | None], start: int, widens: bool
) -> pa.RecordBatch:
    arrays = []
    for position, (name, arrow_type) in enumerate(zip(names, types, strict=True)):
        array = python_column(name, frame.iloc[:, position], arrow_type, first_row=start, widens=widens)
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


def _spark_rows(data: Any, schema: pa.Schema) -> Rows:
    if type(data).__module__.startswith("pyspark.pandas"):
        if not hasattr(data, "to_spark"):
            raise InvalidArgument(f"rows cannot be written from pandas-on-Spark's {type(data).__name__}; use a DataFrame")
        data = spark_frame(data, schema)
    if not (hasattr(data, "toArrow") and hasattr(data, "schema")):
        raise InvalidArgument(f"rows cannot be written from Spark's {type(data).__name__}; use {_ACCEPTED}")
    from pyspark_paimon.frames.spark_types import arrow_for_spark  # noqa: PLC0415  # data is a DataFrame: pyspark is loaded

    try:
        return SparkRows(data, arrow_for_spark(data.schema))
    except TypeError as error:
        raise UnsupportedType(f"the DataFrame has a column of a type that no table has: {error}") from error


def collect(rows: Rows) -> ArrowRows:
    """Return ``rows`` as an Arrow stream; fetch a Spark DataFrame."""
    if isinstance(rows, ArrowRows):
        return rows
    from pyspark_paimon.frames.fetched_rows import fetch_rows  # noqa: PLC0415  # few processes fetch DataFrames

    return ArrowRows(fetch_rows(rows.frame).to_reader())


def has_row_kinds(rows: Rows, schema: TableSchema) -> bool:
    """Return whether the rows have a ``ROW_KIND`` column.

    Raises ``InvalidArgument`` where the table takes no kinds, or has a column for them.
    """
    if ROW_KIND not in rows.schema.names or ROW_KIND in schema.names:
        return False
    if not schema.is_primary_key_table:
        raise InvalidArgument(f"column '{ROW_KIND}': the table has no primary key, which row kinds need: remove the column")
    if schema.core.rowkind_field is not None:
        raise InvalidArgument(
            f"column '{ROW_KIND}': the table reads row kinds from column '{schema.core.rowkind_field}' (rowkind.field): use that"
        )
    return True


def split_kinds(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    """Split ``ROW_KIND`` from the rows.

    Returns the kinds as int8: 0 +I, 1 -U, 2 +U, 3 -D. Raises ``SchemaMismatch``.

    >>> rows, kinds = split_kinds(pa.record_batch({"id": [1, 2], "_row_kind": ["+I", "-D"]}))
    >>> rows.schema.names, kinds.to_pylist()
    (['id'], [0, 3])
    """
    kind_index = batch.schema.get_field_index(ROW_KIND)
    kind_column = batch.column(kind_index)
    if pa.types.is_dictionary(kind_column.type):
        kind_column = kind_column.dictionary_decode()
    try:
        codes = pc.index_in(kind_column.cast(pa.string()), value_set=pa.array(ROW_KINDS))
    except pa.ArrowException as error:
        raise SchemaMismatch(f"column '{ROW_KIND}' must be text, not {kind_column.type}") from error
    if codes.null_count:
        wrong = kind_column.filter(codes.is_null())[0].as_py()
        raise SchemaMismatch(f"column '{ROW_KIND}' has {wrong!r}; use one of {', '.join(ROW_KINDS)}")
    return batch.remove_column(kind_index), codes.cast(pa.int8())
