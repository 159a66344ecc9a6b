"""The ``bloom-filter`` index: is a value surely not in the file? Four bytes with the number of hash functions, then the bits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from fileindex.base.column_type import ColumnType, Plain
from fileindex.base.corrupt import CorruptIndex
from fileindex.base.plain_value import literal_array, plain_array
from fileindex.base.thresholds import thresholds
from fileindex.format.container import Payload
from fileindex.keys.fixed import float_bits
from fileindex.keys.hashing import hash_array, hash_keys
from fileindex.predicate.tree import Compare, In, Leaf, Op
from fileindex.rowset.result import REMAIN, SKIP, FileIndexResult

DEFAULT_ITEMS = 1_000_000
DEFAULT_FPP = 0.1
MAX_HASHES = 127
"""Paimon's reader takes the count from signed bytes and misreads more."""

_MAX_BITS = 2**31 - 1 - 8
_SANE_HASHES = 2048
_SHARE = 64
_Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class BloomSize:
    """Bits and hash functions of a filter for ``items`` values with the false positive rate ``fpp``, as Paimon's ``BloomFilter64`` sizes it.

    >>> BloomSize.of(1_000_000, 0.1)
    BloomSize(bits=4792536, hashes=3)
    """

    bits: int
    hashes: int

    def is_of_some(self, most: int, fpp: float) -> bool:
        """Whether it is the size for some number of items up to ``most``.

        >>> size = BloomSize.of(700, 0.1)
        >>> size.is_of_some(1000, 0.1), size.is_of_some(699, 0.1), size.is_of_some(1000, 0.01)
        (True, False, False)
        """
        per_item = -math.log(fpp) / (math.log(2) * math.log(2))
        if not per_item:
            return BloomSize.of(most, fpp) == self
        around = range(max(1, int((self.bits - 8) / per_item) - 1), min(most, int(self.bits / per_item) + 1) + 1)
        return any(BloomSize.of(items, fpp) == self for items in around)

    @classmethod
    def of(cls, items: int, fpp: float) -> BloomSize:
        """The size; raises ValueError for parameters that give none."""
        if items < 0 or not 0 < fpp <= 1:
            raise ValueError(f"no bloom filter has {items} items and a false positive rate of {fpp}")
        wanted = -items * math.log(fpp) / (math.log(2) * math.log(2))
        if wanted > _MAX_BITS:
            raise ValueError(f"a bloom filter for {items} items with a false positive rate of {fpp} exceeds 2^31 bits")
        bits = int(wanted) + 8 - int(wanted) % 8
        hashes = math.floor(bits / items * math.log(2) + 0.5) if items else 1
        return cls(bits, min(max(1, hashes), MAX_HASHES))


