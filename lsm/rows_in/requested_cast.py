"""Casts of input rows to the types of a table, for ``Table.write(cast=True)``.

Whole columns are cast at once. Each cast also returns which values do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.leaf_types import is_text, takeable, with_leaves
from lsm.arrow.row_kind import ROW_KIND
from lsm.keys.encoding import one_array
from lsm.rows_in.arrow import ArrowRows
from lsm.rows_in.cast_column import cast_column, is_exact
from lsm.rows_in.policy import RowPolicy
from lsm.rows_in.refused_rows import refused_rows
from manifest.io.errors import SchemaMismatch
from manifest.schema.merge_on_write import fixed_columns, is_wider
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField, DataType, default_scalar
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Mask
from sparkexpr.values.column_type import Kind

ERROR = "_error"
"""Column of rejected rows with the reason."""
_WIDER, _MOST_DIGITS = (Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.DOUBLE), 38
"""Types that columns of numbers may be widened to, in the order of preference. A DECIMAL is the last."""


def source_types(schema: TableSchema) -> pa.Schema:
    """Return the types that Python values get before their cast.

    Types of nested columns help to convert dicts; other values keep their own type.
    """
    return pa.schema([column.with_type(with_leaves(column.type, _castable)) for column in schema.arrow if pa.types.is_nested(column.type)])


def _castable(leaf: pa.DataType) -> pa.DataType:
    """Return the type of Python values that a cast makes values of type ``leaf``."""
    return pa.float64() if pa.types.is_float32(leaf) else leaf


def cast_rows(rows: ArrowRows, schema: TableSchema, policy: RowPolicy, *, streams: bool = True) -> ArrowRows:
    """Return rows with the types of the table where they can be cast.

    A column of numbers gets a wider type where only that has all values, if the policy widens. The first batch decides it if ``streams``.
    Reading raises ``SchemaMismatch`` for a value that does not fit, if the policy's ``errors`` is ``raise``.

    >>> from manifest.types.ddl import parse_ddl
    >>> schema = TableSchema(id=0, fields=parse_ddl("n INT"))
    >>> cast_rows(ArrowRows(pa.table({"n": ["7", " 8"]}).to_reader()), schema, RowPolicy(cast=True)).reader.read_all()["n"].to_pylist()
    [7, 8]
    """
    reader = rows.reader
    if policy.widens:
        first_batches = list(islice(reader, 1)) if streams else list(reader)
        schema = widened(schema, pa.Table.from_batches(first_batches, reader.schema), rounds=policy.rounds)
        reader = pa.RecordBatchReader.from_batches(reader.schema, chain(first_batches, reader))
    return replace(rows, reader=_CastRows(schema, policy, rows.rejected).reader(reader))


def cast_texts(texts: pa.Table, schema: TableSchema) -> pa.Table:
    """Return texts in the types of their columns.

    Raises:
        SchemaMismatch: A text does not fit.
    """
    return cast_rows(ArrowRows(texts.to_reader()), schema, RowPolicy(cast=True)).reader.read_all()


@dataclass
class _CastRows:
    """Cast of a stream of batches.

    ``rejected`` gets rows with a value that does not fit, as they were given and with the reason in ``_error``.
    """

    schema: TableSchema
    policy: RowPolicy
    rejected: list[pa.Table]
    _row: int = 0

    def reader(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return the rows with the types of the table where they can be cast."""
        plain = pa.schema([arrow_field.with_type(with_leaves(arrow_field.type, takeable)) for arrow_field in rows.schema])
        rows = rows if rows.schema == plain else rows.cast(plain)  # Arrow neither filters nor measures texts in views
        empty, _ = self._cast(pa.record_batch([pa.nulls(0, arrow_field.type) for arrow_field in rows.schema], schema=rows.schema))
        return pa.RecordBatchReader.from_batches(empty.schema, self._batches(rows))

    def _batches(self, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            cast, unfit = self._cast(batch)
            bad = np.zeros(batch.num_rows, np.bool_)
            for name, mask in unfit.items():
                if self.policy.errors == "raise":
                    raise self._error(batch, name, int(np.flatnonzero(mask)[0]))
                bad |= mask
            if self.policy.errors == "collect" and bad.any():
                self.rejected.append(self._rejected(batch, bad, unfit))
                cast = cast.filter(pa.array(~bad))
            self._row += batch.num_rows
            yield cast

    def _cast(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, Any]]:
        """Return the cast rows, and by column which values do not fit."""
        arrays, unfit = [], {}
        # Delete rows need no values but their keys.
        fills_none = not {ROW_KIND, self.schema.core.rowkind_field}.intersection(batch.schema.names)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            array = column
            if name in self.schema.names:
                field = self.schema.field(name)
                array, mask = cast_column(column, field.type, rounds=self.policy.rounds)
                if self.policy.errors != "raise":
                    # Null becomes the default, if the column has one.
                    can_fill = self.policy.errors == "null" or not fills_none or default_scalar(field) is not None
                    checked = replace(field, type=field.type.with_nullable(nullable=True)) if can_fill else field
                    refused = refused_rows(array, checked)
                    if self.policy.errors == "null" and refused.any():
                        array = pc.if_else(pa.array(refused), pa.scalar(None, array.type), array)
                    mask = mask | refused
                if mask.any():
                    unfit[name] = mask
            arrays.append(array)
        return pa.record_batch(arrays, names=batch.schema.names), unfit

    def _error(self, batch: pa.RecordBatch, name: str, row: int) -> SchemaMismatch:
        reason = _reason(self.schema.field(name), batch.column(name)[row].as_py())
        hint = "" if self.policy.rounds else ", cast='round' rounds numbers"
        return SchemaMismatch(
            f"row {self._row + row}: {reason}; nothing was committed. errors='null' stores NULL, errors='collect' leaves such rows out{hint}"
        )

    def _rejected(self, batch: pa.RecordBatch, bad: Any, unfit: dict[str, Any]) -> pa.Table:
        rows = batch.filter(pa.array(bad))
        shown = max(0, thresholds.shown_values - sum(table.num_rows for table in self.rejected))
        reasons = [_reasons(self.schema.field(name), rows.column(name), mask[bad], shown) for name, mask in unfit.items()]
        texts = pc.binary_join_element_wise(*reasons, "; ", null_handling="skip")
        return pa.Table.from_batches([rows]).append_column(ERROR, texts)


