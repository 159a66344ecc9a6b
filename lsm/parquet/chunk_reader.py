"""Whole column chunks of a data file as a Parquet file in memory, for a decoder that verifies no checksums and takes no row numbers.

The checksums of the pages are verified on the way. A mask of the rows can go along, as a column of booleans.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fileindex.base.arrays import Mask
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
from lsm.parquet.footer_writer import PARQUET_MAGIC, extent, file_end, row_group
from lsm.parquet.page_header import LONGEST, data_page, dictionary_page
from lsm.parquet.page_index import LAST_OF_META_HEAD, ColumnPages
from lsm.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, encode_struct, with_fields

_PAGE_OFFSETS = (ColumnMetaData.DATA_PAGE_OFFSET, ColumnMetaData.DICTIONARY_PAGE_OFFSET)


@dataclass(frozen=True)
class ChunkGroup:
    """The chunks of flat columns in a row group, and which rows of it are wanted, if that is known."""

    leaves: Sequence[ColumnPages]
    mask: Mask | None = None

    @property
    def rows(self) -> int:
        """Rows of the group."""
        return int(self.leaves[0].starts[-1])


def chunk_file(groups: Sequence[ChunkGroup], mask_name: str = "") -> bytes:
    """A Parquet file of row groups whose columns are alike; the masks come first, as a column ``mask_name``.

    Raises ``ValueError`` or ``LookupError`` if a page has another checksum, or other rows, than the file promises.
    """
    parts = [PARQUET_MAGIC]
    size = len(PARQUET_MAGIC)
    encoded = []
    for group in groups:
        chunks = []
        if group.mask is not None:
            page = _mask_page(group.mask)
            chunks.append(_mask_chunk(mask_name, group.rows, len(page), size))
            parts.append(page)
            size += len(page)
        for leaf in group.leaves:
            data, start = _verified(leaf)
            places = {number: (I64, value(leaf.meta, number) - start + size) for number in _PAGE_OFFSETS if number in leaf.meta}
            chunks.append(with_fields(leaf.encoded[1], LAST_OF_META_HEAD, extent(group.rows, len(data)) | places))
            parts.append(data)
            size += len(data)
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
    return b"".join([*parts, file_end(source, len(elements), elements, encoded, sum(group.rows for group in groups))])


def _mask_page(mask: Mask) -> bytes:
    bits = np.packbits(mask, bitorder="little").tobytes()
    own = {
        DataPageHeader.NUM_VALUES: (I32, len(mask)),
        DataPageHeader.ENCODING: (I32, Encoding.PLAIN),
        DataPageHeader.DEFINITION_LEVEL_ENCODING: (I32, Encoding.PLAIN),
        DataPageHeader.REPETITION_LEVEL_ENCODING: (I32, Encoding.PLAIN),
    }
    header = {
        PageHeader.TYPE: (I32, PageType.DATA_PAGE),
        PageHeader.UNCOMPRESSED_PAGE_SIZE: (I32, len(bits)),
        PageHeader.COMPRESSED_PAGE_SIZE: (I32, len(bits)),
        PageHeader.DATA_PAGE_HEADER: (STRUCT, own),
    }
    return encode_struct(header) + bits


def _mask_chunk(name: str, rows: int, size: int, at: int) -> bytes:
    head = {
        ColumnMetaData.TYPE: (I32, PhysicalType.BOOLEAN),
        ColumnMetaData.ENCODINGS: (LIST, (I32, [Encoding.PLAIN])),
        ColumnMetaData.PATH_IN_SCHEMA: (LIST, (BINARY, [name.encode()])),
        ColumnMetaData.CODEC: (I32, CompressionCodec.UNCOMPRESSED),
    }
    return encode_struct(head | extent(rows, size) | {ColumnMetaData.DATA_PAGE_OFFSET: (I64, at)})


def _verified(leaf: ColumnPages) -> tuple[bytes, int]:
    """The bytes of a chunk and where they start in the data file."""
    first = int(leaf.locations[0, 0])
    dictionary = value_or(leaf.meta, ColumnMetaData.DICTIONARY_PAGE_OFFSET, first)
    start = dictionary if 0 < dictionary < first else first
    data = leaf.indexes.read_range(start, value(leaf.meta, ColumnMetaData.TOTAL_COMPRESSED_SIZE))
    view = memoryview(data)
    at = first - start
    if at:
        head, size, checksum = dictionary_page(data[: min(at, LONGEST)])
        _verify(view[head:at], size, checksum)
    counts = np.diff(leaf.starts).tolist()
    for (offset, size, _), count in zip(leaf.locations.tolist(), counts, strict=True):
        values, inner, checksum = data_page(data[at : at + min(size, LONGEST)])
        if offset - start != at or values != count or inner > size:
            raise ValueError(f"a page of {values} rows at {offset} is not as its index says")
        _verify(view[at + size - inner : at + size], inner, checksum)
        at += size
    if at != len(data):
        raise ValueError("its pages are not all of its column chunk")
    return data, start


def _verify(body: memoryview, size: int, checksum: int | None) -> None:
    if len(body) != size or (checksum is not None and zlib.crc32(body) != checksum):
        raise ValueError("a page has another checksum")


__all__ = ["ChunkGroup", "chunk_file"]
