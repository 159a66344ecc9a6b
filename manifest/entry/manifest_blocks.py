"""Partial reads of manifests by their block ranges.

Block ranges are the partitions, buckets, levels and keys of each block. They are in the header of the Avro file, under a name that other engines ignore, as
base64 text of a compressed Arrow stream. A checksum covers the file's name, the header and the blocks' own checksums, so a reader
can trust a part of the file. Only manifests without DELETEs have ranges.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from manifest.avro.container import read_blocks, read_header
from manifest.avro.wire import SYNC_BYTES
from manifest.entry.bounds import BoundsColumn, key_bounds
from manifest.entry.cache import entries_weight
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, Mask, numpy_array
from sparkexpr.values.column_type import INTEGERS, STRINGS, Kind

BLOCK_RANGES = b"block.ranges"
"""Key in the Avro header."""
_TEXT_BYTES = 32
_CHECKSUM = 4
_AFTER_ANY_TEXT = b"\xff"
_KEY_KINDS = INTEGERS | STRINGS | {Kind.DATE, Kind.TIMESTAMP, Kind.TIME}
KeyColumn: TypeAlias = tuple[int, DataType]
"""Field id and type of the first column of a primary key."""


@dataclass(frozen=True)
class BlockRanges:
    """Ranges of every block of a manifest, one row each."""

    lines: pa.RecordBatch

    @classmethod
    def of(cls, entries: EntryColumns, blocks: Sequence[tuple[int, bytes]], keys: Sequence[KeyColumn]) -> BlockRanges | None:
        """Return the ranges of ``blocks``, None if not useful.

        ``blocks`` has the number of records and the stored bytes of each block of ``entries``.
        """
        if len(blocks) < thresholds.fewest_blocks or (entries.kind != FileKind.ADD).any():
            return None
        records = np.array([count for count, _ in blocks])
        starts = np.cumsum(records) - records
        codes, code_partitions = entries.partition_codes
        _, first_rows, renumbered = np.unique(codes, return_index=True, return_inverse=True)
        ranks = np.argsort(np.argsort(first_rows))[renumbered]  # by first appearance
        new = np.searchsorted(starts, np.sort(first_rows), side="right") - 1
        names = [code_partitions[codes[row]] for row in np.sort(first_rows).tolist()]
        offsets = np.searchsorted(new, np.arange(len(blocks) + 1))
        columns: dict[str, pa.Array] = {
            "records": pa.array(records),
            "bytes": pa.array([len(content) + SYNC_BYTES for _, content in blocks]),
            "crc32": pa.array([zlib.crc32(content) for _, content in blocks], pa.uint32()),
            "new_partitions": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(names, pa.binary())),
            **_extremes("partition", ranks, starts),
        }
        numbers = {"bucket": "_BUCKET", "total_buckets": "_TOTAL_BUCKETS", "level": "_FILE._LEVEL", "schema_id": "_FILE._SCHEMA_ID"}
        for name, field in numbers.items():
            columns |= _extremes(name, entries.numbers(field), starts)
        metadata = {}
        if keys and keys[0][1].kind in _KEY_KINDS:
            metadata["key"] = str(keys[0][0])
            columns |= _key_extremes(entries, keys, starts)
        return cls(pa.record_batch(columns).replace_schema_metadata(metadata))

    def to_text(self, name: str, header: Mapping[bytes, bytes]) -> bytes:
        """Return the header value for the manifest ``name``.

        ``header`` has the other header fields, which the checksum covers.
        """
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.lines.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(self.lines)
        content = sink.getvalue().to_pybytes()
        return base64.b64encode(_sum(name, header, content) + content)

    @classmethod
    def from_text(cls, name: str, header: Mapping[bytes, bytes]) -> BlockRanges | None:
        """Return the ranges in ``header``, None if missing or invalid.

        Ranges are invalid if they were written for another file.
        """
        try:
            text = base64.b64decode(header.get(BLOCK_RANGES, b""), validate=True)
            if not text or text[:_CHECKSUM] != _sum(name, {k: v for k, v in header.items() if k != BLOCK_RANGES}, text[_CHECKSUM:]):
                return None
            return cls(pa.ipc.open_stream(text[_CHECKSUM:]).read_next_batch())
        except (ValueError, OSError, StopIteration, pa.ArrowException):
            return None

    def __len__(self) -> int:
        return int(self.lines.num_rows)

    def column(self, name: str) -> Int64s:
        """Return one number per block."""
        numbers: Int64s = numpy_array(self.lines.column(name))
        return numbers

    @cached_property
    def partitions(self) -> list[bytes]:
        """Serialised partitions of the manifest."""
        partitions: list[bytes] = self.lines.column("new_partitions").flatten().to_pylist()
        return partitions

    def in_partitions(self, matches: Sequence[bool]) -> Mask:
        """Return blocks that may have one of the wanted ``partitions``.

        ``matches`` has a flag for each of ``partitions``.
        """
        before = np.cumsum([0, *matches])
        may_match: Mask = before[self.column("min_partition")] < before[self.column("max_partition") + 1]
        return may_match

    def in_buckets(self, buckets: Sequence[int]) -> Mask:
        """Return blocks that may have one of the wanted buckets."""
        ordered = np.sort(np.array([*buckets, np.iinfo(np.int64).max], np.int64))
        may_match: Mask = ordered[np.searchsorted(ordered, self.column("min_bucket"))] <= self.column("max_bucket")
        return may_match

    def key_bounds(self, field_id: int) -> BoundsColumn | None:
        """Return bounds of the first key column, None if unknown.

        None also if ``field_id`` is not the first key column.
        """
        if (self.lines.schema.metadata or {}).get(b"key") != str(field_id).encode():
            return None
        low, high = self.lines.column("min_key"), self.lines.column("max_key")
        is_bounded = numpy_array(low.is_valid())
        nothing = b"" if pa.types.is_binary(low.type) else 0
        least, greatest = (numpy_array(side.fill_null(nothing) if side.null_count else side) for side in (low, high))
        return BoundsColumn(least, greatest, is_bounded, np.where(is_bounded, 0, -1), self.column("records"))

    @property
    def weight(self) -> int:
        """Bytes in memory."""
        nbytes: int = self.lines.nbytes
        return nbytes + 100 * len(self.lines.schema)


BlockFilter: TypeAlias = Callable[[BlockRanges], Mask]
"""Returns the blocks that may have a wanted entry."""


def _extremes(name: str, values: Int64s, starts: Int64s) -> dict[str, pa.Array]:
    return {
        f"min_{name}": pa.array(np.minimum.reduceat(values, starts), pa.int64()),
        f"max_{name}": pa.array(np.maximum.reduceat(values, starts), pa.int64()),
    }


def _key_extremes(entries: EntryColumns, keys: Sequence[KeyColumn], starts: Int64s) -> dict[str, pa.Array]:
    """Return minimum and maximum first key of each block.

    Null if unknown.
    """
    data_type = keys[0][1]
    try:
        bounds = key_bounds(entries, [str(field_id) for field_id, _ in keys], [kind for _, kind in keys], {str(keys[0][0])})[
            str(keys[0][0])
        ]
    except ValueError:  # reading the entries reports the error
        nothing = pa.nulls(len(starts), pa.int64())
        return {"min_key": nothing, "max_key": nothing}
    unknown = ~np.logical_and.reduceat(bounds.known, starts)
    low, high = np.minimum.reduceat(bounds.low, starts), np.maximum.reduceat(bounds.high, starts)
    if data_type.kind not in STRINGS:
        return {"min_key": pa.array(low, pa.int64(), mask=unknown), "max_key": pa.array(high, pa.int64(), mask=unknown)}
    shortest = [value[:_TEXT_BYTES] for value in low.tolist()]
    longest = [value if len(value) <= _TEXT_BYTES else value[:_TEXT_BYTES] + _AFTER_ANY_TEXT for value in high.tolist()]
    return {"min_key": pa.array(shortest, pa.binary(), mask=unknown), "max_key": pa.array(longest, pa.binary(), mask=unknown)}


def _sum(name: str, header: Mapping[bytes, bytes], content: bytes) -> bytes:
    checksum = zlib.crc32(name.encode())
    for part in (*(piece for item in sorted(header.items()) for piece in item), content):
        checksum = zlib.crc32(part, checksum)
    return checksum.to_bytes(_CHECKSUM, "big")


@dataclass(frozen=True, slots=True)
class _Head:
    """Header of a manifest.

    Args:
        metadata: What decoding blocks needs.
        end: Offset of the first block.
        ranges: Ranges of the blocks. None: read the whole file.
    """

    metadata: dict[bytes, bytes]
    end: int
    ranges: BlockRanges | None

    @property
    def weight(self) -> int:
        return 8192 + (0 if self.ranges is None else self.ranges.weight)


@dataclass(frozen=True, slots=True)
class EntryNarrowing:
    """Drops entries of wanted blocks that no filter wants.

    Equal keys drop the same entries.
    """

    key: Hashable
    narrow: Callable[[EntryColumns], EntryColumns]


def some_entries(
    file_io: FileIO,
    path: str,
    meta: ManifestFileMeta,
    files: FileCache,
    block_filter: BlockFilter,
    *,
    narrowing: EntryNarrowing | None = None,
) -> EntryColumns | None:
    """Return entries of ``block_filter`` blocks, or None.

    None means: read the whole manifest. It is small, has no ranges, most blocks are wanted, or a block is corrupt, which a whole read
    reports. ``narrowing`` applies to large results only.
    """
    if meta.file_size < thresholds.narrowed_manifest_bytes or meta.num_deleted_files:
        return None
    identity, head = files.recall(file_io, path, ("manifest head", meta.file_size))
    prefix = b""
    if head is None:
        head, prefix = _head(file_io, path, meta)
        files.keep(path, ("manifest head", meta.file_size), identity, head, head.weight)
    if head.ranges is None:
        return None
    matching_blocks = block_filter(head.ranges)
    sizes = head.ranges.column("bytes")
    if int(sizes[matching_blocks].sum()) * 2 > int(sizes.sum()):
        return None
    if int(head.ranges.column("records")[matching_blocks].sum()) <= thresholds.shared_entries:
        narrowing = None
    kind = ("manifest blocks", meta.file_size, np.packbits(matching_blocks).tobytes(), None if narrowing is None else narrowing.key)
    _, cached = files.recall(file_io, path, kind, identity)
    if cached is not None:
        cached_entries: EntryColumns = cached
        return cached_entries
    try:
        blocks = list(_blocks(partial(_read, file_io, path, prefix), file_io.run_parallel, path, head, matching_blocks))
        entries = EntryColumns.from_container(read_blocks(path, head.metadata, blocks))
        if narrowing is not None:
            entries = EntryColumns.of_records(list(narrowing.narrow(entries).records()), path)
    except CorruptFile:
        return None
    files.keep(path, kind, identity, entries, entries_weight(entries))
    return entries


def _read(file_io: FileIO, path: str, prefix: bytes, offset: int, length: int) -> bytes:
    """Return bytes of the file that begins with ``prefix``."""
    return prefix[offset : offset + length] if offset + length <= len(prefix) else file_io.read_range(path, offset, length)


def _head(file_io: FileIO, path: str, meta: ManifestFileMeta) -> tuple[_Head, bytes]:
    """Return the head and the bytes read for it."""
    size = min(thresholds.manifest_head_bytes, meta.file_size)
    prefix = file_io.read_range(path, 0, size)
    header = read_header(prefix)
    while header is None and size < meta.file_size:
        size = min(size * 4, meta.file_size)
        prefix = file_io.read_range(path, 0, size)
        header = read_header(prefix)
    if header is None:
        return _Head({}, 0, None), prefix
    metadata, end = header
    ranges = BlockRanges.from_text(PurePosixPath(path).name, metadata)
    if ranges is not None:
        blocks, records = int(ranges.column("bytes").sum()), int(ranges.column("records").sum())
        # Ranges are advice: if they do not fit the file, it is read as a whole.
        if (end + blocks, records) != (meta.file_size, meta.num_added_files):
            ranges = None
    return _Head(metadata, end, ranges), prefix


def _blocks(
    read: Callable[[int, int], bytes], run_parallel: Callable[..., list[bytes]], path: str, head: _Head, matching_blocks: Mask
) -> Iterator[bytes]:
    """Yield the bytes of each chosen block without its marker.

    Adjacent blocks are read together. Raises ``CorruptFile`` if a checksum is wrong.
    """
    if head.ranges is None:
        return
    sizes, sums = head.ranges.column("bytes"), head.ranges.column("crc32")
    starts = head.end + np.cumsum(sizes) - sizes
    rows = np.flatnonzero(matching_blocks)
    if not rows.size:
        return
    gaps = starts[rows[1:]] - (starts + sizes)[rows[:-1]]
    runs = np.split(rows, np.flatnonzero(gaps > thresholds.manifest_gap_bytes) + 1)
    spans = [(int(starts[run[0]]), int(starts[run[-1]] + sizes[run[-1]])) for run in runs]
    contents = run_parallel(*(partial(read, first, last - first) for first, last in spans))
    for run, (first, _), content in zip(runs, spans, contents, strict=True):
        for row in run.tolist():
            offset = int(starts[row]) - first
            block = content[offset : offset + int(sizes[row]) - SYNC_BYTES]
            if zlib.crc32(block) != int(sums[row]):
                raise CorruptFile(path, f"block {row} is corrupt: its checksum is wrong")
            yield block
