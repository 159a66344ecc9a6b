"""Casts of input rows to the types of a table, for ``Table.write(cast=True)``.

Whole columns are cast at once. Each cast also returns which values do not fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.leaf_types import is_bytes, is_text, takeable, with_leaves
from lsm.arrow.row_kind import ROW_KIND
from lsm.keys.encoding import one_array
from lsm.rows_in.arrow import COLUMN_SET, ArrowRows
from lsm.rows_in.policy import RowPolicy, wider_hint
from lsm.rows_in.refused_rows import refused_rows, rows_with
from manifest.io.errors import SchemaMismatch
from manifest.schema.evolution import evolve
from manifest.schema.merge_on_write import MergeRules, fixed_columns, is_wider, merge_changes
from manifest.schema.table_schema import TableSchema
from manifest.types.cast_rules import INTEGER_BITS, INTEGER_DIGITS, NUMBERS
from manifest.types.data_type import DataField, DataType, default_scalar, from_arrow
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Mask
from sparkexpr.values.column_type import FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Kind

ERROR = "_error"
"""Column of rejected rows with the reason."""
_WIDER, _MOST_DIGITS = (Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.DOUBLE), 38
"""Types that columns of numbers may be widened to, in the order of preference. A DECIMAL is the last."""
_TRUE, _FALSE = pa.array(["true", "t", "yes", "y", "1"]), pa.array(["false", "f", "no", "n", "0"])
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_INFINITE = r"[+-]?(nan|inf|infinity)"
_DATE = r"\d{4}-\d{1,2}-\d{1,2}"
_OFFSET = r"(Z|[+-]\d{2}:?\d{2})"


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
        # Delete rows need no values but their keys, and rows of different columns only their own.
        fills_none = not {ROW_KIND, COLUMN_SET, self.schema.core.rowkind_field}.intersection(batch.schema.names)
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
        field, value = self.schema.field(name), batch.column(name)[row].as_py()
        reason, is_number = _reason(field, value), re.fullmatch(_NUMBER, str(value).strip()) is not None
        hint = "" if self.policy.rounds else ", cast='round' rounds numbers"
        wider = wider_hint(name) if is_number and field.type.kind in NUMBERS else ""
        return SchemaMismatch(
            f"row {self._row + row}: {reason}; nothing was committed{wider}. errors='null' stores NULL, errors='collect' leaves such rows out{hint}"
        )

    def _rejected(self, batch: pa.RecordBatch, bad: Any, unfit: dict[str, Any]) -> pa.Table:
        rows = batch.filter(pa.array(bad))
        shown = max(0, thresholds.shown_values - sum(table.num_rows for table in self.rejected))
        reasons = [_reasons(self.schema.field(name), rows.column(name), mask[bad], shown) for name, mask in unfit.items()]
        texts = pc.binary_join_element_wise(*reasons, "; ", null_handling="skip")
        rejected = pa.Table.from_batches([rows]).append_column(ERROR, texts)
        return rejected.select([name for name in rejected.column_names if name != COLUMN_SET])


def widened(schema: TableSchema, rows: pa.Table, *, rounds: bool) -> TableSchema:
    """Return the schema with wider types for numbers that do not fit otherwise.

    Keys keep their types. Nested columns get the wider types and new fields of the rows.

    >>> from manifest.types.ddl import parse_ddl
    >>> schema = TableSchema(id=0, fields=parse_ddl("n INT, m INT"))
    >>> [str(field.type) for field in widened(schema, pa.table({"n": ["5000000000"], "m": ["x"]}), rounds=False).fields]
    ['BIGINT', 'INT']
    """
    nested = pa.schema([field for field in rows.schema if pa.types.is_nested(field.type) and field.name in schema.names])
    if changes := merge_changes(schema, from_arrow(nested), MergeRules(widens=True)):
        schema = evolve(schema, changes)
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
    return bool(is_text(arrow_type) or _is_exact(arrow_type) or pa.types.is_floating(arrow_type))


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


def cast_column(column: Any, target_type: DataType, *, rounds: bool) -> tuple[Any, Any]:
    """Return the cast values, and which of them do not fit.

    Values that do not fit are null. A column that needs no such cast is returned as it is.

    >>> from manifest.types.ddl import parse_ddl
    >>> values, unfit = cast_column(pa.array([" 7", "x", None, "7.5"]), parse_ddl("n INT")[0].type, rounds=True)
    >>> values.to_pylist(), unfit.tolist()
    ([7, None, None, 8], [False, True, False, False])
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    source_type = column.type
    if target_type.is_nested and source_type != target_type.arrow:
        return _cast_nested(column, target_type, rounds=rounds)
    if source_type == target_type.arrow or pa.types.is_nested(source_type) or pa.types.is_null(source_type):
        return column, np.zeros(len(column), np.bool_)
    if target_type.kind in STRINGS:
        cast = column if is_text(source_type) or is_bytes(source_type) else pc.cast(column, pa.string())
    elif pa.types.is_floating(source_type) and (target_type.kind in INTEGERS or target_type.kind is Kind.DECIMAL):
        cast = _float_to_decimal(column, target_type, rounds=rounds)
    elif pa.types.is_floating(source_type) and target_type.kind is Kind.FLOAT:
        cast = _finite(column.cast(target_type.arrow, safe=False), pc.is_inf(column))
    elif is_text(source_type) or (_is_exact(source_type) and target_type.kind in _FROM_TEXT_OF_NUMBERS):
        text = column if pa.types.is_string(source_type) else pc.cast(column, pa.string())
        cast = _from_text(pc.utf8_trim_whitespace(text), target_type, rounds=rounds)
    else:
        cast = column
    had_value, left = np.asarray(column.is_valid()), np.asarray(cast.is_valid())
    return cast, had_value & ~left


