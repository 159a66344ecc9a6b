"""Sets made from a flag for every row have the bytes of sets made from the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.rowset.flags import serialize_flags, serialize_slices
from fileindex.rowset.roaring import rows_to_bitmap, serialize


def of_rows(flags):
    return serialize(rows_to_bitmap(np.flatnonzero(flags).astype(np.uint32)))


CONTAINER = 65536
PATTERNS = {
    "none": lambda at: at < 0,
    "all": lambda at: at >= 0,
    "every other": lambda at: at % 2 == 0,
    "few": lambda at: at % 5000 == 17,
    "just an array": lambda at: at % 16 == 0,
    "just a bitset": lambda at: (at % 16 == 0) | (at % CONTAINER == 1),
    "a run": lambda at: (at > 100) & (at < 60_000),
    "runs": lambda at: at % 64 < 40,
    "ends": lambda at: (at % CONTAINER == 0) | (at % CONTAINER == CONTAINER - 1),
    "last words": lambda at: at % CONTAINER >= CONTAINER - 70,
    "random": lambda at: np.random.default_rng(1).random(len(at)) < 0.5,
    "sparse": lambda at: np.random.default_rng(2).random(len(at)) < 0.03,
}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize("count", [0, 1, 8, 65, CONTAINER - 1, CONTAINER, CONTAINER + 1, 3 * CONTAINER, 4 * CONTAINER + 5])
def test_patterns_over_containers(pattern, count):
    flags = pattern(np.arange(count))
    assert serialize_flags(flags) == of_rows(flags)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(PATTERNS)), st.integers(1, 70_000)), max_size=5))
def test_containers_of_every_kind_side_by_side(pieces):
    flags = np.concatenate([PATTERNS[name](np.arange(size)) for name, size in pieces] or [np.zeros(0, dtype=bool)])
    assert serialize_flags(flags) == of_rows(flags)


@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.int64])
def test_slices_are_the_rows_with_each_bit(kind):
    numbers = np.random.default_rng(3).integers(0, np.iinfo(kind).max, 70_000).astype(kind)
    bits = 8 * np.dtype(kind).itemsize - 1
    assert serialize_slices(numbers, bits) == [of_rows(numbers >> bit & 1) for bit in range(bits)]


def test_no_slices_of_no_bits():
    assert serialize_slices(np.zeros(3, dtype=np.uint32), 0) == []
