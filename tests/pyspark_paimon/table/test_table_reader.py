"""A reader keeps one snapshot for many threads, and moves to the newest one where it is asked to."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lsm.read.keyed_read import KeyedRead
from pyspark_paimon import InvalidArgument, SnapshotExpired, Table, UnsupportedOption
from tests.pyspark_paimon.readers_beside_writer import look_up_beside, write_all


@pytest.fixture
def table(create) -> Table:
    made = create("id BIGINT, n BIGINT", options={"bucket": "2", "num-sorted-run.compaction-trigger": "4"})
    made.write(pa.table({"id": range(300), "n": [0] * 300}))
    return made


def test_a_reader_answers_from_its_snapshot(table):
    reader = table.reader()
    table.write(pa.table({"id": [7], "n": [1]}))
    assert (reader.snapshot_id, reader.lookup({"id": [7, 999]}).to_pylist()) == (1, [{"id": 7, "n": 0}])
    assert reader.refresh()
    assert not reader.refresh()
    assert reader.lookup({"id": [7]})["n"].to_pylist() == [1]
    assert table.reader(snapshot=1).lookup({"id": [7]}, ["n"]).to_pylist() == [{"n": 0}]
    assert reader.lookup({"id": [999]}, missing="null", indicator=True).to_pylist() == [{"id": 999, "n": None, "_found": False}]


def test_a_reader_sees_new_columns_after_a_refresh(table):
    reader = table.reader()
    table.add_column("city", "STRING")
    table.write(pa.table({"id": [7], "n": [1], "city": ["Oslo"]}))
    assert reader.lookup({"id": [7]}).to_pylist() == [{"id": 7, "n": 0}]
    reader.refresh()
    assert reader.lookup({"id": [7, 8]}).to_pylist() == [{"id": 7, "n": 1, "city": "Oslo"}, {"id": 8, "n": 0, "city": None}]


def test_a_reader_of_an_empty_table_finds_rows_after_a_refresh(create):
    empty = create("id BIGINT, n BIGINT")
    reader = empty.reader()
    assert (reader.snapshot_id, reader.lookup({"id": [1]}).num_rows) == (None, 0)
    empty.write(pa.table({"id": [1], "n": [2]}))
    assert reader.refresh()
    assert reader.lookup({"id": [1]}).num_rows == 1


def test_a_warm_reader_decodes_no_keys(table, monkeypatch, tiny):
    table.write(pa.table({"id": range(0, 300, 3), "n": [5] * 100}))
    reader = table.reader(cache="8 mb")
    assert reader.warm() > 300 * 8
    monkeypatch.setattr(KeyedRead, "_decode", lambda *_: pytest.fail("decoded keys"))
    assert reader.lookup({"id": [10, 9, 1000]}, ["n"]).to_pylist() == [{"n": 0}, {"n": 5}]


def test_a_small_cache_is_not_exceeded(table):
    reader = table.reader(cache="9 kb")
    assert reader.warm() <= 9 << 10
    assert reader.lookup({"id": [10]}).num_rows == 1


def test_a_reader_says_that_its_snapshot_expired(table):
    reader = table.reader()
    table.write(pa.table({"id": range(300), "n": [1] * 300}))
    table.compact(full=True)
    table.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(SnapshotExpired):
        reader.lookup({"id": [1]})
    reader.refresh()
    assert reader.lookup({"id": [1]})["n"].to_pylist() == [1]


def test_tables_without_key_and_wrong_sizes_are_refused(create, table):
    with pytest.raises(InvalidArgument, match="the table has none"):
        create("id BIGINT", name="plain", primary_keys=()).reader()
    with pytest.raises(UnsupportedOption, match="not a memory size"):
        table.reader(cache="much")


@pytest.mark.slow
def test_32_threads_share_a_reader_that_is_refreshed(table):
    reader = table.reader()

    def commits():
        for number in range(1, 7):
            write_all(table.path, 300, number)
            yield reader.refresh()

    seen: list[bool] = []
    look_up_beside(reader.lookup, 300, (seen.append(moved) for moved in commits()))
    assert seen == [True] * 6
