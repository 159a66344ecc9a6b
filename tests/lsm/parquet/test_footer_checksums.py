"""The checksums of footers and page indexes: no flipped bit goes unseen, other readers pass over them, files without them are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lsm.parquet.footer_checksums
from lsm.parquet.footer_checksums import verify_footer_checksums
from lsm.parquet.reader import ParquetDataFile
from lsm.parquet.write.writer import ParquetFileWriter
from manifest.io.file_io import LocalFileIO
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import Thresholds
from sparkexpr.values.column_type import Kind
from tests.damage import footer_span, page_index_span

ROWS = Thresholds().paged_rows + 5000
BIGINT, TEXT = DataType(Kind.BIGINT), DataType(Kind.VARCHAR, length=99)
SEAL = 12


def rows(count: int = ROWS) -> pa.Table:
    numbers = np.arange(count)
    floats = np.where(numbers % 3 == 0, np.nan, numbers)
    return pa.table({"n": numbers, "s": [f"text {number:06}" for number in numbers], "f": floats})


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    return written(tmp_path_factory.mktemp("files") / "f", ROWS)


def written(path: Path, count: int) -> bytes:
    writer = ParquetFileWriter(LocalFileIO(), str(path), rows().schema)
    writer.write(rows(count))
    _, size = writer.close()
    content = path.read_bytes()
    assert size == len(content)
    return content


def opened(path: Path, content: bytes) -> ParquetDataFile:
    path.write_bytes(content)
    return ParquetDataFile(LocalFileIO(), str(path))


def page_bounds(file: ParquetDataFile) -> list[object]:
    """What the page indexes say; None for a column of which they say nothing."""
    pages = file.pages(file.row_groups[0])
    assert pages is not None
    found: list[object] = []
    for name, kind in (("n", BIGINT), ("s", TEXT)):
        known = file.page_bounds(pages, name, kind)
        found.append(known and (known[0].each(kind), known[1].tolist()))
    return found


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]


def test_no_bit_of_a_footer_is_flipped_unseen(tmp_path: Path) -> None:
    whole = written(tmp_path / "f", 20)
    first, end = footer_span(whole)
    unseen = []
    for at in range(first - SEAL, end):
        try:
            opened(tmp_path / "f", flipped(whole, at)).close()
            unseen.append(at)
        except CorruptFile:
            continue
    assert unseen == list(range(first - SEAL, first - SEAL + 4))  # the mark itself: then there are no checksums, and nothing else is wrong


def test_a_seal_that_was_written_before_is_known() -> None:
    indexes, checksums = bytes(range(256)) * 20, bytes.fromhex("822091a2264c0bb75050533100140000114fec8e")
    found = verify_footer_checksums(checksums, b"footer", 100 + len(indexes) + len(checksums))
    read = found.reading(lambda offset, length: indexes[offset - 100 : offset - 100 + length])
    assert (found.start, read(100, len(indexes)), read(4200, 9)) == (100, indexes, indexes[4100:4109])
    spoiled = found.reading(lambda offset, length: bytes(length))
    with pytest.raises(ValueError, match=r"the checksum of the page indexes at byte .* does not match"):
        spoiled(4200, 9)


def test_what_page_indexes_say_is_what_was_written_or_nothing(whole: bytes, tmp_path: Path) -> None:
    with opened(tmp_path / "f", whole) as file:
        right = page_bounds(file)
    assert None not in right
    first, end = page_index_span(whole)
    silent = 0
    for at in range(first, end - SEAL - 4, 3):
        with opened(tmp_path / "f", flipped(whole, at)) as file:
            found = page_bounds(file)
        assert all(one is None or one == known for one, known in zip(found, right, strict=True)), at
        silent += None in found
    assert silent > 100


def test_blocks_are_checked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsm.parquet.footer_checksums, "_BLOCK", 10)
    content = bytes(range(95))
    checksums = lsm.parquet.footer_checksums.footer_checksums(content, b"footer")
    assert lsm.parquet.footer_checksums.footer_checksums_length(b"before" + checksums) == len(checksums)
    known = lsm.parquet.footer_checksums.verify_footer_checksums(checksums, b"footer", 1000 + 95 + len(checksums))
    assert (known.start, known.end, len(known.checksums)) == (1000, 1095, 10)
    stored = bytearray(bytes(1000) + content + checksums)
    read = known.reading(lambda offset, length: bytes(stored[offset : offset + length]))
    assert all(read(1000 + at, length) == content[at : at + length] for at, length in ((0, 95), (9, 2), (10, 10), (94, 1), (30, 0)))
    stored[1042] ^= 1
    assert read(1000, 40) == content[:40]
    assert read(1050, 45) == content[50:]
    with pytest.raises(ValueError, match=r"the checksum of the page indexes at byte .* does not match"):
        read(1039, 2)
    assert read(0, 100) == bytes(100)  # outside: pages have checksums of their own


def test_other_readers_pass_over_the_seal_and_files_without_it_are_read(whole: bytes, tmp_path: Path) -> None:
    content = pq.read_table(pa.BufferReader(whole))
    assert content.column("n").equals(rows().column("n"))
    first, _ = footer_span(whole)
    assert whole[first - SEAL : first - SEAL + 4] == b"PPS1"
    pq.write_table(rows(), tmp_path / "other.parquet", write_page_index=True)
    with ParquetDataFile(LocalFileIO(), str(tmp_path / "other.parquet")) as file:
        assert None not in page_bounds(file)
