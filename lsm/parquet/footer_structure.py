"""Whether a Parquet footer holds together, before a decoder that trusts it sees it: a decoder may end the process over one flipped bit.

Everything that a footer says twice is compared: leaf columns and the paths of their chunks, rows of the file, of its row groups and of
their chunks, the older and the newer form of minima and maxima, where chunks and indexes lie and where others end.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from lsm.parquet.thrift import BINARY, FALSE_FIELD, I16, I32, I64, LIST, STRUCT, TRUE_FIELD, Struct

MAGIC_BYTES = 4
Extent: TypeAlias = tuple[int, int]

_FILE = {1: I32, 2: LIST, 3: I64, 4: LIST, 5: LIST, 6: BINARY, 7: LIST}
_ELEMENT = {1: I32, 2: I32, 3: I32, 4: BINARY, 5: I32, 6: I32, 7: I32, 8: I32, 9: I32, 10: STRUCT}
_GROUP = {1: LIST, 2: I64, 3: I64, 4: LIST, 5: I64, 6: I64, 7: I16}
_CHUNK = {2: I64, 3: STRUCT, 4: I64, 5: I32, 6: I64, 7: I32}
_META = {
    1: I32,
    2: LIST,
    3: LIST,
    4: I32,
    5: I64,
    6: I64,
    7: I64,
    8: LIST,
    9: I64,
    10: I64,
    11: I64,
    12: STRUCT,
    13: LIST,
    14: I64,
    15: I32,
    16: STRUCT,
    17: STRUCT,
}
_STATISTICS = {1: BINARY, 2: BINARY, 3: I64, 4: I64, 5: BINARY, 6: BINARY, 7: TRUE_FIELD, 8: TRUE_FIELD}
_LEVELS = {1: I64, 2: LIST, 3: LIST}
_BY_NUMBER = {
    kind: tuple(fields.items())
    for kind, fields in {
        "file": _FILE, "element": _ELEMENT, "group": _GROUP, "chunk": _CHUNK, "meta": _META, "statistics": _STATISTICS, "levels": _LEVELS
    }.items()
}  # fmt: skip
_NEEDED = {"file": {1, 2, 3, 4}, "element": {4}, "group": {1, 2, 3}, "chunk": {2, 3}, "meta": {1, 2, 3, 4, 5, 6, 7, 9}}
_ENCODINGS = frozenset({0, 2, 3, 4, 5, 6, 7, 8, 9})
_RLE = 3
_CODECS = range(8)
_CONVERTED = range(22)
_LOGICAL = range(1, 19)
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLES, BYTE_ARRAY, FIXED = range(8)
_WIDTHS = {BOOLEAN: 1, INT32: 4, INT64: 8, FLOAT: 4, DOUBLES: 8}
_FORMATS = {BOOLEAN: "<?", INT32: "<i", INT64: "<q", FLOAT: "<f", DOUBLES: "<d"}
REQUIRED, OPTIONAL, REPEATED = range(3)
_JAVA = b"parquet-mr"
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A leaf of the file's schema.

    Args:
        path: names from the top-level column to the leaf.
        element: the leaf's own element (Thrift's ``SchemaElement``).
        chain: the elements from the top-level column to the leaf.
        definition: greatest definition level.
        repetition: greatest repetition level.
    """

    path: tuple[bytes, ...]
    element: Struct
    chain: tuple[Struct, ...]
    definition: int
    repetition: int


def check_footer(footer: Struct, footer_start: int) -> tuple[LeafColumn, ...]:
    """The leaf columns of a footer (Thrift's ``FileMetaData``) that holds together; its own bytes begin at ``footer_start`` of the file.

    Raises ``ValueError``, or what a missing part raises (``LookupError``, ``TypeError``).
    """
    _check_fields(footer, "file")
    if footer[1][1] not in {1, 2}:
        raise ValueError(f"its footer has version {footer[1][1]}")
    leaves = tuple(_leaves(_structs(footer[2])))
    if len({leaf.path for leaf in leaves}) != len(leaves):
        raise ValueError("its schema has a column twice")
    groups = _structs(footer[4])
    rows = 0
    extents: list[Extent] = []
    from_java = footer.get(6, (BINARY, b""))[1].startswith(_JAVA)
    end = MAGIC_BYTES
    for group in groups:
        _check_fields(group, "group")
        count = group[3][1]
        chunks = _structs(group[1])
        if count < 0 or len(chunks) != len(leaves):
            raise ValueError(f"a row group has {count} rows and {len(chunks)} of {len(leaves)} columns")
        rows += count
        at = None
        for chunk, leaf in zip(chunks, leaves, strict=True):
            start, stop = _check_chunk(chunk, leaf, count, from_java)
            if start < end or (at is not None and start != at) or stop > footer_start:
                raise ValueError(f"the bytes {start} to {stop} of a column chunk are another's, or outside of the file")
            at = end = stop
            extents += _indexes(chunk)
    if rows != footer[3][1]:
        raise ValueError(f"its footer has {footer[3][1]} rows where its row groups have {rows}")
    _check_extents(extents, end if groups else MAGIC_BYTES, footer_start)
    return leaves


