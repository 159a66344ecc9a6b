"""The tail of an ORC file, looked through before a decoder sees it: postscript, footer, types, stripes and their statistics.

The decoder trusts a tail: a precision that no decimal has ends the process. Whatever does not hold together is a ``ValueError``.
Numbers of fields are those of ORC's specification (``orc_proto.proto``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from fileindex.base.lazy import cached_property
from fileindex.base.thresholds import thresholds
from lsm.orc.compression import metadata_of
from lsm.orc.protobuf import OrcMessage, integer, integers, message, messages, text, texts
from lsm.parquet.footer import RowGroup
from lsm.parquet.page_index import ReadRange

_MAGIC = b"ORC"
_MOST_DIGITS = 38
_MOST_DEPTH = 100
_IN_MEMORY = 30
"""Bytes in memory for a byte of a tail."""
_UTC = frozenset({"", "UTC", "GMT", "Etc/UTC", "Etc/GMT"})
_LARGEST_BLOCK = 1 << 23
"""A chunk's header has 23 bits for its length."""


class OrcKind(IntEnum):
    """The kinds of ORC's types."""

    BOOLEAN = 0
    BYTE = 1
    SHORT = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BINARY = 8
    TIMESTAMP = 9
    LIST = 10
    MAP = 11
    STRUCT = 12
    UNION = 13
    DECIMAL = 14
    DATE = 15
    VARCHAR = 16
    CHAR = 17
    TIMESTAMP_INSTANT = 18


_CHILDREN: dict[OrcKind, int] = {OrcKind.LIST: 1, OrcKind.MAP: 2}
OrcStatistics: TypeAlias = Sequence[OrcMessage]
"""By number of column."""


@dataclass(frozen=True, slots=True)
class OrcType:
    """A node of the tree of types; ``children`` are numbers of columns, ``names`` those of a struct's."""

    kind: OrcKind
    children: tuple[int, ...]
    names: tuple[str, ...]
    precision: int
    scale: int


@dataclass(frozen=True)
class OrcTail:
    """What an ORC file says of itself.

    Args:
        types: in the order of columns; the first is the row.
        row_groups: its stripes.
        statistics: of the whole file; () if there are none.
        stripe_statistics: of every stripe; () if there are none.
        size: bytes of the tail.
        footers: where the footer of each stripe begins, and its bytes.
        packing: the codec, and the bytes that a chunk holds at most.
    """

    types: tuple[OrcType, ...]
    row_groups: tuple[RowGroup, ...]
    statistics: OrcStatistics
    stripe_statistics: Sequence[OrcStatistics]
    size: int
    footers: tuple[tuple[int, int], ...] = ()
    packing: tuple[int, int] = (0, 0)
    kept: set[object] = field(default_factory=set, repr=False)

    @classmethod
    def read(cls, read_range: ReadRange, size: int) -> OrcTail:
        """The tail of a file of ``size`` bytes. Raises ``ValueError``, ``LookupError`` or ``UnsupportedTable``."""
        end = read_range(max(0, size - thresholds().orc_tail_bytes), min(size, thresholds().orc_tail_bytes))
        if len(end) < len(_MAGIC) + 1 or end[-1] + 1 > len(end):
            raise ValueError(f"it has {size} bytes")
        said = message(end[-1 - end[-1] : -1])
        footer_length, metadata_length = integer(said, 1), integer(said, 5)
        if text(said, 8000) != _MAGIC:
            raise ValueError("it does not end as an ORC file does")
        tail = end[-1] + 1 + footer_length + metadata_length
        if tail > size - len(_MAGIC):
            raise ValueError(f"a footer of {footer_length} bytes leaves the file")
        if tail > len(end):
            end = read_range(size - tail, tail)
        codec, block = integer(said, 2), integer(said, 3)
        if codec and not 0 < block < _LARGEST_BLOCK:
            raise ValueError(f"chunks of {block} bytes are none")
        body = end[len(end) - tail : len(end) - end[-1] - 1]
        footer = message(metadata_of(body[metadata_length:], codec, block))
        types = tuple(_type(node) for node in messages(footer, 4))
        _check_tree(types)
        described = messages(footer, 3)
        stripes = tuple(_stripes(described, size - tail))
        if sum(stripe.num_rows for stripe in stripes) != integer(footer, 6):
            raise ValueError("its stripes have other rows than its footer says")
        whole = tuple(messages(footer, 7))
        each = tuple(tuple(messages(stripe, 1)) for stripe in messages(message(metadata_of(body[:metadata_length], codec, block)), 1))
        if len(each) != len(stripes) or any(len(one) != len(types) for one in each):
            each = ()
        footers = tuple(map(_footer_place, described))
        return cls(types, stripes, whole if len(whole) == len(types) else (), each, tail, footers, (codec, block))

    def writer_zone(self, read_range: ReadRange, stripe: int) -> str:
        """The time zone of whoever wrote a stripe; '' for UTC. Raises ``ValueError`` or ``UnsupportedTable``."""
        zone = text(message(metadata_of(read_range(*self.footers[stripe]), *self.packing)), 3).decode()
        return "" if zone in _UTC else zone

    @property
    def weight(self) -> int:
        """Bytes in memory, about."""
        return _IN_MEMORY * self.size

    @cached_property
    def columns(self) -> dict[str, int]:
        """Numbers of the top-level columns."""
        root = self.types[0]
        return dict(zip(root.names, root.children, strict=True))

    def below(self, column: int) -> range:
        """Numbers of a column and everything inside it: they follow one another."""
        last = column
        while self.types[last].children:
            last = self.types[last].children[-1]
        return range(column, last + 1)


