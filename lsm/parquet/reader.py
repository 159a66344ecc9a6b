"""The seam to the Parquet decoder: columns and row groups in, Arrow batches out, statistics as plain bounds.

Only this module knows pyarrow's reader. Whatever is wrong with a file (missing, truncated, other columns or rows than the
metadata promise, pages that do not decode) becomes a ``CorruptFile`` that names it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from fileindex.base.errors import CorruptFile
from fileindex.base.lazy import cached_property
from fileindex.base.thresholds import thresholds
from lsm.parquet.decoding import decoding
from lsm.parquet.footer import CachedFooter, RowGroup
from lsm.parquet.footer_promise import FooterPromise
from lsm.parquet.nested import NestedPages, can_weave
from lsm.parquet.page_index import ColumnPages, PageIndexes
from lsm.parquet.page_reader import take_leaves
from lsm.parquet.polars_decoder import can_decode, masked_rows, rows_of_texts
from lsm.parquet.row_group_pages import DAMAGE, GroupPages
from lsm.parquet.statistics import column_bounds, has_bounds
from manifest.entry.bounds import BoundsColumn
from manifest.io.errors import UnsupportedTable
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO
from manifest.stats.column_stats import ColumnBounds
from manifest.storage.ranges import is_told, told, told_in_turn
from manifest.types.data_type import DataType

_DICTIONARY_BYTES_PER_ROW = 2.5
_WRAPPED_MICROS = 2**64 // 1000


class ParquetDataFile:
    """An open Parquet data file; a context manager.

    Args:
        file_io: where the file lies.
        path: the file.
        promise: what the metadata say of it; None if they are not known.
        files: keeps the footer for the next time; None: it is read from the file.

    Raises:
        CorruptFile: the file is missing, is no Parquet file, or not what its metadata promise.
    """

    def __init__(self, file_io: FileIO, path: str, promise: FooterPromise | None = None, files: FileCache | None = None) -> None:
        self.path = path
        self._files: list[Any] = []
        self._readers: dict[tuple[frozenset[str], str], Any] = {}
        self._file_io = file_io
        self._promise = promise
        try:
            with decoding(self.path, "Parquet"):
                self._footer = self._read_footer() if files is None else files.load(file_io, path, "footer", self._read_footer, _weight)
                if promise is not None and promise.key not in self._footer.kept:
                    self._footer.kept.update(self._read_footer().kept)
        except BaseException:
            self.close()
            raise
        self.metadata, self.schema = self._footer.metadata, self._footer.schema
        self.row_groups: tuple[RowGroup, ...] = self._footer.row_groups
        self._leaves = self._footer.leaves

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _read_footer(self) -> CachedFooter:
        return CachedFooter.read(self._read_range, int(self._source.size()), self._promise)

    def close(self) -> None:
        """Close the file; batches handed out stay valid."""
        while self._files:
            self._files.pop().close()
        self._readers.clear()

    @property
    def num_rows(self) -> int:
        """Rows of the file."""
        rows: int = self.metadata.num_rows
        return rows

    def bounds(self, group: RowGroup, column: str, data_type: DataType) -> ColumnBounds | None:
        """What the footer says of a column in a row group, as plain values of ``data_type``; None if it says nothing.

        Args:
            group: a row group of this file.
            column: name of an atomic column in the file.
            data_type: its type in the file's schema; bounds of a column stored as another type are not known.
        """
        known, place = self._footer.bounds, (group.index, column, data_type)
        if place not in known:
            known[place] = self._bounds(group, column, data_type)
        return known[place]

    def _bounds(self, group: RowGroup, column: str, data_type: DataType) -> ColumnBounds | None:
        if column not in self._leaves or not has_bounds(self.schema.field(column).type, data_type):
            return None
        statistics = self.metadata.row_group(group.index).column(self._leaves[column].start).statistics
        if statistics is None:
            return None
        nulls = statistics.null_count if statistics.has_null_count else None
        low, high = (statistics.min_raw, statistics.max_raw) if statistics.has_min_max else (None, None)
        return column_bounds(low, high, nulls, group.num_rows, data_type)

    def pages(self, group: RowGroup) -> GroupPages | None:
        """The page indexes of a row group; None if it is small, or the file has none."""
        if group.num_rows < thresholds().paged_rows or self._page_indexes is None:
            return None
        return GroupPages(self._page_indexes, group.index, lambda column: self.compressed_size([column], [group]))

    @cached_property
    def _page_indexes(self) -> PageIndexes | None:
        pages = self._footer.pages
        return (
            None if pages is None else PageIndexes(pages, self._read_range if pages.seal is None else pages.seal.reading(self._read_range))
        )

    @cached_property
    def _source(self) -> Any:
        source = self._file_io.open_input(self.path, None if self._promise is None else self._promise.file.file_size)
        self._files.append(source)
        return source

    def _read_range(self, offset: int, length: int) -> bytes:
        """Bytes of the open file. Raises ``ValueError`` if it does not have them."""
        data: bytes = self._source.read_at(length, offset)
        if len(data) != length:
            raise ValueError(f"it ends before {length} bytes at {offset}")
        return data

    def expect(self, columns: Sequence[str], group: RowGroup, pages: GroupPages | None = None, rows: Any = None) -> None:
        """Tell storage that is far what is read next of a row group: the pages at ``rows``, or without ``pages`` whole chunks."""
        if is_told(self._source):
            chunks = [chunk for name in columns for chunk in self._chunks(name, group)]
            told(self._source, chunks if pages is None else [place for name in columns for place in pages.places(name, rows)])

    def _chunks(self, column: str, group: RowGroup) -> Iterator[tuple[int, int]]:
        """Where the chunks of a column lie in a row group: (offset, length)."""
        chunks = self.metadata.row_group(group.index)
        for leaf in self._leaves[column]:
            chunk = chunks.column(leaf)
            start = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
            yield min(start or chunk.data_page_offset, chunk.data_page_offset), chunk.total_compressed_size

    def page_bounds(self, pages: GroupPages, column: str, data_type: DataType) -> tuple[BoundsColumn, Any] | None:
        """As ``bounds``, of all pages of a column, and where the pages start."""
        if column not in self._leaves or not has_bounds(self.schema.field(column).type, data_type):
            return None
        return pages.bounds(column, data_type)

    def take(self, pages: GroupPages, columns: Sequence[str], rows: Any) -> list[Any | None]:
        """The values of columns at ``rows`` (ascending positions in the row group); None for one that can only be read whole.

        Raises:
            CorruptFile: the pages do not decode.
        """
        known = [pages.column(name) for name in columns]
        flat = [one for one in known if isinstance(one, ColumnPages)]
        with decoding(self.path, "Parquet"):
            taken = iter(take_leaves(flat, rows))
        return [
            next(taken) if isinstance(one, ColumnPages) else None if one is None else self._taken_nested(one, name, rows)
            for one, name in zip(known, columns, strict=True)
        ]

    def masked(self, pages: GroupPages, columns: Sequence[str], mask: Any) -> list[Any | None] | None:
        """The values of columns where ``mask`` is true; None for one that is read otherwise, or where that holds of most of their bytes.

        Differences are: the first decoder reads them in a third of the time.
        """
        known = [self._maskable(pages, name) for name in columns]
        flat = [(one, self.schema.field(name).type) for one, name in zip(known, columns, strict=True) if one is not None]
        if sum(one.compressed_size for one, _ in flat) < thresholds().masked_chunk_bytes:
            return None
        with suppress(*DAMAGE, pa.ArrowException, OSError):  # decoding all of it tells whether the file is broken
            found = masked_rows([one for one, _ in flat], [arrow for _, arrow in flat], mask)
            if found is not None:
                taken = iter(found)
                return [None if one is None else next(taken) for one in known]
        return None

    def _maskable(self, pages: GroupPages, name: str) -> ColumnPages | None:
        """The pages of a column that the second decoder reads sooner."""
        known = pages.column(name) if can_decode(self.schema.field(name).type) else None
        return known if isinstance(known, ColumnPages) and not known.holds_differences else None

    def rows_of_texts(self, pages: Sequence[GroupPages], column: str, texts: Sequence[str]) -> list[Any] | None:
        """Where a column is one of ``texts``: of each row group the positions in it; None if a mere decoder finds that as fast."""
        if not pa.types.is_string(self.schema.field(column).type) or self._has_small_dictionary(column):
            return None
        known = [group.column(column) for group in pages]
        flat = [one for one in known if isinstance(one, ColumnPages)]
        if len(flat) < len(known) or sum(one.compressed_size for one in flat) < thresholds().masked_chunk_bytes:
            return None
        with suppress(*DAMAGE, OSError):  # as above
            return rows_of_texts(flat, texts)
        return None

    def _taken_nested(self, known: NestedPages, column: str, rows: Any) -> Any | None:
        arrow = self.schema.field(column).type
        with suppress(*DAMAGE, pa.ArrowException, OSError):  # decoding all of it tells whether the file is broken
            return known.take(rows, arrow) if can_weave(arrow) else None
        return None

    def compressed_size(self, columns: Sequence[str], groups: Sequence[RowGroup]) -> int:
        """Bytes of the column chunks of ``columns`` in ``groups``."""
        sizes = self._footer.sizes
        return sum([sizes[group.index][leaf] for group in groups for name in columns for leaf in self._leaves[name]])

    def decoded_size(self, columns: Sequence[str], group: RowGroup) -> int:
        """About as many bytes as columns of a row group have decoded, by the footer's sizes and their least widths."""
        sizes = self._footer.decoded_sizes[group.index]
        return sum([sizes[leaf] for name in columns for leaf in self._leaves[name]])

    def batches(
        self,
        columns: Sequence[str],
        groups: Sequence[RowGroup],
        *,
        nanos: Collection[str] = (),
        dictionaries: Collection[str] = (),
        threads: bool = True,
        batch_bytes: int | None = None,
        batch_rows: int | None = None,
    ) -> Iterator[Any]:
        """Decode ``columns`` of ``groups`` into record batches, in order; their rows add up to those of the groups.

        Args:
            columns: names in the file, which must have them.
            groups: row groups, ascending.
            nanos: of INT96 columns those to decode as nanoseconds; the others come as microseconds, whose range is wider.
            dictionaries: columns of which texts of few distinct values come as dictionary arrays, several times faster.
            threads: decode columns in parallel.
            batch_bytes: about as many bytes as a batch may have.
            batch_rows: as many rows as a batch may have.

        Raises:
            CorruptFile: pages do not decode.
            UnsupportedTable: a timestamp of ``nanos`` lies beyond what nanoseconds can hold (the years 1677 to 2262).
        """
        if not columns:
            return iter([rows_only(group.num_rows) for group in groups])
        fine = [name for name in columns if name in nanos and self._is_int96(name)]
        size = self._batch_rows(columns, batch_bytes or thresholds().batch_bytes, batch_rows or thresholds().batch_rows)
        stream = self._stream(columns, groups, batch_rows=size, dictionaries=dictionaries, threads=threads)
        if not fine:
            return stream
        digits = self._stream(fine, groups, batch_rows=size, unit="ns", threads=threads)
        return itertools.starmap(self._with_nanos, _in_step(stream, digits))

    def _stream(
        self,
        columns: Sequence[str],
        groups: Sequence[RowGroup],
        *,
        batch_rows: int,
        unit: str = "us",
        dictionaries: Collection[str] = (),
        threads: bool,
    ) -> Iterator[Any]:
        reader = self._open(frozenset([name for name in dictionaries if self._has_small_dictionary(name)]), unit)
        expected = sum([group.num_rows for group in groups])
        found = 0
        if is_told(self._source):
            told_in_turn(self._source, [[chunk for name in columns for chunk in self._chunks(name, group)] for group in groups])
        numbers, names = [group.index for group in groups], list(columns)
        many = threads and expected > thresholds().one_thread_rows
        with decoding(self.path, "Parquet"):  # what its user raises does not come by here
            for batch in reader.iter_batches(batch_size=batch_rows, row_groups=numbers, columns=names, use_threads=many):
                found += batch.num_rows
                yield batch.select(names)
        if found != expected:
            raise CorruptFile(self.path, f"{found} rows were decoded where its footer says {expected}")

    def _with_nanos(self, batch: Any, digits: Any) -> Any:
        """``batch`` with the columns of ``digits``, once it is sure that nanoseconds did not overflow."""
        for name in digits.schema.names:
            position = batch.schema.get_field_index(name)
            micros, nanos = batch.column(position), digits.column(name)
            if pa.types.is_timestamp(nanos.type) and not _are_exact(nanos, micros, may_wrap=self._is_javas):
                raise UnsupportedTable(f"{self.path}: column '{name}' has a timestamp that nanoseconds since 1970 cannot hold")
            batch = batch.set_column(position, name, nanos)
        return batch

    @property
    def _is_javas(self) -> bool:
        return "parquet-mr" in (self.metadata.created_by or "")

    def _is_int96(self, column: str) -> bool:
        return any(self.metadata.schema.column(leaf).physical_type == "INT96" for leaf in self._leaves[column])

    def _open(self, dictionaries: frozenset[str] = frozenset(), unit: str = "us") -> Any:
        """A reader that keeps some columns dictionary encoded and takes INT96 for a ``unit``; the footer is read once."""
        reader = self._readers.get((dictionaries, unit))
        if reader is None:
            with decoding(self.path, "Parquet"):
                reader = pq.ParquetFile(
                    self._source,
                    metadata=self.metadata,
                    read_dictionary=sorted(dictionaries),
                    coerce_int96_timestamp_unit=unit,
                    page_checksum_verification=True,
                    pre_buffer=False,  # it would hold all of the file that was read until the last batch is there
                )
            self._readers[dictionaries, unit] = reader
        return reader

    def _batch_rows(self, columns: Sequence[str], batch_bytes: int, most: int) -> int:
        """Rows of a batch of at most about ``batch_bytes``, and ``most`` rows, by the row group with the largest rows."""
        rows = [batch_bytes * group.num_rows // max(1, self.decoded_size(columns, group)) for group in self.row_groups if group.num_rows]
        return max(1, min([most, *rows]))

    def _has_small_dictionary(self, column: str) -> bool:
        """Whether a text column is dictionary encoded throughout, with few distinct values."""
        field = self.schema.field(column)
        if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)) or not self.row_groups:
            return False
        for group in self.row_groups:
            chunk = self.metadata.row_group(group.index).column(self._leaves[column].start)
            if not chunk.has_dictionary_page or chunk.dictionary_page_offset is None:
                return False
            if chunk.data_page_offset - chunk.dictionary_page_offset > thresholds().small_dictionary_bytes:
                return False
            if chunk.total_uncompressed_size > thresholds().small_dictionary_bytes + _DICTIONARY_BYTES_PER_ROW * group.num_rows:
                return False
        return True


