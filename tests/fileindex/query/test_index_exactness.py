"""When an answer is the matching rows themselves (so that a count may be taken from it), and that it then equals brute force."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from fileindex.build.options import FileIndexOptions
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ContainerReader, write_index_container
from fileindex.format.registry import INDEX_TYPES
from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import And, ColumnRef, Compare, In, IsNull, Op, Or, StartsWith, negate
from fileindex.query.evaluate import evaluate
from fileindex.query.metrics import IndexMetrics
from fileindex.rowset.result import REMAIN, SKIP, RowSet
from sparkexpr.values.column_type import ColumnType, Kind
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, leaves_on, trees, type_name

A, K = ColumnRef("a"), ColumnRef("m", "k")
INT, TEXT, DOUBLE = ColumnType(Kind.INT), ColumnType(Kind.VARCHAR), ColumnType(Kind.DOUBLE)
MAP = ColumnType(Kind.MAP, key=TEXT, value=INT)
MICROS, NANOS = (ColumnType(Kind.TIMESTAMP, precision=precision) for precision in (6, 9))
VARIANTS = {
    "bloom-filter": {"file-index.bloom-filter.columns": "a", "file-index.bloom-filter.a.items": "50"},
    "bitmap 1": {"file-index.bitmap.columns": "a", "file-index.bitmap.a.version": "1"},
    "bitmap 2": {"file-index.bitmap.columns": "a", "file-index.bitmap.a.index-block-size": "40b"},
    "bsi": {"file-index.bsi.columns": "a"},
    "range-bitmap": {"file-index.range-bitmap.columns": "a", "file-index.range-bitmap.a.chunk-size": "20b"},
}
EXACT = ["bitmap 1", "bitmap 2", "bsi", "range-bitmap"]


def container_of(values, column_type, variant):
    types = {"a": column_type}
    writer = DataFileIndexWriter.create(FileIndexOptions.parse(VARIANTS[variant], types), types)
    writer.write(pa.record_batch({"a": arrow_column(values, column_type)}))
    return ContainerReader.of(write_index_container(writer.finish()))


def ask(predicate, container, types, row_count):
    notes = IndexMetrics()
    result = evaluate(predicate, container, types, row_count, notes)
    assert not notes.warnings
    return result


def brute(predicate, table, types):
    return set(np.flatnonzero(mask(predicate, table, types).to_numpy()).tolist())


def rows_of(result, row_count):
    if result is REMAIN:
        return set(range(row_count))
    return set(result.rows) if isinstance(result, RowSet) else set()


CASES = [
    pytest.param(variant, kind, id=f"{variant}-{type_name(kind)}")
    for variant in VARIANTS
    for kind in ATOMIC_TYPES
    if INDEX_TYPES[variant.split(" ")[0]].supports(kind)
]


@pytest.mark.parametrize(("variant", "column_type"), CASES)
def test_an_exact_answer_of_one_index_is_that_of_brute_force(variant, column_type):
    types = {"a": column_type}

    @settings(max_examples=8, deadline=None)
    @given(columns(column_type, 30), trees(leaves_on(A, column_type)), st.booleans())
    def check(values, predicate, negated):
        predicate = negate(predicate) if negated else predicate
        result = ask(predicate, container_of(values, column_type, variant), types, len(values))
        expected = brute(predicate, pa.table({"a": arrow_column(values, column_type)}), types)
        found = rows_of(result, len(values))
        assert found >= expected
        assert not result.exact or found == expected

    check()


@pytest.mark.parametrize("variant", ["bitmap 1", "bitmap 2", "range-bitmap"])
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_row_sets_that_are_held_answer_as_if_read_and_no_question_changes_them(variant, data):
    values = data.draw(st.lists(st.none() | st.integers(-3, 3), min_size=1, max_size=60))
    payload = container_of(values, INT, variant)
    content = payload.read(0, payload.size)
    held, copies = {}, {}

    def hold(part, make, weight, *, lesser=False):
        if part not in held:
            held[part] = make()
            assert weight(held[part]) > 0
            copies[part] = held[part].copy() if isinstance(held[part], BitMap) else held[part]
        return held[part]

    for predicate in data.draw(st.lists(trees(leaves_on(A, INT)), min_size=1, max_size=6)):
        again = ContainerReader(lambda offset, length: content[offset : offset + length], len(content), hold=hold)
        found, expected = (ask(predicate, container, {"a": INT}, len(values)) for container in (again, ContainerReader.of(content)))
        assert rows_of(found, len(values)) == rows_of(expected, len(values))
        assert held == copies


def exact(variant, values, predicate, column_type=INT):
    return ask(predicate, container_of(values, column_type, variant), {"a": column_type}, len(values)).exact


EQUALITIES = [Compare(A, Op.EQ, 2), Compare(A, Op.NE, 2), In(A, (2, 3)), In(A, (2, 9), negated=True), IsNull(A), IsNull(A, negated=True)]
RANGES = [Compare(A, op, 2) for op in (Op.LT, Op.LE, Op.GT, Op.GE)]
VALUES = [1, 2, 2, 3, None]


@pytest.mark.parametrize("variant", EXACT)
def test_equalities_and_null_tests_are_answered_exactly(variant):
    assert all(exact(variant, VALUES, leaf) for leaf in EQUALITIES)


@pytest.mark.parametrize("variant", EXACT)
def test_ranges_are_answered_exactly_by_the_indexes_that_know_order(variant):
    assert all(exact(variant, VALUES, leaf) == (not variant.startswith("bitmap")) for leaf in RANGES)


def test_of_a_bloom_filter_only_no_is_exact():
    assert exact("bloom-filter", VALUES, Compare(A, Op.EQ, 77))
    assert not any(exact("bloom-filter", VALUES, leaf) for leaf in [*EQUALITIES, *RANGES])


@pytest.mark.parametrize("variant", ["bitmap 1", "bitmap 2", "bsi"])
def test_timestamps_finer_than_a_key_are_exact_only_as_to_nulls(variant):
    values = [1, 2, 1001, None]
    assert all(exact(variant, values, leaf, NANOS) for leaf in (IsNull(A), IsNull(A, negated=True)))
    some = [Compare(A, Op.EQ, 1), Compare(A, Op.NE, 1), In(A, (1, 2)), In(A, (1, 2), negated=True)]
    assert not any(exact(variant, values, leaf, NANOS) for leaf in [*some, *(Compare(A, op, 1) for op in Op)])
    assert all(exact(variant, values, leaf, MICROS) for leaf in some)


@pytest.mark.parametrize("variant", ["bitmap 1", "bitmap 2", "range-bitmap"])
def test_zeros_and_nan_are_answered_exactly(variant):
    values = [0.0, -0.0, math.nan, 1.0, None]
    container = container_of(values, DOUBLE, variant)
    table, types = pa.table({"a": arrow_column(values, DOUBLE)}), {"a": DOUBLE}
    for value in (0.0, -0.0, math.nan, 1.0, -math.nan):
        for leaf in (Compare(A, Op.EQ, value), Compare(A, Op.NE, value), In(A, (value, 5.0)), In(A, (value, 5.0), negated=True)):
            result = ask(leaf, container, types, len(values))
            assert result.exact
            assert rows_of(result, len(values)) == brute(leaf, table, types)


def test_prefixes_are_answered_by_the_index_that_knows_the_order_of_texts():
    for variant in ("bitmap 1", "bitmap 2", "bloom-filter", "range-bitmap"):
        for negated in (False, True):
            assert exact(variant, ["a", "b"], StartsWith(A, "a", negated), TEXT) == (variant == "range-bitmap")


def test_trees_of_exact_answers_are_exact_and_others_are_not():
    knows, guesses, none = Compare(A, Op.EQ, 2), Compare(A, Op.LT, 3), Compare(A, Op.EQ, 77)
    assert exact("bitmap 2", VALUES, And((knows, Compare(A, Op.NE, 3))))
    assert exact("bitmap 2", VALUES, Or((knows, Compare(A, Op.EQ, 3))))
    assert exact("bitmap 2", VALUES, negate(Or((knows, IsNull(A)))))
    assert not exact("bitmap 2", VALUES, And((knows, guesses)))
    assert not exact("bitmap 2", VALUES, Or((knows, guesses)))
    assert exact("bitmap 2", VALUES, And((guesses, none)))
    assert exact("bitmap 2", VALUES, Or((none, knows)))


ENTRIES = st.lists(st.tuples(st.sampled_from(["k", "j"]), st.none() | st.integers(-2, 2)), max_size=4)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.none() | ENTRIES, max_size=20), trees(leaves_on(K, INT)), st.sampled_from(["bitmap", "bsi", "range-bitmap"]))
def test_map_entries_are_answered_exactly_whatever_the_maps_repeat(maps, predicate, index_type):
    types = {"m": MAP}
    writer = DataFileIndexWriter.create(FileIndexOptions.parse({f"file-index.{index_type}.columns": "m[k]"}, types), types)
    table = pa.table({"m": pa.array(maps, MAP.arrow)})
    for batch in table.to_batches():
        writer.write(batch)
    if not maps:
        return
    result = ask(predicate, ContainerReader.of(write_index_container(writer.finish())), types, len(maps))
    expected = brute(predicate, table, types)
    assert rows_of(result, len(maps)) >= expected
    assert not result.exact or rows_of(result, len(maps)) == expected


def test_a_map_index_whose_rows_drifted_at_a_repeated_key_says_nothing():
    """Paimon's Java writer feeds every occurrence of a repeated key, so that positions after it belong to other rows."""
    drifted = container_of([1, 2, 3], INT, "bitmap 2")
    payload = drifted.payload(drifted.of_column("a")[0]).whole()
    notes = IndexMetrics()
    container = ContainerReader.of(write_index_container([("m[k]", "bitmap", payload)]))
    assert evaluate(Compare(K, Op.EQ, 3), container, {"m": MAP}, 2, notes) is REMAIN
    assert notes.by_index["m[k]", "bitmap"].unusable == {"it has 3 rows, the file 2": 1}


