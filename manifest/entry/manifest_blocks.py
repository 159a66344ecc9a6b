"""Partial reads of manifests by their block ranges."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

import numpy as np

from fileindex.base.arrays import Mask
from fileindex.base.errors import CorruptFile
from fileindex.base.thresholds import thresholds
from manifest.avro.container import read_blocks, read_header
from manifest.avro.wire import SYNC_BYTES
from manifest.entry.block_ranges import BlockFilter, BlockRanges
from manifest.entry.cache import entries_weight
from manifest.entry.columns import EntryColumns
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO


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
    kept: Callable[[EntryColumns], EntryColumns]


def some_entries(
    file_io: FileIO, path: str, meta: ManifestFileMeta, files: FileCache, wanted: BlockFilter, *, narrowing: EntryNarrowing | None = None
) -> EntryColumns | None:
    """Return entries of ``wanted`` blocks, or None.

    None means: read the whole manifest. It is small, has no ranges, most blocks are wanted, or a block is corrupt, which a whole read
    reports. ``narrowing`` applies to large results only.
    """
    if meta.file_size < thresholds().narrowed_manifest_bytes or meta.num_deleted_files:
        return None
    identity, head = files.recall(file_io, path, ("manifest head", meta.file_size))
    prefix = b""
    if head is None:
        head, prefix = _head(file_io, path, meta)
        files.keep(path, ("manifest head", meta.file_size), identity, head, head.weight)
    if head.ranges is None:
        return None
    chosen = wanted(head.ranges)
    sizes = head.ranges.column("bytes")
    if int(sizes[chosen].sum()) * 2 > int(sizes.sum()):
        return None
    if int(head.ranges.column("records")[chosen].sum()) <= thresholds().shared_entries:
        narrowing = None
    kind = ("manifest blocks", meta.file_size, np.packbits(chosen).tobytes(), None if narrowing is None else narrowing.key)
    _, held = files.recall(file_io, path, kind, identity)
    if held is not None:
        found: EntryColumns = held
        return found
    try:
        blocks = list(_blocks(partial(_read, file_io, path, prefix), file_io.together, path, head, chosen))
        entries = EntryColumns.from_container(read_blocks(path, head.metadata, blocks))
        if narrowing is not None:
            entries = EntryColumns.of_records(list(narrowing.kept(entries).records()), path)
    except CorruptFile:
        return None
    files.keep(path, kind, identity, entries, entries_weight(entries))
    return entries


def _read(file_io: FileIO, path: str, prefix: bytes, offset: int, length: int) -> bytes:
    """Return bytes of the file that begins with ``prefix``."""
    return prefix[offset : offset + length] if offset + length <= len(prefix) else file_io.read_range(path, offset, length)


def _head(file_io: FileIO, path: str, meta: ManifestFileMeta) -> tuple[_Head, bytes]:
    """Return the head and the bytes read for it."""
    size = min(thresholds().manifest_head_bytes, meta.file_size)
    prefix = file_io.read_range(path, 0, size)
    found = read_header(prefix)
    while found is None and size < meta.file_size:
        size = min(size * 4, meta.file_size)
        prefix = file_io.read_range(path, 0, size)
        found = read_header(prefix)
    if found is None:
        return _Head({}, 0, None), prefix
    metadata, end = found
    ranges = BlockRanges.from_text(PurePosixPath(path).name, metadata)
    if ranges is not None:
        blocks, records = int(ranges.column("bytes").sum()), int(ranges.column("records").sum())
        if (end + blocks, records) != (meta.file_size, meta.num_added_files):
            ranges = None
    return _Head(metadata, end, ranges), prefix


def _blocks(
    read: Callable[[int, int], bytes], together: Callable[..., list[bytes]], path: str, head: _Head, chosen: Mask
) -> Iterator[bytes]:
    """Yield the bytes of each chosen block without its marker.

    Adjacent blocks are read together. Raises ``CorruptFile`` if a checksum is wrong.
    """
    if head.ranges is None:
        return
    sizes, sums = head.ranges.column("bytes"), head.ranges.column("crc32")
    starts = head.end + np.cumsum(sizes) - sizes
    rows = np.flatnonzero(chosen)
    if not rows.size:
        return
    gaps = starts[rows[1:]] - (starts + sizes)[rows[:-1]]
    runs = np.split(rows, np.flatnonzero(gaps > thresholds().manifest_gap_bytes) + 1)
    spans = [(int(starts[run[0]]), int(starts[run[-1]] + sizes[run[-1]])) for run in runs]
    contents = together(*(partial(read, first, last - first) for first, last in spans))
    for run, (first, _), content in zip(runs, spans, contents, strict=True):
        for row in run.tolist():
            at = int(starts[row]) - first
            block = content[at : at + int(sizes[row]) - SYNC_BYTES]
            if zlib.crc32(block) != int(sums[row]):
                raise CorruptFile(path, f"block {row} is corrupt: its checksum is wrong")
            yield block


__all__ = ["EntryNarrowing", "some_entries"]
