"""Names of columns as people write them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fileindex.base.column_type import ColumnType
from fileindex.base.errors import InvalidArgument, InvalidFilter, UnknownColumn


def resolve(name: str, types: Mapping[str, ColumnType]) -> str:
    """The table's spelling of a column name. Raises ``UnknownColumn``, ``InvalidFilter`` if only case tells two apart.

    >>> from fileindex.base.column_type import Kind
    >>> resolve("CITY", {"city": ColumnType(Kind.VARCHAR)})
    'city'
    """
    if not isinstance(name, str):
        raise InvalidArgument(f"a column is named by its text, not {name!r}")
    if name in types:
        return name
    alike = [known for known in types if known.lower() == name.lower()]
    if not alike:
        raise UnknownColumn(name, tuple(types))
    if len(alike) > 1:
        raise InvalidFilter(f"column '{name}' may be {' or '.join(alike)}; write it in its own case")
    return alike[0]


def matched(names: Iterable[str], source: Collection[str]) -> dict[str, str]:
    """The column of ``source`` for each of ``names`` that has one: of the same name, else of one that differs in case only.

    Raises ``InvalidFilter`` where several columns of one side differ from one of the other in case only.

    >>> matched(["x", "X", "city", "id"], ["x", "CITY", "id"])
    {'x': 'x', 'city': 'CITY', 'id': 'id'}
    """
    wanted = list(names)
    found = {name: name for name in wanted if name in source}
    left = {name for name in source if name not in found}
    for name in wanted:
        if name in found:
            continue
        alike = [other for other in left if other.lower() == name.lower()]
        if not alike:
            continue
        twins = [other for other in wanted if other not in source and other.lower() == name.lower()]
        if len(alike) > 1 or len(twins) > 1:
            raise InvalidFilter(
                f"columns {', '.join(sorted({*alike, *twins}))} of source and table differ only in case; spell the source's columns as the table does"
            )
        found[name] = alike[0]
    return {name: found[name] for name in wanted if name in found}


def case_twins(names: Iterable[str]) -> tuple[str, ...]:
    """Names of which two differ only in case; empty if there are none.

    >>> case_twins(["a", "x", "X"])
    ('x', 'X')
    """
    by_name: dict[str, list[str]] = {}
    for name in names:
        by_name.setdefault(name.lower(), []).append(name)
    return next((tuple(alike) for alike in by_name.values() if len(alike) > 1), ())


__all__ = ["case_twins", "matched", "resolve"]