def _cast_nested(column: Any, target_type: DataType, *, rounds: bool) -> tuple[Any, Mask]:
    """Cast the values inside a list, map or row. A row fits if all of them do."""
    types, source_type = pa.types, column.type
    unfit = np.zeros(len(column), np.bool_)
    is_list = types.is_list(source_type) or types.is_large_list(source_type)
    if target_type.kind is Kind.ARRAY and is_list:
        values, mask = cast_column(column.values, target_type.part("element"), rounds=rounds)
        kind = pa.list_(values.type) if types.is_list(source_type) else pa.large_list(values.type)
        array = type(column).from_arrays(_offsets(column), values, type=kind, mask=_null_mask(column))
        return array, rows_with(column, mask)
    if target_type.kind is Kind.MAP and types.is_map(source_type):
        keys, wrong_keys = cast_column(column.keys, target_type.part("key"), rounds=rounds)
        items, wrong_items = cast_column(column.items, target_type.part("value"), rounds=rounds)
        if not wrong_keys.any():  # a key cannot be null: conform refuses such a value
            kind = pa.map_(keys.type, items.type)
            array = pa.MapArray.from_arrays(_offsets(column), keys, items, type=kind, mask=_null_mask(column))
            return array, rows_with(column, wrong_items)
    if target_type.kind is Kind.ROW and types.is_struct(source_type):
        fields = {field.name: field.type for field in target_type.fields}
        parts = []
        for field, part in zip(source_type, column.flatten(), strict=True):
            field_type = fields.get(field.name)
            values, mask = (part, False) if field_type is None else cast_column(part, field_type, rounds=rounds)
            parts.append(values)
            unfit |= mask
        return pa.StructArray.from_arrays(parts, names=[field.name for field in source_type], mask=_null_mask(column)), unfit
    return column, unfit


def _null_mask(column: Any) -> Any:
    return column.is_null() if column.null_count else None


def _offsets(column: Any) -> Any:
    return pa.array(column.offsets.to_numpy())  # a copy: Arrow accepts no null mask together with sliced offsets


