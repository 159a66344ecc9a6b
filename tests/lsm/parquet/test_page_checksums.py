"""Pages are verified by their checksums on every way to their values: whole chunks, single pages, flat and nested, and the second decoder.

Uncompressed pages of plain values, so that nothing but the checksum can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lsm.parquet.reader
from lsm.parquet.reader import ParquetDataFile
from lsm.parquet.write.writer import ParquetFileWriter
from manifest.avro.wire import encode_long
from manifest.io.errors import OutOfMemory
from manifest.io.file_io import LocalFileIO
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import Thresholds, use_thresholds
from pyspark_paimon import Table

ROWS = Thresholds().paged_rows + 100
WANTED = np.array([15_000, 15_001])
MASK = np.isin(np.arange(ROWS), WANTED)


def nested(number: int) -> list[int]:
    return [number * 7, number * 7 + 1]


def rows() -> pa.Table:
    numbers = np.arange(ROWS, dtype=np.int64)
    return pa.table({"n": numbers * 7, "s": [f"text {number:06}" for number in numbers], "a": [nested(number) for number in range(ROWS)]})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("pages") / "f.parquet"
    writer = ParquetFileWriter(LocalFileIO(), str(path), rows().schema, compression="none", plain=frozenset({"n", "s"}))
    writer.write(rows())
    writer.close()
    return path.read_bytes()


@pytest.fixture(autouse=True)
def small_is_worth_it(set_thresholds: Callable[..., None]) -> None:
    set_thresholds(masked_chunk_bytes=0)


def streamed(file: ParquetDataFile, column: str, **how: Any) -> list[Any]:
    batches = list(file.batches([column], file.row_groups, **how))
    return pa.Table.from_batches(batches)[column].take(WANTED).to_pylist()


def taken(file: ParquetDataFile, column: str) -> list[Any]:
    pages = file.pages(file.row_groups[0])
    assert pages is not None
    (found,) = file.take(pages, [column], WANTED)
    return streamed(file, column) if found is None else found.to_pylist()  # as its reader goes on


def masked(file: ParquetDataFile, column: str) -> list[Any]:
    pages = file.pages(file.row_groups[0])
    assert pages is not None
    found = file.take_masked(pages, [column], MASK)
    return streamed(file, column) if found is None else found[0].to_pylist()


def searched(file: ParquetDataFile, column: str) -> list[Any]:
    pages = file.pages(file.row_groups[0])
    assert pages is not None
    found = file.rows_of_texts([pages], column, ["text 015000", "text 015001"])
    return streamed(file, column) if found is None else [f"text {row:06}" for row in found[0]]


WAYS: dict[str, tuple[Callable[..., list[Any]], str]] = {
    "chunks by Arrow": (streamed, "n"),
    "chunks by Arrow, texts": (streamed, "s"),
    "chunks by Arrow, nested": (lambda file, column: streamed(file, column, threads=False), "a"),
    "pages": (taken, "n"),
    "pages of texts": (taken, "s"),
    "pages of nested values": (taken, "a"),
    "chunks by polars": (masked, "n"),
    "texts by polars": (searched, "s"),
}
VALUES = {"n": [int(row) * 7 for row in WANTED], "s": [f"text {row:06}" for row in WANTED], "a": [nested(int(row)) for row in WANTED]}
STORED = {"n": (15_000 * 7).to_bytes(8, "little"), "s": b"text 015000", "a": (15_000 * 7).to_bytes(8, "little")}


@pytest.mark.parametrize("way", WAYS)
def test_a_flipped_bit_of_a_page_is_an_error_that_names_the_file(
    whole: bytes, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, column = WAYS[way]
    path = tmp_path / "f.parquet"
    path.write_bytes(whole)
    with ParquetDataFile(LocalFileIO(), str(path)) as file, monkeypatch.context() as only:
        if "Arrow" not in way:
            only.delattr(ParquetDataFile, "batches")  # it is this way that is gone
        assert read(file, column) == VALUES[column]
    places = [at for at in range(len(whole)) if whole.startswith(STORED[column], at)] if column != "n" else [whole.index(STORED["n"])]
    assert places
    at = places[-1] if column == "a" else places[0]
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with ParquetDataFile(LocalFileIO(), str(path)) as file, pytest.raises(CorruptFile, match=r"f\.parquet"):
        read(file, column)


def test_want_of_memory_is_not_called_corrupt(whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(whole)

    def failing(*_: object, **__: object) -> Any:
        raise pa.ArrowMemoryError("malloc of size 1024 failed")

    with ParquetDataFile(LocalFileIO(), str(path)) as file:
        monkeypatch.setattr(lsm.parquet.reader.pq.ParquetFile, "iter_batches", failing)
        with pytest.raises(OutOfMemory, match=r"f\.parquet: out of memory"):
            streamed(file, "n")


@pytest.mark.parametrize("columns", [["n"], ["n", "id"]])
def test_a_wrong_number_of_values_in_a_page_header_is_an_error_before_rows_are_answered(tmp_path: Path, columns: list[str]) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT NOT NULL, n BIGINT NOT NULL", options={"file.compression": "none"})
    table.write(pa.table({"id": range(200), "n": [number * 7919 % 100 for number in range(200)]}))
    (path,) = Path(table.path).rglob("data-*.parquet")
    group = pq.read_metadata(path).row_group(0)
    (chunk,) = (group.column(at) for at in range(2) if group.column(at).path_in_schema == "n")
    data = bytearray(path.read_bytes())
    count = data.index(b"\x15" + encode_long(200), chunk.data_page_offset)  # the header's field is a zigzag number as Avro's are
    data[count : count + 3] = b"\x15" + encode_long(190)
    path.write_bytes(data)
    with use_thresholds(held_file_bytes=0), pytest.raises(CorruptFile, match=path.name):
        Table.open(table.path).scan("id > 20 AND id < 70", columns=columns).to_arrow()
