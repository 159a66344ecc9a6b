"""The checksums of side files: no flipped bit is believed, files without them are read, and a question reads its blocks only."""

from __future__ import annotations

import pytest

from fileindex.format.container import ContainerReader, write_index_container
from paimon_base.errors import CorruptIndex

PAYLOADS = [("a", "bitmap", bytes(range(256)) * 40), ("b", "bsi", None), ("b", "bloom-filter", b"\x07" * 33)]


def told(data: bytes, name: str = "f.index") -> list[tuple[str, str, bytes | None]]:
    reader = ContainerReader.of(data, name)
    return [(entry.column, entry.index_type, None if entry.is_empty else reader.payload(entry).whole()) for entry in reader.entries()]


def test_a_flipped_bit_is_an_error_or_changes_nothing() -> None:
    whole = write_index_container(PAYLOADS, "f.index")
    assert told(whole) == PAYLOADS
    unseen = 0
    for at in [*range(8 * 140), *range(8 * 140, 8 * len(whole), 997)]:
        bad = bytearray(whole)
        bad[at // 8] ^= 1 << at % 8
        try:
            assert told(bytes(bad)) == PAYLOADS
            unseen += 1
        except CorruptIndex:
            continue
    assert unseen == 8 * len(b"crc32/1k")  # of the mark alone: without it there are no checksums


def test_the_side_file_of_another_data_file_is_an_error() -> None:
    whole = write_index_container(PAYLOADS, "f.index")
    with pytest.raises(CorruptIndex, match="checksum"):
        told(whole, "g.index")


def test_a_container_without_checksums_is_read() -> None:
    assert told(write_index_container(PAYLOADS)) == PAYLOADS


def test_only_the_blocks_that_hold_the_bytes_are_read() -> None:
    data = write_index_container([("a", "bitmap", bytes(1_000_000))], "f.index")
    reader = ContainerReader(lambda offset, length: data[offset : offset + length], len(data), "f.index")
    (entry,) = reader.entries()
    before = reader.bytes_read
    assert reader.payload(entry).read(500_000, 10) == bytes(10)
    assert reader.bytes_read - before == 1024
