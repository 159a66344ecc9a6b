"""The second Parquet decoder, polars.

It filters while decoding, which is faster if hits are in almost every page. It receives chunks with verified checksums.
The first decoder is used if polars reads a column as another type, or cannot read the file.

polars neither verifies checksums nor accepts row numbers. So the checksums of the pages are verified here. A mask of the
rows can be added as a boolean column.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.parquet.fields import (
    ColumnMetaData,
    CompressionCodec,
    DataPageHeader,
    Encoding,
    FieldRepetitionType,
    PageHeader,
    PageType,
    PhysicalType,
    SchemaElement,
    value,
    value_or,
)
from lsm.parquet.footer_fixup import PARQUET_MAGIC, extent, file_end, row_group
from lsm.parquet.page_index import LAST_OF_META_HEAD, ColumnPages
from lsm.parquet.page_reader import LONGEST, data_pages, dictionary_page
from lsm.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, encode_struct, with_fields
from paimon_base.process import can_use_polars
from sparkexpr.values.arrays import Int64s, Mask

_Rows = Int64s
_ALIKE = (
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_date32,
    pa.types.is_decimal128,
    pa.types.is_string,
    pa.types.is_binary,
)
_PAGE_OFFSETS = (ColumnMetaData.DATA_PAGE_OFFSET, ColumnMetaData.DICTIONARY_PAGE_OFFSET)


def can_decode(arrow: Any) -> bool:
    """Return whether both decoders agree on a type.

    >>> can_decode(pa.string()), can_decode(pa.decimal128(38, 2)), can_decode(pa.list_(pa.int32())), can_decode(pa.timestamp("us"))
    (True, True, False, False)
    """
    return any(is_such(arrow) for is_such in _ALIKE)


def masked_rows(leaves: Sequence[ColumnPages], types: Sequence[Any], mask: Mask) -> list[Any] | None:
    """Return the values of flat leaves where ``mask`` is True.

    Leaves are of one row group. One Array per leaf, with the file's ``types``. None: this decoder cannot read them.

    Raises:
        ValueError, LookupError: Pages do not match the file's metadata.
    """
    if not can_use_polars():
        return None
    names = [leaf.name for leaf in leaves]
    mask_name = _other_name(names)
    condition = _polars().col(mask_name)
    frame = _collect(chunk_file([ChunkGroup(leaves, mask)], mask_name), lambda file: file.filter(condition).select(names))
    if frame is None or len(frame) != np.count_nonzero(mask):
        return None
    arrays = [_as(column, arrow) for column, arrow in zip(frame.get_columns(), types, strict=True)]
    return None if any(array is None for array in arrays) else arrays


def rows_of_texts(leaves: Sequence[ColumnPages], texts: Sequence[str]) -> list[_Rows] | None:
    """Return the positions of ``texts`` in each chunk.

    Positions are relative to the row group. None and errors are as for ``masked_rows``.
    """
    if not can_use_polars():
        return None
    name = leaves[0].name
    index_name = _other_name([name])
    pl = _polars()
    condition = pl.col(name) == texts[0] if len(texts) == 1 else pl.col(name).is_in(pl.Series(texts).implode())
    groups = [ChunkGroup([leaf]) for leaf in leaves]
    frame = _collect(chunk_file(groups), lambda file: file.with_row_index(index_name).filter(condition).select(index_name))
    if frame is None:
        return None
    rows = frame.get_column(index_name).to_numpy().astype(np.int64)
    starts = np.cumsum([0, *(group.rows for group in groups)])
    pieces = np.split(rows, np.searchsorted(rows, starts[1:-1]))
    return [piece - start for piece, start in zip(pieces, starts[:-1], strict=True)]


def _collect(content: bytes, query: Any) -> Any | None:
    pl = _polars()
    try:
        file = pl.scan_parquet(content, parallel="auto", use_statistics=False, glob=False, hive_partitioning=False)
        return query(file).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, TypeError, OSError):
        return None


def _other_name(names: Sequence[str]) -> str:
    name = "_rows"
    while name in names:
        name += "_"
    return name


@cache
def _polars() -> Any:
    """Import polars."""
    # Loading takes 0.2 s, so it is delayed until scattered hits need it.
    import polars as pl  # noqa: PLC0415

    return pl


def _as(column: Any, arrow: Any) -> Any | None:
    """Return a column as one Array. None: its type differs."""
    array = column.to_arrow(compat_level=_polars().CompatLevel.oldest())
    if pa.types.is_large_string(array.type):
        array = array.cast(pa.string())
    elif pa.types.is_large_binary(array.type):
        array = array.cast(pa.binary())
    return array if array.type == arrow else None


@dataclass(frozen=True)
class ChunkGroup:
    """Chunks of flat columns in a row group.

    ``mask`` marks the wanted rows. None: not known.
    """

    leaves: Sequence[ColumnPages]
    mask: Mask | None = None

    @property
    def rows(self) -> int:
        """Number of rows of the group."""
        return int(self.leaves[0].starts[-1])


def chunk_file(groups: Sequence[ChunkGroup], mask_name: str = "") -> bytes:
    """Build a Parquet file from row groups with equal columns.

    The masks are the first column, ``mask_name``.

    Raises:
        ValueError, LookupError: A page has the wrong checksum, or other rows than the file declares.
    """
    parts: list[tuple[int, bytes | _Chunk]] = [(0, PARQUET_MAGIC)]
    size = len(PARQUET_MAGIC)
    encoded = []
    for group in groups:
        chunks = []
        if group.mask is not None:
            page = _mask_page(group.mask)
            chunks.append(_mask_chunk(mask_name, group.rows, len(page), size))
            parts.append((size, page))
            size += len(page)
        for leaf in group.leaves:
            chunk = _Chunk.of(leaf)
            places = {number: (I64, value(leaf.meta, number) - chunk.start + size) for number in _PAGE_OFFSETS if number in leaf.meta}
            chunks.append(with_fields(leaf.encoded[1], LAST_OF_META_HEAD, extent(group.rows, chunk.size) | places))
            parts.append((size, chunk))
            size += chunk.size
        encoded.append(row_group(chunks, size, group.rows))
    source = groups[0].leaves[0].indexes.footer
    elements: list[Any] = [element for leaf in groups[0].leaves for element in leaf.encoded[0]]
    if groups[0].mask is not None:
        elements.insert(
            0,
            {
                SchemaElement.TYPE: (I32, PhysicalType.BOOLEAN),
                SchemaElement.REPETITION_TYPE: (I32, FieldRepetitionType.REQUIRED),
                SchemaElement.NAME: (BINARY, mask_name.encode()),
            },
        )
    parts.append((size, file_end(source, len(elements), elements, encoded, sum(group.rows for group in groups))))
    content = _fill(parts)
    chunks_at = [(offset, part) for offset, part in parts if isinstance(part, _Chunk)]
    for offset, chunk in chunks_at:
        chunk.verify_dictionary(content, offset)
    _verify(content, [chunk.leaf for _, chunk in chunks_at], [offset - chunk.start for offset, chunk in chunks_at])
    return content


def _fill(parts: Sequence[tuple[int, bytes | _Chunk]]) -> bytes:
    """Return the parts, each at its position."""
    offset, last = parts[-1]
    # Chunks are read into their final place: memory of this size is new to the process, and costs more than the copy of its bytes.
    out = BytesIO()
    out.seek(offset)
    assert isinstance(last, bytes)
    out.write(last)
    with out.getbuffer() as buffer:
        for offset, part in parts[:-1]:
            if isinstance(part, bytes):
                buffer[offset : offset + len(part)] = part
            else:
                part.leaf.indexes.read_into(part.start, buffer[offset : offset + part.size])
    return out.getvalue()


def _mask_page(mask: Mask) -> bytes:
    bits = np.packbits(mask, bitorder="little").tobytes()
    data_header = {
        DataPageHeader.NUM_VALUES: (I32, len(mask)),
        DataPageHeader.ENCODING: (I32, Encoding.PLAIN),
        DataPageHeader.DEFINITION_LEVEL_ENCODING: (I32, Encoding.PLAIN),
        DataPageHeader.REPETITION_LEVEL_ENCODING: (I32, Encoding.PLAIN),
    }
    header = {
        PageHeader.TYPE: (I32, PageType.DATA_PAGE),
        PageHeader.UNCOMPRESSED_PAGE_SIZE: (I32, len(bits)),
        PageHeader.COMPRESSED_PAGE_SIZE: (I32, len(bits)),
        PageHeader.DATA_PAGE_HEADER: (STRUCT, data_header),
    }
    return encode_struct(header) + bits


def _mask_chunk(name: str, rows: int, size: int, offset: int) -> bytes:
    head = {
        ColumnMetaData.TYPE: (I32, PhysicalType.BOOLEAN),
        ColumnMetaData.ENCODINGS: (LIST, (I32, [Encoding.PLAIN])),
        ColumnMetaData.PATH_IN_SCHEMA: (LIST, (BINARY, [name.encode()])),
        ColumnMetaData.CODEC: (I32, CompressionCodec.UNCOMPRESSED),
    }
    return encode_struct(head | extent(rows, size) | {ColumnMetaData.DATA_PAGE_OFFSET: (I64, offset)})


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Bytes of a leaf's chunk in the data file."""

    leaf: ColumnPages
    start: int
    size: int

    @classmethod
    def of(cls, leaf: ColumnPages) -> _Chunk:
        """Return the chunk of a leaf. Its pages must fill it."""
        first = int(leaf.locations[0, 0])
        dictionary = value_or(leaf.meta, ColumnMetaData.DICTIONARY_PAGE_OFFSET, first)
        start, size = dictionary if 0 < dictionary < first else first, leaf.compressed_size
        offsets, sizes = leaf.locations[:, 0], leaf.locations[:, 1]
        if (offsets[1:] != (offsets + sizes)[:-1]).any() or offsets[-1] + sizes[-1] != start + size:
            raise ValueError("the pages of a column chunk do not fill the chunk")
        return cls(leaf, start, size)

    def verify_dictionary(self, content: bytes, offset: int) -> None:
        """Verify the checksum of the dictionary of the chunk at ``offset``."""
        end = offset + int(self.leaf.locations[0, 0]) - self.start
        if end == offset:
            return
        head, size, checksum = dictionary_page(content[offset : min(end, offset + LONGEST)])
        if end - offset - head != size or (checksum is not None and zlib.crc32(memoryview(content)[offset + head : end]) != checksum):
            raise ValueError("the checksum of a dictionary page does not match")


def _verify(content: bytes, leaves: Sequence[ColumnPages], moved: Sequence[int]) -> None:
    """Compare the data pages with their indexes and checksums.

    ``moved`` is the distance of each chunk from its place in the data file to its place in ``content``.
    """
    starts = np.concatenate([leaf.locations[:, 0] + by for leaf, by in zip(leaves, moved, strict=True)])
    sizes = np.concatenate([leaf.locations[:, 1] for leaf in leaves])
    values, inner, checksums = data_pages(content, starts, sizes)
    if (values != np.concatenate([np.diff(leaf.starts) for leaf in leaves])).any() or (inner < 0).any() or (inner > sizes).any():
        raise ValueError("a page does not match its index")
    has_checksum = checksums >= 0
    ends = (starts + sizes)[has_checksum]
    crc32, view = zlib.crc32, memoryview(content)
    actual_checksums = [crc32(view[start:end]) for start, end in zip((ends - inner[has_checksum]).tolist(), ends.tolist(), strict=True)]
    if actual_checksums != checksums[has_checksum].tolist():
        raise ValueError("the checksum of a page does not match")
