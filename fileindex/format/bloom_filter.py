"""The ``bloom-filter`` index.

It shows which values are certainly absent. Layout: four bytes with the number of hash functions, then the bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from fileindex.format.container import Payload
from fileindex.keys.fixed import float_bits
from fileindex.keys.hashing import hash_array, hash_keys
from fileindex.predicate.tree import Leaf, values_of
from fileindex.rowset.result import REMAIN, SKIP, FileIndexResult
from paimon_base.errors import CorruptIndex
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import ColumnType, Plain
from sparkexpr.values.plain_value import literal_array, plain_array

DEFAULT_ITEMS = 1_000_000
DEFAULT_FPP = 0.1
MAX_HASHES = 127
"""Paimon's reader reads the count from a signed byte, so more would be misread."""

_MAX_BITS = 2**31 - 1 - 8
_SANE_HASHES = 2048
_SHARE = 64
_LEAST_SAMPLE = 256
"""Sampled values from which the sample gives the number of values within a few percent."""
_Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class BloomSize:
    """Number of bits and hash functions of a filter.

    >>> BloomSize.of(1_000_000, 0.1)
    BloomSize(bits=4792536, hashes=3)
    """

    bits: int
    hashes: int

    def items(self, limit: int, fpp: float) -> int | None:
        """Return the largest number of items, up to ``limit``, that has this size.

        >>> size = BloomSize.of(700, 0.1)
        >>> size.items(1000, 0.1), size.items(700, 0.1), size.items(699, 0.1), size.items(1000, 0.01)
        (701, 700, None, None)
        """
        per_item = -math.log(fpp) / (math.log(2) * math.log(2))
        if not per_item:
            return limit if BloomSize.of(limit, fpp) == self else None
        candidates = range(max(1, int((self.bits - 8) / per_item) - 1), min(limit, int(self.bits / per_item) + 1) + 1)
        return next((items for items in reversed(candidates) if BloomSize.of(items, fpp) == self), None)

    @classmethod
    def of(cls, items: int, fpp: float) -> BloomSize:
        """Return the size for ``items`` values.

        ``fpp`` is the false positive rate. The size is that of Paimon's ``BloomFilter64``. Raises ValueError for invalid or too large parameters.
        """
        if items < 0 or not 0 < fpp <= 1:
            raise ValueError(f"a bloom filter cannot have {items} items and a false positive rate of {fpp}")
        exact_bits = -items * math.log(fpp) / (math.log(2) * math.log(2))
        if exact_bits > _MAX_BITS:
            raise ValueError(f"a bloom filter for {items} items with a false positive rate of {fpp} exceeds 2^31 bits")
        # Paimon adds a whole byte where the bits fill their bytes exactly.
        bits = int(exact_bits) + 8 - int(exact_bits) % 8
        hashes = math.floor(bits / items * math.log(2) + 0.5) if items else 1
        return cls(bits, min(max(1, hashes), MAX_HASHES))


