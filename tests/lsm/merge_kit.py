"""GroupFold records with the product, in the form of ``tests.lsm.merge_model``."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.keys.sort import Sorted
from lsm.merge.function import merge_function_for
from manifest.schema.table_schema import TableSchema
from manifest.types.ddl import parse_ddl
from tests.lsm.merge_model import Model, Record

KINDS = ("+I", "-U", "+U", "-D")


def schema_of(model: Model) -> TableSchema:
    fields = parse_ddl(", ".join(f"{name} {kind}" for name, kind in model.types.items()))
    return TableSchema(id=0, fields=fields, primary_keys=model.keys, options=model.options)


def table_of(schema: TableSchema, records: list[Record]) -> pa.Table:
    """Records as the rows that a fold sees."""
    columns = [pa.array([r[1] for r in records], pa.int64()), pa.array([KINDS.index(r[0]) for r in records], pa.int8())]
    columns += [pa.array([r[2][field.name] for r in records], field.type.arrow) for field in schema.fields]
    return pa.table(columns, names=["_SEQUENCE_NUMBER", "_VALUE_KIND", *schema.names])


def records_of(table: pa.Table) -> list[Record]:
    rows = table.to_pylist()
    return [(KINDS[row.pop("_VALUE_KIND")], row.pop("_SEQUENCE_NUMBER"), row) for row in rows]


def fold(model: Model, *histories: list[Record]) -> list[Record]:
    """The product's results for keys with these records, oldest first."""
    schema = schema_of(model)
    table = table_of(schema, [record for history in histories for record in history])
    starts = np.cumsum([0, *(len(history) for history in histories)])[:-1]
    return records_of(merge_function_for(schema).fold(table, Sorted(np.arange(table.num_rows), starts)))


def shown(record: Record | None, types: dict[str, str]) -> Any:
    """A record so that equal ones compare equal: NaN is itself, a decimal zero has no sign, maps have no order."""
    if record is None:
        return None
    kind, sequence, values = record
    texts = {}
    for name, value in values.items():
        unordered = value is not None and (types[name].startswith("MAP") or types[name].startswith("ARRAY<ROW"))
        texts[name] = repr(sorted(map(_plain, value), key=repr) if unordered else _plain(value))
    return kind, sequence, texts


def _plain(value: Any) -> Any:
    """The value with the fields of its rows in one order."""
    if isinstance(value, dict):
        return sorted((name, _plain(item)) for name, item in value.items())
    if isinstance(value, Decimal) and not value:
        return value.copy_abs()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value