def test_an_exact_index_is_enough_and_others_are_not_asked():
    types = {"a": INT}
    raw = {**VARIANTS["bitmap 1"], "file-index.range-bitmap.columns": "a"}
    writer = DataFileIndexWriter.create(FileIndexOptions.parse(raw, types), types)
    writer.write(pa.record_batch({"a": pa.array(VALUES, pa.int32())}))
    notes = IndexMetrics()
    evaluate(Compare(A, Op.EQ, 2), ContainerReader.of(write_index_container(writer.finish())), types, len(VALUES), notes)
    assert set(notes.by_index) == {("a", "bitmap")}


def test_what_each_index_did_is_counted():
    values = [1, 2, 2, 3, None]
    notes = IndexMetrics()
    container = container_of(values, INT, "bitmap 2")
    types = {"a": INT}
    evaluate(And((Compare(A, Op.EQ, 2), IsNull(A, negated=True))), container, types, 5, notes)
    use = notes.by_index["a", "bitmap"]
    assert (use.files, use.skipped, use.rows) == (1, 0, 2)
    assert 0 < use.bytes < notes.bytes_read
    evaluate(And((Compare(A, Op.EQ, 2), Compare(A, Op.EQ, 3))), container, types, 5, notes)
    evaluate(Compare(A, Op.EQ, 9), container, types, 5, notes)
    evaluate(Or((Compare(A, Op.EQ, 9), Compare(A, Op.LT, 9))), container, types, 5, notes)
    assert (use.files, use.skipped, use.rows) == (4, 2, 2)
    evaluate(Compare(A, Op.EQ, 2), container, types, 4, notes)
    assert use.files == 4
    assert use.unusable.total() == 1


