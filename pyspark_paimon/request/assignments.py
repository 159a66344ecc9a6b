"""New column values of ``Table.update``: Python values or expressions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from fileindex.base.column_type import WITH_PARTS, Kind
from fileindex.base.errors import InvalidArgument, InvalidFilter, UnknownColumn
from fileindex.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue, map_columns
from fileindex.expression.types import TEXT_TYPE
from lsm.python_values.columns import python_scalar
from lsm.schema.conform_input import conform
from lsm.schema.validate_arrow import validate_rows
from manifest.io.errors import SchemaMismatch, UnsupportedTable
from manifest.schema.merge_options import MergeOptions
from manifest.schema.table_schema import BucketMode, TableSchema
from manifest.types.data_type import DataType
from pyspark_paimon.filter.ast import GivenValue, literal_from_python
from pyspark_paimon.filter.columns import TARGET, resolve
from pyspark_paimon.request.bound import BoundValue, Value

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
        for name, path in fields.items():
            _refuse_outer(name, path, {resolve(one, schema.column_types) for one in (*constants, *bound) if one not in fields}, fields)
        nested = [
            (path, bound.pop(name) if name in bound else GivenValue(literal_from_python(constants.pop(name))))
            for name, path in fields.items()
        ]
        names = {resolve(name, schema.column_types) for name in bound} | {path[0] for path in fields.values()}
        refuse_fixed(names, schema)  # before an error in one of the texts
        for name, value in bound.items():
            if isinstance(value, str):
                constants[name] = _bind_text(resolve(name, schema.column_types), value, schema, spark)
            else:
                constants[name] = value
        for path, value in nested:
            constants[path[0]] = _with_field(path, value, constants.get(path[0]), schema)
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
        for given, value in values.items():
            name = resolve(given, schema.column_types)
            if name in bound:
                raise InvalidArgument(f"column '{name}' is set twice")
            bound[name] = value
        refuse_fixed(bound, schema)
        found = cls(schema, bound)
        found._check()
        return found

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
            done = plan.to_table(use_threads=False)
        except (pa.ArrowException, TypeError) as error:
            raise InvalidArgument(f"the new values cannot be computed: {error}") from error
        for name, value in self.values.items():
            if is_bound(value):
                done = done.set_column(done.column_names.index(name), name, _compute(value, rows))
        # An expression may cast bytes to text unchecked.
        validate_rows(done.select(list(self.values)))
        return conform(done, self.schema)

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
            return python_scalar(name, value, self.schema.field(name).type.arrow)
        except SchemaMismatch as error:
            if not isinstance(value, str):
                raise
            raise SchemaMismatch(
                f"{error}; to compute a value from the old row, give an expression: set={{'{name}': '{name} + 1'}}"
            ) from error

    def _check(self) -> None:
        """Check the values that are the same for all rows."""
        for name, value in self.values.items():
            if isinstance(value, pc.Expression) or is_spark_column(value) or is_bound(value):
                continue
            if not self._scalar(name).is_valid and not self.schema.field(name).type.nullable:
                raise SchemaMismatch(f"column '{name}' is {self.schema.field(name).type} and cannot be set to null")


def field_path(name: object, schema: TableSchema) -> tuple[str, ...] | None:
    """Return the names from a column to one of its fields. None: the text is no path of a field.

    >>> from manifest.schema.validation import build_schema
    >>> field_path("S.`a b`", build_schema("s STRUCT<`a b` INT>, n INT"))
    ('s', 'a b')
    """
    if not isinstance(name, str) or "." not in name or name in schema.names:
        return None
    from pyspark_paimon.filter.parse import bind_value  # noqa: PLC0415  # rarely needed

    bound: Expression = bind_value(name, schema.column_types)
    path: list[str] = []
    while isinstance(bound, FunctionCall) and bound.function == "item" and isinstance(part := bound.arguments[1], LiteralValue):
        path.insert(0, str(part.value))
        bound = bound.arguments[0]
        if bound.type.kind is not Kind.ROW:
            raise InvalidArgument(f"'{name}': only fields of structs can be set; set '{bound}' to its whole new value")
    if not isinstance(bound, ColumnValue) or bound.key is not None or not path:
        raise InvalidArgument(f"'{name}': only columns and fields of structs can be set")
    return (bound.name, *path)


def _refuse_outer(name: str, path: tuple[str, ...], whole: Collection[str], fields: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ``InvalidArgument`` for a field that is set with the struct that has it."""
    others = [other for one, other in fields.items() if one != name]
    if path[0] in whole or any(path[: len(other)] == other for other in others):
        raise InvalidArgument(f"'{name}' is set twice, or together with a struct that has it; set one of them")


