"""Damage to files by seed: bits flipped, ranges cut out, doubled, zeroed or swapped, ends cut off, other bytes in place of the file."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

KINDS = ("flip", "cut", "double", "zero", "end")
ALL_KINDS = ("flip", "flip", "flip", "flips", "flips", "cut", "double", "zero", "swap", "end", "empty", "other")
"""Of a whole file; a single bit is what goes unseen most easily."""
_TAIL = 8


def footer_span(data: bytes) -> tuple[int, int]:
    """Where the footer of a Parquet file starts and ends, with its length and the magic bytes."""
    return len(data) - _TAIL - int.from_bytes(data[-_TAIL:-4], "little"), len(data)


def page_index_span(data: bytes) -> tuple[int, int]:
    """Where the page indexes (and Bloom filters) of a Parquet file start and end; empty if it has none."""
    metadata = pq.read_metadata(pa.BufferReader(data))
    chunks = [metadata.row_group(group).column(leaf) for group in range(metadata.num_row_groups) for leaf in range(metadata.num_columns)]
    starts = [min(place for place in (chunk.dictionary_page_offset, chunk.data_page_offset) if place) for chunk in chunks]
    ends = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
    first = footer_span(data)[0]
    return max(ends, default=first), first


def damaged(
    data: bytes, seed: int, *, kinds: Sequence[str] = KINDS, span: tuple[int, int] | None = None, others: Sequence[bytes] = ()
) -> bytes:
    """``data`` with one damage inside ``span``, always another; ``others`` are files that may come in its place.

    >>> [damaged(b"abcd", seed, kinds=("flip",)) for seed in (1, 2)]
    [b'arcd', b'Abcd']
    """
    rng = random.Random(seed)
    first, last = (0, len(data)) if span is None else span
    while True:
        at = rng.randrange(first, last)
        width = min(rng.choice([1, 2, 4, 8, 64, 512]), last - at)
        match rng.choice(kinds):
            case "flip":
                found = _flipped(data, [at], rng)
            case "flips":
                found = _flipped(data, [rng.randrange(at, min(at + 64, last)) for _ in range(rng.randint(2, 8))], rng)
            case "cut":
                found = data[:at] + data[at + width :]
            case "double":
                found = data[: at + width] + data[at : at + width] + data[at + width :]
            case "zero":
                found = data[:at] + bytes(width) + data[at + width :]
            case "swap":
                width = min(width, (last - at) // 2)
                found = data[:at] + data[at + width : at + 2 * width] + data[at : at + width] + data[at + 2 * width :]
            case "empty":
                found = b""
            case "other":
                found = rng.choice(others) if others else data
            case _:
                found = data[:at]
        if found != data:
            return found


def _flipped(data: bytes, places: Sequence[int], rng: random.Random) -> bytes:
    found = bytearray(data)
    for place in places:
        found[place] ^= 1 << rng.randrange(8)
    return bytes(found)
