"""What is read from a payload is what was written, whatever the type, kind, block size and compression."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import And, Compare, ComputedPredicate, In, IsNull, Op, Or, StartsWith, negate
from fileindex.rowset.result import REMAIN
from fileindex.sorted_index.build_options import SortedIndexKind
from fileindex.sorted_index.index_blocks import COMPRESSIONS
from paimon_base.thresholds import use_thresholds
from sparkexpr.expression.tree import LiteralValue
from sparkexpr.values.column_type import ColumnType, Kind
from tests.fileindex.index_models import columns, leaves_on, literals, trees
from tests.fileindex.sorted_index.payloads import KEY_TYPES, TYPE_NAMES, A, build, matching_rows

KINDS = list(SortedIndexKind)
INT, TEXT, DOUBLE, FLOAT = (ColumnType(kind) for kind in (Kind.INT, Kind.VARCHAR, Kind.DOUBLE, Kind.FLOAT))
BLOCK_SIZES, STEPS = [1, 16, 40, "16kb"], st.sampled_from([1, 3, 100])
COMPUTED = ComputedPredicate(LiteralValue(True, ColumnType(Kind.BOOLEAN)))


@pytest.mark.parametrize("column_type", KEY_TYPES, ids=TYPE_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_condition_is_answered_exactly(kind, column_type):
    @settings(max_examples=25, deadline=None)
    @given(
        columns(column_type),
        st.lists(trees(leaves_on(A, column_type)), min_size=1, max_size=4),
        st.fixed_dictionaries({"block_size": st.sampled_from(BLOCK_SIZES), "compression": st.sampled_from(COMPRESSIONS), "step": STEPS}),
        st.booleans(),
    )
    def check(values, predicates, how, tiny):
        with use_thresholds(**({"posting_rows": 3, "index_read_bytes": 64, "manifest_gap_bytes": 16} if tiny else {})):
            reader = build(kind, column_type, values, **how).open()
            for predicate in predicates:
                answer, expected = reader.evaluate(predicate), matching_rows(predicate, values)
                assert set(answer.rows) == expected
                assert answer.exact
                assert reader.may_match(predicate) or not expected

    check()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_many_rows_of_few_values_are_found(kind, data):
    seed, values, block_size = data.draw(st.tuples(st.integers(0, 99), st.integers(1, 400), st.sampled_from([64, 500, "16kb"])))
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, values, 1500)
    if data.draw(st.booleans()):
        numbers = np.sort(numbers)
    column = [None if number == 5 else int(number) for number in numbers]
    reader = build(kind, INT, column, block_size=block_size).open()
    for predicate in data.draw(st.lists(trees(leaves_on(A, ColumnType(Kind.TINYINT))), min_size=1, max_size=4)):
        assert set(reader.evaluate(predicate).rows) == matching_rows(predicate, column)


VALUES = [3, None, 1, 3, 2, 1]
LEAVES = [Compare(A, op, 2) for op in Op] + [In(A, (1, 9)), In(A, (1, 9), negated=True), IsNull(A), IsNull(A, negated=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_computed_condition_makes_an_answer_inexact(kind):
    reader = build(kind, INT, VALUES).open()
    assert reader.evaluate(COMPUTED) is REMAIN
    assert reader.evaluate(Or((Compare(A, Op.EQ, 1), COMPUTED))) is REMAIN
    answer = reader.evaluate(And((Compare(A, Op.EQ, 1), COMPUTED)))
    assert set(answer.rows) == {2, 5}
    assert not answer.exact


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("column_type", "literal"), [(INT, 2**40), (INT, "1"), (INT, True), (FLOAT, 0.1), (FLOAT, 1e300), (TEXT, 1)])
def test_a_literal_that_the_column_cannot_have_is_unknown(kind, column_type, literal):
    reader = build(kind, column_type, [None]).open()
    assert reader.evaluate(Compare(A, Op.LT, literal)) is REMAIN
    assert reader.evaluate(In(A, (literal,))) is REMAIN
    assert reader.may_match(Compare(A, Op.LT, literal))


@pytest.mark.parametrize("kind", KINDS)
def test_both_zeros_and_nan_are_found_as_filters_compare(kind):
    values = [0.0, -0.0, math.nan, 1.0, None, -math.inf]
    reader = build(kind, DOUBLE, values).open()

    def rows(op, literal):
        return set(reader.evaluate(Compare(A, op, literal)).rows)

    assert rows(Op.EQ, -0.0) == rows(Op.EQ, 0.0) == {0, 1}
    assert rows(Op.GT, -0.0) == {2, 3}
    assert rows(Op.LT, 0.0) == {5}
    assert rows(Op.EQ, math.nan) == {2}
    assert rows(Op.LE, math.nan) == {0, 1, 2, 3, 5}


@pytest.mark.parametrize("kind", KINDS)
def test_first_and_last_key_answer_without_a_read(kind):
    reader = build(kind, INT, [5, 7, 9]).open()
    outside = [Compare(A, Op.LT, 5), Compare(A, Op.GT, 9), In(A, (1, 4, 10)), IsNull(A), And((Compare(A, Op.GT, 9), Compare(A, Op.LT, 5)))]
    for predicate in outside:
        assert not reader.may_match(predicate)
        assert not reader.evaluate(predicate).rows
    assert reader.evaluate(IsNull(A)).exact
    assert reader.extreme(None, greatest=True).to_pylist() == [9]
    assert (reader.reads, reader.bytes_read, reader.blocks_read) == (0, 0, 0)


def build_large(kind):
    """30,000 rows of 10,000 values in many blocks."""
    return build(kind, INT, [row % 10_000 for row in range(30_000)], step=10_000, block_size="4kb")


@pytest.mark.parametrize(("kind", "reads"), [(SortedIndexKind.BTREE, 2), (SortedIndexKind.BITMAP, 3)])
@pytest.mark.sizes
def test_a_lookup_in_a_large_payload_takes_few_reads(kind, reads):
    built = build_large(kind)
    reader = built.open()
    assert set(reader.evaluate(Compare(A, Op.EQ, 7)).rows) == {7, 10_007, 20_007}
    assert (reader.reads, reader.blocks_read) == (reads, 1)
    assert reader.bytes_read < 30_000 < len(built.data)
    reader.evaluate(Compare(A, Op.EQ, 8))
    assert reader.blocks_read == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sizes
def test_all_rows_but_few_are_found_by_the_others(kind):
    reader = build_large(kind).open()
    assert set(reader.evaluate(Compare(A, Op.NE, 9)).rows) == set(range(30_000)) - {9, 10_009, 20_009}
    assert reader.blocks_read == 1
    assert len(reader.evaluate(IsNull(A, negated=True)).rows) == 30_000
    assert reader.blocks_read == 1
    between = And((Compare(A, Op.GE, 5000), Compare(A, Op.LE, 5001)))
    assert len(reader.evaluate(between).rows) == 6
    assert reader.blocks_read <= 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_of_the_directory_saves_its_reads(kind):
    built = build(kind, INT, [*range(3000), None], block_size=100)
    cached = {}

    def hold(part, make, weight, *, lesser=False):
        if part not in cached:
            cached[part] = make()
            assert weight(cached[part]) > 0
        return cached[part]

    readers = [built.open(hold=hold) for _ in range(2)]
    for reader in readers:
        assert set(reader.evaluate(Or((Compare(A, Op.EQ, 7), IsNull(A)))).rows) == {7, 3000}
    assert {"directory", "nulls"} <= cached.keys()
    assert readers[1].bytes_read < readers[0].bytes_read


@pytest.mark.parametrize("prefix", ["", "a", "a\0", "é", "\U0010ffff"])
@pytest.mark.parametrize("kind", KINDS)
def test_prefixes_are_ranges_of_bytes(kind, prefix):
    values = ["", "a", "a\0", "a\0\0", "ab", "b", "é", "éa", "ê", "\U0010ffff", "\U0010ffffz", None]
    for leaf in (StartsWith(A, prefix), StartsWith(A, prefix, negated=True)):
        reader = build(kind, TEXT, values, block_size=8).open()
        assert set(reader.evaluate(leaf).rows) == matching_rows(leaf, values)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None)
@given(st.lists(literals(TEXT), max_size=30), st.lists(leaves_on(A, TEXT), min_size=1, max_size=5), st.booleans())
def test_conditions_on_one_column_are_one_question(kind, values, leaves, disjunction):
    predicate = Or(tuple(leaves)) if disjunction else And(tuple(leaves))
    reader = build(kind, TEXT, values, block_size=16).open()
    assert set(reader.evaluate(predicate).rows) == matching_rows(predicate, values)
    assert set(reader.evaluate(negate(predicate)).rows) == matching_rows(negate(predicate), values)
