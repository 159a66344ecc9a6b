"""Resolution of column names as users write them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fileindex.predicate.tree import ColumnRef
from paimon_base.errors import InvalidArgument, InvalidFilter, UnknownColumn
from sparkexpr.values.column_type import ColumnType

TARGET, SOURCE = "t", "s"
"""Sides of a merge: the table and the source. Columns of a changed row have the first one, too."""


class StatementText(str):
    """Expression of a SQL statement, which follows Spark's store assignment."""

    __slots__ = ()


def resolve(name: str, types: Mapping[str, object]) -> str:
    """Return the table's spelling of a column name.

    Raises ``UnknownColumn``, and ``InvalidFilter`` if several columns match that differ only in case.

    >>> from sparkexpr.values.column_type import Kind
    >>> resolve("CITY", {"city": ColumnType(Kind.VARCHAR)})
    'city'
    """
    if not isinstance(name, str):
        raise InvalidArgument(f"a column name is a str, not {name!r}")
    if name in types:
        return name
    alike = [column for column in types if column.lower() == name.lower()]
    if not alike:
        raise UnknownColumn(name, tuple(types))
    if len(alike) > 1:
        raise InvalidFilter(f"column '{name}' is ambiguous: it may be {' or '.join(alike)}; write the exact case")
    return alike[0]


def resolve_whole(column: ColumnRef, types: Mapping[str, ColumnType]) -> str:
    """Return the table's spelling of the column of a field or entry.

    Raises the errors of ``resolve``, and ``InvalidFilter`` for a column with a dot in its name that is not in backticks.
    """
    try:
        return resolve(column.name, types)
    except UnknownColumn:
        start = f"{column.name}.{column.key}".lower()
        dotted = next((name for name in types if f"{name}.".lower().startswith(f"{start}.")), None)
        if column.key is None or dotted is None:
            raise
        raise InvalidFilter(f"'{dotted}' is a column with a dot in its name, not a field: write `{dotted}`") from None


def match_names(names: Iterable[str], source: Collection[str]) -> dict[str, str]:
    """Map names to columns of ``source``, ignoring case if needed.

    An exact match wins. Names without a match are left out.
    Raises ``InvalidFilter`` if several columns of one side match one of the other in all but case.

    >>> match_names(["x", "X", "city", "id"], ["x", "CITY", "id"])
    {'x': 'x', 'city': 'CITY', 'id': 'id'}
    """
    requested_names = list(names)
    source_names = {name: name for name in requested_names if name in source}
    left = {name for name in source if name not in source_names}
    for name in requested_names:
        if name in source_names:
            continue
        alike = [other for other in left if other.lower() == name.lower()]
        if not alike:
            continue
        twins = [other for other in requested_names if other not in source and other.lower() == name.lower()]
        if len(alike) > 1 or len(twins) > 1:
            raise InvalidFilter(
                f"columns {', '.join(sorted({*alike, *twins}))} of source and table differ only in case; spell the source's columns as the table does"
            )
        source_names[name] = alike[0]
    return {name: source_names[name] for name in requested_names if name in source_names}


def case_twins(names: Iterable[str]) -> tuple[str, ...]:
    """Return the first names that differ only in case.

    >>> case_twins(["a", "x", "X"])
    ('x', 'X')
    """
    by_name: dict[str, list[str]] = {}
    for name in names:
        by_name.setdefault(name.lower(), []).append(name)
    return next((tuple(alike) for alike in by_name.values() if len(alike) > 1), ())