def _weight(footer: CachedFooter) -> int:
    return footer.weight


def _are_exact(nanos: Any, micros: Any, *, may_wrap: bool) -> bool:
    """Whether INT96 timestamps decoded as nanoseconds did not overflow, by the same ones decoded as microseconds.

    Java writes times before 1970 with a negative time of day (``may_wrap``); the decoder takes that for unsigned, which wraps
    around to the right number of nanoseconds, but to 2^64 / 1000 too many microseconds.
    """
    fine, coarse = (array.view(pa.int64()).fill_null(0).to_numpy() for array in (nanos, micros))
    excess = coarse - fine // 1000
    before_1970 = may_wrap & (fine < 0) & ((excess == _WRAPPED_MICROS) | (excess == _WRAPPED_MICROS + 1))
    return bool(((excess == 0) | before_1970).all())


def _in_step(batches: Iterator[Any], others: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """Pair batches with the same rows of another stream: where a text column's dictionary ends, its batch ends, too."""
    rest: Any = None
    for batch in (batch for batch in batches if batch.num_rows):
        pieces: list[Any] = []
        while (found := sum(map(len, pieces))) < batch.num_rows:
            rest = rest if rest is not None and rest.num_rows else next(others)
            pieces.append(rest.slice(0, batch.num_rows - found))
            rest = rest.slice(len(pieces[-1]))
        yield batch, pieces[0] if len(pieces) == 1 else pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]
    for _ in others:  # its end says that all rows were there
        pass


def rows_only(count: int) -> Any:
    """A record batch of so many rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), count, [None]))


__all__ = ["ParquetDataFile", "rows_only"]
