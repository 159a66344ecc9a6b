"""Ranking texts by machine words gives the order and the equality of their UTF-8 bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.keys.text_sort import rank_texts
from paimon_base.thresholds import Thresholds

CHARACTERS = st.sampled_from(["\0", "a", "b", "é", "\U0010ffff"])
ALIKE = st.builds(
    lambda prefix, tail: prefix + tail,
    st.sampled_from(["", "same-prefix-", "x" * 16, "y" * 8 * Thresholds().text_sort_words]),
    st.text(CHARACTERS, max_size=10),
)


def check(values, skipped=0):
    texts = pa.array(values, pa.large_string())[skipped:]
    distinct, ranks = rank_texts(texts)
    expected = sorted(set(values[skipped:]), key=str.encode)
    assert distinct.to_pylist() == expected
    assert [expected[rank] for rank in ranks.tolist()] == values[skipped:]


@settings(max_examples=120, deadline=None)
@given(st.lists(ALIKE, max_size=30), st.integers(0, 3))
def test_texts_are_ranked_by_their_bytes(values, skipped):
    check(values, min(skipped, len(values)))


@pytest.mark.parametrize(
    "values",
    [["a", "a\0", "a\0\0", "a"], ["", "\0", ""], ["x" * 8, "x" * 8 + "\0", "x" * 7], ["long" * 40, "long" * 40 + "a", "long" * 40]],
)
def test_zero_bytes_at_the_end_count(values):
    check(values)


def test_many_texts_of_one_long_prefix():
    check([f"{'p' * 20}{number * 7919 % 5000:06d}" for number in range(5000)])
