"""An error of a decoder becomes one that names the file, once."""

from __future__ import annotations

from itertools import product
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lsm.arrow.text_form import plain_texts
from lsm.parquet.reader import ParquetDataFile, decoding
from manifest.io.errors import UnsupportedTable
from manifest.io.file_cache import FileCache
from manifest.io.file_io import LocalFileIO
from paimon_base.errors import CorruptFile


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (UnsupportedTable("data-1: it is encrypted"), UnsupportedTable, "data-1: it is encrypted"),
        (UnsupportedTable("it is encrypted"), UnsupportedTable, "data-1: it is encrypted"),
        (FileNotFoundError(2, "no such file"), CorruptFile, "data-1: the data file is missing"),
        (pa.ArrowInvalid("bad page"), CorruptFile, "data-1: is not a readable Parquet file (bad page)"),
        (ValueError("bad length"), CorruptFile, "data-1: is not a readable Parquet file (bad length)"),
    ],
    ids=repr,
)
def test_the_file_is_named_once(error: Exception, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as found, decoding("data-1", "Parquet"):
        raise error
    assert str(found.value) == text


@pytest.mark.parametrize("group_rows", [1, 7, 50, 300])
def test_nanoseconds_beside_texts_with_dictionaries_are_read_over_row_groups(tmp_path, group_rows) -> None:
    """The decoder ends a batch where the dictionary of a text column ends, and not in a stream without one."""
    stamps = [None if at % 7 == 0 else at * 1_000_001 for at in range(300)]
    rows = pa.table({"at": pa.array(stamps, pa.timestamp("ns")), "city": [f"city {at % 3 + at // 40}" for at in range(300)]})
    path = str(tmp_path / "data.parquet")
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True, row_group_size=group_rows)
    with ParquetDataFile(LocalFileIO(), path) as file:
        for dictionaries, size in product(((), ("city",)), (10, 1000)):
            batches = file.batches(["city", "at"], file.row_groups, nanos=["at"], dictionaries=dictionaries, batch_rows=size)
            found = pa.concat_tables([plain_texts(pa.Table.from_batches([batch])) for batch in batches])
            assert found.select(rows.column_names).to_pydict() == rows.to_pydict()


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """Return the paths of the files that are opened."""
    paths: list[str] = []
    opens = LocalFileIO.open_input

    def recorded(io: LocalFileIO, path: str, size: int | None = None) -> object:
        paths.append(path)
        return opens(io, path, size)

    monkeypatch.setattr(LocalFileIO, "open_input", recorded)
    return paths


def decoded(path: str, cache: FileCache, columns: list[str], **options: object) -> list[pa.RecordBatch]:
    with ParquetDataFile(LocalFileIO(), path, files=cache) as file:
        return list(file.batches(columns, file.row_groups, **options))


@pytest.mark.parametrize("group_rows", [4, 50])
def test_decoded_columns_of_a_small_file_are_cached_until_it_changes(tmp_path, opened, group_rows) -> None:
    rows = pa.table({"a": list(range(50)), "city": [f"city {at % 3}" for at in range(50)], "l": [[at, None] for at in range(50)]})
    path, cache = str(tmp_path / f"data-{uuid4()}-0.parquet"), FileCache(1 << 20)
    pq.write_table(rows, path, row_group_size=group_rows)
    assert pa.Table.from_batches(decoded(path, cache, ["l", "a"])).equals(rows.select(["l", "a"]))
    opened.clear()
    found = decoded(path, cache, ["a", "l"], batch_rows=3)
    assert pa.Table.from_batches(found).equals(rows.select(["a", "l"]))
    assert max(batch.num_rows for batch in found) == 3
    assert opened == [], "a column was decoded again"
    assert pa.Table.from_batches(decoded(path, cache, ["city", "a"], dictionaries=["city"])).equals(rows.select(["city", "a"]))
    assert opened == [path]
    pq.write_table(rows.slice(10), path, row_group_size=group_rows)
    assert pa.Table.from_batches(decoded(path, cache, ["a"])).equals(rows.select(["a"]).slice(10))


@pytest.mark.sizes
def test_columns_of_a_large_file_are_not_cached(tmp_path, opened, set_thresholds) -> None:
    rows = pa.table({"a": list(range(500))})
    path, cache = str(tmp_path / f"data-{uuid4()}-0.parquet"), FileCache(1 << 20)
    pq.write_table(rows, path)
    set_thresholds(held_file_bytes=8 * 500 - 1)
    for _ in range(2):
        assert pa.Table.from_batches(decoded(path, cache, ["a"])).equals(rows)
    assert opened == [path, path]  # the file is opened once for the footer and its rows, then for its rows


@pytest.mark.parametrize("coded", [True, False])
def test_empty_row_groups_of_arrow_are_read(tmp_path, coded) -> None:
    """Arrow gives their chunks the position 0, which is that of the magic bytes."""
    rows = pa.table({"a": [1, 2], "s": ["x", None]})
    path = str(tmp_path / f"data-{uuid4()}-0.parquet")
    for parts in ([rows[:0]], [rows[:1], rows[:0], rows[1:]], [rows[:0], rows]):
        with pq.ParquetWriter(path, rows.schema, use_dictionary=coded) as writer:
            for part in parts:
                writer.write_table(part)
        for cache in (None, FileCache(1 << 20)):
            with ParquetDataFile(LocalFileIO(), path, files=cache) as file:
                found = pa.Table.from_batches(file.batches(["s", "a"], file.row_groups), rows.select(["s", "a"]).schema)
            assert found.equals(pa.concat_tables(parts).select(["s", "a"]))
