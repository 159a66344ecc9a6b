"""A sort column.

It is a separate module, because every request may name one and few do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One column of an ``ORDER BY``.

    ``nulls_first`` None is Spark's default: nulls first if ascending, last if descending.

    >>> SortColumn("price", ascending=False)
    SortColumn(name='price', ascending=False, nulls_first=False)
    """

    name: str
    ascending: bool = True
    nulls_first: bool | None = None

    def __post_init__(self) -> None:
        if self.nulls_first is None:
            object.__setattr__(self, "nulls_first", self.ascending)


__all__ = ["SortColumn"]
