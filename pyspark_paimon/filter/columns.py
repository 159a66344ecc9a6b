"""Names of columns as people write them."""

from __future__ import annotations

from collections.abc import Mapping

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


__all__ = ["resolve"]