class BloomFilterBuilder:
    """Sets the bits of all values it is given; nulls and repetitions change nothing."""

    def __init__(self, column_type: ColumnType, size: BloomSize) -> None:
        self._type = column_type
        self._size = size
        self._bits = np.zeros(size.bits // 8, dtype=np.uint8)
        self._pending: list[_Words] = []
        self._pending_count = 0
        self._flush_at = max(65536, size.bits // 32)

    def add(self, values: Any) -> None:
        """Take an array in physical form."""
        self.add_hashes(hash_array(values, self._type))

    def add_keys(self, keys: Any) -> None:
        """Take index keys of the column (``keys.to_keys``, or texts), each once or more often."""
        self.add_hashes(hash_keys(keys, self._type))

    def add_hashes(self, hashes: _Words) -> None:
        """Take hashes of values."""
        self._pending.append(hashes)
        self._pending_count += len(hashes)
        if self._pending_count >= self._flush_at:
            self._flush()

    def finish(self) -> bytes:
        """The payload."""
        self._flush()
        return self._size.hashes.to_bytes(4, "big") + self._bits.tobytes()

    def _flush(self) -> None:
        """Set the bits of the pending hashes through one byte per bit, which costs a pass over the filter: hence rarely."""
        if not self._pending_count:
            return
        hashes = np.concatenate(self._pending)
        self._pending, self._pending_count = [], 0
        if self._size.bits > thresholds().bloom_spread_bits:
            for positions in bit_positions(hashes, self._size):
                np.bitwise_or.at(self._bits, positions >> 3, (1 << (positions & 7)).astype(np.uint8))
            return
        spread = np.zeros(self._size.bits, dtype=bool)
        for positions in bit_positions(hashes, self._size):
            spread[positions] = True
        self._bits |= np.packbits(spread, bitorder="little")


class FittedBloomFilterBuilder:
    """As ``BloomFilterBuilder``, but sized for as many values as there turn out to be; it holds eight bytes for each until then.

    >>> import pyarrow as pa
    >>> builder = FittedBloomFilterBuilder(ColumnType("INT"), 0.1)
    >>> builder.add(pa.array([1, 2, None, 1], pa.int32()))
    >>> len(builder.finish())
    6
    """

    def __init__(self, column_type: ColumnType, fpp: float) -> None:
        self._type = column_type
        self._fpp = fpp
        self._hashes: list[_Words] = []
        self._count = 0
        self._unite_at = thresholds().bloom_few_hashes

    def add(self, values: Any) -> None:
        """Take an array in physical form."""
        self.add_hashes(hash_array(values, self._type))

    def add_keys(self, keys: Any) -> None:
        """Take index keys of the column, each once or more often."""
        self.add_hashes(hash_keys(keys, self._type))

    def finish(self) -> bytes:
        """The payload."""
        builder = BloomFilterBuilder(self._type, BloomSize.of(max(1, self._distinct()), self._fpp))
        for hashes in self._hashes:
            builder.add_hashes(hashes)
        return builder.finish()

    def add_hashes(self, hashes: _Words) -> None:
        """Take hashes of values."""
        self._hashes.append(hashes)
        self._count += len(hashes)
        if self._count >= self._unite_at:
            if 2 * self._distinct() <= self._count:
                self._hashes = [np.unique(np.concatenate(self._hashes))]
                self._count = len(self._hashes[0])
            self._unite_at = 2 * max(thresholds().bloom_few_hashes, self._count)

    def _distinct(self) -> int:
        """How many values there are: counted if they are few, else by those of every 64th hash, within some percent."""
        if self._count <= thresholds().bloom_few_hashes:
            return len(np.unique(np.concatenate(self._hashes))) if self._hashes else 0
        some = np.concatenate([hashes[hashes & np.uint64(_SHARE - 1) == 0] for hashes in self._hashes])
        return min(self._count, _SHARE * len(np.unique(some)))


class BloomFilterReader:
    """Answers ``=`` and ``IN`` with SKIP or REMAIN, everything else with REMAIN."""

    row_count: int | None = None
    distinct: int | None = None

    def __init__(self, payload: Payload, column_type: ColumnType) -> None:
        self._payload = payload
        self._type = column_type
        self.bits = 8 * (payload.length - 4)
        self.hashes = int.from_bytes(payload.read(0, 4), "big", signed=True)
        if not 0 < self.hashes <= _SANE_HASHES or self.bits < 8:
            raise CorruptIndex(f"a bloom filter of {payload.length} bytes has {self.hashes} hash functions")

    def share_of_set_bits(self) -> float:
        """Between 0 and 1; to the power of ``hashes`` it is the false positive rate."""
        return int(np.bitwise_count(np.frombuffer(self._payload.whole(), np.uint8, offset=4)).sum()) / self.bits

    def evaluate(self, leaf: Leaf) -> FileIndexResult:
        """SKIP if no row of the file can match; literals fit the column."""
        match leaf:
            case Compare(_, Op.EQ, value):
                values: tuple[Plain, ...] = (value,)
            case In(_, values, False):
                pass
            case _:
                return REMAIN
        hashes = literal_hashes(values, self._type)
        found = hashes is None or (
            self._has_one if len(values) * self.hashes <= thresholds().bloom_whole_probes else self._has_one_of_many
        )(hashes)
        return REMAIN if found else SKIP

    def _has_one(self, hashes: _Words) -> bool:
        """Whether all bits of one of the hashes are set; bits are read one by one."""
        probes = np.stack(list(bit_positions(hashes, BloomSize(self.bits, self.hashes))), axis=1)
        return any(all(map(self._is_set, probe)) for probe in probes.tolist())

    def _has_one_of_many(self, hashes: _Words) -> bool:
        """The same for so many that the filter is read whole; the first ones mostly have a hit."""
        bits = np.frombuffer(self._payload.whole(), np.uint8, offset=4)
        for first in range(0, len(hashes), thresholds().bloom_step):
            some = hashes[first : first + thresholds().bloom_step]
            found = np.ones(len(some), np.uint8)
            for positions in bit_positions(some, BloomSize(self.bits, self.hashes)):
                found &= bits[positions >> 3] >> (positions & 7).astype(np.uint8)
            if found.any():
                return True
        return False

    def _is_set(self, position: int) -> bool:
        return bool(self._payload.read(4 + (position >> 3), 1)[0] >> (position & 7) & 1)


@lru_cache(maxsize=64)
def literal_hashes(values: tuple[Plain, ...], column_type: ColumnType) -> _Words | None:
    """Hashes of literals, which are asked of one file after the other, a zero as both of its floats; None if one has none."""
    if any(isinstance(value, float) and float_bits(value, column_type) is None for value in values):
        return None
    both = [other for value in values for other in ((0.0, -0.0) if isinstance(value, float) and value == 0 else (value,))]
    return hash_array(plain_array(literal_array(both, column_type), column_type), column_type)


def bit_positions(hashes: _Words, size: BloomSize) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """For each hash function the bit of every hash: the 64 bits are split into a start and a stride of 32 signed bits."""
    halves = hashes.view(np.int64)
    stride = (halves >> 32).astype(np.int32)
    at = halves.astype(np.int32)
    for _ in range(size.hashes):
        at = at + stride
        yield ((at ^ (at >> 31)).view(np.uint32) % np.uint32(size.bits)).astype(np.int64)


__all__ = [
    "DEFAULT_FPP",
    "DEFAULT_ITEMS",
    "BloomFilterBuilder",
    "BloomFilterReader",
    "BloomSize",
    "FittedBloomFilterBuilder",
    "bit_positions",
    "literal_hashes",
]
