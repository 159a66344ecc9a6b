"""Footer of a data file.

It is cached between openings of the file.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lsm.parquet.chunk_values import ChunkValues
from lsm.parquet.expected_footer import ExpectedFooter
from lsm.parquet.fields import ColumnChunk, ColumnMetaData, FileMetaData, RowGroupMetaData, SizeStatistics, list_of, value, value_or
from lsm.parquet.footer_checksums import FooterChecksums, footer_checksums_length, verify_footer_checksums
from lsm.parquet.footer_fixup import PARQUET_MAGIC, maps_as_lists
from lsm.parquet.footer_structure import BYTES_IN_MEMORY, check_footer, decode_footer
from lsm.parquet.nested import leaf_count
from lsm.parquet.page_index import PageFooter, ReadRange
from lsm.parquet.row_group_pages import DAMAGE
from lsm.parquet.thrift import STRUCT, Struct, encode_struct
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds

_MAGIC_AND_LENGTH = 8
_NOTHING: tuple[int, Struct] = (STRUCT, {})


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a data file.

    Has its index, position of the first row, row count and compressed bytes.
    """

    index: int
    first_row: int
    num_rows: int
    size: int

    @property
    def end_row(self) -> int:
        """One past the position of the last row."""
        return self.first_row + self.num_rows


@dataclass(frozen=True)
class CachedFooter:
    """Decoder ``metadata`` and Arrow ``schema`` of a file.

    Holds no open resource.

    Args:
        metadata: Footer.
        schema: Arrow schema of its columns.
        pages: Page index information. None: there are no page indexes, or they are damaged.
        texts: Decoded bytes of texts with a dictionary, by row group and leaf, if the footer has them.
        values: Places of Bloom filters and dictionaries, by row group and leaf.
        checksums: Checksums of the bytes between chunks and footer, if the file has them.
        end: One past the bytes of chunks and indexes.
        kept: Expected footers that this one was checked against.
        bounds: Cached bounds by row group, column and type.
    """

    metadata: Any
    schema: Any
    pages: PageFooter | None
    texts: Mapping[tuple[int, int], int] = field(default_factory=dict, repr=False)
    values: Mapping[tuple[int, int], ChunkValues] = field(default_factory=dict, repr=False)
    checksums: FooterChecksums | None = None
    end: int = 0
    kept: set[Hashable] = field(default_factory=set, repr=False)
    bounds: dict[tuple[int, str, DataType], ColumnBounds | None] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, read_range: ReadRange, size: int, expected: ExpectedFooter | None) -> CachedFooter:
        """Read the footer of an open file of ``size`` bytes.

        The footer is checked before the decoder receives its bytes.

        Raises:
            ValueError: The footer is damaged or does not match ``expected``. Other errors of ``DAMAGE`` are possible.
        """
        encoded, before = _read_encoded(read_range, size)
        start = size - _MAGIC_AND_LENGTH - len(encoded)
        checksums = verify_footer_checksums(before, encoded, start) if before else None
        footer, head = decode_footer(encoded)
        if checksums is None:  # a footer with checksums needs no structural check
            check_footer(footer, head.leaves, start)
        if expected is not None:
            expected.check(footer, head, size)
        readable = maps_as_lists(footer)
        if readable is not None:
            footer, encoded = readable, encode_struct(readable)
        # Arrow reads a footer only as the end of a file: build a file without pages.
        content = b"".join([PARQUET_MAGIC, encoded, len(encoded).to_bytes(4, "little"), PARQUET_MAGIC])
        file = pq.ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit="us")
        try:
            pages = PageFooter.of(footer, len(encoded), checksums)
        except DAMAGE:
            pages = None
        end = start if checksums is None else checksums.end
        expectations: set[Hashable] = set() if expected is None else {expected.key}
        return cls(file.metadata, file.schema_arrow, pages, *_chunk_facts(footer), checksums, end, expectations)

    @property
    def weight(self) -> int:
        """Approximate bytes in memory."""
        return BYTES_IN_MEMORY * int(self.metadata.serialized_size)

    @cached_property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """Compressed bytes of column chunks, by row group and leaf."""
        groups = map(self.metadata.row_group, range(self.metadata.num_row_groups))
        return tuple([tuple([group.column(leaf).total_compressed_size for leaf in range(group.num_columns)]) for group in groups])

    @cached_property
    def decoded_sizes(self) -> tuple[tuple[int, ...], ...]:
        """Approximate decoded bytes, by row group and leaf."""
        sizes = []
        for number in range(self.metadata.num_row_groups):
            group, texts = self.metadata.row_group(number), self.texts
            widths, leaves = 8 * group.num_rows, range(group.num_columns)
            sizes.append(tuple([max(group.column(leaf).total_uncompressed_size, texts.get((number, leaf), 0), widths) for leaf in leaves]))
        return tuple(sizes)

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
        """Leaf positions of each top-level column."""
        positions: dict[str, range] = {}
        start = 0
        for column in self.schema:
            end = start + (leaf_count(column.type) if pa.types.is_nested(column.type) else 1)
            positions[column.name] = range(start, end)
            start = end
        return positions


