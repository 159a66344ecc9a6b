"""Values in order: walks, extremes, first rows, counts by value."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from fileindex.sorted_index.build_options import SortedIndexKind
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.float_order import spark_order_key, total_order_key
from sparkexpr.values.plain_value import plain_array, plain_values
from tests.fileindex.index_models import columns
from tests.fileindex.sorted_index.payloads import KEY_TYPES, TYPE_NAMES, build

KINDS = list(SortedIndexKind)
INT = ColumnType(Kind.INT)
FLAGS = st.tuples(st.booleans(), st.booleans(), st.booleans())


def spark_key(value):
    return spark_order_key(value.encode() if isinstance(value, str) else value)


def plain(values, column_type):
    """The plain values of an Arrow array."""
    return plain_values(plain_array(values, column_type), column_type)


@pytest.mark.parametrize("column_type", KEY_TYPES, ids=TYPE_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_walk_yields_all_values_from_either_end(kind, column_type):
    @settings(max_examples=10, deadline=None)
    @given(columns(column_type), st.sampled_from([1, 30, "16kb"]), st.booleans())
    def check(values, block_size, descending):
        expected = {}
        for row, value in enumerate(values):
            if value is not None:
                expected.setdefault(total_order_key(value), (value, []))[1].append(row)
        ordered = [
            expected[key]
            for key in sorted(expected, key=lambda key: tuple(part.encode() if isinstance(part, str) else part for part in key))
        ]
        walked = []
        for block in build(kind, column_type, values, block_size=block_size).open().walk(descending=descending):
            groups = [block.ordinals[start:end].tolist() for start, end in zip(block.starts[:-1], block.starts[1:], strict=True)]
            pairs = list(zip(plain(block.values, column_type), groups, strict=True))
            walked += pairs[::-1] if descending else pairs
        assert repr(walked) == repr(ordered[::-1] if descending else ordered)

    check()


@pytest.mark.parametrize("column_type", KEY_TYPES, ids=TYPE_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_first_rows_are_those_of_a_sort(kind, column_type):
    @settings(max_examples=10, deadline=None)
    @given(columns(column_type), st.integers(1, 12), FLAGS, st.none() | st.sets(st.integers(0, 50)))
    def check(values, k, flags, chosen):
        candidates = None if chosen is None else BitMap(row for row in chosen if row < len(values))
        ascending, nulls_first, strict = flags
        how = {"ascending": ascending, "nulls_first": nulls_first, "strict": strict, "candidates": candidates}
        rows = build(kind, column_type, values, block_size=30).open().top_n(k, **how)

        eligible = range(len(values)) if candidates is None else candidates
        present = sorted(
            (row for row in eligible if values[row] is not None), key=lambda row: spark_key(values[row]), reverse=not ascending
        )
        nulls = [row for row in eligible if values[row] is None]
        ranks = {}
        for row in present:
            ranks.setdefault(spark_key(values[row]), len(ranks) + 1)
        rank = {row: ranks[spark_key(values[row])] for row in present} | dict.fromkeys(nulls, 0 if nulls_first else len(values) + 1)
        ordered = sorted(rank, key=rank.__getitem__)
        assert len(rows) == len(BitMap(rows) & BitMap(ordered))
        bound = rank[ordered[min(k, len(ordered)) - 1]] if ordered else 0
        if strict:
            assert sorted(rank[row] for row in rows) == sorted(rank[row] for row in ordered[:k])
        else:
            assert set(rows) == {row for row in ordered if rank[row] <= bound}

    check()


@pytest.mark.parametrize("column_type", KEY_TYPES, ids=TYPE_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_extremes_of_candidates_are_their_least_and_greatest_value(kind, column_type):
    @settings(max_examples=10, deadline=None)
    @given(columns(column_type), st.none() | st.sets(st.integers(0, 50)), st.booleans())
    def check(values, chosen, greatest):
        candidates = None if chosen is None else BitMap(row for row in chosen if row < len(values))
        value = build(kind, column_type, values, block_size=30).open().extreme(candidates, greatest=greatest)
        present = [values[row] for row in (range(len(values)) if candidates is None else candidates) if values[row] is not None]
        if not present:
            assert value is None
        else:
            expected = (max if greatest else min)(present, key=spark_key)
            assert spark_key(plain(value, column_type)[0]) == spark_key(expected)

    check()


@pytest.mark.parametrize("column_type", KEY_TYPES, ids=TYPE_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_counted_by_value(kind, column_type):
    @settings(max_examples=10, deadline=None)
    @given(columns(column_type), st.none() | st.sets(st.integers(0, 50)))
    def check(values, chosen):
        rows = None if chosen is None else BitMap(row for row in chosen if row < len(values))
        counted, counts = build(kind, column_type, values, block_size=30).open().value_counts(rows)
        found = dict(zip(map(total_order_key, plain(counted, column_type)), counts.tolist(), strict=True))
        expected = dict.fromkeys(map(total_order_key, [*values, None]), 0)
        for row in range(len(values)) if rows is None else rows:
            expected[total_order_key(values[row])] += 1
        assert found == expected
        assert counted[len(counted) - 1].as_py() is None

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_many_values_are_not_counted(kind, set_thresholds):
    reader = build(kind, INT, [1, 2, 3]).open()
    set_thresholds(row_sets=2)
    assert reader.value_counts(None) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sizes
def test_first_rows_read_only_the_first_blocks(kind):
    reader = build(kind, INT, list(range(10_000)), block_size="4kb").open()
    assert list(reader.top_n(3, ascending=False, nulls_first=False, strict=True, candidates=None)) == [9997, 9998, 9999]
    assert reader.blocks_read == 1
