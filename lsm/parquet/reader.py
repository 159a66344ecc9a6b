"""Parquet decoder: Arrow batches and statistics of a data file.

Only this module uses pyarrow's reader. A damaged file (missing, truncated, other columns or rows than the
metadata says, pages that cannot be decoded) raises ``CorruptFile`` that names it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from lsm.keys.encoding import one_array
from lsm.parquet.chunk_values import ChunkValues, bloom_has_one, dictionary_has_one, encodings
from lsm.parquet.coded_rows import take_rows
from lsm.parquet.expected_footer import ExpectedFooter, FooterMismatch
from lsm.parquet.footer import CachedFooter, RowGroup
from lsm.parquet.nested import NestedPages, can_weave
from lsm.parquet.page_index import ColumnPages, PageIndexes, ReadRange
from lsm.parquet.polars_decoder import can_decode, masked_rows, rows_of_texts
from lsm.parquet.row_group_pages import DAMAGE, GroupPages
from lsm.parquet.statistics import column_bounds, has_bounds
from manifest.entry.bounds import BoundsColumn
from manifest.io.errors import OutOfMemory, OutOfThreads, StorageError, UnsupportedTable
from manifest.io.file_cache import FileCache, FileParts
from manifest.io.file_io import FileIO
from manifest.io.storage_errors import is_out_of_memory
from manifest.stats.column_stats import ColumnBounds
from manifest.storage.ranges import can_prefetch, prefetch, prefetch_in_order
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile, CorruptIndex
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import Plain

_DICTIONARY_BYTES_PER_ROW = 2.5
_WRAPPED_MICROS = 2**64 // 1000
_NO_THREAD = "Failed to launch worker thread"
"""Arrow's message if its pool cannot start a thread."""


