"""New column values of ``Table.update``: Python values or expressions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from lsm.rows_in.arrow import column_scalar
from lsm.rows_in.check import validate_rows
from lsm.rows_in.conform import conform
from manifest.io.errors import SchemaMismatch, UnsupportedTable
from manifest.schema.merge_options import MergeOptions
from manifest.schema.table_schema import BucketMode, TableSchema
from paimon_base.errors import InvalidArgument, InvalidFilter, UnknownColumn
from pyspark_paimon.filter.columns import TARGET, StatementText, resolve
from pyspark_paimon.request.bound import BoundValue, Value
from pyspark_paimon.request.struct_fields import constant, field_path, refuse_overlaps, with_field
from sparkexpr.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue, map_columns

_VALUES: TypeAdapter[dict[str, Value]] = TypeAdapter(dict[str, BoundValue])


@dataclass(frozen=True)
class Assignments:
    """New values by column, in the table's spelling.

    Every expression reads the values before the update.

    >>> from manifest.schema.validation import build_schema
    >>> schema = build_schema("id BIGINT, n INT, s STRING", primary_keys=["id"], options={"bucket": "1"})
    >>> rows = pa.table({"id": [1, 2], "n": pa.array([5, 6], pa.int32()), "s": ["a", "b"]})
    >>> Assignments.of({"n": pc.field("n") + 1, "s": None}, schema).apply(rows).to_pylist()
    [{'id': 1, 'n': 6, 's': None}, {'id': 2, 'n': 7, 's': None}]
    """

    schema: TableSchema
    values: Mapping[str, Any]

    @classmethod
    def parse(
        cls, expressions: Mapping[str, Any] | None, values: Mapping[str, Any] | None, schema: TableSchema, spark: Any = None
    ) -> Assignments:
        """Return the assignments of ``Table.update``.

        Raises the errors of ``of``, and ``InvalidFilter`` for a text that is not an expression.

        expressions: SQL texts, Arrow expressions, Spark Columns or constants.
        values: Constants.
        spark: Session that computes the rows of a table with a primary key. None: this process.
        """
        constants, bound = dict(values or {}), dict(expressions or {})
        fields = {name: path for name in (*constants, *bound) if (path := field_path(name, schema)) is not None}
        for name, value in constants.items():
            if isinstance(value, pc.Expression) or is_spark_column(value):
                raise InvalidArgument(f"column '{name}': values takes constants; give the expression in set={{'{name}': ...}}")
            if name in bound:
                raise InvalidArgument(f"column '{name}' is in both set and values; remove one of them")
        refuse_overlaps(fields, {resolve(column, schema.column_types) for column in (*constants, *bound) if column not in fields})
        value_by_name = {name: bound.pop(name) if name in bound else constants.pop(name) for name in fields}
        names = {resolve(name, schema.column_types) for name in bound} | {path[0] for path in fields.values()}
        refuse_fixed(names, schema)  # before an error in one of the texts
        for name, value in bound.items():
            if isinstance(value, str):
                constants[name] = _bind_text(resolve(name, schema.column_types), value, schema, spark)
            else:
                constants[name] = value
        for name, path in fields.items():
            value = value_by_name[name]
            computes = is_spark_column(value) or isinstance(value, pc.Expression) or (isinstance(value, str) and name not in (values or {}))
            new = _bind(name, value, schema) if computes else constant(path, value, schema)
            current = constants.get(path[0], ColumnValue(path[0], None, schema.column_types[path[0]]))
            constants[path[0]] = with_field(path, new, current, schema)
        return cls.of(constants, schema)

    @classmethod
    def of(cls, values: Mapping[str, Any], schema: TableSchema) -> Assignments:
        """Check the column names and the Python values.

        Raises:
            InvalidArgument: no column is set, a column is set twice, or a column is part of a fixed key.
            UnknownColumn: the table has no column with that name.
            SchemaMismatch: a value does not fit its column.
        """
        if not values:
            raise InvalidArgument("update sets no column; give set={column: expression} or values={column: constant}")
        bound: dict[str, Any] = {}
        for written_name, value in values.items():
            name = resolve(written_name, schema.column_types)
            if name in bound:
                raise InvalidArgument(f"column '{name}' is set twice")
            bound[name] = value
        refuse_fixed(bound, schema)
        assignments = cls(schema, bound)
        for name, value in bound.items():
            if not (isinstance(value, pc.Expression) or is_spark_column(value) or is_bound(value)):
                assignments._scalar(name)  # refuses values that do not fit
        return assignments

    def apply(self, rows: pa.Table) -> pa.Table:
        """Return ``rows`` with new values in the set columns.

        Raises ``SchemaMismatch``, ``NullInKey``, ``InvalidArgument``, ``FilterFailed``.
        """
        expressions = [self._expression(name) for name in rows.column_names]
        from pyarrow import acero  # noqa: PLC0415  # imports pyarrow.dataset and pandas

        plan = acero.Declaration.from_sequence(
            [
                acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
                acero.Declaration("project", acero.ProjectNodeOptions(expressions, rows.column_names)),
            ]
        )
        try:
            updated = plan.to_table(use_threads=False)
        except (pa.ArrowException, TypeError) as error:
            raise InvalidArgument(f"the new values cannot be computed: {error}") from error
        for name, value in self.values.items():
            if is_bound(value):
                updated = updated.set_column(updated.column_names.index(name), name, _compute(value, rows))
        # An expression may cast bytes to text unchecked.
        validate_rows(updated.select(list(self.values)))
        return conform(updated, self.schema)

    def refuse_expressions(self) -> None:
        """Raise ``InvalidArgument`` for an expression that Spark cannot compute."""
        for name, value in self.values.items():
            if isinstance(value, pc.Expression):
                raise InvalidArgument(
                    f"column '{name}' is set to a pyarrow expression, which Spark cannot compute; use SQL text or a Spark Column"
                )

    def refuse_columns(self, where: str) -> None:
        """Raise ``InvalidArgument`` for a Spark ``Column``."""
        for name, value in self.values.items():
            if is_spark_column(value):
                raise InvalidArgument(f"column '{name}' is set to a Spark Column, which {where} cannot compute")

    def to_text(self) -> str:
        """Return the values as JSON text for tasks.

        Contains bound expressions, and Python values in the types of their columns.
        """
        self.refuse_expressions()
        self.refuse_columns("an update of a table without primary key")
        values = {name: value if is_bound(value) else self._scalar(name) for name, value in self.values.items()}
        return _VALUES.dump_json(values).decode()

    @classmethod
    def from_text(cls, text: str, schema: TableSchema) -> Assignments:
        """Return the assignments in a text of ``to_text``."""
        return cls(schema, _VALUES.validate_json(text))

    def _expression(self, name: str) -> pc.Expression:
        value = self.values.get(name)
        if name not in self.values or is_bound(value):
            return pc.field(name)
        if isinstance(value, pc.Expression):
            return value
        return pc.scalar(value if isinstance(value, pa.Scalar) else self._scalar(name))

    def _scalar(self, name: str) -> pa.Scalar:
        value = self.values[name]
        try:
            return column_scalar(self.schema.field(name), value)
        except SchemaMismatch as error:
            if not isinstance(value, str):
                raise
            raise SchemaMismatch(
                f"{error}; to compute a value from the old row, give an expression: set={{'{name}': '{name} + 1'}}"
            ) from error


def _bind_text(name: str, text: str, schema: TableSchema, spark: Any) -> Any:
    """Bind the SQL text of a column's new value.

    Where Spark computes the rows, a text with functions that only Spark has becomes a Column.
    """
    from sqlglot.errors import ParseError  # noqa: PLC0415  # see test_imports

    from lsm.rows_in.lossless_cast import may_cast  # noqa: PLC0415  # as above
    from pyspark_paimon.filter.bind_terms import assigned  # noqa: PLC0415  # as above

    try:
        bound = _bind(name, text, schema)
    except InvalidFilter as error:
        reason = error.__cause__
        if spark is None or schema.kind.changes_files or (reason is not None and isinstance(reason.__cause__, ParseError)):
            raise
        from pyspark_paimon.frames.spark_functions import functions_of  # noqa: PLC0415  # needed with Spark only

        return functions_of(spark).expr(text)
    if isinstance(bound, LiteralValue) and bound.value is None:
        return None  # NULL alone is of any type
    column_type = schema.field(name).type
    bound = assigned(bound, schema.column_types[name], text)
    if not column_type.is_nested and not may_cast(bound.type.arrow, column_type.arrow):
        raise SchemaMismatch(
            f"column '{name}' is {column_type}, and '{text:.60}' is of type {bound.type.kind}; cast it, or {_advice(name, text)}"
        )
    return bound


def _bind(name: str, value: object, schema: TableSchema) -> Expression:
    """Bind the expression for a column or field on the columns of the table, which may be called ``t.n``, too."""
    from pyspark_paimon.filter.joined_sql import bind_value  # noqa: PLC0415  # see test_imports

    try:
        bound = bind_value(value, {TARGET: schema.column_types})
    except UnknownColumn as error:
        raise UnknownColumn(error.column, schema.names, _advice(name, value)) from error
    except InvalidFilter as error:
        raise InvalidFilter(f"column '{name}': {error}; {_advice(name, value)}") from error
    return map_columns(bound, lambda column: ColumnValue(column.name.partition(".")[2], column.key, column.type))


def _advice(name: str, value: object) -> str:
    if isinstance(value, StatementText):
        return "quote a text: '...'"
    return f"in set= a text is a SQL expression; for the text itself write values={{'{name}': {value!r:.60}}}, or quote it: \"'...'\""


def _sent_text(values: Assignments | str) -> str:
    return values if isinstance(values, str) else values.to_text()


SentAssignments: TypeAlias = Annotated[Assignments | str, PlainValidator(lambda given: given), PlainSerializer(_sent_text, return_type=str)]
"""Assignments, or their text as ``Assignments.to_text`` returns it."""


def is_bound(value: object) -> bool:
    """Return whether a value is an expression bound to columns."""
    return isinstance(value, ColumnValue | LiteralValue | FunctionCall)


def _compute(value: Expression, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
    def column(reference: ColumnValue) -> pa.Array:
        array = rows.column(reference.name).combine_chunks()
        return array if reference.key is None else pc.map_lookup(array, pa.scalar(reference.key), "last")

    if isinstance(value, ColumnValue):
        return column(value)
    from sparkexpr.expression.compute import compute  # noqa: PLC0415  # imported only for computed values

    return compute(value, column, rows.num_rows)


def refuse_fixed(named: Collection[str], schema: TableSchema) -> None:
    """Raise ``InvalidArgument`` for a column that locates its row.

    These are columns of the primary key, partition and bucket key.
    Partition columns may change in ``KEY_DYNAMIC`` tables whose merge engine keeps the newest row.
    """
    moves = schema.bucket_mode is BucketMode.KEY_DYNAMIC and schema.core.engine.newest_replaces
    for names, what in (
        (schema.primary_keys, "primary key"),
        (() if moves else schema.partition_keys, "partition"),
        (schema.bucket_keys if schema.core.bucket > 0 else (), "bucket key"),
    ):
        fixed = [name for name in names if name in named]
        if fixed:
            raise InvalidArgument(f"column '{fixed[0]}' is part of the {what} and cannot be updated; delete the rows and write others")


def refuse_delete(schema: TableSchema, table: str) -> None:
    """Raise ``UnsupportedTable`` where ``-D`` does not remove a row."""
    options = MergeOptions.of(schema)
    if not schema.is_primary_key_table:
        return
    if options.ignore_delete:
        raise UnsupportedTable(f"{table}: option 'ignore-delete' drops deletes, so rows cannot be deleted")
    engine = options.engine
    if not engine.newest_replaces and not options.remove_on_delete:
        how = "" if engine.remove_option is None else f" without option '{engine.remove_option}'"
        raise UnsupportedTable(f"{table}: merge-engine '{engine.name}'{how} merges a delete into the row, so rows stay")


def is_spark_column(value: object) -> bool:
    """Return whether a value is a Spark ``Column``.

    Accepts classic Spark and Spark Connect.
    """
    kind = type(value)
    return kind.__module__.startswith("pyspark.") and kind.__name__ == "Column"
