"""New versions of rows, computed by Spark SQL.

This is ``lsm.write.new_version`` in SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fileindex.base.errors import InvalidArgument
from lsm.write.new_version import NewVersion, decrease_message, lost_values_message, null_message, unordered_message
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.frames.spark_functions import functions_of
from pyspark_paimon.frames.spark_types import spark_type
from pyspark_paimon.spark.client.binary_row_expr import quoted_name
from pyspark_paimon.spark.client.expression_sql import raised, text_sql

_NEW = "__paimon_new_"


def new_version_sql(version: NewVersion, schema: TableSchema, name: str, old: Callable[[str], str], new: Callable[[str], str]) -> str:
    """Return SQL for column ``name`` of a new version.

    ``old`` and ``new`` return SQL for a column of the old and the new row.
    A value that cannot be set raises ``InvalidArgument`` in Spark.
    """
    kind = spark_type(schema.field(name).type).simpleString()
    match version.ways.get(name, "new"):
        case "old":
            value = old(name)
        case "nothing":
            value = f"CAST(NULL AS {kind})"
        case "difference":
            step = f"CAST({new(name)} - {old(name)} AS {kind})"
            value = (
                f"CASE WHEN {old(name)} IS NULL THEN {new(name)} WHEN {old(name)} <=> {new(name)} THEN CAST(0 AS {kind}) ELSE {step} END"
            )
        case _:
            value = new(name)
    group = version.overriding_group(name)
    if group is not None:
        value = f"CASE WHEN {_all_null(group.ordering, old)} THEN {new(name)} ELSE {value} END"
    checks = _checks(version, name, old, new)
    if not checks:
        return value
    return f"CASE {' '.join(f'WHEN {wrong} THEN {raised(InvalidArgument, text_sql(told))}' for wrong, told in checks)} ELSE {value} END"


def _checks(version: NewVersion, name: str, old: Callable[[str], str], new: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return error conditions of a column, with their messages.

    A condition on several columns is part of each of them. Conditions on a sequence group are part of its first ordering column.
    """
    checks = [(f"{new(name)} IS NULL", null_message(name))] if name in version.known else []
    needed = (names for names in version.needed if name in names)
    checks += [(_all_null(names, new), unordered_message(names)) for names in needed]
    for names in version.orders:
        if name in names:
            after, before = (f"struct({', '.join(side(one) for one in names)})" for side in (new, old))
            checks.append((f"{after} < {before}", decrease_message(names)))
    for group in version.groups:
        if name == group.ordering[0]:
            sides = [old] if version.ways[name] == "nothing" else [old, new]
            unordered = " AND ".join(_all_null(group.ordering, side) for side in sides)
            checks.append((f"{unordered} AND NOT ({_all_null(group.protected, old)})", lost_values_message(group)))
    return checks


def _all_null(names: Iterable[str], side: Callable[[str], str]) -> str:
    return " AND ".join(f"{side(one)} IS NULL" for one in names)


def with_new_versions(frame: Any, schema: TableSchema, version: NewVersion, new: Mapping[str, Any]) -> Any:
    """Return the table's rows as versions with ``new`` columns."""
    both = frame.withColumns({f"{_NEW}{name}": value for name, value in new.items()})

    def newer(name: str) -> str:
        return quoted_name(f"{_NEW}{name}" if name in new else name)

    expr = functions_of(frame).expr
    return both.select(*(expr(new_version_sql(version, schema, name, quoted_name, newer)).alias(name) for name in schema.names))


__all__ = ["new_version_sql", "with_new_versions"]
