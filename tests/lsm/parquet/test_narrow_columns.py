"""Narrow columns give back what was decoded, bit by bit, and filters on them match the same rows as filters on values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import And, ColumnRef, Compare, In, IsNull, Op, Or, columns_of
from lsm.parquet.narrow_column import NarrowColumn, bound_bytes, evaluate, is_narrowable
from manifest.stats.column_stats import ColumnBounds
from sparkexpr.values.column_type import BINARIES, STRINGS, ColumnType, Kind
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, leaves_on, matches, trees, type_name

A, B = ColumnRef("a"), ColumnRef("b")
FIXED = [kind for kind in ATOMIC_TYPES if kind.kind not in STRINGS | BINARIES]
TEXT = ColumnType(Kind.VARCHAR)
NANS = {32: [0x7FC00000, 0xFFC00001, 0x7F800001], 64: [0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001]}


def bits(array: pa.Array) -> list[bytes | None]:
    """The bytes of each value: equal NaNs and zeros may differ in them."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    is_plain = pa.types.is_string(array.type) or pa.types.is_boolean(array.type)
    return (array if is_plain else array.view(pa.binary(array.type.bit_width // 8))).to_pylist()


def pieces_of(array: pa.Array, cuts: list[int]) -> list[pa.Array]:
    """Slices of an array, each with an offset of its own; texts with a dictionary of their own."""
    edges = sorted({0, len(array), *(cut % (len(array) + 1) for cut in cuts)})
    pieces = [array.slice(start, end - start) for start, end in pairwise(edges)] or [array]
    return [piece.dictionary_encode() if pa.types.is_string(array.type) else piece for piece in pieces]


@pytest.mark.parametrize("column_type", [*FIXED, TEXT], ids=type_name)
def test_values_and_matches_are_those_of_the_decoded_column(column_type):
    @settings(max_examples=60, deadline=None)
    @given(columns(column_type), trees(leaves_on(A, column_type)), st.lists(st.integers(0, 40), max_size=2), st.data())
    def check(values, predicate, cuts, data):
        array = arrow_column(values, column_type)
        narrow = NarrowColumn.of(pieces_of(array, cuts))
        if narrow is None:
            assert not any(value is not None for value in values)
            return
        rows = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20).map(sorted)), np.int64)
        taken = narrow.take(rows)
        taken.validate(full=True)
        assert bits(taken) == bits(array.take(pa.array(rows)))
        assert taken.type in {array.type, pa.dictionary(pa.int32(), array.type)}
        found = evaluate(predicate, {"a": narrow}, {"a": column_type})
        if found is None:  # only an empty tree has no answer
            assert not columns_of(predicate) or _has_empty(predicate)
        else:
            assert found.tolist() == [matches(predicate, {A: value}) for value in values]

    check()


def _has_empty(predicate) -> bool:
    return isinstance(predicate, And | Or) and (not predicate.children or any(map(_has_empty, predicate.children)))


@pytest.mark.parametrize("width", [32, 64])
def test_floats_keep_their_bits(width):
    patterns = [*NANS[width], 1 << (width - 1), 0, 1]  # NaNs with payloads, -0.0, 0.0 and the smallest number
    array = pa.array(np.array(patterns, f"u{width // 8}").view(f"f{width // 8}"))
    narrow = NarrowColumn.of([array])
    assert bits(narrow.take(np.arange(len(patterns)))) == bits(array)
    column_type = ColumnType(Kind.FLOAT if width == 32 else Kind.DOUBLE)
    assert evaluate(Compare(A, Op.EQ, 0.0), {"a": narrow}, {"a": column_type}).tolist() == [False, False, False, True, True, False]
    assert evaluate(Compare(A, Op.EQ, float("nan")), {"a": narrow}, {"a": column_type}).tolist() == [True] * 3 + [False] * 3


@pytest.mark.parametrize(("span", "itemsize"), [(255, 1), (256, 2), (65535, 2), (65536, 4), (2**32 - 1, 4), (2**32, 8)])
@pytest.mark.parametrize("low", [-(2**63), -5, 2**63 - 1 - 2**32])
def test_integers_take_the_fewest_bytes_that_their_range_needs(span, itemsize, low):
    values = [low, low + span, None, low + 1]
    narrow = NarrowColumn.of([pa.array(values, pa.int64())])
    assert narrow.words.dtype.itemsize == itemsize
    assert narrow.take(np.arange(4)).to_pylist() == values
    types = {"a": ColumnType(Kind.BIGINT)}
    for value in {low, low + span, max(low - 1, -(2**63)), min(low + span + 1, 2**63 - 1)}:
        for op in Op:
            expected = [matches(Compare(A, op, value), {A: each}) for each in values]
            assert evaluate(Compare(A, op, value), {"a": narrow}, types).tolist() == expected, (op, value)
        for negated in (False, True):
            expected = [matches(In(A, (value, low + 1), negated), {A: each}) for each in values]
            assert evaluate(In(A, (value, low + 1), negated), {"a": narrow}, types).tolist() == expected


def test_nulls_over_any_bytes_do_not_widen_a_column():
    words = pa.py_buffer(np.array([7, 2**62, 9], np.int64))
    array = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x05"), words])
    narrow = NarrowColumn.of([array])
    assert narrow.words.dtype == np.uint8
    assert narrow.take(np.arange(3)).to_pylist() == [7, None, 9]


@pytest.mark.parametrize(
    "array", [pa.array([b"a"]), pa.array(["a"]), pa.array([[1]]), pa.array([{"a": 1}]), pa.array([1], pa.uint8())], ids=str
)
def test_other_types_stay_as_they_are(array):
    assert not is_narrowable(array.type)
    assert NarrowColumn.of([array]) is None


def test_a_tree_is_unknown_if_a_column_is_missing():
    columns, types = {"a": NarrowColumn.of([pa.array([1, 2])])}, {"a": ColumnType(Kind.BIGINT), "b": ColumnType(Kind.BIGINT)}
    known, unknown = Compare(A, Op.EQ, 1), IsNull(B)
    assert evaluate(And((known, unknown)), columns, types) is None
    assert evaluate(Or((known, unknown)), columns, types) is None
    assert evaluate(Or((known, IsNull(A))), columns, types).tolist() == [True, False]
    assert evaluate(IsNull(ColumnRef("a", "key")), columns, types) is None


@pytest.mark.parametrize("column_type", FIXED, ids=type_name)
def test_no_column_takes_more_bytes_than_were_expected(column_type):
    @settings(max_examples=30, deadline=None)
    @given(columns(column_type))
    def check(values):
        array = arrow_column(values, column_type)
        narrow = NarrowColumn.of([array])
        present = [value for value in values if value is not None]
        if narrow is None:
            return
        bounds = ColumnBounds(min(present), max(present), len(values) - len(present), len(values)) if present else None
        for known in (bounds, None):
            assert narrow.nbytes <= bound_bytes(array.type, len(values), known, 0)

    check()


def test_equal_decimals_beyond_64_bits_are_expected_to_keep_their_bytes():
    value = -(10**38) + 1
    array = arrow_column([value], ColumnType(Kind.DECIMAL, precision=38, scale=10))
    narrow = NarrowColumn.of([array])
    assert narrow is not None
    assert narrow.nbytes <= bound_bytes(array.type, 1, ColumnBounds(value, value, 0, 1), 0)
