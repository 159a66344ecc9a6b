"""What a lookup touches: which data files are opened, which columns are decoded, which bytes of an index are fetched."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

import lsm.parquet.reader
import manifest.io.file_io
from fileindex.format.container import Payload
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from pyspark_paimon import InvalidArgument, Table, UnknownColumn
from pyspark_paimon.local.engine import LocalEngine

ROWS = 4000
DDL = "id BIGINT, uid STRING, city STRING, n INT, price DOUBLE, attrs MAP<STRING, INT>"
OPTIONS = {
    "bucket": "4",
    "write-only": "true",
    "file-index.bloom-filter.columns": "uid",
    "file-index.bloom-filter.uid.items": "2000",
    "file-index.bloom-filter.uid.fpp": "0.0001",
    "file-index.bitmap.columns": "city,n,attrs[k]",
    "file-index.range-bitmap.columns": "price",
    "file-index.in-manifest-threshold": "1 b",
}


class CountingIO(WrappedFileIO):
    """Notes the data files that are opened and the bytes that are read of indexes."""

    def __init__(self):
        super().__init__(LocalFileIO())
        self.opened = set()
        self.index_bytes = 0

    def open_input(self, path, size=None):
        self.opened.add(path)
        return super().open_input(path, size)

    def read_range(self, path, offset, length):
        self.index_bytes += length if path.endswith(".index") else 0
        return super().read_range(path, offset, length)


def made(start, end):
    numbers = range(start, end)
    return pa.table(
        {
            "id": numbers,
            "uid": [f"uid-{number * 7919 % 10_007}" for number in numbers],
            "city": [f"city-{number % 8}" for number in numbers],
            "n": pa.array([number % 5 for number in numbers], pa.int32()),
            "price": [float(number * 31 % ROWS) for number in numbers],
            "attrs": pa.array([[("k", number)] if number % 2 else None for number in numbers], pa.map_(pa.string(), pa.int32())),
        }
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("lookups") / "t"
    table = Table.create(path, DDL, primary_keys=["id"], options=OPTIONS)
    table.write(made(0, ROWS))
    table.write(made(100, 300))
    table.compact(full=True)
    return path


@pytest.fixture
def counter():
    return CountingIO()


@pytest.fixture
def table(path, counter):
    return Table(LocalEngine(str(path), file_io=counter))


@pytest.fixture
def decoded(monkeypatch):
    """Names of the columns that are decoded."""
    names = set()
    batches = lsm.parquet.reader.ParquetDataFile.batches

    def noting(self, columns, groups, **options):
        names.update(columns)
        return batches(self, columns, groups, **options)

    monkeypatch.setattr(lsm.parquet.reader.ParquetDataFile, "batches", noting)
    return names


def test_a_bloom_miss_opens_no_data_file_and_reads_only_probed_bytes(table, counter):
    assert table.scan("uid = 'uid-5x'").to_arrow().num_rows == 0
    assert counter.opened == set()
    assert 0 < counter.index_bytes < 0.2 * sum(row["index_size_in_bytes"] for row in table.file_indexes().to_pylist())


def test_the_header_of_an_index_is_read_once_as_long_as_the_file_is_the_same(tmp_path, monkeypatch):
    table = Table.create(tmp_path / "t", DDL, primary_keys=["id"], options={**OPTIONS, "bucket": "1"})
    table.write(made(0, ROWS))
    table.compact(full=True)
    (side_file,) = (tmp_path / "t").glob("bucket-0/*.index")
    written = side_file.read_bytes()
    monkeypatch.setattr(manifest.io.file_io, "_CLOCK_TICK_NANOS", 0)
    monkeypatch.setattr(Payload, "WHOLE", 64)  # a small index is held whole
    offsets = []
    read_range = LocalFileIO.read_range

    def noting(self, path, offset, length):
        offsets.append(offset if path.endswith(".index") else -1)
        return read_range(self, path, offset, length)

    monkeypatch.setattr(LocalFileIO, "read_range", noting)

    def asked():
        offsets.clear()
        assert table.scan("uid = 'uid-7919'").to_arrow()["id"].to_pylist() == [1]
        return 0 in offsets, any(offset > 0 for offset in offsets)

    def replaced(content):
        time.sleep(0.05)  # as long as times of files may be coarse
        side_file.write_bytes(content)

    assert [asked(), asked()] == [(True, True), (False, True)]
    replaced(b"broken" + written[6:])
    assert [asked(), asked()] == [(True, False), (True, False)]  # an index is advice, and what is broken is not held
    replaced(written)
    assert [asked(), asked()] == [(True, True), (False, True)]


def test_a_bloom_hit_opens_the_file_with_the_hit(table, counter):
    assert table.scan("uid = 'uid-7919'").to_arrow()["id"].to_pylist() == [1]
    assert len(counter.opened) == 1


def test_an_equality_on_a_map_entry_opens_the_file_with_the_hit(table, counter):
    assert table.scan("attrs['k'] = 1001").to_arrow()["id"].to_pylist() == [1001]
    assert len(counter.opened) == 1


@pytest.mark.parametrize(
    "filter_", ["city = 'city-3'", "city <> 'city-3' AND n IN (1, 2)", "price < 100", "attrs['k'] = 7", "city IS NULL"]
)
def test_a_count_by_exact_indexes_opens_no_data_file(table, counter, filter_):
    expected = table.scan(filter_).to_arrow().num_rows
    counter.opened.clear()
    assert table.scan(filter_).count() == expected
    assert counter.opened == set()


def test_a_count_that_an_index_does_not_tell_reads_the_files(table, counter):
    assert table.scan("uid LIKE 'uid-1%' AND city = 'city-1'").count() > 0
    assert counter.opened


def test_statistics_that_prove_a_filter_count_without_index_and_file(path, counter):
    table = Table(LocalEngine(str(path), file_io=counter))
    assert table.scan("id >= 0 AND price >= 0").count() == table.scan("id >= 0").count() == ROWS
    assert counter.opened == set()
    assert counter.index_bytes == 0


@pytest.mark.sizes
def test_a_column_whose_filter_the_index_answers_is_not_decoded(table, decoded):
    assert table.scan("city = 'city-3'", columns=["id"]).to_arrow().num_rows == ROWS // 8
    assert decoded == {"id"}


def test_a_column_whose_filter_statistics_prove_is_not_decoded(table, decoded):
    assert table.scan("price >= 0", columns=["id"]).to_arrow().num_rows == ROWS
    assert "price" not in decoded


def test_the_first_rows_of_an_order_are_the_candidates_of_the_index(table, decoded):
    scan = table.scan(columns=["id", "price"], order_by="price DESC", limit=3)
    assert scan.to_arrow()["price"].to_pylist() == [3999.0, 3998.0, 3997.0]
    stages = {stage.name: stage for stage in scan.explain().stages}
    assert stages["first rows"].note.startswith("an index named")
    assert stages["rows"].kept == 3
    files = stages["first rows"].kept + stages["first rows"].dropped
    assert files == stages["splits"].kept == 4


def test_files_beyond_the_worst_row_wanted_are_not_opened(tmp_path, counter):
    written = Table.create(tmp_path / "t", "a INT, b STRING")
    for start in (0, 100, 200):
        written.write(pa.table({"a": pa.array(range(start, start + 100), pa.int32()), "b": [str(at) for at in range(100)]}))
    table = Table(LocalEngine(written.path, file_io=counter, threads=1))
    assert table.scan(order_by="a DESC", limit=2).to_arrow().to_pylist() == [{"a": 299, "b": "99"}, {"a": 298, "b": "98"}]
    assert len(counter.opened) == 1
    stage = next(stage for stage in table.scan(order_by="a", limit=5).explain().stages if stage.name == "first rows")
    assert (stage.kept, stage.dropped) == (1, 2)


def test_explain_tells_what_each_index_did_and_adds_up(table):
    stages = {stage.name: stage for stage in table.scan("city = 'city-3' AND uid = 'uid-5x'").explain().stages}
    assert stages["splits"].kept == 4
    assert (stages["file index"].kept, stages["file index"].dropped) == (0, 4)
    bloom = stages["index uid: bloom-filter"]
    assert (bloom.kept, bloom.dropped) == (0, 4)
    assert "B read" in bloom.note
    assert stages["row groups"].kept == stages["rows"].kept == 0
    found = table.scan("city = 'city-3'").explain()
    line = next(stage for stage in found.stages if stage.name == "index city: bitmap")
    assert line.note.startswith("500 rows selected")
    assert "index city: bitmap" in str(found)
    assert "index city: bitmap" in found._repr_html_()


def test_explain_tells_why_an_index_could_not_be_used(path, tmp_path):
    class BrokenIO(WrappedFileIO):
        def read_range(self, path, offset, length):
            data = super().read_range(path, offset, length)
            return b"\xff" * len(data) if path.endswith(".index") and offset > 400 else data

    table = Table(LocalEngine(str(path), file_io=BrokenIO(LocalFileIO())))
    found = table.scan("city = 'city-3'")
    assert found.count() == ROWS // 8
    note = next(stage for stage in found.explain().stages if stage.name == "index city: bitmap").note
    assert "unusable: " in note
    assert "(4)" in note


@pytest.mark.parametrize(
    ("order_by", "error"),
    [("", InvalidArgument), ("id ASCENDING", InvalidArgument), ("nope", UnknownColumn), ("attrs", InvalidArgument), (7, InvalidArgument)],
)
def test_what_is_no_order_is_refused_by_name(table, order_by, error):
    with pytest.raises(error, match=r"order_by|nope"):
        table.scan(order_by=order_by)


def test_an_order_is_told_by_the_scan_and_takes_names_in_any_case(table):
    scan = table.scan(order_by=["PRICE desc nulls first", "`id`"], limit=1)
    assert repr(scan).endswith("order_by='price DESC NULLS FIRST, id', limit=1)")
    assert scan.to_arrow()["price"].to_pylist() == [3999.0]
