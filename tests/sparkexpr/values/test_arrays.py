"""Conversions between numpy, Python and Arrow say what Arrow's own say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkexpr.values.arrays import arrow_array, numpy_array
from sparkexpr.values.plain_value import fixed_array
from tests.examples import some

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
INTEGERS = {
    pa.int8(): 7,
    pa.int16(): 15,
    pa.int32(): 31,
    pa.int64(): 63,
    pa.date32(): 31,
    pa.timestamp("us"): 63,
    pa.timestamp("ns", "UTC"): 63,
}
VALUES = {
    **{kind: st.integers(-(2**bits), 2**bits - 1) for kind, bits in INTEGERS.items()},
    pa.time32("ms"): st.integers(0, 86_399_999),
    pa.bool_(): st.booleans(),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): st.text(st.characters(codec="utf-8")),
    pa.binary(): st.binary(),
}


@given(st.sampled_from(DTYPES), st.lists(st.tuples(st.integers(0, 100), st.booleans())), st.integers(0, 9), st.integers(1, 3))
@settings(max_examples=some(200), deadline=None)
def test_numbers_and_booleans_come_and_go_unchanged(dtype, lines, skipped, step):
    values = np.array([value for value, _ in lines], dtype)[::step]
    valid = np.array([flag for _, flag in lines], np.bool_)[::step]
    array = arrow_array(values)
    array.validate(full=True)
    assert array.equals(pa.array(values))
    nulls = arrow_array(values, valid)
    nulls.validate(full=True)
    assert nulls.equals(pa.array(values, mask=~valid))
    back = numpy_array(array[skipped:])
    assert back.dtype == values.dtype
    assert back.tolist() == values[skipped:].tolist()
    assert np.array_equal(numpy_array(nulls), nulls.to_numpy(zero_copy_only=False), equal_nan=dtype[0] != "?")


@pytest.mark.parametrize(
    "array",
    [pa.array(["a"]), pa.chunked_array([[1], [2]]), pa.array([1, None]), pa.array([5], pa.date32())],
    ids=["texts", "chunks", "nulls", "dates"],
)
def test_other_arrays_are_as_arrow_gives_them(array):
    found = array.to_numpy() if isinstance(array, pa.ChunkedArray) else array.to_numpy(zero_copy_only=False)
    assert np.array_equal(numpy_array(array), found, equal_nan=found.dtype.kind == "f")


@given(st.sampled_from(list(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), st.lists(st.none() | VALUES[kind]))))
@settings(max_examples=some(300), deadline=None)
def test_plain_values_are_the_array_of_arrow(kind_and_values):
    kind, values = kind_and_values
    for given_values in (values, tuple(values)):
        found = fixed_array(given_values, kind)
        found.validate(full=True)
        expected = pa.array(values, kind)
        assert found.type == kind
        assert found.null_count == expected.null_count
        same = np.array_equal if pa.types.is_floating(kind) else None
        if same is not None:
            assert found.is_valid().equals(expected.is_valid())
            assert same(found.drop_null().to_numpy(), expected.drop_null().to_numpy(), equal_nan=True)
        else:
            assert found.equals(expected)


@pytest.mark.parametrize(("value", "kind"), [(2**63, pa.int64()), (-129, pa.int8()), (2**31, pa.date32()), (2**200, pa.decimal128(38, 2))])
def test_numbers_outside_of_the_range_are_refused(value, kind):
    with pytest.raises(OverflowError):
        fixed_array([value], kind)


def test_decimals_are_their_digits():
    found = fixed_array([10**37, -(10**37), 5, None], pa.decimal128(38, 2))
    found.validate(full=True)
    assert [None if value is None else str(value) for value in found.to_pylist()] == [
        f"{10**35}.00",
        f"-{10**35}.00",
        "0.05",
        None,
    ]
