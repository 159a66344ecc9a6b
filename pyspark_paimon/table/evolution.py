"""Methods of ``Table`` that change columns and options.

Every change writes a new version of the schema. No data file is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import pyarrow as pa

from manifest.options.core_options import option_texts
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataType, from_arrow
from manifest.types.type_parser import quote_field
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.typing import ColumnPath, Data, Schema, Type

if TYPE_CHECKING:
    from manifest.schema import change
    from manifest.types import ddl
    from pyspark_paimon.operations import alter as alter_schema
    from pyspark_paimon.results.state_results import TypeChangeResult
else:
    change = LazyModule("manifest.schema.change")
    ddl = LazyModule("manifest.types.ddl")
    alter_schema = LazyModule("pyspark_paimon.operations.alter")


class TableEvolution(TableRole):
    """Methods that change the schema.

    Existing files stay as they are. Readers match columns by id, so a new column under an old name does not show the old values.
    Every method returns the table. An invalid change raises ``InvalidSchema``, ``UnknownColumn``, ``UnsupportedType``,
    ``UnsupportedOption`` or ``InvalidArgument``, and changes nothing.

    >>> from pyspark_paimon.example import cities
    >>> table = cities().rename_column("city", "name").add_column("population", "BIGINT", after="name")
    >>> table.scan("id = 1", columns=["id", "name", "population"]).to_arrow().to_pylist()
    [{'id': 1, 'name': 'Oslo', 'population': None}]
    """

    def add_column(
        self,
        name: ColumnPath,
        type: Type,  # noqa: A002  # SQL's word
        *,
        after: str | None = None,
        first: bool = False,
        comment: str | None = None,
        default: object = None,
    ) -> Self:
        """Add a column; it is null in existing rows.

        Args:
            name: Column name, or the path of a nested field.
            type: DDL text, an Arrow type or a Spark type.
            after: Column or field before the new one.
            first: Whether the column becomes the first. By default it becomes the last.
            comment: Comment of the column.
            default: Value that writers store for null from now on, or its text in Paimon's notation.

        >>> from pyspark_paimon.example import cities
        >>> table = cities().add_column("visits", "INT", default=0)
        >>> row = {"id": 9, "city": "Bonn", "country": "DE", "attrs": None, "visits": None}
        >>> snapshot = table.write(pa.Table.from_pylist([row], table.schema)).snapshot_id
        >>> table.scan("visits = 0", columns=["id"]).to_arrow().to_pylist()
        [{'id': 9}]
        """
        added = change.AddColumn(
            path=_path(name), type=_type(type, name), comment=comment, default=_default(default), first=first, after=after
        )
        return self._alter(added)

    def replace_columns(
        self, schema: Schema | Data | TableSchema, *, options: Mapping[str, object] | None = None, comment: str | None = None
    ) -> Self:
        """Replace all columns by one new version of the schema.

        Keys must stay. Columns of the same name and type keep their values, and the others are null in existing rows, also those that are
        NOT NULL: overwrite the rows next. Older snapshots keep their columns.

        Args:
            schema: New columns, as for ``create``. An older ``table_schema`` of this table brings back its columns with their values, its
                options and its comment.
            options: Options to set.
            comment: New comment of the table.

        Raises:
            InvalidSchema: A key is missing or has another type, or an option names a column that is missing.
            UnsupportedType, UnsupportedOption: As for ``create``.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> before = table.table_schema
        >>> table.replace_columns("id BIGINT NOT NULL, city STRING, visits INT").scan("id = 1").to_arrow().to_pylist()
        [{'id': 1, 'city': 'Oslo', 'visits': None}]
        >>> table.replace_columns(before).scan("id = 1", columns=["city", "country"]).to_arrow().to_pylist()
        [{'city': 'Oslo', 'country': 'NO'}]
        """
        from pyspark_paimon.table.new_schema import new_schema  # noqa: PLC0415  # rarely needed

        now = self.table_schema
        if isinstance(schema, TableSchema):
            fields, comment = schema.fields, schema.comment
            changed = dict.fromkeys(now.options.keys() - schema.options.keys()) | schema.options
        else:
            fields = tuple(replace(field, id=-1) for field in new_schema(schema, now.primary_keys, now.partition_keys, None, None).fields)
            changed = {**option_texts(options)}
        return self._alter(
            change.ChangeOptions(options=changed),
            change.ReplaceColumns(columns=tuple(field.to_json() for field in fields)),
            change.ChangeComment(comment=comment),
        )

    def drop_column(self, name: ColumnPath) -> Self:
        """Drop a column.

        Keys, and columns that an option names, cannot be dropped. A column that is added later under the same name starts empty.

        >>> from pyspark_paimon.example import cities
        >>> cities().drop_column("attrs").table_schema.names
        ('id', 'city', 'country')
        """
        return self._alter(change.DropColumn(path=_path(name)))

    def rename_column(self, name: ColumnPath, new_name: str) -> Self:
        """Rename a column that is not a partition column.

        Options that name the column are updated, also the options of its file indexes.

        >>> from pyspark_paimon.example import cities
        >>> cities().rename_column("city", "name").options["file-index.bloom-filter.columns"]
        'name'
        """
        return self._alter(change.RenameColumn(path=_path(name), name=new_name))

    def move_column(self, name: ColumnPath, *, after: str | None = None, first: bool = False) -> Self:
        """Move a column.

        Args:
            name: Column name, or the path of a nested field.
            after: Column or field to move it behind.
            first: Whether the column becomes the first. By default it becomes the last.

        >>> from pyspark_paimon.example import cities
        >>> cities().move_column("country", after="id").table_schema.names
        ('id', 'country', 'city', 'attrs')
        """
        return self._alter(change.MoveColumn(path=_path(name), first=first, after=after))

    @overload
    def change_type(self, name: ColumnPath, type: Type, *, force: bool = False, dry_run: Literal[False] = False) -> Self: ...

    @overload
    def change_type(self, name: ColumnPath, type: Type, *, force: bool = False, dry_run: Literal[True]) -> TypeChangeResult: ...

    def change_type(
        self,
        name: ColumnPath,
        type: Type,  # noqa: A002  # SQL's word
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> Self | TypeChangeResult:
        """Change the type of a column.

        Keys keep their type. The old type must be castable to the new one. Nullability stays. Values of existing files are cast when
        they are read, so the new type must keep every value of the types that the column has had.

        Args:
            name: Column, or path of a nested field.
            type: New type.
            force: Change the type although values may change: numbers that are too large for a narrower type wrap around or become
                null, as in Paimon. A text that is not a number is an error of the read, which names the way back. The option
                ``disable-explicit-type-casting`` forbids such changes.
            dry_run: Count the values of the newest snapshot that would change, and change nothing. The column is read.

        >>> from pyspark_paimon.example import cities
        >>> cities().change_type(["attrs", "value"], "BIGINT").schema.field("attrs").type
        MapType(map<string, int64>)
        >>> print(cities().change_type("city", "INT", dry_run=True))
        0 of 3 values would change, 3 could not be read
        """
        type_change = change.ChangeType(path=_path(name), type=_type(type, name), force=force)
        return self._count_changed(type_change) if dry_run else self._alter(type_change)

    def _count_changed(self, type_change: change.ChangeType) -> TypeChangeResult:
        from lsm.schema.retype import RetypeCount  # noqa: PLC0415  # seldom needed
        from manifest.schema.evolution import evolve  # noqa: PLC0415  # as above
        from pyspark_paimon.request.requests import ScanRequest, TravelRequest  # noqa: PLC0415  # as above
        from pyspark_paimon.request.state import Start  # noqa: PLC0415  # as above
        from pyspark_paimon.results.state_results import TypeChangeResult  # noqa: PLC0415  # as above

        pinned, schema = self._engine.ask(Start(travel=TravelRequest()))
        name = type_change.path[0]
        after = evolve(schema, [type_change]).field(name).type
        count = RetypeCount()
        request = ScanRequest.of(None, columns=[name], snapshot=pinned).model_copy(update={"schema_id": schema.id})
        for batch in self._engine.read(request):
            count.add(batch.column(name), schema.field(name).type, after)
        return TypeChangeResult(values=count.values, changed=count.changed, unreadable=count.unreadable)

    def set_nullable(self, name: ColumnPath, nullable: bool = True) -> Self:
        """Allow or forbid nulls in a column.

        Nulls can be forbidden only if the option ``alter-column-null-to-not-null.disabled`` is ``false``.

        >>> import tempfile
        >>> from pyspark_paimon import Table
        >>> table = Table.create(f"{tempfile.mkdtemp()}/t", "id BIGINT, city STRING NOT NULL")
        >>> table.set_nullable("city").schema.field("city").nullable
        True
        """
        return self._alter(change.ChangeNullability(path=_path(name), nullable=nullable))

    def set_default(self, name: str, default: object) -> Self:
        """Set the default of a column.

        Writers store the default for null from now on. None removes it.

        >>> from pyspark_paimon.example import cities
        >>> cities().set_default("country", "NO").table_schema.field("country").default_value
        'NO'
        """
        return self._alter(change.ChangeDefault(path=_path(name), default=_default(default)))

    def set_comment(self, comment: str | None, name: ColumnPath | None = None) -> Self:
        """Set the comment of the table or a column.

        None removes it.

        >>> from pyspark_paimon.example import cities
        >>> cities().set_comment("where people live").set_comment("ISO 3166", "country").table_schema.field("country").description
        'ISO 3166'
        """
        return self._alter(change.ChangeComment(path=() if name is None else _path(name), comment=comment))

    def alter_options(self, changes: Mapping[str, object]) -> Self:
        """Set options, or remove those given as None.

        Raises ``UnsupportedOption`` for an option that is unknown, not supported, or cannot be changed.

        >>> from pyspark_paimon.example import cities
        >>> cities().alter_options({"target-file-size": "64 mb", "file-index.bloom-filter.city.items": None}).options["target-file-size"]
        '64 mb'
        """
        return self._alter(
            change.ChangeOptions(
                options={**dict.fromkeys(changes), **option_texts({key: value for key, value in changes.items() if value is not None})}
            )
        )

    def alter(self, *changes: Callable[[TableEvolution], object]) -> Self:
        """Make several changes in one version of the schema.

        Either all changes are made or none. Each function calls methods of its argument; the changes apply in the order of the calls.

        >>> from pyspark_paimon.example import cities
        >>> table = cities().alter(lambda t: t.add_column("a", "INT").add_column("b", "INT"), lambda t: t.drop_column("attrs"))
        >>> table.table_schema.names, table.table_schema.id
        (('id', 'city', 'country', 'a', 'b'), 1)
        """
        recorder = _ChangeRecorder()
        for each in changes:
            each(recorder)
        return self._alter(*recorder.changes) if recorder.changes else self

    def _alter(self, *changes: change.SchemaChange) -> Self:
        self._engine.run(alter_schema.AlterSchema(changes=changes))
        return self


class _ChangeRecorder(TableEvolution):
    """Recorder of the changes that methods would make."""

    def __init__(self) -> None:
        self.changes: list[change.SchemaChange] = []

    def replace_columns(
        self, schema: Schema | Data | TableSchema, *, options: Mapping[str, object] | None = None, comment: str | None = None
    ) -> Self:
        del schema, options, comment
        raise InvalidArgument("replace_columns replaces the schema in one step; call it alone, not in alter")

    def _alter(self, *changes: change.SchemaChange) -> Self:
        self.changes += changes
        return self

    def _count_changed(self, type_change: change.ChangeType) -> TypeChangeResult:
        raise InvalidArgument(f"change_type('{type_change.path[0]}', ..., dry_run=True) changes nothing; call it alone, not in alter")


def _path(name: object) -> tuple[str, ...]:
    path = (name,) if isinstance(name, str) else tuple(name) if isinstance(name, Sequence) else ()
    if not path or not all(path):
        raise InvalidArgument(f"a column must be a name or a list of names, not {name!r}")
    return path


def _type(value: Type, column: ColumnPath) -> str | dict[str, Any]:
    """Return a type in the format of schema files."""
    return _data_type(value, ".".join(map(str, _path(column)))).to_json()


def _data_type(value: Type, column: str) -> DataType:
    if isinstance(value, str):
        (field,) = ddl.parse_ddl(f"{quote_field(column)} {value}")
        return field.type
    if isinstance(value, pa.DataType):
        return from_arrow(pa.schema([(column, value)]))[0].type
    if type(value).__module__.startswith("pyspark."):
        from pyspark.sql.types import StructField, StructType  # noqa: PLC0415  # needs pyspark

        from pyspark_paimon.frames.spark_types import fields_from_spark  # noqa: PLC0415  # as above

        return fields_from_spark(StructType([StructField(column, value)]))[0].type
    raise InvalidArgument(f"a type must be DDL text, an Arrow type or a Spark type, not {value!r}")


def _default(value: object) -> str | None:
    """Return a default value as the text of schema files."""
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat(sep=" ")
        case int() | float() | Decimal() | date() | time():
            return str(value)
    raise InvalidArgument(f"a default value must be a scalar or its text, not {value!r}")
