"""Sections beyond 2 GiB are refused: their offsets have 32 bits with a sign."""

import pytest

from fileindex.format import range_bitmap_writer
from fileindex.format.int_range import check_size
from fileindex.format.range_bitmap_writer import write_range_bitmap
from fileindex.keys.group_by import ColumnRows
from sparkexpr.values.column_type import ColumnType, Kind

GIB = 2**30


def test_an_offset_reaches_2_gib_less_one_byte():
    check_size("a section", 2 * GIB - 1)
    with pytest.raises(OverflowError, match="a section of 2147483648 bytes exceeds 2 GiB"):
        check_size("a section", 2 * GIB)


class _Bytes(bytes):
    """As long as it is said to be."""

    said: int

    def __len__(self):
        return self.said


@pytest.mark.parametrize("size", [2 * GIB - 1, 2 * GIB])
def test_a_dictionary_is_as_long_as_its_length_can_say(monkeypatch, size):
    dictionary = _Bytes(b"d")
    dictionary.said = size
    monkeypatch.setattr(range_bitmap_writer, "_fixed_dictionary", lambda *_: dictionary)
    column = ColumnRows(ColumnType(Kind.INT)).group()
    if size < 2 * GIB:
        assert size.to_bytes(4, "big") in write_range_bitmap(column, ColumnType(Kind.INT))
        return
    with pytest.raises(OverflowError, match="range-bitmap dictionary"):
        write_range_bitmap(column, ColumnType(Kind.INT))