class ParquetDataFile:
    """An open Parquet data file; a context manager.

    Args:
        file_io: File system of the file.
        path: Path of the file.
        expected: Expected properties from the metadata. None: unknown.
        files: Cache of footers. None: read the footer from the file.

    Raises:
        CorruptFile: The file is missing, is not a Parquet file, or does not match its metadata.
    """

    def __init__(self, file_io: FileIO, path: str, expected: ExpectedFooter | None = None, files: FileCache | None = None) -> None:
        self.path = path
        self._files: list[Any] = []
        self._readers: dict[tuple[frozenset[str], str], Any] = {}
        self._file_io = file_io
        self._expected = expected
        self.parts: FileParts | None = None
        try:
            with decoding(self.path, "Parquet"):
                self.parts = None if files is None else FileParts(files, file_io, path)
                self._footer = self._read_footer() if self.parts is None else self.parts.load("footer", self._read_footer, _weight)
                if expected is not None and expected.key not in self._footer.kept:
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
        return CachedFooter.read(self._read_range, int(self._source.size()), self._expected)

    def close(self) -> None:
        """Close the file. Returned batches stay valid."""
        while self._files:
            self._files.pop().close()
        self._readers.clear()

    @cached_property
    def _is_small(self) -> bool:
        return sum(map(sum, self._footer.decoded_sizes)) <= thresholds.held_file_bytes

    @property
    def num_rows(self) -> int:
        """Number of rows of the file."""
        rows: int = self.metadata.num_rows
        return rows

    def bounds(self, group: RowGroup, column: str, data_type: DataType) -> ColumnBounds | None:
        """Return the bounds of a column in a row group.

        None: the footer has no statistics.

        Args:
            group: Row group of this file.
            column: Name of an atomic column in the file.
            data_type: Type of the column in the file's schema. Bounds of a column stored with another type are unknown.
        """
        cached_bounds, cache_key = self._footer.bounds, (group.index, column, data_type)
        if cache_key not in cached_bounds:
            cached_bounds[cache_key] = self._bounds(group, column, data_type)
        return cached_bounds[cache_key]

    def _bounds(self, group: RowGroup, column: str, data_type: DataType) -> ColumnBounds | None:
        if column not in self._leaves or not has_bounds(self.schema.field(column).type, data_type):
            return None
        statistics = self.metadata.row_group(group.index).column(self._leaves[column].start).statistics
        if statistics is None:
            return None
        nulls = statistics.null_count if statistics.has_null_count else None
        low, high = (statistics.min_raw, statistics.max_raw) if statistics.has_min_max else (None, None)
        return column_bounds(low, high, nulls, group.num_rows, data_type)

    def lacks(self, group: RowGroup, column: str, values: tuple[Plain, ...], data_type: DataType, most_bytes: int) -> bool:
        """Return whether a row group has none of ``values`` for certain.

        A Bloom filter and a dictionary of the chunk show it, if at most ``most_bytes`` are read.

        Args:
            group: Row group of this file.
            column: Name of an atomic column in the file.
            values: Values of ``data_type``.
            data_type: Type of the column in the file's schema. A column stored with another type is not searched.
            most_bytes: Most bytes of each that are read.

        Raises:
            CorruptIndex: The Bloom filter or dictionary is damaged.
        """
        if column not in self._leaves or not has_bounds(self.schema.field(column).type, data_type):
            return False
        leaf = self._leaves[column].start
        chunk = self._footer.values.get((group.index, leaf))
        length = self.metadata.schema.column(leaf).length
        encoded = None if chunk is None else encodings(values, chunk.physical_type, length)
        if chunk is None or encoded is None:
            return False
        try:
            return self._lacks(chunk, length, encoded, most_bytes)
        except DAMAGE as error:
            raise CorruptIndex(f"{self.path}: the Bloom filter or dictionary of column '{column}' cannot be used: {error}") from error

    def _lacks(self, chunk: ChunkValues, length: int, encoded: tuple[bytes, ...], most_bytes: int) -> bool:
        bloom, bloom_read_bytes = chunk.bloom, min(most_bytes, thresholds.bloom_read_bytes)
        is_cheap = chunk.bloom_cost(len(encoded)) <= most_bytes
        if bloom is not None and is_cheap and not bloom_has_one(self._read_verified, bloom, self._footer.end, encoded, bloom_read_bytes):
            return True
        if chunk.dictionary is None or chunk.dictionary[1] > most_bytes:
            return False
        return not dictionary_has_one(self._read_range(*chunk.dictionary), chunk, length, encoded)

    def pages(self, group: RowGroup) -> GroupPages | None:
        """Return the page indexes of a row group.

        None: the group is small, or the file has no page indexes.
        """
        if group.num_rows < thresholds.paged_rows or self._page_indexes is None:
            return None
        return GroupPages(self._page_indexes, group.index, lambda column: self.compressed_size([column], [group]))

    @cached_property
    def _page_indexes(self) -> PageIndexes | None:
        pages = self._footer.pages
        return None if pages is None else PageIndexes(pages, self._read_verified, self._read_into, self.parts)

    @cached_property
    def _source(self) -> Any:
        source = self._file_io.open_input(self.path, None if self._expected is None else self._expected.file.file_size)
        self._files.append(source)
        return source

    def _read_range(self, offset: int, length: int) -> bytes:
        """Read bytes of the open file.

        Raises:
            ValueError: The file is too short.
        """
        data: bytes = self._source.read_at(length, offset)
        if len(data) != length:
            raise ValueError(f"the file ends before {length} bytes at {offset}")
        return data

    @cached_property
    def _read_verified(self) -> ReadRange:
        """Reader that verifies the checksums of indexes, if present."""
        checksums = self._footer.checksums
        return self._read_range if checksums is None else checksums.reading(self._read_range)

    def _read_into(self, offset: int, target: memoryview) -> None:
        """Fill ``target`` from the open file.

        Raises:
            ValueError: The file is too short.
        """
        source = self._source
        if not isinstance(source, pa.OSFile):
            target[:] = self._read_range(offset, len(target))
            return
        source.seek(offset)
        while target:
            count = source.readinto(target)
            if not count:
                raise ValueError(f"the file ends before {len(target)} bytes at {offset}")
            target = target[count:]

    def prefetch(self, columns: Sequence[str], group: RowGroup, pages: GroupPages | None = None, rows: Any = None) -> None:
        """Prefetch the next read of a row group.

        Only for remote storage, and not for a small file, whose bytes came with its footer.

        The pages at ``rows``, or whole chunks without ``pages``.
        """
        if not self._is_small and can_prefetch(self._source):
            chunks = [chunk for name in columns for chunk in self._chunks(name, group)]
            prefetch(self._source, chunks if pages is None else [page_range for name in columns for page_range in pages.places(name, rows)])

    def _chunks(self, column: str, group: RowGroup) -> Iterator[tuple[int, int]]:
        """Yield (offset, length) of a column's chunks."""
        chunks = self.metadata.row_group(group.index)
        for leaf in self._leaves[column]:
            chunk = chunks.column(leaf)
            start = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
            yield min(start or chunk.data_page_offset, chunk.data_page_offset), chunk.total_compressed_size

    def page_bounds(self, pages: GroupPages, column: str, data_type: DataType) -> tuple[BoundsColumn, Any] | None:
        """Return the bounds of a column's pages, and their starts."""
        if column not in self._leaves or not has_bounds(self.schema.field(column).type, data_type):
            return None
        return pages.bounds(column, data_type)

    def take(self, pages: GroupPages, columns: Sequence[str], rows: Any) -> list[Any | None]:
        """Return the values of columns at ``rows``.

        ``rows`` are ascending positions in the row group. None for a column without page access.

        Raises:
            CorruptFile: The pages cannot be decoded.
        """
        column_pages = [pages.column(name) for name in columns]
        flat = [leaf_pages for leaf_pages in column_pages if isinstance(leaf_pages, ColumnPages)]
        with decoding(self.path, "Parquet"):
            values = iter(take_rows(flat, rows))
        return [
            next(values)
            if isinstance(leaf_pages, ColumnPages)
            else None
            if leaf_pages is None
            else self._take_nested(leaf_pages, name, rows)
            for leaf_pages, name in zip(column_pages, columns, strict=True)
        ]

    def take_masked(self, pages: GroupPages, columns: Sequence[str], mask: Any) -> list[Any | None] | None:
        """Return the values of columns where ``mask`` is True.

        None for a column that another method reads. None as result: this applies to most bytes of the columns.
        """
        column_pages = [self._maskable(pages, name) for name in columns]
        flat = [
            (leaf_pages, self.schema.field(name).type)
            for leaf_pages, name in zip(column_pages, columns, strict=True)
            if leaf_pages is not None
        ]
        if sum(leaf_pages.compressed_size for leaf_pages, _ in flat) < thresholds.masked_chunk_bytes:
            return None
        with suppress(*DAMAGE, pa.ArrowException, OSError):  # if the file is damaged, the full decode reports it
            masked = masked_rows([leaf_pages for leaf_pages, _ in flat], [arrow for _, arrow in flat], mask)
            if masked is not None:
                values = iter(masked)
                return [None if leaf_pages is None else next(values) for leaf_pages in column_pages]
        return None

    def _maskable(self, pages: GroupPages, name: str) -> ColumnPages | None:
        """Return the pages if polars reads them faster."""
        column_pages = pages.column(name) if can_decode(self.schema.field(name).type) else None
        # The first decoder reads DELTA_BINARY_PACKED in a third of the time.
        return column_pages if isinstance(column_pages, ColumnPages) and not column_pages.holds_differences else None

    def rows_of_texts(self, pages: Sequence[GroupPages], column: str, texts: Sequence[str]) -> list[Any] | None:
        """Return the positions of ``texts`` in each row group.

        None: plain decoding is as fast.
        """
        if not pa.types.is_string(self.schema.field(column).type) or self.has_small_dictionary(column):
            return None
        column_pages = [group.column(column) for group in pages]
        flat = [leaf_pages for leaf_pages in column_pages if isinstance(leaf_pages, ColumnPages)]
        if len(flat) < len(column_pages) or sum(leaf_pages.compressed_size for leaf_pages in flat) < thresholds.masked_chunk_bytes:
            return None
        with suppress(*DAMAGE, OSError):  # if the file is damaged, the full decode reports it
            return rows_of_texts(flat, texts)
        return None

    def _take_nested(self, nested_pages: NestedPages, column: str, rows: Any) -> Any | None:
        arrow = self.schema.field(column).type
        with suppress(*DAMAGE, pa.ArrowException, OSError):  # if the file is damaged, the full decode reports it
            return nested_pages.take(rows, arrow) if can_weave(arrow) else None
        return None

    def compressed_size(self, columns: Sequence[str], groups: Sequence[RowGroup]) -> int:
        """Return the bytes of column chunks of ``columns`` in ``groups``."""
        sizes = self._footer.sizes
        return sum([sizes[group.index][leaf] for group in groups for name in columns for leaf in self._leaves[name]])

    def decoded_size(self, columns: Sequence[str], group: RowGroup) -> int:
        """Return the approximate decoded bytes of columns."""
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
        """Yield record batches of ``columns`` of ``groups``, in order.

        Args:
            columns: Names in the file. They must exist.
            groups: Row groups, ascending.
            nanos: INT96 columns to decode as nanoseconds. Others are decoded as microseconds, which have a wider range.
            dictionaries: Text columns to return as dictionary arrays if they have few distinct values. Several times faster.
            threads: Decode columns in parallel.
            batch_bytes: Approximate maximum bytes of a batch.
            batch_rows: Maximum rows of a batch.

        Raises:
            CorruptFile: Pages cannot be decoded.
            UnsupportedTable: A timestamp of ``nanos`` is outside of the range of nanoseconds (years 1677 to 2262).
        """
        if not columns:
            return iter([rows_only(group.num_rows) for group in groups])
        fine = [name for name in columns if name in nanos and self._is_int96(name)]
        size = self._batch_rows(columns, batch_bytes or thresholds.batch_bytes, batch_rows or thresholds.batch_rows)
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
        if self.parts is not None and self._is_small:
            yield from self._held(self.parts, columns, groups, unit, batch_rows)
        else:
            coded = frozenset([name for name in dictionaries if self.has_small_dictionary(name)])
            yield from self._decode(columns, groups, coded, unit, batch_rows, threads=threads)

    def _held(self, parts: FileParts, columns: Sequence[str], groups: Sequence[RowGroup], unit: str, batch_rows: int) -> Iterator[Any]:
        """Yield batches of a small file, whose decoded columns are cached."""
        for group in [group for group in groups if group.num_rows]:
            places = {name: ("column", group.index, unit, name) for name in columns}
            arrays = {name: parts.get(cache_key) for name, cache_key in places.items()}
            absent = [name for name, array in arrays.items() if array is None]
            if absent:
                rows = pa.Table.from_batches(list(self._decode(absent, [group], frozenset(), unit, group.num_rows, threads=False)))
                for name in absent:
                    arrays[name] = array = one_array(rows.column(name))
                    parts.put(places[name], array, array.nbytes, lesser=True)
            batch = pa.RecordBatch.from_arrays([arrays[name] for name in columns], list(columns))
            yield from (batch.slice(start, batch_rows) for start in range(0, group.num_rows, batch_rows))

    def _decode(
        self, columns: Sequence[str], groups: Sequence[RowGroup], coded: frozenset[str], unit: str, batch_rows: int, *, threads: bool
    ) -> Iterator[Any]:
        reader = self._open(coded, unit)
        expected = sum([group.num_rows for group in groups])
        decoded_rows = 0
        if can_prefetch(self._source):
            prefetch_in_order(self._source, [[chunk for name in columns for chunk in self._chunks(name, group)] for group in groups])
        numbers, names = [group.index for group in groups], list(columns)
        use_threads = threads and expected > thresholds.one_thread_rows
        short: list[Any] = []
        with decoding(self.path, "Parquet"):  # errors of the consumer are not raised in this block
            for batch in reader.iter_batches(batch_size=batch_rows, row_groups=numbers, columns=names, use_threads=use_threads):
                is_short = batch.num_rows < min(batch_rows, expected - decoded_rows)
                decoded_rows += batch.num_rows
                # Headers of pages have no checksum. A wrong number of values shifts rows, and a consumer may stop before the end shows it.
                if short or (is_short and not coded):
                    short.append(batch)
                else:
                    yield batch.select(names)
        if decoded_rows != expected:
            raise CorruptFile(self.path, f"{decoded_rows} rows were decoded, but its footer says {expected}")
        yield from (batch.select(names) for batch in short)

    def _with_nanos(self, batch: Any, digits: Any) -> Any:
        """Replace columns of ``batch`` by nanoseconds, after an overflow check."""
        for name in digits.schema.names:
            position = batch.schema.get_field_index(name)
            micros, nanos = batch.column(position), digits.column(name)
            if pa.types.is_timestamp(nanos.type) and not _are_exact(nanos, micros, may_wrap=self._is_from_java):
                raise UnsupportedTable(f"{self.path}: column '{name}' has a timestamp outside of the range of nanoseconds since 1970")
            batch = batch.set_column(position, name, nanos)
        return batch

    @property
    def _is_from_java(self) -> bool:
        return "parquet-mr" in (self.metadata.created_by or "")

    def _is_int96(self, column: str) -> bool:
        return any(self.metadata.schema.column(leaf).physical_type == "INT96" for leaf in self._leaves[column])

    def _open(self, dictionaries: frozenset[str] = frozenset(), unit: str = "us") -> Any:
        """Return a reader with some columns dictionary encoded.

        INT96 is read as ``unit``. The footer is not read again.
        """
        reader = self._readers.get((dictionaries, unit))
        if reader is None:
            with decoding(self.path, "Parquet"):
                reader = pq.ParquetFile(
                    self._source,
                    metadata=self.metadata,
                    read_dictionary=sorted(dictionaries),
                    coerce_int96_timestamp_unit=unit,
                    page_checksum_verification=True,
                    pre_buffer=False,  # pre-buffering would keep all bytes read until the last batch
                )
            self._readers[dictionaries, unit] = reader
        return reader

    def _batch_rows(self, columns: Sequence[str], batch_bytes: int, max_rows: int) -> int:
        """Return the maximum rows per batch.

        Computed for the row group with the largest rows.
        """
        # Each batch costs time for each of its columns, however short they are.
        leaves = sum([len(self._leaves[name]) for name in columns])
        batch_bytes = max(batch_bytes, min(leaves * thresholds.batch_column_bytes, thresholds.batch_growth * batch_bytes))
        rows = [batch_bytes * group.num_rows // max(1, self.decoded_size(columns, group)) for group in self.row_groups if group.num_rows]
        return max(1, min([max_rows, *rows]))

    def has_small_dictionary(self, column: str) -> bool:
        """Return whether a text column always has a small dictionary."""
        field = self.schema.field(column)
        if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)) or not self.row_groups:
            return False
        for group in self.row_groups:
            chunk = self.metadata.row_group(group.index).column(self._leaves[column].start)
            if not chunk.has_dictionary_page or chunk.dictionary_page_offset is None:
                return False
            if chunk.data_page_offset - chunk.dictionary_page_offset > thresholds.small_dictionary_bytes:
                return False
            if chunk.total_uncompressed_size > thresholds.small_dictionary_bytes + _DICTIONARY_BYTES_PER_ROW * group.num_rows:
                return False
        return True


