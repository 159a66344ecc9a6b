"""Ranges of the blocks of a large manifest, for pruning.

Has partitions, buckets, levels and keys per block. They are in the header of the Avro file, under a name that other engines ignore, as
base64 text of a compressed Arrow stream. A checksum covers the file's name, the header and the blocks' own checksums, so a reader
can trust a part of the file. Only manifests without DELETEs have ranges.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s, Mask
from fileindex.base.column_type import INTEGERS, STRINGS, Kind
from fileindex.base.lazy import cached_property
from fileindex.base.thresholds import thresholds
from manifest.avro.wire import SYNC_BYTES
from manifest.entry.bounds import BoundsColumn, key_bounds
from manifest.entry.columns import EntryColumns
from manifest.entry.manifest_entry import FileKind
from manifest.types.data_type import DataType

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
        if len(blocks) < thresholds().fewest_blocks or (entries.kind != FileKind.ADD).any():
            return None
        records = np.array([count for count, _ in blocks])
        starts = np.cumsum(records) - records
        codes, known = entries.partition_codes
        _, seen, renumbered = np.unique(codes, return_index=True, return_inverse=True)
        ranks = np.argsort(np.argsort(seen))[renumbered]  # by first appearance
        new = np.searchsorted(starts, np.sort(seen), side="right") - 1
        names = [known[codes[at]] for at in np.sort(seen).tolist()]
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
        found: Int64s = self.lines.column(name).to_numpy(zero_copy_only=False)
        return found

    @cached_property
    def partitions(self) -> list[bytes]:
        """Serialised partitions of the manifest."""
        found: list[bytes] = self.lines.column("new_partitions").flatten().to_pylist()
        return found

    def in_partitions(self, wanted: Sequence[bool]) -> Mask:
        """Return blocks that may have one of the wanted ``partitions``.

        ``wanted`` has a flag for each of ``partitions``.
        """
        before = np.cumsum([0, *wanted])
        found: Mask = before[self.column("min_partition")] < before[self.column("max_partition") + 1]
        return found

    def in_buckets(self, wanted: Sequence[int]) -> Mask:
        """Return blocks that may have one of the wanted buckets."""
        ordered = np.sort(np.array([*wanted, np.iinfo(np.int64).max], np.int64))
        found: Mask = ordered[np.searchsorted(ordered, self.column("min_bucket"))] <= self.column("max_bucket")
        return found

    def key_bounds(self, field_id: int) -> BoundsColumn | None:
        """Return bounds of the first key column, None if unknown.

        None also if ``field_id`` is not the first key column.
        """
        if (self.lines.schema.metadata or {}).get(b"key") != str(field_id).encode():
            return None
        low, high = self.lines.column("min_key"), self.lines.column("max_key")
        known = low.is_valid().to_numpy(zero_copy_only=False)
        nothing = b"" if pa.types.is_binary(low.type) else 0
        least, most = (side.fill_null(nothing).to_numpy(zero_copy_only=False) for side in (low, high))
        return BoundsColumn(least, most, known, np.where(known, 0, -1), self.column("records"))

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
        found = key_bounds(entries, [str(at) for at, _ in keys], [kind for _, kind in keys], {str(keys[0][0])})[str(keys[0][0])]
    except ValueError:  # reading the entries reports the error
        nothing = pa.nulls(len(starts), pa.int64())
        return {"min_key": nothing, "max_key": nothing}
    unknown = ~np.logical_and.reduceat(found.known, starts)
    low, high = np.minimum.reduceat(found.low, starts), np.maximum.reduceat(found.high, starts)
    if data_type.kind not in STRINGS:
        return {"min_key": pa.array(low, pa.int64(), mask=unknown), "max_key": pa.array(high, pa.int64(), mask=unknown)}
    shortest = [value[:_TEXT_BYTES] for value in low.tolist()]
    longest = [value if len(value) <= _TEXT_BYTES else value[:_TEXT_BYTES] + _AFTER_ANY_TEXT for value in high.tolist()]
    return {"min_key": pa.array(shortest, pa.binary(), mask=unknown), "max_key": pa.array(longest, pa.binary(), mask=unknown)}


def _sum(name: str, header: Mapping[bytes, bytes], content: bytes) -> bytes:
    found = zlib.crc32(name.encode())
    for part in (*(piece for item in sorted(header.items()) for piece in item), content):
        found = zlib.crc32(part, found)
    return found.to_bytes(_CHECKSUM, "big")


__all__ = ["BLOCK_RANGES", "BlockFilter", "BlockRanges", "KeyColumn"]
