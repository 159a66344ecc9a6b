"""Requests of ``Table.merge``, bound to the table and the source.

A request is objects in a process, and JSON text on its way to a server.

Expressions are SQL text, Spark Columns or Arrow expressions. ``t`` is the table, ``s`` the source.
Any other value is a literal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from lsm.rows_in.arrow import column_scalar
from lsm.rows_in.policy import RowPolicy
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import from_arrow
from paimon_base.errors import InvalidArgument, UnknownColumn
from pyspark_paimon.filter.columns import SOURCE, TARGET, case_twins, match_names, resolve
from pyspark_paimon.filter.joined_sql import Sides, bind_condition, bind_value, is_column_expression, join_terms
from pyspark_paimon.request.answers import SchemaJson
from pyspark_paimon.request.assignments import refuse_delete, refuse_fixed
from pyspark_paimon.request.bound import BoundExpression, BoundSource, BoundValue, Value
from pyspark_paimon.request.struct_fields import constant, field_path, refuse_overlaps, with_field
from pyspark_paimon.results.message import Message
from sparkexpr.expression.tree import ColumnValue, Expression, LiteralValue
from sparkexpr.values.column_type import FLOATS

if TYPE_CHECKING:
    from lsm.write.new_version import NewVersion

When: TypeAlias = Literal["matched", "not matched", "not matched by source"]
Action: TypeAlias = Literal["update", "delete", "insert"]
_SIDES: dict[When, tuple[str, ...]] = {"matched": (TARGET, SOURCE), "not matched": (SOURCE,), "not matched by source": (TARGET,)}


class Clause(Message):
    """Action on rows that ``condition`` matches.

    The first clause that matches a row applies. ``values``: by column of the table.
    ``is_version``: the values are a row for the merge engine, as of a write. Other columns keep their stored values, and several source
    rows may have one key. False: the row has the values after the merge.
    """

    when: When
    action: Action
    condition: BoundExpression | None
    values: dict[str, BoundValue]
    is_version: bool = False

    def new_version(self, schema: TableSchema, table: str = "the table") -> NewVersion | None:
        """Return the rule for the rows of an update. None: the new row is the version.

        Raises ``UnsupportedTable`` where no version has the values.
        """
        from lsm.write.new_version import NewVersion  # noqa: PLC0415  # questions import requests, but not the write code

        return (NewVersion.keeping if self.is_version else NewVersion.of)(schema, self.values, table)


class Join(Message):
    """Conditions under which rows of table and source match.

    ``pairs``: equal columns (table, source). All ``conditions`` must be true, too.
    """

    pairs: tuple[tuple[str, str], ...]
    conditions: tuple[BoundExpression, ...] = ()

    def finds_keys(self, schema: TableSchema) -> bool:
        """Return whether source rows match by exactly the primary key.

        If so, a source row without a match has a new key.
        """
        return not self.conditions and sorted(target for target, _ in self.pairs) == sorted(schema.primary_keys)


class MergeRequest(Message):
    """Source rows, join conditions and clauses of a merge.

    ``pending``: version of the schema that the merge gives the table. The clauses are bound to it.
    """

    source: BoundSource
    join: Join
    clauses: tuple[Clause, ...] = ()
    pending: SchemaJson | None = None

    def reads_all(self, schema: TableSchema) -> bool:
        """Return whether inserts depend on rows in other buckets.

        Rows there may match, and a matched source row is not inserted.
        """
        if not any(clause.action == "insert" for clause in self.clauses):
            return False
        return not schema.primary_keys or not {target for target, _ in self.join.pairs}.issuperset(schema.primary_keys)

    @property
    def updated_columns(self) -> tuple[str, ...] | None:
        """Columns of the table that the merge may change. None: it deletes rows.

        Columns by which rows match stay as they are.
        """
        if any(clause.action == "delete" for clause in self.clauses):
            return None
        equal = {(target, f"{SOURCE}.{source}") for target, source in self.join.pairs}
        columns: dict[str, None] = {}
        for clause in self.clauses:
            for name, value in clause.values.items() if clause.action == "update" else ():
                is_equal = isinstance(value, ColumnValue) and value.type.kind not in FLOATS and (name, value.name) in equal
                if not is_equal:
                    columns[name] = None
        return tuple(columns)


def check_merge(clauses: Sequence[Clause], schema: TableSchema, table: str) -> None:
    """Check that the table supports the clauses.

    Raises ``InvalidArgument`` without clauses, ``UnsupportedTable`` for an action that the table does not support.
    """
    if not clauses:
        raise InvalidArgument("merge has no clause: add some, like when_matched_update_all().when_not_matched_insert_all()")
    for clause in clauses:
        if clause.action == "update":
            clause.new_version(schema, table)
        elif clause.action == "delete":
            refuse_delete(schema, table)


def sides_of(schema: TableSchema, source: pa.Schema) -> Sides:
    """Return the columns of table and source.

    A source column that is all null gets the type of the table's column.
    Raises ``UnsupportedType`` for a type that no table supports.
    """
    type_by_name = {name: field.type for name, field in zip(schema.names, schema.arrow, strict=True)}
    typed = pa.schema(
        [field.with_type(type_by_name.get(field.name, pa.string())) if pa.types.is_null(field.type) else field for field in source]
    )
    return {TARGET: schema.column_types, SOURCE: {field.name: field.type.column_type for field in from_arrow(typed)}}


def join_of(on: object, sides: Sides) -> Join:
    """Return how rows match.

    ``on``: names of columns on both sides, or a condition.
    A condition is SQL text (``"t.id = s.id"``), a Column or an Arrow expression.
    Raises ``InvalidArgument`` where no columns are equal, ``InvalidFilter``, ``UnknownColumn``.

    >>> from sparkexpr.values.column_type import ColumnType, Kind
    >>> both = {"t": {"id": ColumnType(Kind.INT)}, "s": {"ID": ColumnType(Kind.INT)}}
    >>> join_of("id", both).pairs, join_of("t.id = s.ID", both).pairs
    ((('id', 'ID'),), (('id', 'ID'),))
    """
    if isinstance(on, str) and on.isidentifier():
        on = [on]
    if isinstance(on, str) or is_column_expression(on):
        pairs, conditions = join_terms(on, sides)
        if not pairs:
            reason = f"merge: '{on}' has no equality of a column of the table and one of the source: add one, like t.id = s.id"
            raise InvalidArgument(reason)
        return Join(pairs=tuple(pairs), conditions=tuple(conditions))
    if not isinstance(on, Sequence) or not on or not all(isinstance(name, str) for name in on):
        raise InvalidArgument(
            f"merge: on is a name, a list of names, or a condition such as 't.id = s.id' in SQL, as a Column or of Arrow, not {on!r:.60}"
        )
    return Join(pairs=tuple((resolve(name, sides[TARGET]), resolve(name, sides[SOURCE])) for name in on))


ClauseCall: TypeAlias = tuple[When, Action, object, object]
"""Kind of rows, action, values and condition of a clause, as the user gives them."""


def bind_merge(source: Any, on: object, calls: Sequence[ClauseCall], schema: TableSchema, policy: RowPolicy) -> MergeRequest:
    """Return a merge whose join and clauses are bound to the table and the source.

    The policy says whether the merge adds columns and widens types. Raises the errors of ``join_of`` and ``clause_of``.
    """
    sides = sides_of(schema, source.schema)
    join = join_of(on, sides)
    pending = _evolved(schema, source.schema, join, calls, policy)
    if pending is not None:
        schema, sides = pending, sides_of(pending, source.schema)
        join = join_of(on, sides)
    clauses = tuple(clause_of(*call, schema=schema, sides=sides, join=join, keeps_missing=policy.merges) for call in calls)
    return MergeRequest(source=source, join=join, clauses=clauses, pending=pending)


def _evolved(schema: TableSchema, source: pa.Schema, join: Join, calls: Sequence[ClauseCall], policy: RowPolicy) -> TableSchema | None:
    """Return the schema with the columns and types that the clauses take from the source. None: no change.

    Columns by which rows match are not added, and keep their types.
    """
    from lsm.rows_in.new_columns import merged_schema  # noqa: PLC0415  # few merges add columns

    if not policy.merges:
        return None
    values = [values for _, action, values, _ in calls if action != "delete"]
    named = {str(name).partition(".")[0].lower() for each in values if isinstance(each, Mapping) for name in each}
    joined = {name for _, name in join.pairs}
    fields = [field for field in source if field.name not in joined and ("all" in values or field.name.lower() in named)]
    if twins := case_twins(field.name for field in fields):
        raise InvalidArgument(f"merge: columns {', '.join(twins)} of the source differ only in case: rename one")
    table_names = {other: name for name, other in match_names(schema.names, source.names).items()}
    return merged_schema(schema, pa.schema([field.with_name(table_names.get(field.name, field.name)) for field in fields]), policy)


def clause_of(
    when: When,
    action: Action,
    values: object,
    condition: object,
    *,
    schema: TableSchema,
    sides: Sides,
    join: Join,
    keeps_missing: bool = False,
) -> Clause:
    """Return a bound clause.

    ``values``: by column, or ``"all"`` for source columns with the same names. ``keeps_missing``: the source may lack some of all.
    Raises ``InvalidArgument``, ``InvalidFilter``, ``UnknownColumn``, ``SchemaMismatch``.
    """
    visible = {side: sides[side] for side in _SIDES[when]}
    if condition is not None and not isinstance(condition, str) and not is_column_expression(condition):
        raise InvalidArgument(f"merge: a condition is SQL text, a Column or an Arrow expression about t and s, not {condition!r:.60}")
    bound = None if condition is None else bind_condition(condition, visible)
    if action == "delete":
        return Clause(when=when, action=action, condition=bound, values={})
    fields: dict[str, tuple[str, ...]] = {}
    if values == "all":
        value_by_name: dict[str, Any] = {**_all(action, schema, sides, join, keeps_missing=keeps_missing)}
        named = value_by_name
    elif isinstance(values, Mapping) and values:
        value_by_name = dict(values)
        fields = {name: path for name in values if (path := field_path(name, schema)) is not None} if action == "update" else {}
        named = {resolve(name, schema.column_types): value for name, value in values.items() if name not in fields}
        if len(named) + len(fields) < len(values):
            raise InvalidArgument(f"merge: a column is set twice: {', '.join(map(str, values))}")
        refuse_overlaps(fields, named)
    else:
        raise InvalidArgument(f"merge: {action} sets columns, {{'n': 't.n + s.n'}}, not {values!r:.60}")
    if action == "update":
        refuse_fixed({*named, *(path[0] for path in fields.values())}, schema)
    changed: dict[str, Expression] = {}
    for name, path in fields.items():
        current = changed.get(path[0], ColumnValue(f"{TARGET}.{path[0]}", None, schema.column_types[path[0]]))
        value = value_by_name[name]
        is_expression = isinstance(value, str) or is_column_expression(value)
        new = bind_value(value, visible) if is_expression else constant(path, value, schema)
        changed[path[0]] = with_field(path, new, current, schema)
    bound_values = {name: _value(name, value, visible, schema) for name, value in named.items()}
    return Clause(when=when, action=action, condition=bound, values=bound_values | changed)


def _all(action: Action, schema: TableSchema, sides: Sides, join: Join, *, keeps_missing: bool) -> dict[str, ColumnValue]:
    """Assign each column from the source column of its name.

    An update leaves out the columns that the join makes equal.
    """
    source = sides[SOURCE]
    source_names = match_names(schema.names, source)
    equal = {target for target, _ in join.pairs} if action == "update" else set()
    missing = [name for name in schema.names if name not in source_names and name not in equal]
    if missing and action == "update" and not keeps_missing:
        raise UnknownColumn(missing[0], tuple(f"s.{name}" for name in source))
    return {name: ColumnValue(f"{SOURCE}.{other}", None, source[other]) for name, other in source_names.items() if name not in equal}


def _value(name: str, value: Any, visible: Sides, schema: TableSchema) -> Value:
    if isinstance(value, ColumnValue):
        return value
    if isinstance(value, str) or is_column_expression(value):
        from pyspark_paimon.filter.bind_terms import assigned  # noqa: PLC0415  # see test_imports

        bound = bind_value(value, visible)
        if not (isinstance(bound, LiteralValue) and bound.value is None):
            return assigned(bound, schema.column_types[name], value)
        value = None  # NULL alone is of any type
    return column_scalar(schema.field(name), value)