def chunk_extent(meta: Struct) -> Extent:
    """Where a column chunk's bytes start and end, by its ``ColumnMetaData``."""
    first = meta[9][1]
    start = meta[11][1] if 11 in meta and 0 < meta[11][1] < first else first
    return start, start + meta[7][1]


def raw_bounds(statistics: Struct) -> tuple[bytes | None, bytes | None]:
    """Minimum and maximum of ``Statistics``, as stored: of the newer form, or of the older where that is missing."""
    low, high = statistics.get(6, statistics.get(2)), statistics.get(5, statistics.get(1))
    return (None, None) if low is None or high is None else (low[1], high[1])


def _check_fields(struct_: Struct, kind: str) -> None:
    """Every field has its type, those that must be there are, and there is no other."""
    _check_signature(tuple([(number, value[0]) for number, value in struct_.items()]), kind)


@lru_cache(maxsize=4096)
def _check_signature(signature: tuple[tuple[int, int], ...], kind: str) -> None:
    known = dict(_BY_NUMBER[kind])
    for number, type_ in signature:
        if known.get(number) != (TRUE_FIELD if type_ == FALSE_FIELD else type_):
            raise ValueError(f"its footer has a field {number} of type {type_} in a {kind}")
    missing = _NEEDED.get(kind, set()) - {number for number, _ in signature}
    if missing:
        raise ValueError(f"its footer has a {kind} without the field {min(missing)}")


def _structs(field: tuple[int, Any]) -> Sequence[Struct]:
    kind, values = field[1]
    if values and kind != STRUCT:
        raise ValueError("its footer has a list of other things")
    found: Sequence[Struct] = values
    return found


def _leaves(elements: Sequence[Struct]) -> Iterator[LeafColumn]:
    """The leaves of a schema, each element of which is used just once."""
    for element in elements:
        _check_fields(element, "element")
    _check_element(elements[0], root=True)
    count, at = elements[0][5][1], 1
    for _ in range(count):
        at = yield from _subtree(elements, at, (), 0, 0)
    if at != len(elements):
        raise ValueError("its schema has elements that belong nowhere")


def _subtree(
    elements: Sequence[Struct], at: int, above: tuple[Struct, ...], definition: int, repetition: int
) -> Generator[LeafColumn, None, int]:
    element = elements[at]
    _check_element(element, root=False)
    chain = (*above, element)
    if len(chain) > _MAX_DEPTH:
        raise ValueError("its schema nests too deeply")
    definition += element[3][1] != REQUIRED
    repetition += element[3][1] == REPEATED
    at += 1
    if 5 not in element:
        yield LeafColumn(tuple(one[4][1] for one in chain), element, chain, definition, repetition)
        return at
    for _ in range(element[5][1]):
        at = yield from _subtree(elements, at, chain, definition, repetition)
    return at


def _check_element(element: Struct, *, root: bool) -> None:
    element[4][1].decode()
    children = element.get(5, (I32, None))[1]
    if (children is None) == (1 not in element) or (children is not None and not 0 <= children <= 1 << 16) or (children is None and root):
        raise ValueError("its schema has an element that is neither a column nor a group")
    if not root and element[3][1] not in {REQUIRED, OPTIONAL, REPEATED}:
        raise ValueError("its schema has an element that is repeated in an unknown way")
    if 1 in element and not BOOLEAN <= element[1][1] <= FIXED:
        raise ValueError("its schema has a column of an unknown type")
    if element.get(1, (I32, 0))[1] == FIXED and element[2][1] <= 0:
        raise ValueError("its schema has a column of no width")
    if (6 in element and element[6][1] not in _CONVERTED) or (
        10 in element and (len(element[10][1]) != 1 or next(iter(element[10][1])) not in _LOGICAL)
    ):
        raise ValueError("its schema has a column of an unknown logical type")