def _with_field(path: tuple[str, ...], value: Any, known: Any, schema: TableSchema) -> Expression:
    """Return a struct column with a new value of a field.

    ``known``: the column with earlier new values. None: the old row's.
    """
    from fileindex.expression.functions import WITH_FIELD, call  # noqa: PLC0415  # rarely needed
    from pyspark_paimon.filter.bind_terms import bind_term  # noqa: PLC0415  # as above
    from pyspark_paimon.filter.parse import bind_value  # noqa: PLC0415  # as above

    column = schema.field(path[0])
    name, data_type = path[0], column.type
    for part in path[1:]:
        name, data_type = f"{name}.{part}", next(field.type for field in data_type.fields if field.name == part)
    new = bind_term(value, {}) if isinstance(value, GivenValue) else bind_value(value, schema.column_types)
    _check_field(name, new, data_type)
    whole: Expression = ColumnValue(path[0], None, column.type.column_type) if known is None else known

    def changed(outer: Expression, rest: tuple[str, ...]) -> Expression:
        field = LiteralValue(rest[0], TEXT_TYPE)
        inner = new if len(rest) == 1 else changed(call("item", [outer, field]), rest[1:])
        return call(WITH_FIELD, [outer, field, inner])

    return changed(whole, path[1:])


def _check_field(name: str, new: Expression, wanted: DataType) -> None:
    """Raise ``SchemaMismatch`` for a value that a field cannot have."""
    from lsm.schema.lossless_cast import may_cast  # noqa: PLC0415  # see test_imports

    if isinstance(new, LiteralValue) and new.value is None:
        fits = wanted.nullable
    else:
        fits = (
            new.type == wanted.column_type
            if wanted.is_nested
            else new.type.kind not in WITH_PARTS and may_cast(new.type.arrow, wanted.arrow)
        )
    if not fits:
        raise SchemaMismatch(f"field '{name}' is {wanted}, and '{new}' is of type {new.type.kind}; cast it")


def _bind_text(name: str, text: str, schema: TableSchema, spark: Any) -> Any:
    """Bind the SQL text of a new value.

    Where Spark computes the rows, a text with functions that only Spark has becomes a Column.
    """
    from sqlglot.errors import ParseError  # noqa: PLC0415  # see test_imports

    from lsm.schema.lossless_cast import may_cast  # noqa: PLC0415  # as above
    from pyspark_paimon.filter.joined_sql import bind_value  # noqa: PLC0415  # as above

    advice = f"in set= a text is a SQL expression; for the text itself write values={{'{name}': {text!r:.60}}}, or quote it: \"'...'\""
    computes = spark is not None and not schema.kind.changes_files
    try:
        value = bind_value(text, {TARGET: schema.column_types})
    except UnknownColumn as error:
        raise UnknownColumn(error.column, schema.names, advice) from error
    except InvalidFilter as error:
        if computes and not isinstance(error.__cause__, ParseError):
            from pyspark_paimon.frames.spark_functions import functions_of  # noqa: PLC0415  # needed with Spark only

            return functions_of(spark).expr(text)
        raise InvalidFilter(f"column '{name}': {error}; {advice}") from error
    if isinstance(value, LiteralValue) and value.value is None:
        return None  # NULL alone is of any type
    bound = map_columns(value, lambda column: ColumnValue(column.name.partition(".")[2], column.key, column.type))
    wanted = schema.field(name).type
    if not wanted.is_nested and not may_cast(bound.type.arrow, wanted.arrow):
        raise SchemaMismatch(f"column '{name}' is {wanted}, and '{text:.60}' is of type {bound.type.kind}; cast it, or {advice}")
    return bound


def _sent_text(values: Assignments | str) -> str:
    return values if isinstance(values, str) else values.to_text()


SentAssignments: TypeAlias = Annotated[Assignments | str, PlainValidator(lambda given: given), PlainSerializer(_sent_text, return_type=str)]
"""Assignments, or their text as ``Assignments.to_text`` returns it."""


def is_bound(value: object) -> bool:
    """Return whether a value is an expression bound to columns."""
    return isinstance(value, ColumnValue | LiteralValue | FunctionCall)


def _compute(value: Expression, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
    def column(wanted: ColumnValue) -> pa.Array:
        found = rows.column(wanted.name).combine_chunks()
        return found if wanted.key is None else pc.map_lookup(found, pa.scalar(wanted.key), "last")

    if isinstance(value, ColumnValue):
        return column(value)
    from fileindex.expression.compute import compute  # noqa: PLC0415  # imported only for computed values

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


__all__ = ["Assignments", "SentAssignments", "is_bound", "is_spark_column", "refuse_delete", "refuse_fixed"]
