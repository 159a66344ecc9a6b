"""The footer of a data file and what follows from it, which can be kept from one opening of the file to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lsm.nested_pages import leaf_count
from lsm.page_read import BROKEN
from lsm.parquet_pages import PageFooter

_IN_MEMORY = 60
"""Bytes in memory for a byte of a footer, page indexes included."""
_MAGIC_AND_LENGTH = 8


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group: its number, the position of its first row in the file, its rows, and its compressed bytes."""

    index: int
    first_row: int
    num_rows: int
    size: int

    @property
    def end_row(self) -> int:
        """One past the position of the last row."""
        return self.first_row + self.num_rows


@dataclass(frozen=True)
class KnownFooter:
    """The decoder's ``metadata`` and Arrow ``schema`` of a file; holds nothing that is open."""

    metadata: Any
    schema: Any
    _pages: list[PageFooter | None] = field(default_factory=list, repr=False)

    @property
    def weight(self) -> int:
        """Bytes in memory, about."""
        return _IN_MEMORY * int(self.metadata.serialized_size)

    @cached_property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """Compressed bytes of the column chunks of every row group, leaf by leaf."""
        groups = map(self.metadata.row_group, range(self.metadata.num_row_groups))
        return tuple(tuple(group.column(leaf).total_compressed_size for leaf in range(group.num_columns)) for group in groups)

    @cached_property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """All row groups, in order."""
        groups: list[RowGroup] = []
        first_row = 0
        for index, sizes in enumerate(self.sizes):
            rows = self.metadata.row_group(index).num_rows
            groups.append(RowGroup(index, first_row, rows, sum(sizes)))
            first_row += rows
        return tuple(groups)

    @cached_property
    def leaves(self) -> dict[str, range]:
        """Positions of each top-level column's leaves among the file's leaf columns."""
        positions: dict[str, range] = {}
        start = 0
        for column in self.schema:
            end = start + leaf_count(column.type)
            positions[column.name] = range(start, end)
            start = end
        return positions

    def pages(self, read_range: Callable[[int, int], bytes], size: Callable[[], int]) -> PageFooter | None:
        """What the footer says of page indexes, read from the open file once; None if there are none, or it cannot be looked through."""
        if not self._pages:
            self._pages.append(self._read_pages(read_range, size))
        return self._pages[0]

    def _read_pages(self, read_range: Callable[[int, int], bytes], size: Callable[[], int]) -> PageFooter | None:
        if not any(self.metadata.row_group(0).column(leaf).has_offset_index for leaf in range(self.metadata.num_columns)):
            return None
        length = self.metadata.serialized_size
        try:
            return PageFooter.of(read_range(size() - _MAGIC_AND_LENGTH - length, length))
        except (*BROKEN, OSError):
            return None


__all__ = ["KnownFooter", "RowGroup"]
