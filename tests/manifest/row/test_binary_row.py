"""Binary rows: damage is an error and never more, and some fields decode as all of them do."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.row.binary_row import EMPTY_ROW, decode_fields, decode_row, encode_row, header_size
from manifest.types.data_type import DataType
from paimon_base.errors import UnsupportedType
from sparkexpr.values.column_type import Plain
from tests.odd_bytes import odd_bytes, odd_texts

VALUES: dict[str, st.SearchStrategy[Plain]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-(2**7), 2**7 - 1),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32, allow_nan=False),
    "DOUBLE": st.floats(allow_nan=False),
    "DATE": st.integers(-(2**31), 2**31 - 1),
    "TIME(3)": st.integers(0, 86_399_999),
    "CHAR(9)": st.text(max_size=9),
    "STRING": odd_texts | st.text(max_size=30),
    "BYTES": odd_bytes | st.binary(max_size=30),
    "DECIMAL(18, 4)": st.integers(-(10**18) + 1, 10**18 - 1),
    "DECIMAL(19, 4)": st.integers(-(10**19) + 1, 10**19 - 1),
    "DECIMAL(38, 0)": st.integers(-(10**38) + 1, 10**38 - 1),
    "TIMESTAMP(3)": st.integers(-(2**63), 2**63 - 1),
    "TIMESTAMP(6)": st.integers(-(2**63), 2**63 - 1),
    "TIMESTAMP(9) WITH LOCAL TIME ZONE": st.integers(-(2**63), 2**63 - 1),
}


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[DataType], list[Plain]]:
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=6))
    return [DataType.from_json(name) for name in names], [draw(st.none() | VALUES[name]) for name in names]


@given(rows())
def test_values_survive_a_round_trip_in_whole_words(row: tuple[list[DataType], list[Plain]]) -> None:
    types, values = row
    encoded = encode_row(values, types)
    assert decode_row(encoded, types) == tuple(values)
    assert (len(encoded) - 4) % 8 == 0
    assert int.from_bytes(encoded[:4], "big") == len(types)


@given(rows(), st.data())
def test_some_fields_decode_as_all_do(row: tuple[list[DataType], list[Plain]], data: st.DataObject) -> None:
    types, values = row
    places = data.draw(st.lists(st.sampled_from(range(len(types)))) if types else st.just([]))
    encoded = encode_row(values, types)
    assert decode_fields(encoded, len(types), [(at, types[at]) for at in places]) == tuple(values[at] for at in places)


@given(rows(), st.data())
def test_damaged_rows_decode_to_something_or_raise_value_error(row: tuple[list[DataType], list[Plain]], data: st.DataObject) -> None:
    types, values = row
    damaged = bytearray(encode_row(values, types))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    for broken in (bytes(damaged), cut):
        try:
            decoded = decode_row(broken, types)
        except ValueError:
            continue
        assert len(decoded) == len(types)
        assert sum(len(value) for value in decoded if isinstance(value, str | bytes)) <= len(broken) * len(types)


def test_the_header_grows_in_whole_words() -> None:
    assert [header_size(arity) for arity in (0, 1, 56, 57, 120, 121)] == [8, 8, 8, 16, 16, 24]


def test_a_row_without_fields_is_twelve_zero_bytes() -> None:
    assert encode_row((), ()) == EMPTY_ROW == bytes(12)
    assert decode_row(EMPTY_ROW, ()) == ()


def test_a_row_of_another_arity_is_refused() -> None:
    types = [DataType.from_json("INT")] * 2
    with pytest.raises(ValueError, match="2 fields"):
        decode_row(encode_row((1,), types[:1]), types)


def test_floats_keep_their_bits() -> None:
    types = [DataType.from_json("DOUBLE"), DataType.from_json("FLOAT")]
    first, second = decode_row(encode_row((-0.0, math.nan), types), types)
    assert isinstance(first, float)
    assert math.copysign(1, first) == -1
    assert isinstance(second, float)
    assert math.isnan(second)


@pytest.mark.parametrize("text", [{"type": "ARRAY", "element": "INT"}, "VARIANT", "GEOMETRY"], ids=str)
def test_values_of_constructed_types_stand_in_no_row(text: object) -> None:
    data_type = DataType.from_json(text)
    with pytest.raises(UnsupportedType):
        encode_row((b"",), (data_type,))
    with pytest.raises(UnsupportedType):
        decode_row(encode_row((1,), (DataType.from_json("INT"),)), (data_type,))
