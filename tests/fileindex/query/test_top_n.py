"""The first rows by a sorted column, from its range-bitmap."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from fileindex.build.options import FileIndexOptions
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ContainerReader, write_index_container
from fileindex.format.registry import INDEX_TYPES
from fileindex.predicate.tree import ColumnRef
from fileindex.query.metrics import IndexMetrics
from fileindex.query.top_n import top_n
from fileindex.rowset.result import REMAIN, SKIP
from sparkexpr.values.column_type import ColumnType, Kind
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, type_name

A = ColumnRef("a")
INT = ColumnType(Kind.INT)
DOUBLE = ColumnType(Kind.DOUBLE)


def container_of(values, column_type, index_type="range-bitmap"):
    types = {"a": column_type}
    writer = DataFileIndexWriter.create(FileIndexOptions.parse({f"file-index.{index_type}.columns": "a"}, types), types)
    writer.write(pa.record_batch({"a": arrow_column(values, column_type)}))
    return ContainerReader.of(write_index_container(writer.finish()))


def first(values, k, order="ASC NL", *, strict=True, among=None, column_type=INT, container=None):
    direction, nulls = order.split()
    result = top_n(
        container or container_of(values, column_type),
        A,
        {"a": column_type},
        k,
        ascending=direction == "ASC",
        nulls_first=nulls == "NF",
        strict=strict,
        candidates=None if among is None else BitMap(among),
        row_count=len(values),
        notes=IndexMetrics(),
    )
    return [] if result is SKIP else list(result.rows)


ODD = [1, 3, 5, 7, 9, None, None, 10]


@pytest.mark.parametrize(
    ("order", "all_rows", "some_rows"),
    [
        ("ASC NF", [0, 5, 6], [0, 3, 5]),
        ("ASC NL", [0, 1, 2], [0, 3, 4]),
        ("DESC NF", [5, 6, 7], [3, 4, 5]),
        ("DESC NL", [3, 4, 7], [0, 3, 4]),
    ],
)
def test_the_ends_of_a_column(order, all_rows, some_rows):
    assert first(ODD, 3, order) == all_rows
    assert first(ODD, 3, order, among=[0, 3, 4, 5]) == some_rows


@pytest.mark.parametrize(
    ("values", "k", "order", "strict", "expected"),
    [
        ([10, 20, 30, 5, 15], 3, "ASC NL", False, [0, 3, 4]),
        ([None, None, None, 7, 8], 2, "ASC NF", False, [0, 1, 2]),
        ([None, None, None, 7, 8], 2, "ASC NF", True, [0, 1]),
        ([None, None, None, 7, 8], 3, "ASC NL", False, [0, 1, 2, 3, 4]),
        ([None, None, None, 7, 8], 3, "ASC NL", True, [0, 3, 4]),
        ([1, 1, 1, 2, 3], 2, "ASC NL", False, [0, 1, 2]),
        ([1, 1, 1, 2, 3], 2, "ASC NL", True, [1, 2]),
        ([5, 4, 4, 4, 3], 2, "DESC NL", False, [0, 1, 2, 3]),
        ([5, 4, 4, 4, 3], 2, "DESC NL", True, [0, 3]),
        ([7, 7], 1, "ASC NL", True, [1]),
    ],
)
def test_ties_are_kept_all_if_another_column_decides_them(values, k, order, strict, expected):
    assert first(values, k, order, strict=strict) == expected


def test_a_column_of_nulls_heeds_limit_and_candidates():
    assert first([None] * 5, 1, "ASC NF") == [0]
    assert first([None] * 5, 2, "DESC NL", among=[1, 3, 4]) == [1, 3]
    assert first([None] * 5, 2, "DESC NL", among=[1, 3, 4], strict=False) == [1, 3, 4]


def test_nothing_is_wanted_of_nothing():
    assert first(ODD, 0) == []
    assert first(ODD, 3, among=[]) == []
    assert first([], 3) == []


def test_the_zeros_of_a_float_column_tie():
    values = [1.0, 0.0, -0.0, 5.0]
    assert first(values, 1, column_type=DOUBLE, strict=False) == [1, 2]
    assert first(values, 1, column_type=DOUBLE, strict=False, among=[0, 1]) == [1]
    assert first(values, 3, "DESC NL", column_type=DOUBLE, strict=False) == [0, 1, 2, 3]


def key(value, *, ascending, nulls_first):
    """Sorts before another key where ORDER BY puts the row first; NaN is the greatest, the zeros are equal."""
    if value is None:
        return (0 if nulls_first else 2, 0)
    if isinstance(value, float):
        value = (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, str):
        value = value.encode()
    return (1, value) if ascending else (1, _Down(value))


class _Down:
    __hash__ = None

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return other.value < self.value

    def __eq__(self, other):
        return self.value == other.value


SORTABLE = [kind for kind in ATOMIC_TYPES if INDEX_TYPES["range-bitmap"].supports(kind)]


@pytest.mark.parametrize("column_type", SORTABLE, ids=type_name)
def test_no_row_left_out_comes_before_one_that_is_wanted(column_type):
    @settings(max_examples=15, deadline=None)
    @given(columns(column_type), st.integers(1, 12), st.tuples(*3 * [st.booleans()]), st.none() | st.sets(st.integers(0, 39)))
    def check(values, k, how, among):
        ascending, nulls_first, strict = how
        among = None if among is None else {row for row in among if row < len(values)}
        order = f"{'ASC' if ascending else 'DESC'} {'NF' if nulls_first else 'NL'}"
        found = first(values, k, order, strict=strict, among=among, column_type=column_type)
        wanted = sorted(range(len(values)) if among is None else among)
        keys = {row: key(values[row], ascending=ascending, nulls_first=nulls_first) for row in wanted}
        ordered = sorted(wanted, key=keys.__getitem__)
        assert set(found) <= set(wanted)
        if strict:
            assert len(found) == min(k, len(wanted))
            assert [keys[row] for row in sorted(found, key=keys.__getitem__)] == [keys[row] for row in ordered[:k]]
        elif ordered:
            last = keys[ordered[min(k, len(ordered)) - 1]]
            assert set(found) >= {row for row in wanted if not last < keys[row]}

    check()


def test_other_indexes_do_not_know_the_order():
    for index_type in ("bitmap", "bsi", "bloom-filter"):
        container = container_of([1, 2, 3], INT, index_type)
        assert _ask(container, 3) is REMAIN


def test_an_index_of_another_file_says_nothing_and_is_noted():
    notes = IndexMetrics()
    assert _ask(container_of([1, 2, 3], INT), 4, notes) is REMAIN
    assert notes.by_index["a", "range-bitmap"].unusable == {"it has 3 rows, the file 4": 1}


def test_broken_bytes_say_nothing_and_are_noted():
    notes = IndexMetrics()
    assert _ask(ContainerReader.of(write_index_container([("a", "range-bitmap", b"\0\0\0\5nonsense")])), 3, notes) is REMAIN
    assert _ask(ContainerReader.of(b"nonsense"), 3, notes) is REMAIN
    assert notes.warnings.total() == 2


def _ask(container, row_count, notes=None):
    how = {"ascending": True, "nulls_first": False, "strict": True, "candidates": None}
    return top_n(container, A, {"a": INT}, 1, row_count=row_count, notes=notes or IndexMetrics(), **how)
