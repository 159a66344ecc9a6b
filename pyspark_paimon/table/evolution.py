"""Changing a table's columns and options: every change is a new version of the schema, no file is rewritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from fileindex.base.lazy import LazyModule
from manifest.options.core_options import option_texts
from manifest.types.data_type import DataType, from_arrow
from manifest.types.type_parser import quoted
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.typing import ColumnPath, Type

if TYPE_CHECKING:
    from manifest.schema import change
    from manifest.types import ddl
    from pyspark_paimon.operations import alter as alter_schema
else:
    change = LazyModule("manifest.schema.change")
    ddl = LazyModule("manifest.types.ddl")
    alter_schema = LazyModule("pyspark_paimon.operations.alter")


class TableEvolution(TableRole):
    """The role that changes the schema.

    Rows that were written before keep their files; readers match columns by id, so an old name means nothing. Every method
    returns the table, and raises ``InvalidSchema``, ``UnknownColumn``, ``UnsupportedType`` or ``UnsupportedOption`` for a change
    that may not be made, ``InvalidArgument`` for one that cannot be understood; nothing has changed then.

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
        """Add a column, null in the rows that are there, at the end, ``first``, or ``after`` a sibling.

        ``default`` is what writers put for null from now on: a value, or its text as Paimon reads it.

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

    def drop_column(self, name: ColumnPath) -> Self:
        """Drop a column that is no key and that no option names; a column added later under its name starts empty."""
        return self._alter(change.DropColumn(path=_path(name)))

    def rename_column(self, name: ColumnPath, new_name: str) -> Self:
        """Rename a column that is no partition column; options that name it, those of its file indexes too, follow.

        >>> from pyspark_paimon.example import cities
        >>> cities().rename_column("city", "name").options["file-index.bloom-filter.columns"]
        'name'
        """
        return self._alter(change.RenameColumn(path=_path(name), name=new_name))

    def move_column(self, name: ColumnPath, *, after: str | None = None, first: bool = False) -> Self:
        """Give a column another place: ``first``, ``after`` a sibling, or else last."""
        return self._alter(change.MoveColumn(path=_path(name), first=first, after=after))

    def change_type(self, name: ColumnPath, type: Type) -> Self:  # noqa: A002  # SQL's word
        """Give a column another type that its values can be cast to; keys keep theirs. Nullability stays as it is.

        Values of old files are cast when they are read: numbers too great for a narrower type wrap around or become null as in
        Paimon, and text that is no number is an error of that read. ``disable-explicit-type-casting`` allows widening only.

        >>> from pyspark_paimon.example import cities
        >>> cities().change_type(["attrs", "value"], "BIGINT").schema.field("attrs").type
        MapType(map<string, int64>)
        """
        return self._alter(change.ChangeType(path=_path(name), type=_type(type, name)))

    def set_nullable(self, name: ColumnPath, nullable: bool = True) -> Self:
        """Allow nulls, or with ``nullable=False`` forbid them if ``alter-column-null-to-not-null.disabled`` is ``false``."""
        return self._alter(change.ChangeNullability(path=_path(name), nullable=nullable))

    def set_default(self, name: str, default: object) -> Self:
        """What writers put for null from now on; None removes it."""
        return self._alter(change.ChangeDefault(path=_path(name), default=_default(default)))

    def set_comment(self, comment: str | None, name: ColumnPath | None = None) -> Self:
        """Set, or with None remove, the comment of the table or of a column.

        >>> from pyspark_paimon.example import cities
        >>> cities().set_comment("where people live").set_comment("ISO 3166", "country").table_schema.field("country").description
        'ISO 3166'
        """
        return self._alter(change.ChangeComment(path=() if name is None else _path(name), comment=comment))

    def alter_options(self, changes: Mapping[str, object]) -> Self:
        """Set options, or remove those given as None.

        Raises ``UnsupportedOption`` for one that is unknown, not built, or fixed for the table's life.

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
        """Make several changes as one version of the schema, all or none: each calls methods of what it is given, in the order of the calls.

        >>> from pyspark_paimon.example import cities
        >>> table = cities().alter(lambda t: t.add_column("a", "INT").add_column("b", "INT"), lambda t: t.drop_column("attrs"))
        >>> table.table_schema.names, table.table_schema.id
        (('id', 'city', 'country', 'a', 'b'), 1)
        """
        noted = _NotedChanges()
        for each in changes:
            each(noted)
        return self._alter(*noted.changes) if noted.changes else self

    def _alter(self, *changes: change.SchemaChange) -> Self:
        self._backend.run(alter_schema.AlterSchema(changes=changes))
        return self


class _NotedChanges(TableEvolution):
    """The changes that the methods would make."""

    def __init__(self) -> None:
        self.changes: list[change.SchemaChange] = []

    def _alter(self, *changes: change.SchemaChange) -> Self:
        self.changes += changes
        return self


def _path(name: object) -> tuple[str, ...]:
    path = (name,) if isinstance(name, str) else tuple(name) if isinstance(name, Sequence) else ()
    if not path or not all(path):
        raise InvalidArgument(f"a column is a name or a list of names, not {name!r}")
    return path


def _type(given: Type, column: ColumnPath) -> str | dict[str, Any]:
    """A type in the form of schema files."""
    return _data_type(given, ".".join(map(str, _path(column)))).to_json()


def _data_type(given: Type, column: str) -> DataType:
    if isinstance(given, str):
        (field,) = ddl.parse_ddl(f"{quoted(column)} {given}")
        return field.type
    if isinstance(given, pa.DataType):
        return from_arrow(pa.schema([(column, given)]))[0].type
    if type(given).__module__.startswith("pyspark."):
        from pyspark.sql.types import StructField, StructType  # noqa: PLC0415  # a Spark type is at hand, so pyspark is

        from pyspark_paimon.frames.spark_types import fields_from_spark  # noqa: PLC0415  # as above

        return fields_from_spark(StructType([StructField(column, given)]))[0].type
    raise InvalidArgument(f"a type is DDL text, an Arrow type or a Spark type, not {given!r}")


def _default(value: object) -> str | None:
    """A default value as text, as Paimon's schema files have it."""
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat(sep=" ")
        case int() | float() | Decimal() | date() | time():
            return str(value)
    raise InvalidArgument(f"a default value is a plain value or its text, not {value!r}")


__all__ = ["TableEvolution"]