_FROM_TEXT_OF_NUMBERS = INTEGERS | {Kind.DECIMAL, Kind.BOOLEAN}


def _is_exact(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow_type) or pa.types.is_decimal(arrow_type))


def _from_text(text: pa.Array, target_type: DataType, *, rounds: bool) -> pa.Array:
    """Parse texts; null where one does not fit."""
    if target_type.kind is Kind.DECIMAL:
        return _decimal(text, target_type.precision, target_type.scale, rounds=rounds).cast(target_type.arrow)
    if target_type.kind in INTEGERS:
        return _integer(_decimal(text, INTEGER_DIGITS[target_type.kind], 0, rounds=rounds), target_type)
    if target_type.kind in FLOATS:
        return _float(text, target_type)
    if target_type.kind is Kind.BOOLEAN:
        lowered = pc.utf8_lower(text)
        return pc.if_else(pc.is_in(lowered, _TRUE), True, pc.if_else(pc.is_in(lowered, _FALSE), False, pa.scalar(None, pa.bool_())))
    if target_type.kind in {Kind.DATE, Kind.TIME} or target_type.kind in TIMESTAMPS:
        return _time(text, target_type, rounds=rounds)
    return text


def _matching(text: pa.Array, pattern: str) -> pa.Array:
    """Return the texts that match as a whole, else null."""
    return pc.if_else(pc.match_substring_regex(text, f"^(?:{pattern})$", ignore_case=True), text, pa.scalar(None, text.type))


def _decimal(text: pa.Array, precision: int, scale: int, *, rounds: bool) -> pa.Array:
    """Parse decimal texts as DECIMAL of 256 bits; null where one has too many digits."""
    integer_digits = precision - scale
    fraction = r"\d*" if rounds else rf"\d{{0,{scale}}}0*"
    exact = _matching(
        pc.if_else(pc.match_substring_regex(text, r"\d"), text, pa.scalar(None, text.type)),
        rf"[+-]?0*\d{{0,{integer_digits}}}(\.{fraction})?",
    )
    # One more digit decides how to round half away from zero; the others do not matter.
    cut = pc.replace_substring_regex(exact, rf"(\.\d{{0,{scale + 1}}})\d*$", r"\1")
    numbers = pc.cast(pc.replace_substring_regex(cut, r"^([+-]?)0+(\d)", r"\1\2"), pa.decimal256(precision + 2, scale + 1))
    return _within(pc.round(numbers, scale, "half_towards_infinity"), precision, scale)


def _within(numbers: pa.Array, precision: int, scale: int) -> pa.Array:
    """Return rounded numbers as DECIMAL(precision, scale), null above it."""
    limit = pa.scalar(10 ** (precision - scale), pa.decimal256(precision - scale + 1, 0))
    fitting = pc.if_else(pc.less(pc.abs(numbers), limit), numbers, pa.scalar(None, numbers.type))
    return fitting.cast(pa.decimal256(precision, scale))


def _integer(numbers: pa.Array, target_type: DataType) -> pa.Array:
    bits = INTEGER_BITS[target_type.kind]
    wide = pa.decimal256(numbers.type.precision, 0)
    low, high = pa.scalar(-(1 << (bits - 1)), pa.decimal256(20, 0)), pa.scalar((1 << (bits - 1)) - 1, pa.decimal256(20, 0))
    fits = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return pc.if_else(fits, numbers, pa.scalar(None, wide)).cast(target_type.arrow)


def _float(text: pa.Array, target_type: DataType) -> pa.Array:
    numbers = _matching(text, f"{_NUMBER}|{_INFINITE}").cast(pa.float64()).cast(target_type.arrow, safe=False)
    return _finite(numbers, pc.match_substring_regex(text, r"[iI]"))


def _finite(numbers: pa.Array, may_be_infinite: pa.Array) -> pa.Array:
    """Return null for numbers that are too large for their type."""
    return pc.if_else(pc.and_(pc.is_inf(numbers), pc.invert(may_be_infinite)), pa.scalar(None, numbers.type), numbers)