def _chunk_facts(footer: Struct) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], ChunkValues]]:
    """Return decoded text bytes and value locations, by chunk."""
    texts: dict[tuple[int, int], int] = {}
    values: dict[tuple[int, int], ChunkValues] = {}
    for index, group in enumerate(list_of(footer, FileMetaData.ROW_GROUPS)):
        for leaf, chunk in enumerate(list_of(group, RowGroupMetaData.COLUMNS)):
            _, meta = chunk.get(ColumnChunk.META_DATA, _NOTHING)
            if ColumnMetaData.DICTIONARY_PAGE_OFFSET not in meta and ColumnMetaData.BLOOM_FILTER_OFFSET not in meta:
                continue
            # A dictionary stores each text once, so the size of its chunk does not show the size of the rows.
            if ColumnMetaData.DICTIONARY_PAGE_OFFSET in meta and ColumnMetaData.SIZE_STATISTICS in meta:
                sizes = value(meta, ColumnMetaData.SIZE_STATISTICS)
                texts[index, leaf] = value_or(sizes, SizeStatistics.UNENCODED_BYTE_ARRAY_DATA_BYTES, 0)
            with suppress(*DAMAGE):  # these places are advice
                places = ChunkValues.of(meta)
                if places is not None:
                    values[index, leaf] = places
    return texts, values


def _read_encoded(read_range: ReadRange, size: int) -> tuple[bytes, bytes]:
    """Return the bytes of the footer and of its checksums.

    The checksums may be empty.
    """
    if size < len(PARQUET_MAGIC) + _MAGIC_AND_LENGTH:
        raise ValueError(f"the file has only {size} bytes")
    end = read_range(max(0, size - thresholds.footer_read_bytes), min(size, thresholds.footer_read_bytes))
    length = int.from_bytes(end[-_MAGIC_AND_LENGTH : -len(PARQUET_MAGIC)], "little")
    if end[-len(PARQUET_MAGIC) :] != PARQUET_MAGIC or length > size - len(PARQUET_MAGIC) - _MAGIC_AND_LENGTH:
        raise ValueError("the file does not end like a Parquet file")
    tail = min(size, length + _MAGIC_AND_LENGTH + thresholds.footer_seal_bytes)
    if tail > len(end):
        end = read_range(size - tail, tail)
    footer = end[-_MAGIC_AND_LENGTH - length : -_MAGIC_AND_LENGTH]
    before = end[: -_MAGIC_AND_LENGTH - length]
    checksums_size = footer_checksums_length(before)
    if checksums_size > len(before):
        checksums_start = size - _MAGIC_AND_LENGTH - length - checksums_size
        if checksums_start < 0:
            raise ValueError("the checksums of the footer are longer than the file")
        before = read_range(checksums_start, checksums_size)
    return footer, before[len(before) - checksums_size :]
