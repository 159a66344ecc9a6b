"""Serialised Roaring sets: fixed bytes, the vectorised layout against the library, and refusal of broken bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from fileindex.rowset.result import REMAIN, SKIP, RowSet
from fileindex.rowset.roaring import all_rows, bitmap_to_rows, deserialize, rows_to_bitmap, serialize, serialize_groups
from paimon_base.errors import CorruptIndex

GOLDEN = [
    ([], "3a30000000000000"),
    ([5], "3a3000000100000000000000100000000500"),
    ([0, 1], "3a30000001000000000001001000000000000100"),
    ([0, 1, 2], "3a300000010000000000020010000000000001000200"),
    ([0, 1, 2, 3], "3b3000000100000300010000000300"),
    ([0, 1, 2, 3, 5], "3a30000001000000000004001000000000000100020003000500"),
]


@pytest.mark.parametrize(("rows", "expected"), GOLDEN)
def test_sets_have_the_bytes_of_the_java_writer(rows, expected):
    assert serialize(BitMap(rows)).hex() == expected
    assert deserialize(bytes.fromhex(expected) + b"more") == (BitMap(rows), len(expected) // 2)


@st.composite
def row_groups(draw):
    """Sets of two rows or more of every shape: sparse, consecutive, across containers, full of runs, large."""
    base = draw(st.sampled_from([0, 3, 65530, 2**20, 2**31 - 70000]))
    match draw(st.sampled_from(["sparse", "run", "runs", "wide", "large"])):
        case "sparse":
            rows = draw(st.lists(st.integers(0, 300), min_size=2, max_size=60))
        case "run":
            rows = range(draw(st.integers(2, 300)))
        case "runs":
            starts = draw(st.lists(st.integers(0, 2000), min_size=1, max_size=20))
            rows = [start + step for start in starts for step in range(5)]
        case "wide":
            rows = [65536 * draw(st.integers(0, 300)) + draw(st.integers(0, 10)) for _ in range(draw(st.integers(2, 30)))]
        case _:
            rows = range(0, draw(st.integers(600, 20000)), draw(st.integers(1, 2)))
    unique = sorted({base % 2**31 + row for row in rows})
    return unique if len(unique) > 1 else [unique[0], unique[0] + 1]


@settings(max_examples=80, deadline=None)
@given(st.lists(row_groups(), max_size=12))
def test_many_sets_laid_out_together_have_the_bytes_of_each_alone(groups):
    rows = np.array([row for group in groups for row in group], dtype=np.uint32)
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups], dtype=np.int64)]).astype(np.int64)
    data, offsets = serialize_groups(rows, starts)
    found = [data[offsets[at] : offsets[at + 1]].tobytes() for at in range(len(groups))]
    assert found == [serialize(BitMap(group)) for group in groups]


@settings(max_examples=60, deadline=None)
@given(row_groups(), st.booleans())
def test_sets_are_read_back_whether_run_optimised_or_not(rows, optimise):
    bitmap = BitMap(rows)
    if optimise:
        bitmap.run_optimize()
    data = bitmap.serialize()
    assert deserialize(data) == (BitMap(rows), len(data))


@settings(max_examples=120, deadline=None)
@given(row_groups(), st.data())
def test_broken_bytes_are_refused_or_are_a_sound_set(rows, data):
    raw = bytearray(serialize(BitMap(rows)))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, min(len(raw) - 1, 60)))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for broken in (bytes(raw), bytes(raw[:cut])):
        try:
            found, length = deserialize(broken)
        except CorruptIndex:
            continue
        assert length <= len(broken)
        assert found == BitMap(found.to_array())


def test_a_set_that_claims_more_than_it_has_is_refused():
    with pytest.raises(CorruptIndex):
        deserialize(bytes.fromhex("3b30ffff"))
    with pytest.raises(CorruptIndex):
        deserialize(bytes.fromhex("3a300000ffffffff"))


def test_rows_and_sets():
    assert bitmap_to_rows(rows_to_bitmap(np.array([7, 1], dtype=np.uint32))).tolist() == [1, 7]
    assert list(all_rows(6) - BitMap([1, 3, 5])) == [0, 2, 4]


def test_results_combine_as_supersets():
    some, none = RowSet(BitMap([1, 3, 5])), RowSet(BitMap())
    assert [some.and_(SKIP).remains, some.and_(REMAIN).remains, some.or_(SKIP).remains, some.or_(REMAIN).remains] == [
        False,
        True,
        True,
        True,
    ]
    assert [none.and_(SKIP).remains, none.and_(REMAIN).remains, none.or_(SKIP).remains, none.or_(REMAIN).remains] == [
        False,
        False,
        False,
        True,
    ]
    for left, right in [(REMAIN, SKIP), (SKIP, REMAIN)]:
        assert left.and_(right) is SKIP
        assert left.or_(right) is REMAIN
    assert REMAIN.and_(some) == some
    assert SKIP.or_(some) == some


def test_a_result_stays_exact_only_with_exact_ones():
    exact, loose = RowSet(BitMap([1, 2]), exact=True), RowSet(BitMap([2, 3]))
    assert exact.and_(exact).exact
    assert exact.or_(SKIP).exact
    assert not any(
        result.exact for result in (exact.and_(loose), exact.or_(loose), exact.and_(REMAIN), REMAIN.and_(exact), exact.or_(REMAIN))
    )