def _float_to_decimal(column: pa.Array, target_type: DataType, *, rounds: bool) -> pa.Array:
    """Cast floats to numbers with few digits.

    A float fits if a number of the column converts back to it: 0.1 is a DECIMAL(2, 1).
    """
    precision, scale = (
        (target_type.precision, target_type.scale) if target_type.kind is Kind.DECIMAL else (INTEGER_DIGITS[target_type.kind], 0)
    )
    floats = column.cast(pa.float64())
    in_range = pc.if_else(pc.less(pc.abs(floats), 10.0 ** (precision - scale)), floats, pa.scalar(None, pa.float64()))
    if rounds:  # enough digits to see on which side of a half the float is
        numbers = pc.round(in_range.cast(pa.decimal256(precision + 22, scale + 20), safe=False), scale, "half_towards_infinity")
    else:
        numbers = in_range.cast(pa.decimal256(precision + 2, scale), safe=False)
        # Arrow's own cast to floats is one digit off for some, and it compares no floats of 16 bits.
        same = pc.equal(numbers.cast(pa.string()).cast(column.type).cast(pa.float64()), floats)
        numbers = pc.if_else(same, numbers, pa.scalar(None, numbers.type))
    fitting = _within(numbers, precision, scale)
    return fitting.cast(target_type.arrow) if target_type.kind is Kind.DECIMAL else _integer(fitting, target_type)


def _time(text: pa.Array, target_type: DataType, *, rounds: bool) -> pa.Array:
    """Parse ISO dates and times by polars; null where a text is neither."""
    import polars as pl  # noqa: PLC0415  # takes 0.1 s, and few writes cast

    if target_type.kind is Kind.DATE:
        return pl.Series(pl.from_arrow(_matching(text, _DATE))).str.to_date("%Y-%m-%d", strict=False).to_arrow().cast(target_type.arrow)
    digits = r"\d*" if rounds else rf"\d{{0,{target_type.precision}}}0*"
    clock = rf"\d{{1,2}}:\d{{2}}(:\d{{2}}(\.{digits})?)?"
    if target_type.kind is Kind.TIME:
        padded = _with_seconds(_matching(text, clock), r"^(\d{1,2}:\d{2})$")
        parsed = pl.Series(pl.from_arrow(_cut(padded, target_type.precision))).str.to_time("%H:%M:%S%.f", strict=False).to_arrow()
        return parsed.cast(target_type.arrow, safe=False)
    zoned = target_type.kind is Kind.TIMESTAMP_LTZ
    spaced = pc.replace_substring_regex(_matching(text, rf"{_DATE}([ T]{clock} ?{_OFFSET if zoned else ''})?"), r"^(\S+?)[Tt]", r"\1 ")
    padded = spaced if zoned else _with_seconds(pc.replace_substring_regex(spaced, r"^(\S+)$", r"\1 00:00"), r"^(\S+ \d{1,2}:\d{2})$")
    if zoned:
        padded = pc.replace_substring_regex(padded, r"( \d{1,2}:\d{2})( ?[Zz+-])", r"\1:00\2")
    unit: Any = "ns" if target_type.arrow.unit == "ns" else "us"
    series = pl.Series(pl.from_arrow(_cut(padded, 9 if unit == "ns" else min(target_type.precision, 6))))
    if zoned:
        parsed = series.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%#z", time_unit=unit, time_zone="UTC", strict=False).to_arrow()
    else:
        parsed = series.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit=unit, strict=False).to_arrow()
    return parsed.cast(target_type.arrow, safe=False)


def _with_seconds(text: pa.Array, pattern: str) -> pa.Array:
    return pc.replace_substring_regex(text, pattern, r"\1:00")


def _cut(text: pa.Array, digits: int) -> pa.Array:
    """Cut fractions of seconds after ``digits`` digits."""
    return pc.replace_substring_regex(text, rf"(\.\d{{0,{digits}}})\d*", r"\1")