def _type(node: OrcMessage) -> OrcType:
    kind = OrcKind(integer(node, 1))
    names = tuple(name.decode() for name in texts(node, 3))
    found = OrcType(kind, tuple(integers(node, 2)), names, integer(node, 5), integer(node, 6))
    if kind is OrcKind.UNION:
        raise ValueError("a union is no type of a table")
    if kind is OrcKind.STRUCT and len(names) != len(found.children):
        raise ValueError("a struct has more or less names than fields")
    if kind is not OrcKind.STRUCT and len(found.children) != _CHILDREN.get(kind, 0):
        raise ValueError(f"a {kind.name} has {len(found.children)} parts")
    if kind is OrcKind.DECIMAL and not (1 <= found.precision <= _MOST_DIGITS and found.scale <= found.precision):
        raise ValueError(f"DECIMAL({found.precision}, {found.scale}) is no type")
    return found


def _check_tree(types: Sequence[OrcType]) -> None:
    """Columns are numbered as one meets them, each once. Raises ``ValueError``."""
    if not types or types[0].kind is not OrcKind.STRUCT:
        raise ValueError("its root is no struct")
    if len({*types[0].names}) != len(types[0].names):
        raise ValueError("two of its columns have one name")
    following = 0
    waiting = [(0, 0)]
    while waiting:
        number, depth = waiting.pop()
        if number != following or depth > _MOST_DEPTH:
            raise ValueError("its types are no tree")
        following += 1
        waiting += [(child, depth + 1) for child in reversed(types[number].children)]
        if number >= len(types):
            raise ValueError("its types are no tree")
    if following != len(types):
        raise ValueError("its types are no tree")


def _footer_place(stripe: OrcMessage) -> tuple[int, int]:
    return sum(integer(stripe, part) for part in (1, 2, 3)), integer(stripe, 4)


def _stripes(stripes: Sequence[OrcMessage], limit: int) -> Iterator[RowGroup]:
    first_row, end = 0, len(_MAGIC)
    for index, stripe in enumerate(stripes):
        offset, rows = integer(stripe, 1), integer(stripe, 5)
        size = sum(integer(stripe, part) for part in (2, 3, 4))
        if offset < end or offset + size > limit:
            raise ValueError(f"stripe {index} leaves the file, or lies over another")
        yield RowGroup(index, first_row, rows, size)
        first_row, end = first_row + rows, offset + size


__all__ = ["OrcKind", "OrcStatistics", "OrcTail", "OrcType"]