def widened(schema: TableSchema, rows: pa.Table, *, rounds: bool) -> TableSchema:
    """Return the schema with wider types for numbers that do not fit otherwise.

    Keys keep their types.

    >>> from manifest.types.ddl import parse_ddl
    >>> schema = TableSchema(id=0, fields=parse_ddl("n INT, m INT"))
    >>> [str(field.type) for field in widened(schema, pa.table({"n": ["5000000000"], "m": ["x"]}), rounds=False).fields]
    ['BIGINT', 'INT']
    """
    fields = []
    for column in schema.fields:
        wider = column.type
        if column.name in rows.column_names and column.name not in fixed_columns(schema):
            values = one_array(rows.column(column.name))
            fewest = int(cast_column(values, wider, rounds=rounds)[1].sum()) if _is_castable_number(values.type) else 0
            wider_types = [*map(DataType, _WIDER), DataType(Kind.DECIMAL, precision=_MOST_DIGITS, scale=column.type.scale)]
            for candidate in wider_types if fewest else ():
                if is_wider(column.type, candidate):
                    unfit = int(cast_column(values, candidate, rounds=rounds)[1].sum())
                    if unfit < fewest:
                        wider, fewest = candidate.with_nullable(column.type.nullable), unfit
        fields.append(replace(column, type=wider))
    return schema.model_copy(update={"fields": tuple(fields)})


def _is_castable_number(arrow_type: pa.DataType) -> bool:
    return bool(is_text(arrow_type) or is_exact(arrow_type) or pa.types.is_floating(arrow_type))


def _reason(column: DataField, value: object) -> str:
    if value is None:
        return f"column '{column.name}' has a null, but is {column.type}"
    return f"column '{column.name}': {value!r:.60} is not a valid {column.type.with_nullable(nullable=True)}"


def _reasons(column: DataField, values: pa.Array, unfit: Mask, shown: int) -> pa.Array:
    """Return the reason of each unfit value, else null.

    The first ``shown`` values are part of their reasons. A text for each value takes Python.
    """
    value_type = column.type.with_nullable(nullable=True)
    without_value = pc.if_else(values.is_null(), _reason(column, None), f"column '{column.name}': the value is not a valid {value_type}")
    first = [_reason(column, value) for value in values.slice(0, shown).to_pylist()]
    texts = pa.concat_arrays([pa.array(first, pa.string()), without_value.slice(len(first))])
    return pc.if_else(pa.array(unfit), texts, pa.scalar(None, pa.string()))
