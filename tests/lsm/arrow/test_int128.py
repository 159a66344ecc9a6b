"""Integers of 128 bits in two words are what Python's are."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from lsm.merge.agg_sum_product import Int128

WIDE = pa.decimal128(38, 0)
MOST = 10**38 - 1
NUMBERS = st.lists(st.integers(-MOST, MOST) | st.integers(-5, 5) | st.integers(2**63 - 3, 2**64 + 3), min_size=1, max_size=5)


def of(values: list[int]) -> Int128:
    return Int128.of(pa.array(map(Decimal, values), WIDE))


def numbers(words: Int128) -> list[int]:
    return [(int(high) << 64) + int(low) for high, low in zip(words.high, words.low, strict=True)]


@given(NUMBERS, st.data())
def test_sums_and_signs_are_pythons(values: list[int], data: st.DataObject) -> None:
    others = data.draw(st.lists(st.integers(-MOST, MOST), min_size=len(values), max_size=len(values)))
    sums = [(one + other + 2**127) % 2**128 - 2**127 for one, other in zip(values, others, strict=True)]
    assert numbers(of(values).plus(of(others))) == sums
    assert numbers(of(values).negate()) == [-value for value in values]
    mask = np.array([value % 3 == 0 for value in values])
    assert numbers(of(values).negate_where(mask)) == [-value if value % 3 == 0 else value for value in values]
    assert of(values).to_arrow(WIDE).to_pylist() == [Decimal(value) for value in values]


@given(NUMBERS, st.integers(0, 38))
@example([10**20, 10**20 - 1, -(10**20), 1 - 10**20, 2**64], 20)
@example([MOST, -MOST], 38)
def test_a_value_of_more_digits_is_noticed(values: list[int], precision: int) -> None:
    assert of(values).beyond(precision).tolist() == [abs(value) >= 10**precision for value in values]


def test_a_slice_has_its_own_values() -> None:
    array = pa.array([Decimal(number) for number in (-1, 2, 3)], WIDE)
    assert numbers(Int128.of(array[1:])) == [2, 3]
    words = Int128.zeros(3)
    words[np.array([0, 2])] = of([7, -9])
    assert numbers(words[1:]) == [0, -9]
