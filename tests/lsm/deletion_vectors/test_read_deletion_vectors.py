"""Deletion vectors: both flavours, and what must be refused."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from lsm.deletion_vectors.reader import DeletionFile, decode_deletion_vector, read_deletion_vector
from manifest.io.errors import UnsupportedTable
from manifest.io.file_io import LocalFileIO
from paimon_base.errors import CorruptFile, CorruptIndex

FILE_32 = bytes.fromhex("010000001a5e43f2d03a300000010000000000020010000000030004000500238d0859")
FILE_64 = bytes.fromhex("0100000026d1d339640100000000000000000000003a3000000100000000000200100000000300040005008a81c48b")


def record(magic: str, bitmap: bytes) -> bytes:
    body = bytes.fromhex(magic) + bitmap
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


@pytest.mark.parametrize(("data", "length"), [(FILE_32, 26), (FILE_64, 46)], ids=["32 bit", "64 bit"])
def test_rows_three_to_five_of_the_javas_dump_are_dead(tmp_path, data, length):
    path = tmp_path / "index-1"
    path.write_bytes(data)
    assert read_deletion_vector(LocalFileIO(), DeletionFile(str(path), 1, length, 3)) == BitMap([3, 4, 5])


def test_a_file_may_mix_both_flavours(tmp_path):
    path = tmp_path / "index-1"
    path.write_bytes(FILE_32 + FILE_64[1:])
    assert read_deletion_vector(LocalFileIO(), DeletionFile(str(path), len(FILE_32), 46, None)) == BitMap([3, 4, 5])


@given(st.sets(st.integers(0, 2**32 - 1), max_size=50), st.booleans())
def test_any_set_survives_both_flavours(rows, optimised):
    small, large = BitMap(rows), BitMap64(rows)
    if optimised:
        small.run_optimize()
    assert decode_deletion_vector(record("5e43f2d0", small.serialize())) == BitMap(rows)
    assert decode_deletion_vector(record("d1d33964", large.serialize())) == BitMap(rows)


def test_gaps_between_64_bit_bitmaps_are_empty_bitmaps():
    empty = BitMap().serialize()
    bitmaps = (2).to_bytes(8, "little") + (0).to_bytes(4, "little") + BitMap([7]).serialize() + (1).to_bytes(4, "little") + empty
    assert decode_deletion_vector(record("d1d33964", bitmaps)) == BitMap([7])


@pytest.mark.parametrize("keys", [(0, 0), (1, 0), (0,)], ids=["twice", "backwards", "too few"])
def test_64_bit_bitmaps_out_of_order_are_refused(keys):
    parts = [key.to_bytes(4, "little") + (BitMap([7]) if not key else BitMap()).serialize() for key in keys]
    with pytest.raises(CorruptIndex, match="out of order"):
        decode_deletion_vector(record("d1d33964", (2).to_bytes(8, "little") + b"".join(parts)))


def test_rows_beyond_four_billion_are_refused_by_name():
    with pytest.raises(UnsupportedTable, match=r"2\^32"):
        decode_deletion_vector(record("d1d33964", BitMap64([2**32]).serialize()))


def test_a_huge_bitmap_count_does_not_allocate():
    with pytest.raises(CorruptIndex):
        decode_deletion_vector(record("d1d33964", (2**62).to_bytes(8, "little")))


@pytest.mark.parametrize("at", range(1, len(FILE_64)))
def test_no_flipped_byte_goes_unnoticed(tmp_path, at):
    data = bytearray(FILE_64)
    data[at] ^= 0x40
    path = tmp_path / "index-1"
    path.write_bytes(data)
    with pytest.raises(CorruptFile, match="index-1"):
        read_deletion_vector(LocalFileIO(), DeletionFile(str(path), 1, 46, 3))


@pytest.mark.parametrize(
    ("offset", "length", "cardinality", "reason"),
    [
        (1, 26, 4, "index manifest says 4"),
        (1, 27, 3, "ends at byte 35"),
        (9, 26, 3, "declares 976224256 bytes"),
        (1, 3, 3, "3 bytes"),
        (30, 26, 3, "ends at byte"),
    ],
)
def test_a_wrong_entry_in_the_index_manifest_is_a_corrupt_file(tmp_path, offset, length, cardinality, reason):
    path = tmp_path / "index-1"
    path.write_bytes(FILE_32)
    with pytest.raises(CorruptFile, match=reason):
        read_deletion_vector(LocalFileIO(), DeletionFile(str(path), offset, length, cardinality))


def test_an_unknown_version_and_a_missing_file_are_named(tmp_path):
    path = tmp_path / "index-1"
    path.write_bytes(b"\x02" + FILE_32[1:])
    with pytest.raises(CorruptFile, match="version 2"):
        read_deletion_vector(LocalFileIO(), DeletionFile(str(path), 1, 26, 3))
    with pytest.raises(CorruptFile, match=r"index-2: .*missing"):
        read_deletion_vector(LocalFileIO(), DeletionFile(str(tmp_path / "index-2"), 1, 26, 3))