class BloomFilterBuilder:
    """Builder of a filter of fixed size.

    Nulls and repeated values change nothing.
    """

    def __init__(self, column_type: ColumnType, size: BloomSize) -> None:
        self._type = column_type
        self._size = size
        self._bits = np.zeros(size.bits // 8, dtype=np.uint8)
        self._pending: list[_Words] = []
        self._pending_count = 0
        self._flush_at = max(65536, size.bits // 32)

    def add(self, values: Any) -> None:
        """Add an array in physical form."""
        self.add_hashes(hash_array(values, self._type))

    def add_keys(self, keys: Any) -> None:
        """Add index keys of the column (``keys.to_keys``, or texts).

        A key may be repeated.
        """
        self.add_hashes(hash_keys(keys, self._type))

    def add_hashes(self, hashes: _Words) -> None:
        """Add hashes of values."""
        self._pending.append(hashes)
        self._pending_count += len(hashes)
        if self._pending_count >= self._flush_at:
            self._flush()

    def finish(self) -> bytes:
        """Return the payload."""
        self._flush()
        return self._size.hashes.to_bytes(4, "big") + self._bits.tobytes()

    def _flush(self) -> None:
        """Set the bits of the pending hashes."""
        if not self._pending_count:
            return
        hashes = np.concatenate(self._pending)
        self._pending, self._pending_count = [], 0
        if self._size.bits > thresholds.bloom_spread_bits:
            for positions in bit_positions(hashes, self._size):
                np.bitwise_or.at(self._bits, positions >> 3, (1 << (positions & 7)).astype(np.uint8))
            return
        # One byte per bit is fast to set, but costs a pass over the filter: flush rarely.
        spread = np.zeros(self._size.bits, dtype=bool)
        for positions in bit_positions(hashes, self._size):
            spread[positions] = True
        self._bits |= np.packbits(spread, bitorder="little")


class FittedBloomFilterBuilder:
    """Builder of a filter sized for its distinct values.

    It holds eight bytes per value until the values exceed ``max_items``, or until ``finish``.

    Args:
        column_type: Type of the column.
        fpp: False positive rate.
        max_items: Number of values of the largest filter. None: no limit. More values raise the false positive rate.

    >>> import pyarrow as pa
    >>> builder = FittedBloomFilterBuilder(ColumnType("INT"), 0.1)
    >>> builder.add(pa.array([1, 2, None, 1], pa.int32()))
    >>> len(builder.finish())
    6
    """

    def __init__(self, column_type: ColumnType, fpp: float, max_items: int | None = None) -> None:
        self._type = column_type
        self._fpp = fpp
        self._max_items = max_items
        self._largest: BloomFilterBuilder | None = None
        self._hashes: list[_Words] = []
        self._count = 0
        self._unite_at = thresholds.bloom_few_hashes

    def add(self, values: Any) -> None:
        """Add an array in physical form."""
        self.add_hashes(hash_array(values, self._type))

    def add_keys(self, keys: Any) -> None:
        """Add index keys of the column.

        A key may be repeated.
        """
        self.add_hashes(hash_keys(keys, self._type))

    def finish(self) -> bytes:
        """Return the payload."""
        if self._largest is None:
            self._largest = self._sized_for(max(1, self._distinct()))
        return self._largest.finish()

    def add_hashes(self, hashes: _Words) -> None:
        """Add hashes of values."""
        if self._largest is not None:
            self._largest.add_hashes(hashes)
            return
        self._hashes.append(hashes)
        self._count += len(hashes)
        if self._count >= self._unite_at:
            distinct = self._distinct()
            if self._max_items is not None and distinct >= self._max_items:
                self._largest = self._sized_for(distinct)
                return
            if 2 * distinct <= self._count:
                self._hashes = [np.unique(np.concatenate(self._hashes))]
                self._count = len(self._hashes[0])
            self._unite_at = 2 * max(thresholds.bloom_few_hashes, self._count)

    def _sized_for(self, distinct: int) -> BloomFilterBuilder:
        """Return a builder of that size with the values so far."""
        builder = BloomFilterBuilder(
            self._type, BloomSize.of(distinct if self._max_items is None else min(distinct, self._max_items), self._fpp)
        )
        for hashes in self._hashes:
            builder.add_hashes(hashes)
        self._hashes = []
        return builder

    def _distinct(self) -> int:
        """Return the number of distinct values.

        Few values are counted exactly. Otherwise it is estimated from every 64th hash, within a few percent.
        """
        if self._count <= thresholds.bloom_few_hashes:
            return len(np.unique(np.concatenate(self._hashes))) if self._hashes else 0
        sampled = len(np.unique(np.concatenate([hashes[hashes & np.uint64(_SHARE - 1) == 0] for hashes in self._hashes])))
        if sampled < _LEAST_SAMPLE:  # few values, often repeated: the sample may have none of them
            return len(np.unique(np.concatenate(self._hashes)))
        return min(self._count, _SHARE * sampled)


_LOW_HALF, _MOST_INT = 0xFFFFFFFF, 0x7FFFFFFF


class BloomFilterReader:
    """Reader of one bloom filter.

    Answers ``=`` and ``IN`` with SKIP or REMAIN, everything else with REMAIN.
    """

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
        """Return the fraction of set bits.

        To the power of ``hashes`` it is the false positive rate.
        """
        return int(np.bitwise_count(np.frombuffer(self._payload.whole(), np.uint8, offset=4)).sum()) / self.bits

    def evaluate(self, leaf: Leaf) -> FileIndexResult:
        """Return SKIP if none of the values is present.

        The literals must fit the column.
        """
        values = values_of(leaf)
        if values is None:
            return REMAIN
        hashes = literal_hashes(values, self._type)
        # Few probes read single bytes; for many, one read of the whole filter is cheaper.
        may_contain = self._has_one if len(values) * self.hashes <= thresholds.bloom_whole_probes else self._has_one_of_many
        return REMAIN if hashes is None or may_contain(hashes) else SKIP

    def _has_one(self, hashes: _Words) -> bool:
        """Return whether all bits of a hash are set.

        Bits are computed and read one by one.
        """
        return any(all(map(self._is_set, self._positions(value_hash))) for value_hash in hashes.view(np.int64).tolist())

    def _positions(self, hashed: int) -> Iterator[int]:
        """Yield the bit positions of one hash, as ``bit_positions``."""
        stride, probe, bits = hashed >> 32, hashed, self.bits
        for _ in range(self.hashes):
            probe += stride
            low = probe & _LOW_HALF
            yield (low if low <= _MOST_INT else low ^ _LOW_HALF) % bits

    def _has_one_of_many(self, hashes: _Words) -> bool:
        """Return the same, after reading the whole filter.

        Stops at the first hit: a long list mostly has an early one.
        """
        bits = np.frombuffer(self._payload.whole(), np.uint8, offset=4)
        for first in range(0, len(hashes), thresholds.bloom_step):
            step_hashes = hashes[first : first + thresholds.bloom_step]
            is_present = np.ones(len(step_hashes), np.uint8)
            for positions in bit_positions(step_hashes, BloomSize(self.bits, self.hashes)):
                is_present &= bits[positions >> 3] >> (positions & 7).astype(np.uint8)
            if is_present.any():
                return True
        return False

    def _is_set(self, position: int) -> bool:
        return bool(self._payload.read(4 + (position >> 3), 1)[0] >> (position & 7) & 1)


@lru_cache(maxsize=64)
def literal_hashes(values: tuple[Plain, ...], column_type: ColumnType) -> _Words | None:
    """Return hashes of literals.

    None if a literal has no hash. A zero is hashed as both of its floats.
    """
    # Cached: the same literals are looked up in many files, one after the other.
    if any(isinstance(value, float) and float_bits(value, column_type) is None for value in values):
        return None
    literals = [other for value in values for other in ((0.0, -0.0) if isinstance(value, float) and value == 0 else (value,))]
    return hash_array(plain_array(literal_array(literals, column_type), column_type), column_type)


def bit_positions(hashes: _Words, size: BloomSize) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """Yield the bit positions of all hashes by hash function.

    The 64 bits of a hash are a start and a stride, both signed 32-bit numbers.
    """
    halves = hashes.view(np.int64)
    stride = (halves >> 32).astype(np.int32)
    probes = halves.astype(np.int32)
    for _ in range(size.hashes):
        # Sums wrap as Java's int does. A negative one is inverted, not negated: the smallest int has no negative.
        probes = probes + stride
        yield ((probes ^ (probes >> 31)).view(np.uint32) % np.uint32(size.bits)).astype(np.int64)
