"""Damage to files by seed: bits flipped, ranges cut out, doubled or zeroed, ends cut off; in the whole file, or only in a Parquet footer."""

from __future__ import annotations

import random

KINDS = ("flip", "cut", "double", "zero", "end")
_TAIL = 8


def footer_span(data: bytes) -> tuple[int, int]:
    """Where the footer of a Parquet file starts and ends, with its length and the magic bytes."""
    return len(data) - _TAIL - int.from_bytes(data[-_TAIL:-4], "little"), len(data)


def damaged(data: bytes, seed: int, *, kinds: tuple[str, ...] = KINDS, span: tuple[int, int] | None = None) -> bytes:
    """``data`` with one damage inside ``span``, always another.

    >>> [damaged(b"abcd", seed, kinds=("flip",)) for seed in (1, 2)]
    [b'cbcd', b'absd']
    """
    rng = random.Random(seed)
    first, last = (0, len(data)) if span is None else span
    while True:
        at = rng.randrange(first, last)
        width = min(rng.choice([1, 2, 4, 8, 64, 512]), last - at)
        match rng.choice(kinds):
            case "flip":
                found = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
            case "cut":
                found = data[:at] + data[at + width :]
            case "double":
                found = data[: at + width] + data[at : at + width] + data[at + width :]
            case "zero":
                found = data[:at] + bytes(width) + data[at + width :]
            case _:
                found = data[:at]
        if found != data:
            return found