def _check_chunk(chunk: Struct, leaf: LeafColumn, rows: int, from_java: bool) -> Extent:
    _check_fields(chunk, "chunk")
    meta = chunk[3][1]
    _check_fields(meta, "meta")
    if meta[1][1] != leaf.element[1][1] or tuple(meta[3][1][1]) != leaf.path:
        raise ValueError(
            f"a column chunk of '{b'.'.join(meta[3][1][1]).decode(errors='replace')}' lies where its schema has another column"
        )
    encodings = meta[2][1]
    if encodings[0] != I32 or not _ENCODINGS.issuperset(encodings[1]) or meta[4][1] not in _CODECS:
        raise ValueError("a column chunk has an unknown encoding or codec")
    if from_java and encodings[1] and (_RLE in encodings[1]) != (leaf.definition > 0):
        raise ValueError("a column chunk is encoded as if its schema had other nulls")
    values, plain, size = meta[5][1], meta[6][1], meta[7][1]
    if values < rows or (leaf.repetition == 0 and values != rows) or plain < 0 or size < 0 or (meta[4][1] == 0 and plain != size):
        raise ValueError(f"a column chunk has {values} values and {size} bytes in {rows} rows")
    if 12 in meta:
        _check_statistics(meta[12][1], leaf, values)
    if 16 in meta:
        _check_levels(meta[16][1], leaf, values)
    return chunk_extent(meta)


def _check_levels(levels: Struct, leaf: LeafColumn, values: int) -> None:
    _check_fields(levels, "levels")
    for number, greatest in ((2, leaf.repetition), (3, leaf.definition)):
        if number in levels and levels[number][1][1] and (len(levels[number][1][1]) != greatest + 1 or sum(levels[number][1][1]) != values):
            raise ValueError("a column chunk has other levels than its schema")


def _check_statistics(statistics: Struct, leaf: LeafColumn, values: int) -> None:
    _check_fields(statistics, "statistics")
    nulls = statistics.get(3, (I64, 0))[1]
    if not 0 <= nulls <= (values if leaf.definition else 0):
        raise ValueError(f"a column chunk of {values} values has {nulls} nulls")
    kind = leaf.element[1][1]
    width = leaf.element[2][1] if kind == FIXED else _WIDTHS.get(kind)
    for older, newer in ((1, 5), (2, 6)):
        for number in (older, newer):
            if number in statistics and width is not None and len(statistics[number][1]) != width:
                raise ValueError("a column chunk has a minimum or maximum of another width")
        if kind in _FORMATS and older in statistics and newer in statistics and statistics[older] != statistics[newer]:
            raise ValueError("a column chunk has two minima or maxima")
    low, high = raw_bounds(statistics)
    if low is not None and high is not None and not _ascends(low, high, kind, leaf.element):
        raise ValueError("a column chunk has a minimum above its maximum")


def _ascends(low: bytes, high: bytes, kind: int, element: Struct) -> bool:
    if kind in _FORMATS:
        least, most = (struct.unpack(_FORMATS[kind], raw)[0] for raw in (low, high))
        return not least > most or element.get(6, (I32, 0))[1] in range(11, 15)  # not a NaN, nor unsigned
    if kind == BYTE_ARRAY and (10 in element or 6 in element) and 7 not in element and 8 not in element:
        return low <= high
    return True


def _indexes(chunk: Struct) -> Iterator[Extent]:
    """Where the page indexes and the bloom filter of a chunk lie."""
    for struct_, offset, length in ((chunk, 4, 5), (chunk, 6, 7), (chunk[3][1], 14, 15)):
        if offset in struct_ and length in struct_:
            yield struct_[offset][1], struct_[offset][1] + struct_[length][1]


def _check_extents(extents: list[Extent], first: int, last: int) -> None:
    """Indexes lie one after the other between the last chunk and the footer."""
    end = first
    for start, stop in sorted(extents):
        if start < end or stop < start:
            raise ValueError(f"the bytes {start} to {stop} of an index are another's, or outside of the file")
        end = stop
    if end > last:
        raise ValueError(f"an index ends at {end}, after the footer's start at {last}")


__all__ = ["LeafColumn", "check_footer", "chunk_extent", "raw_bounds"]
