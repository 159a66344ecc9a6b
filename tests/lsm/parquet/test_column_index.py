"""Bounds of pages: numbers taken out of a column index at once say what the decoder of whole structures says of them."""

from __future__ import annotations

import math
import struct
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lsm.parquet import statistics
from lsm.parquet.fields import PhysicalType
from lsm.parquet.row_group_pages import DAMAGE
from lsm.parquet.statistics import check_pages, decode_column_index
from lsm.parquet.thrift import BINARY, I32, I64, LIST, TRUE_FIELD, encode_struct
from manifest.entry.bounds import BoundsColumn
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType
from sparkexpr.values.column_type import Kind
from tests.examples import some

FORMS = [
    (PhysicalType.INT32, "<i", DataType(Kind.INT)),
    (PhysicalType.INT64, "<q", DataType(Kind.BIGINT)),
    (PhysicalType.INT64, "<q", DataType(Kind.DECIMAL, precision=18, scale=2)),
    (PhysicalType.FLOAT, "<f", DataType(Kind.FLOAT)),
    (PhysicalType.DOUBLE, "<d", DataType(Kind.DOUBLE)),
]
SIDES = st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1)), max_size=40)
ASCENDING, DESCENDING = 1, 2


def encoded(form, pages, nulls=None, order=0, empty=()):
    """A column index; of the pages ``empty`` there is no value."""
    sides = [[b"" if at in empty else struct.pack(form, page[side]) for at, page in enumerate(pages)] for side in (0, 1)]
    fields = {
        1: (LIST, (TRUE_FIELD, [1 if at in empty else 2 for at in range(len(pages))])),
        2: (LIST, (BINARY, sides[0])),
        3: (LIST, (BINARY, sides[1])),
        4: (I32, order),
    }
    return encode_struct(fields if nulls is None else fields | {5: (LIST, (I64, nulls))})


def said(index, kind, data_type, rows):
    try:
        bounds, order = decode_column_index(index, kind, data_type, rows)
    except DAMAGE:
        return None
    return str(bounds.each(data_type)), order


def both(index, kind, data_type, rows):
    """What the two decoders say; None for what is damaged."""
    with mock.patch.object(statistics, "_numbers", return_value=None):
        slow = said(index, kind, data_type, rows)
    return said(index, kind, data_type, rows), slow


@given(st.sampled_from(FORMS), SIDES, st.integers(0, 300) | st.none(), st.sampled_from([0, ASCENDING, DESCENDING]), st.data())
def test_numbers_taken_at_once_are_those_of_the_decoder(form, pages, nulls, order, data):
    kind, layout, data_type = form
    empty = data.draw(st.sets(st.integers(0, max(len(pages) - 1, 0)), max_size=1))
    index = encoded(layout, pages, None if nulls is None else [nulls + at % 2 for at in range(len(pages))], order, empty)
    fast, slow = both(index, kind, data_type, np.full(len(pages), 400))
    assert fast == slow
    assert fast is not None


@settings(max_examples=some(100))
@given(st.sampled_from(FORMS), SIDES, st.integers(0, 10**6), st.integers(0, 255), st.integers(-2, 2))
@example(FORMS[0], [(1, 2)] * 15, 0, 0x19, 0)
def test_what_is_damaged_is_not_read_as_something_else(form, pages, at, byte, more):
    kind, layout, data_type = form
    index = bytearray(encoded(layout, pages, [0] * len(pages)))
    index[at % len(index)] = byte
    rows = np.full(max(len(pages) + (more if at % 3 == 0 else 0), 0), 9)
    for damaged in (bytes(index), bytes(index[: at % len(index)]), bytes(index) + b"\0"):
        fast, slow = both(damaged, kind, data_type, rows)
        assert fast == slow


def test_floats_have_no_maximum_as_writers_leave_nan_out():
    index = encoded("<d", [(-1.5, 2.0), (3.0, 4.0)], [0, 1])
    bounds, _ = decode_column_index(index, PhysicalType.DOUBLE, DataType(Kind.DOUBLE), np.array([5, 5]))
    assert bounds.low.tolist() == [-1.5, 3.0]
    assert all(map(math.isnan, bounds.high.tolist()))
    assert bounds.nulls.tolist() == [0, 1]


TEXT = DataType(Kind.VARCHAR, length=9)
PAGES = [ColumnBounds("b", "d", 1, 5), ColumnBounds(None, None, 5, 5), ColumnBounds("e", "e\0", 0, 5)]


@pytest.mark.parametrize(
    ("chunk", "order", "message"),
    [
        (ColumnBounds("b", "e\0", 6, 15), ASCENDING, None),
        (ColumnBounds("b", "e\0", None, 15), 0, None),
        (ColumnBounds(None, None, 6, 15), ASCENDING, None),
        (ColumnBounds("b", "e\0", 5, 15), ASCENDING, "number of nulls"),
        (ColumnBounds("a", "e\0", 6, 15), ASCENDING, "other bounds"),
        (ColumnBounds("b", "f", 6, 15), ASCENDING, "other bounds"),
        (ColumnBounds("b", "e\0", 6, 15), DESCENDING, "not in the order"),
    ],
)
def test_pages_must_hold_what_their_chunk_says(chunk, order, message):
    pages = BoundsColumn.of(PAGES, TEXT)
    if message is None:
        check_pages(pages, chunk, order, TEXT)
    else:
        with pytest.raises(ValueError, match=message):
            check_pages(pages, chunk, order, TEXT)


def test_of_pages_without_bounds_or_values_nothing_is_asked():
    unknown = BoundsColumn.of([ColumnBounds(None, None, None, 5), PAGES[0]], TEXT)
    check_pages(unknown, ColumnBounds("a", "z", 9, 10), ASCENDING, TEXT)
    check_pages(BoundsColumn.of([PAGES[1]], TEXT), ColumnBounds("a", "z", 5, 5), ASCENDING, TEXT)
