"""The two engines that carry out a table's steps: Paimon's own and ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from fileindex.predicate.json import to_json
from lsm.arrow.row_kind import ROW_KIND
from manifest.schema.change import (
    AddColumn,
    ChangeNullability,
    ChangeOptions,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
)
from manifest.schema.table_schema import TableSchema
from manifest.schema.validation import build_schema
from manifest.types.data_type import DataField, DataType
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.operations.alter import AlterSchema
from pyspark_paimon.operations.change_rows import DeleteRows
from pyspark_paimon.request.requests import DeleteRequest
from pyspark_paimon.request.validate import commit_identity
from sparkexpr.values.column_type import Kind
from tests.golden_rows import from_golden, golden_predicate
from tests.interop.engine import Engine
from tests.interop.specs import Alter, Compact, Delete, Expire, Spec, Step, Tag, Write

FAR_FUTURE_MS = 1 << 45


def made_by_java(engine: Engine, spec: Spec, path: Path, seed: int = 0) -> Path:
    """The table of ``spec`` at ``path``, every step taken by Paimon's engine."""
    engine.create(path, spec.fields, primary_keys=spec.keys, partition_keys=spec.partitions, options=spec.options)
    for step in spec.drawn(seed):
        java_step(engine, path, step)
    return path


def java_step(engine: Engine, path: Path, step: Step) -> None:
    """One step by Paimon's engine."""
    match step:
        case Write():
            engine.write(path, *step.batches, overwrite=step.overwrite)
        case Compact():
            engine.compact(path, full=step.full)
        case Delete():
            engine.delete(path, step.filter)
        case Alter():
            engine.alter(path, *step.changes)
        case Tag():
            engine.tag(path, step.name)
        case Expire():
            engine.expire(path, step.keep)


def made_by_us(spec: Spec, path: Path, seed: int = 0) -> Path:
    """The table of ``spec`` at ``path``, every step taken by us."""
    create_ours(spec, path)
    for step in spec.drawn(seed):
        our_step(path, step)
    return path


def create_ours(spec: Spec, path: Path) -> None:
    """The empty table."""
    fields = [DataField(number, name, DataType.from_json(kind)) for number, (name, kind) in enumerate(spec.fields.items())]
    LocalEngine(str(path)).create(build_schema(fields, primary_keys=spec.keys, partition_keys=spec.partitions, options=dict(spec.options)))


def our_step(path: Path, step: Step) -> None:
    """One step by us."""
    table = Table.open(path)
    match step:
        case Write():
            rows = arrow_rows([row for batch in step.batches for row in batch], table.table_schema)
            if step.overwrite is None:
                table.write(rows)
            else:
                table.write(rows, mode="overwrite", partition=dict(step.overwrite) or None)
        case Compact():
            table.compact(full=step.full)
        case Delete():
            predicate = golden_predicate(dict(step.filter), table.table_schema)
            assert predicate is not None
            table._engine.run(DeleteRows(request=DeleteRequest(commit_id=commit_identity(None), predicate=to_json(predicate))))
        case Alter():
            table._engine.run(AlterSchema(changes=tuple(map(our_change, step.changes))))
        case Tag():
            table.create_tag(step.name)
        case Expire():
            table.expire_snapshots(retain_min=step.keep, retain_max=step.keep, older_than=FAR_FUTURE_MS)


def our_change(change: Mapping[str, Any]) -> SchemaChange:
    """A change of the schema as we say it."""
    column = change.get("column", ())
    path = (column,) if isinstance(column, str) else tuple(column)
    place = {"first": bool(change.get("first")), "after": change.get("after")}
    match change["change"]:
        case "add":
            return AddColumn(path=path, type=change["type"], **place)
        case "drop":
            return DropColumn(path=path)
        case "rename":
            return RenameColumn(path=path, name=change["to"])
        case "type":
            return ChangeType(path=path, type=change["type"], force=True)
        case "nullable":
            return ChangeNullability(path=path, nullable=change["nullable"])
        case "move":
            return MoveColumn(path=path, **place)
        case "set":
            return ChangeOptions(options={change["key"]: change["value"]})
        case "remove":
            return ChangeOptions(options={change["key"]: None})
    raise AssertionError(change)


def arrow_rows(rows: Sequence[Mapping[str, Any]], schema: TableSchema) -> pa.Table:
    """Rows in JSON form as Arrow; with a column of kinds if any row has one."""
    columns = [_array((row.get(field.name) for row in rows), field.type) for field in schema.fields]
    table = pa.Table.from_arrays(columns, schema=schema.arrow)
    if any("_kind" in row for row in rows):
        table = table.append_column(ROW_KIND, pa.array([row.get("_kind", "+I") for row in rows], pa.string()))
    return table


def _array(values: Iterable[Any], data_type: DataType) -> pa.Array:
    return pa.array([_python(value, data_type) for value in values], data_type.arrow)


def _python(value: Any, data_type: DataType) -> Any:
    """A JSON value as the Python value from which Arrow makes one of the type; times are integers of its unit."""
    if value is None:
        return None
    match data_type.kind:
        case Kind.DECIMAL:
            return Decimal(value)
        case Kind.ARRAY:
            return [_python(item, data_type.part("element")) for item in value]
        case Kind.MAP:
            return [(_python(key, data_type.part("key")), _python(item, data_type.part("value"))) for key, item in value]
        case Kind.MULTISET:
            return [(_python(key, data_type.part("element")), count) for key, count in value]
        case Kind.ROW:
            return {field.name: _python(value[field.name], field.type) for field in data_type.fields}
        case _:
            return from_golden(value, data_type.column_type)
