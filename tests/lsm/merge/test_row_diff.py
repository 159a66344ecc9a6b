"""Equality of rows in every type, and the changes between two states, against Python's own comparison."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.keys.sort import SortKey
from lsm.merge.row_diff import equal_rows, equal_values, row_diff

KEY = SortKey(("id",))
TYPES = {
    "int": (pa.int32(), st.integers(-3, 3)),
    "text": (pa.string(), st.sampled_from(["", "a", "ab", "ü"])),
    "bytes": (pa.binary(), st.sampled_from([b"", b"\x00", b"\xff"])),
    "float": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf])),
    "bool": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(10, 2), st.sampled_from([Decimal("0.00"), Decimal("-1.25")])),
    "date": (pa.date32(), st.sampled_from([dt.date(1970, 1, 1), dt.date(2024, 2, 29)])),
}
TYPES |= {
    "list": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(0, 2), max_size=3)),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.none() | st.integers(0, 1), "b": st.none() | st.just("x")}),
    ),
    "map": (
        pa.map_(pa.string(), pa.int32()),
        st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(0, 1)).map(lambda d: list(d.items())),
    ),
    "nested": (
        pa.list_(pa.struct([("m", pa.map_(pa.int32(), pa.float32()))])),
        st.lists(st.fixed_dictionaries({"m": st.none() | st.just([(1, 0.5)])}), max_size=2),
    ),
}


def canonical(value: object) -> object:
    """A value whose ``==`` is the equality that rows have."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, list):
        if value and all(isinstance(entry, tuple) for entry in value):
            return (
                sorted((key, canonical(item)) for key, item in value)
                if all(item is not None for _, item in value)
                else sorted(map(repr, value))
            )
        return [canonical(entry) for entry in value]
    if isinstance(value, dict):
        return {key: canonical(entry) for key, entry in value.items()}
    return value


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_values_are_equal_where_python_says_so(name: str, data: st.DataObject) -> None:
    type_, values = TYPES[name]
    pairs = data.draw(st.lists(st.tuples(st.none() | values, st.none() | values), max_size=12))
    skip = data.draw(st.integers(0, 2))
    left, right = (pa.array([pair[side] for pair in pairs], type_).slice(skip) for side in (0, 1))
    expected = [canonical(one) == canonical(other) for one, other in pairs[skip:]]
    assert equal_values(left, right).tolist() == expected


def test_entries_of_a_map_may_come_in_any_order() -> None:
    kind = pa.map_(pa.string(), pa.int32())
    one = pa.table({"m": pa.array([[("a", 1), ("b", 2)], [("a", 1)]], kind)})
    other = pa.table({"m": pa.array([[("b", 2), ("a", 1)], [("a", 2)]], kind)})
    assert equal_rows(one, other, ["m"]).tolist() == [True, False]


def state(rows: dict[int, int | None]) -> pa.Table:
    ids = sorted(rows)
    columns = {"id": pa.array(ids, pa.int64()), "v": pa.array([rows[at] for at in ids], pa.int32())}
    return pa.table(columns | {"_VALUE_KIND": pa.array(np.zeros(len(ids), np.int8))})


@given(
    before=st.dictionaries(st.integers(0, 9), st.none() | st.integers(0, 2)),
    after=st.dictionaries(st.integers(0, 9), st.none() | st.integers(0, 2)),
    deduplicates=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_changes_are_the_difference_key_by_key(before: dict, after: dict, *, deduplicates: bool) -> None:
    expected = []
    for key in sorted({*before, *after}):
        if key not in after:
            expected.append((key, before[key], 3))
        elif key not in before:
            expected.append((key, after[key], 0))
        elif not deduplicates or before[key] != after[key]:
            expected += [(key, before[key], 1), (key, after[key], 2)]
    found = row_diff(state(before), state(after), KEY, compared=["v"] if deduplicates else None)
    assert list(zip(*(found.column(name).to_pylist() for name in ("id", "v", "_VALUE_KIND")), strict=True)) == expected
