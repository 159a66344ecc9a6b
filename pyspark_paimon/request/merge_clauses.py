"""Binding of ``Table.merge`` conditions and clauses.

Expressions are SQL text, Spark Columns or Arrow expressions. ``t`` is the table, ``s`` the source.
Any other value is a literal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fileindex.base.errors import InvalidArgument, UnknownColumn
from fileindex.expression.tree import ColumnValue, LiteralValue
from lsm.python_values.columns import python_scalar
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import from_arrow
from pyspark_paimon.filter.columns import matched, resolve
from pyspark_paimon.filter.joined_sql import SOURCE, TARGET, Sides, is_column_expression, join_terms, joined_condition, joined_value
from pyspark_paimon.request.assignments import refuse_fixed
from pyspark_paimon.request.bound import Value
from pyspark_paimon.request.merge import Action, Clause, Join, When

_SIDES: dict[When, tuple[str, ...]] = {"matched": (TARGET, SOURCE), "not matched": (SOURCE,), "not matched by source": (TARGET,)}


def sides_of(schema: TableSchema, source: pa.Schema) -> Sides:
    """Return the columns of table and source.

    A source column that is all null gets the type of the table's column.
    Raises ``UnsupportedType`` for a type that no table supports.
    """
    known = {name: field.type for name, field in zip(schema.names, schema.arrow, strict=True)}
    typed = pa.schema([field.with_type(known.get(field.name, pa.string())) if pa.types.is_null(field.type) else field for field in source])
    return {TARGET: schema.column_types, SOURCE: {field.name: field.type.column_type for field in from_arrow(typed)}}


def join_of(on: object, sides: Sides) -> Join:
    """Return how rows match.

    ``on``: names of columns on both sides, or a condition.
    A condition is SQL text (``"t.id = s.id"``), a Column or an Arrow expression.
    Raises ``InvalidArgument`` where no columns are equal, ``InvalidFilter``, ``UnknownColumn``.

    >>> from fileindex.base.column_type import ColumnType, Kind
    >>> both = {"t": {"id": ColumnType(Kind.INT)}, "s": {"ID": ColumnType(Kind.INT)}}
    >>> join_of("id", both).pairs, join_of("t.id = s.ID", both).pairs
    ((('id', 'ID'),), (('id', 'ID'),))
    """
    if isinstance(on, str) and on.isidentifier():
        on = [on]
    if isinstance(on, str) or is_column_expression(on):
        pairs, conditions = join_terms(on, sides)
        if not pairs:
            told = f"merge: '{on}' equates no column of the table with one of the source, by which rows could be found; write t.id = s.id"
            raise InvalidArgument(told)
        return Join(pairs=tuple(pairs), conditions=tuple(conditions))
    if not isinstance(on, Sequence) or not on or not all(isinstance(name, str) for name in on):
        raise InvalidArgument(
            f"merge: on is a name, a list of names, or a condition such as 't.id = s.id' in SQL, as a Column or of Arrow, not {on!r:.60}"
        )
    return Join(pairs=tuple((resolve(name, sides[TARGET]), resolve(name, sides[SOURCE])) for name in on))


def clause_of(when: When, action: Action, values: object, condition: object, *, schema: TableSchema, sides: Sides, join: Join) -> Clause:
    """Return a bound clause.

    ``values``: by column, or ``"all"`` for source columns with the same names.
    Raises ``InvalidArgument``, ``InvalidFilter``, ``UnknownColumn``, ``SchemaMismatch``.
    """
    visible = {side: sides[side] for side in _SIDES[when]}
    if condition is not None and not isinstance(condition, str) and not is_column_expression(condition):
        raise InvalidArgument(f"merge: a condition is SQL text, a Column or an Arrow expression about t and s, not {condition!r:.60}")
    bound = None if condition is None else joined_condition(condition, visible)
    if action == "delete":
        return Clause(when=when, action=action, condition=bound, values={})
    named: dict[str, Any]
    if values == "all":
        named = {**_all(action, schema, sides, join)}
    elif isinstance(values, Mapping) and values:
        named = {resolve(name, schema.column_types): value for name, value in values.items()}
        if len(named) < len(values):
            raise InvalidArgument(f"merge: a column is set twice: {', '.join(map(str, values))}")
    else:
        raise InvalidArgument(f"merge: {action} sets columns, {{'n': 't.n + s.n'}}, not {values!r:.60}")
    if action == "update":
        refuse_fixed(named, schema)
    bound_values = {name: _value(name, value, visible, schema) for name, value in named.items()}
    return Clause(when=when, action=action, condition=bound, values=bound_values)


def _all(action: Action, schema: TableSchema, sides: Sides, join: Join) -> dict[str, ColumnValue]:
    """Assign each column from the source column of its name.

    An update leaves out the columns that the join makes equal.
    """
    source = sides[SOURCE]
    found = matched(schema.names, source)
    equal = {target for target, _ in join.pairs} if action == "update" else set()
    missing = [name for name in schema.names if name not in found and name not in equal]
    if missing and action == "update":
        raise UnknownColumn(missing[0], tuple(f"s.{name}" for name in source))
    return {name: ColumnValue(f"{SOURCE}.{other}", None, source[other]) for name, other in found.items() if name not in equal}


def _value(name: str, value: Any, visible: Sides, schema: TableSchema) -> Value:
    if isinstance(value, ColumnValue):
        return value
    if isinstance(value, str) or is_column_expression(value):
        bound = joined_value(value, visible)
        if not (isinstance(bound, LiteralValue) and bound.value is None):
            return bound
        value = None  # NULL alone is of any type
    target = schema.field(name).type
    scalar = python_scalar(name, value, target.arrow)
    if not scalar.is_valid and not target.nullable:
        raise SchemaMismatch(f"column '{name}' is {target} and cannot be set to null")
    return scalar


__all__ = ["clause_of", "join_of", "sides_of"]
