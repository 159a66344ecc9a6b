"""The container's bytes, and that a reader takes only what it is asked for and refuses what does not hold together."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.format.container import ContainerEntry, ContainerReader, Payload, write_index_container
from paimon_base.errors import CorruptIndex

EXAMPLE = [
    ("user_id", "bitmap", b"\1\2\3"),
    ("user_id", "bloom-filter", b"\4\5"),
    ("region", "bitmap", None),
]
EXAMPLE_BYTES = (
    "00054e4ed01a35ae0000000100000067000000020007757365725f69640000000200066269746d61700000006700000003"
    "000c626c6f6f6d2d66696c7465720000006a000000020006726567696f6e000000010006"
    "6269746d6170ffffffff00000000000000000102030405"
)
UNICODE_BYTES = "00054e4ed01a35ae000000010000003500000001000ac3a9c080eda0bdedb880000000010003627369000000350000000100000000" + "09"


def listed(reader):
    return [(entry.column, entry.index_type, entry.length, entry.is_empty) for entry in reader.entries()]


def test_a_container_has_the_bytes_of_the_java_writer():
    data = write_index_container(EXAMPLE)
    assert data.hex() == EXAMPLE_BYTES
    assert len(data) == 108


def test_names_are_modified_utf8():
    assert write_index_container([("é\0😀", "bsi", b"\t")]).hex() == UNICODE_BYTES
    assert listed(ContainerReader.of(bytes.fromhex(UNICODE_BYTES))) == [("é\0😀", "bsi", 1, False)]


def test_the_listing_names_every_index_without_its_payload():
    reader = ContainerReader.of(bytes.fromhex(EXAMPLE_BYTES))
    assert listed(reader) == [("user_id", "bitmap", 3, False), ("user_id", "bloom-filter", 2, False), ("region", "bitmap", 0, True)]
    assert [reader.payload(entry).whole() for entry in reader.of_column("user_id")] == [b"\1\2\3", b"\4\5"]


def test_a_container_without_indexes_is_its_header():
    assert listed(ContainerReader.of(write_index_container([]))) == []


def test_unknown_trailing_header_bytes_are_passed_over():
    data = bytearray(bytes.fromhex("00054e4ed01a35ae000000010000001b0000000000000003616263"))
    assert listed(ContainerReader.of(bytes(data))) == []


def test_of_a_repeated_index_the_last_counts():
    reader = ContainerReader.of(write_index_container([("a", "bitmap", b"x"), ("b", "bsi", b"y"), ("a", "bitmap", b"zz")]))
    assert [reader.payload(entry).whole() for entry in reader.of_column("a")] == [b"zz"]


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.tuples(NAMES, NAMES), st.none() | st.binary(max_size=200), max_size=20))
def test_every_payload_comes_back_by_column_and_type(payloads):
    reader = ContainerReader.of(write_index_container([(*key, payload) for key, payload in payloads.items()]))
    found = {(entry.column, entry.index_type): None if entry.is_empty else reader.payload(entry).whole() for entry in reader.entries()}
    assert found == payloads


def test_of_a_large_payload_only_the_bytes_asked_for_are_read():
    payload = bytes(range(256)) * 1000
    data = write_index_container([("a", "bloom-filter", payload)])
    reads = []

    def read(offset, length):
        reads.append(length)
        return data[offset : offset + length]

    reader = ContainerReader(read, len(data))
    (entry,) = reader.of_column("a")
    assert reader.payload(entry).read(1000, 3) == payload[1000:1003]
    assert sum(reads) == reader.bytes_read < 100


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "lie outside"),
        (b"PAR1" + bytes(30), "wrong magic"),
        (bytes.fromhex("00054e4ed01a35ae000000020000001800000000" + "00000000"), "version 2 is unknown"),
        (bytes.fromhex("00054e4ed01a35ae000000017fffffff00000000" + "00000000"), "lie outside"),
        (bytes.fromhex("00054e4ed01a35ae000000010000000000000000" + "00000000"), "lie outside"),
        (bytes.fromhex("00054e4ed01a35ae00000001000000187fffffff" + "00000000"), "truncated"),
    ],
)
def test_a_header_that_does_not_hold_together_is_refused(data, reason):
    with pytest.raises(CorruptIndex, match=reason):
        ContainerReader.of(data).entries()


def test_a_payload_outside_the_container_is_refused():
    reader = ContainerReader.of(bytes.fromhex(EXAMPLE_BYTES)[:-1])
    with pytest.raises(CorruptIndex, match="has payloads up to byte 108"):
        reader.of_column("user_id")
    with pytest.raises(CorruptIndex, match="outside its container"):
        reader.payload(ContainerEntry("user_id", "bloom-filter", 106, 2))


def test_a_store_that_returns_too_little_is_noticed():
    data = bytes.fromhex(EXAMPLE_BYTES)
    with pytest.raises(CorruptIndex, match="ends at byte"):
        ContainerReader(lambda offset, length: data[offset : offset + length - 1], len(data)).entries()


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, -1), (2, 2), (4, 1)])
def test_a_payload_is_not_read_beyond_its_end(offset, length):
    with pytest.raises(CorruptIndex):
        Payload.of(b"abc").read(offset, length)


def test_names_that_are_too_long_are_refused():
    with pytest.raises(OverflowError, match="65535"):
        write_index_container([("x" * 65536, "bitmap", b"")])