def test_only_the_index_that_found_nothing_is_said_to_have_skipped_the_file():
    types = {"a": INT, "b": INT}
    raw = {"file-index.bitmap.columns": "a", "file-index.bloom-filter.columns": "b", "file-index.bloom-filter.b.items": "9"}
    writer = DataFileIndexWriter.create(FileIndexOptions.parse(raw, types), types)
    writer.write(pa.record_batch({"a": pa.array([1, 2], pa.int32()), "b": pa.array([1, 2], pa.int32())}))
    notes = IndexMetrics()
    both = And((Compare(A, Op.EQ, 1), Compare(ColumnRef("b"), Op.EQ, 98)))
    assert evaluate(both, ContainerReader.of(write_index_container(writer.finish())), types, 2, notes) is SKIP
    assert {name: use.skipped for name, use in notes.by_index.items()} == {("a", "bitmap"): 0, ("b", "bloom-filter"): 1}


def test_an_index_that_cannot_be_opened_is_counted_once_a_file():
    notes = IndexMetrics()
    container = ContainerReader.of(write_index_container([("a", "bitmap", b"nonsense")]))
    evaluate(And((Compare(A, Op.EQ, 2), Compare(A, Op.EQ, 3))), container, {"a": INT}, 5, notes)
    assert notes.by_index["a", "bitmap"].unusable.total() == 1
    assert notes.warnings.total() == 1
