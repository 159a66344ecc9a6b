"""A filter on a widened column, said of the narrower column of an old file, matches the same rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import FALSE, ColumnRef, Compare, In, IsNull, Op, StartsWith
from fileindex.predicate.unwiden import unwiden
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.plain_value import is_plain
from tests.fileindex.index_models import arrow_column, columns, leaves_on, literals, type_name

A = ColumnRef("a")
TINY, SMALL, INT, LONG = (ColumnType(kind) for kind in (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT))
NARROW, WIDE = (ColumnType(Kind.DECIMAL, precision=precision, scale=2) for precision in (5, 20))
WIDTHS = {TINY: 1, SMALL: 2, INT: 4, LONG: 8}
WIDENED = [(TINY, SMALL), (TINY, LONG), (SMALL, INT), (INT, LONG), (INT, INT), (NARROW, WIDE)]


@pytest.mark.parametrize(("file", "read"), WIDENED, ids=type_name)
def test_the_same_rows_match(file, read):
    @settings(max_examples=25, deadline=None)
    @given(columns(file, 20), leaves_on(A, read) | st.builds(Compare, st.just(A), st.sampled_from(Op), literals(file)))
    def check(values, leaf):
        said = unwiden(leaf, read, file)
        found = mask(said, pa.table({"a": arrow_column(values, file)}), {"a": file})
        assert found.equals(mask(leaf, pa.table({"a": arrow_column(values, read)}), {"a": read}))

    check()


def test_numbers_beyond_the_old_type_decide_for_all_values():
    assert unwiden(Compare(A, Op.NE, 300), INT, TINY) == IsNull(A, negated=True)
    assert unwiden(Compare(A, Op.GT, -300), INT, TINY) == IsNull(A, negated=True)
    assert unwiden(Compare(A, Op.GT, 300), INT, TINY) == FALSE
    assert unwiden(In(A, (1, 300)), INT, TINY) == In(A, (1,))


@pytest.mark.parametrize(
    ("read", "file"),
    [
        (INT, LONG),
        (ColumnType(Kind.VARCHAR), INT),
        (ColumnType(Kind.DOUBLE), INT),
        (ColumnType(Kind.DECIMAL, precision=20, scale=3), NARROW),
        (ColumnType(Kind.TIMESTAMP, precision=6), ColumnType(Kind.TIMESTAMP, precision=3)),
    ],
    ids=type_name,
)
def test_of_other_changes_nothing_is_said(read, file):
    assert unwiden(IsNull(A), read, file) is None


@pytest.mark.parametrize("read", [TINY, SMALL, INT, LONG], ids=type_name)
@pytest.mark.parametrize("file", [TINY, SMALL, INT, LONG], ids=type_name)
def test_only_types_that_hold_all_numbers_of_the_file_are_wider(read, file):
    holds = all(is_plain(number, read) for number in (-(2 ** (8 * WIDTHS[file] - 1)), 2 ** (8 * WIDTHS[file] - 1) - 1))
    assert (unwiden(IsNull(A), read, file) is not None) == holds


def test_a_prefix_is_nothing_to_ask_of_numbers():
    assert unwiden(StartsWith(A, "1"), LONG, INT) is None
