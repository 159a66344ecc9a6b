"""The text form of the golden tables: rows as their ``expected.jsonl`` has them, and filters of ``plans.json`` as predicates."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op, Predicate, StartsWith, all_of, any_of
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataType
from sparkexpr.values.column_type import ColumnType, Kind

GOLDEN = Path(__file__).parent / "golden"
ENGINES_VIEW = {"deletion-vectors.merge-on-read": "false"}
"""How the Java engine reads: what waits for a compaction is left out where level 0 is hidden."""
_EPOCH = dt.date(1970, 1, 1).toordinal()
_UNITS = {"ms": 1_000_000, "us": 1_000, "ns": 1}


def golden_rows(table: pa.Table, schema: TableSchema) -> list[str]:
    """The rows of ``table`` (columns of ``schema``) as canonical JSON lines, sorted as text."""
    columns = [[to_golden(scalar, schema.field(name).type) for scalar in table.column(name)] for name in table.column_names]
    rows = zip(*columns, strict=True) if columns else iter(())
    return sorted(canonical(dict(zip(table.column_names, row, strict=True))) for row in rows)


def expected_rows(path: Path, schema: TableSchema) -> list[str]:
    """The lines of an ``expected*.jsonl`` of ``schema``, canonical and sorted."""
    return canonical_rows((json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line), schema)


def canonical_rows(rows: Iterable[Mapping[str, Any]], schema: TableSchema) -> list[str]:
    """Rows in JSON form as canonical lines, sorted."""
    return sorted(canonical({name: _rounded(value, schema.field(name).type) for name, value in row.items()}) for row in rows)


def canonical(row: dict[str, Any]) -> str:
    """A row as text: floats as Python spells them, so that any shortest spelling of a number compares equal."""
    return json.dumps(row, ensure_ascii=False)


def _rounded(value: Any, data_type: DataType) -> Any:
    """A JSON value with its FLOATs rounded to 32 bits."""
    if value is None or isinstance(value, str):
        return value
    match data_type.kind:
        case Kind.FLOAT:
            return _float(float(np.float32(value)), single=True)
        case Kind.ARRAY:
            return [_rounded(item, data_type.part("element")) for item in value]
        case Kind.MAP:
            return [[_rounded(key, data_type.part("key")), _rounded(item, data_type.part("value"))] for key, item in value]
        case Kind.ROW:
            return {field.name: _rounded(value[field.name], field.type) for field in data_type.fields}
        case _:
            return value


def to_golden(scalar: Any, data_type: DataType) -> Any:
    """An Arrow scalar in the golden tables' JSON form."""
    if not scalar.is_valid:
        return None
    match data_type.kind:
        case Kind.BINARY | Kind.VARBINARY:
            return scalar.as_py().hex()
        case Kind.FLOAT | Kind.DOUBLE:
            return _float(scalar.as_py(), single=data_type.kind is Kind.FLOAT)
        case Kind.DECIMAL:
            return f"{scalar.as_py():f}"
        case Kind.DATE:
            return _date(scalar.value)
        case Kind.TIME:
            seconds, millis = divmod(scalar.value, 1000)
            return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{millis:03}"
        case Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ:
            return _timestamp(scalar.value * _UNITS[scalar.type.unit], data_type)
        case Kind.ARRAY:
            return [to_golden(item, data_type.part("element")) for item in scalar.values]
        case Kind.MAP | Kind.MULTISET:
            key_type = data_type.part("key" if data_type.kind is Kind.MAP else "element")
            value_type = data_type.part("value") if data_type.kind is Kind.MAP else DataType(Kind.INT)
            pairs = [[to_golden(item[0], key_type), to_golden(item[1], value_type)] for item in scalar.values]
            return sorted(pairs, key=lambda pair: json.dumps(pair[0], ensure_ascii=False))
        case Kind.ROW:
            return {field.name: to_golden(scalar[field.name], field.type) for field in data_type.fields}
        case _:
            return scalar.as_py()


def _float(value: float, *, single: bool) -> float | str:
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return float(str(np.float32(value))) if single else value


def _date(days: int) -> str:
    return dt.date.fromordinal(days + _EPOCH).isoformat()


def _timestamp(nanos: int, data_type: DataType) -> str:
    seconds, fraction = divmod(nanos, 1_000_000_000)
    days, second = divmod(seconds, 86400)
    digits = f"{fraction:09}" if data_type.precision > 6 else f"{fraction // 1000:06}"
    zone = "Z" if data_type.kind is Kind.TIMESTAMP_LTZ else ""
    return f"{_date(days)}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{digits}{zone}"


def from_golden(value: Any, column_type: ColumnType) -> Any:
    """A value in JSON form as a plain value of ``column_type``."""
    if value is None:
        return None
    match column_type.kind:
        case Kind.BINARY | Kind.VARBINARY:
            return bytes.fromhex(value)
        case Kind.FLOAT | Kind.DOUBLE:
            number = float(value)
            return float(np.float32(number)) if column_type.kind is Kind.FLOAT else number
        case Kind.DECIMAL:
            return int(Decimal(value).scaleb(column_type.scale, Context(prec=80)))
        case Kind.DATE:
            return dt.date.fromisoformat(value).toordinal() - _EPOCH
        case Kind.TIME:
            hours, minutes, seconds = value.split(":")
            return int((int(hours) * 60 + int(minutes)) * 60_000 + round(float(seconds) * 1000))
        case Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ:
            day, clock = value.rstrip("Z").split("T")
            hours, minutes, seconds = clock.split(":")
            whole, _, fraction = seconds.partition(".")
            days = dt.date.fromisoformat(day).toordinal() - _EPOCH
            nanos = (days * 86400 + int(hours) * 3600 + int(minutes) * 60 + int(whole)) * 1_000_000_000 + int(f"{fraction:0<9}")
            return nanos // _UNITS[column_type.unit]
        case _:
            return value


def golden_predicate(form: dict[str, Any] | None, schema: TableSchema) -> Predicate | None:
    """A filter of ``plans.json`` as a predicate bound to the types of ``schema``."""
    if form is None:
        return None
    op = form["op"]
    if op in {"and", "or"}:
        children = [golden_predicate(child, schema) for child in form["args"]]
        return all_of(*children) if op == "and" else any_of(*(child for child in children if child is not None))
    name, bracket, key = form["col"].partition("[")
    column = ColumnRef(name, key.removesuffix("]") if bracket else None)
    column_type = schema.column_types[name]
    if column.key is not None:
        assert column_type.value is not None
        column_type = column_type.value
    if op in {"is_null", "is_not_null"}:
        return IsNull(column, negated=op == "is_not_null")
    if op == "starts_with":
        return StartsWith(column, form["value"])
    values = [from_golden(value, column_type) for value in form.get("values", [form.get("value")])]
    if op in {"in", "not_in"}:
        return In(column, tuple(values), negated=op == "not_in")
    if op == "between":
        return all_of(Compare(column, Op.GE, values[0]), Compare(column, Op.LE, values[1]))
    return Compare(column, Op("<>" if op == "!=" else op), values[0])
