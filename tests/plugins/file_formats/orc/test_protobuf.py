"""The wire format of ORC's metadata."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_paimon.plugins.file_formats.orc.protobuf import integer, integers, message, messages, text, texts


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, wire: int, payload: bytes) -> bytes:
    return varint(number << 3 | wire) + payload


def held(data: bytes) -> bytes:
    return varint(len(data)) + data


@example(2**64 - 1, b"", [])
@given(st.integers(0, 2**64 - 1), st.binary(max_size=300), st.lists(st.integers(0, 2**40), max_size=5))
def test_fields_are_what_was_encoded(number: int, data: bytes, packed: list[int]) -> None:
    inner = field(3, 0, varint(7))
    encoded = b"".join(
        [
            field(1, 0, varint(number)),
            field(2, 2, held(data)),
            field(2, 2, held(b"last")),
            field(4, 1, b"12345678"),
            field(5, 5, b"1234"),
            field(6, 2, held(b"".join(map(varint, packed)))),
            field(6, 0, varint(9)),
            field(200, 2, held(inner)),
        ]
    )
    found = message(encoded)
    assert integer(found, 1) == number
    assert (integer(found, 99), integer(found, 99, 5), text(found, 99)) == (0, 5, b"")
    assert (texts(found, 2), text(found, 2)) == ([data, b"last"], b"last")
    assert (found[4], found[5]) == ([b"12345678"], [b"1234"])
    assert integers(found, 6) == [*packed, 9]
    assert messages(found, 200) == [{3: [7]}]
    for wrong in (lambda: integer(found, 2), lambda: text(found, 1), lambda: texts(found, 1), lambda: messages(found, 1)):
        with pytest.raises(ValueError, match="field"):
            wrong()


@pytest.mark.parametrize(
    "data",
    [
        b"\x08",  # no value
        b"\x08\x80",  # a value that goes on
        b"\x0a\x05ok",  # fewer bytes than it says
        b"\x09\0\0\0\0\0\0\0",  # seven of eight
        b"\x0d\0\0\0",  # three of four
        b"\x0b",  # a group
        b"\x08" + b"\x80" * 10 + b"\x01",  # more bits than any number has
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        message(data)