def _weight(footer: CachedFooter) -> int:
    return footer.weight


def _are_exact(nanos: Any, micros: Any, *, may_wrap: bool) -> bool:
    """Return whether INT96 timestamps fit nanoseconds.

    Compares them with the same ones decoded as microseconds.
    """
    # Java writes times before 1970 with a negative time of day (may_wrap). The decoder reads that as unsigned, which wraps
    # around to the right number of nanoseconds, but to 2^64 / 1000 too many microseconds.
    fine, coarse = (array.view(pa.int64()).fill_null(0).to_numpy() for array in (nanos, micros))
    excess = coarse - fine // 1000
    before_1970 = may_wrap & (fine < 0) & ((excess == _WRAPPED_MICROS) | (excess == _WRAPPED_MICROS + 1))
    return bool(((excess == 0) | before_1970).all())


def _in_step(batches: Iterator[Any], other_batches: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """Pair the batches of two streams with the same rows."""
    # Batches also end where the dictionary of a text column ends, so the streams differ.
    rest: Any = None
    for batch in (batch for batch in batches if batch.num_rows):
        pieces: list[Any] = []
        while (row_count := sum(map(len, pieces))) < batch.num_rows:
            rest = rest if rest is not None and rest.num_rows else next(other_batches)
            pieces.append(rest.slice(0, batch.num_rows - row_count))
            rest = rest.slice(len(pieces[-1]))
        yield batch, pieces[0] if len(pieces) == 1 else pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]
    for _ in other_batches:  # reading to the end runs the row count check
        pass


def rows_only(count: int) -> Any:
    """Return a record batch of ``count`` rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), count, [None]))


@contextmanager
def decoding(path: str, file_format: str) -> Iterator[None]:
    """Convert errors of the block to ones naming the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptFile(path, "the data file is missing") from error
    except StorageError:
        raise
    except UnsupportedTable as error:
        if path in str(error):
            raise
        raise UnsupportedTable(f"{path}: {error}") from error
    except FooterMismatch as error:
        raise CorruptFile(path, str(error)) from error
    except (MemoryError, pa.ArrowException, OSError, *DAMAGE) as error:
        if is_out_of_memory(error):  # the file may be intact
            raise OutOfMemory(path, str(error)) from error
        if _NO_THREAD in str(error):
            raise OutOfThreads from error
        if isinstance(error, OSError) and error.errno is not None:  # raised by storage, not by the decoder
            raise StorageError(error.errno, error.strerror or "cannot be read", path) from error
        raise CorruptFile(path, f"is not a readable {file_format} file ({error})") from error
