"""``Table.rewrite_file_index``: indexes of files that exist follow the table's options, and rows never change."""

from __future__ import annotations

import shutil
import signal
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from fileindex.format.container import ContainerReader
from lsm.file_index.locate import index_place
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.store import FileStore
from pyspark_paimon import CorruptFile, Table
from tests.golden_rows import GOLDEN, expected_rows, golden_rows
from tests.pyspark_paimon.table_worker import finish, start

FAR = 2**62
EMBED, BESIDE = {"file-index.in-manifest-threshold": "1 mb"}, {"file-index.in-manifest-threshold": "1 b"}
ATTRS = pa.map_(pa.string(), pa.int32())


def bitmap(columns):
    return {"file-index.bitmap.columns": columns}


def listed(table):
    """(column, type, storage) of all indexes, each once."""
    names = ["column_name", "index_type", "storage_type"]
    return sorted({tuple(row.values()) for row in table.file_indexes().select(names).to_pylist()})


def places(table):
    return table.files()["file_index"].to_pylist()


def entries(table):
    store = FileStore.open(table.path)
    return store, store.live_entries(store.snapshots.latest()).entries()


@pytest.fixture
def cities(create):
    """Three files of 50 rows: city, and a map with clicks and price."""
    table = create("id BIGINT, city STRING, attrs MAP<STRING, INT>, n INT", primary_keys=(), options=EMBED)
    for part in range(3):
        ids = range(part * 50, part * 50 + 50)
        attrs = pa.array([[("clicks", at), ("price", at % 5)] if at % 7 else None for at in ids], ATTRS)
        table.write(pa.table({"id": ids, "city": [f"city-{at % 9}" for at in ids], "attrs": attrs, "n": pa.array(ids, pa.int32())}))
    return table


def test_without_options_there_is_nothing_to_do(cities) -> None:
    done = cities.rewrite_file_index()
    assert (done.files, done.rewritten, done.bytes_read, done.snapshot_id) == (3, 0, 0, None)
    assert cities.snapshots().num_rows == 3


def test_indexes_are_added_and_answer(cities) -> None:
    before = cities.scan("city = 'city-4' AND attrs['clicks'] = 58").plan().splits
    cities.alter_options({**bitmap("city,attrs[clicks]"), "file-index.bsi.columns": "attrs[price],n"})
    done = cities.rewrite_file_index()
    assert (done.files, done.rewritten, done.snapshot_id) == (3, 3, 4)
    assert done.bytes_read > 0 < done.bytes_written
    assert listed(cities) == [
        ("attrs[clicks]", "bitmap", "EMBEDDED"),
        ("attrs[price]", "bsi", "EMBEDDED"),
        ("city", "bitmap", "EMBEDDED"),
        ("n", "bsi", "EMBEDDED"),
    ]
    scan = cities.scan("city = 'city-4' AND attrs['clicks'] = 58")
    assert [len(split.files) for split in before] == [3]
    assert [len(split.files) for split in scan.plan().splits] == [1]
    assert scan.to_arrow()["id"].to_pylist() == [58]
    assert cities.snapshots()["commit_kind"].to_pylist()[-1] == "COMPACT"


def test_a_second_call_changes_nothing_and_opens_no_data_file(cities) -> None:
    cities.alter_options({**bitmap("city"), **BESIDE})
    assert cities.rewrite_file_index().rewritten == 3
    for path in Path(cities.path).glob("bucket-0/*.parquet"):
        path.rename(path.with_suffix(".hidden"))
    again = cities.rewrite_file_index()
    assert (again.files, again.rewritten, again.snapshot_id) == (3, 0, None)


def test_payloads_that_are_wanted_stay_as_they_are(cities) -> None:
    cities.alter_options(bitmap("city"))
    cities.rewrite_file_index()

    def payloads(column):
        store, found = entries(cities)
        containers = [index_place(store, entry).container for entry in found]
        return sorted(container.payload(index).whole() for container in containers for index in container.of_column(column))

    before, whole = payloads("city"), cities.files()["file_size"].to_pylist()
    cities.alter_options({**bitmap("city,n"), **BESIDE})
    done = cities.rewrite_file_index()
    assert payloads("city") == before
    assert len(payloads("n")) == 3
    assert 0 < done.bytes_read < sum(whole)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"file-index.bitmap.city.version": "1"}, {"file-index.bitmap.city.version": "2"}),
        ({}, {"file-index.bitmap.city.index-block-size": "40b"}),
    ],
)
def test_an_index_with_other_options_is_built_again(cities, first, second) -> None:
    cities.alter_options({**bitmap("city,n"), **first})
    cities.rewrite_file_index()
    cities.alter_options(second)
    assert cities.rewrite_file_index().rewritten == 3
    assert cities.rewrite_file_index().rewritten == 0


def test_a_bloom_filter_of_another_size_is_built_again(cities) -> None:
    cities.alter_options({"file-index.bloom-filter.columns": "city", "file-index.bloom-filter.city.fpp": "0.1"})
    cities.rewrite_file_index()
    sizes = cities.file_indexes()["index_size_in_bytes"].to_pylist()
    cities.alter_options({"file-index.bloom-filter.city.items": "1000"})
    assert cities.rewrite_file_index().rewritten == 0
    cities.alter_options({"file-index.bloom-filter.city.fpp": "0.00001"})
    assert cities.rewrite_file_index().rewritten == 3
    assert min(cities.file_indexes()["index_size_in_bytes"].to_pylist()) > max(sizes)


def test_a_container_moves_between_manifest_and_side_file(cities) -> None:
    cities.alter_options(bitmap("city"))
    cities.rewrite_file_index()
    assert set(places(cities)) == {"embedded"}
    cities.alter_options(BESIDE)
    moved = cities.rewrite_file_index()
    assert (moved.rewritten, moved.bytes_read) == (3, 0)
    assert all(name.endswith("-1.index") for name in places(cities))
    assert {Path(path).name for path in cities.file_indexes()["index_file_path"].to_pylist()} == set(places(cities))
    cities.alter_options(EMBED)
    assert cities.rewrite_file_index().rewritten == 3
    assert set(places(cities)) == {"embedded"}
    assert cities.scan("city = 'city-4'").count() == 17


def test_dropped_options_drop_the_indexes(cities) -> None:
    cities.alter_options({**bitmap("city,n"), **BESIDE})
    cities.rewrite_file_index()
    cities.alter_options(bitmap("n"))
    assert cities.rewrite_file_index().rewritten == 3
    assert listed(cities) == [("n", "bitmap", "FILE")]
    cities.alter_options({"file-index.bitmap.columns": None})
    assert cities.rewrite_file_index().rewritten == 3
    assert places(cities) == [None] * 3
    assert cities.rewrite_file_index().snapshot_id is None
    assert cities.scan().to_arrow().num_rows == 150


def test_partitions_can_be_chosen(create) -> None:
    table = create("id BIGINT, day STRING", primary_keys=(), partition_keys=["day"], options=EMBED)
    table.write(pa.table({"id": range(4), "day": ["mon", "tue", "tue", "wed"]}))
    table.alter_options(bitmap("id"))
    assert table.rewrite_file_index([{"day": "tue"}, {"day": "wed"}]).rewritten == 2
    assert sorted(set(table.file_indexes()["partition"].to_pylist())) == ["day=tue", "day=wed"]
    assert table.rewrite_file_index().rewritten == 1


def test_containers_speak_of_the_columns_of_their_file(create) -> None:
    table = create("id BIGINT, k INT, attrs MAP<STRING, INT>, gone STRING", primary_keys=(), options=EMBED)
    attrs = pa.array([[("a", 1), ("b", 2)], [("a", 3)], None], ATTRS)
    table.write(pa.table({"id": [1, 2, 3], "k": pa.array([1, 2, 3], pa.int32()), "attrs": attrs, "gone": ["x", "y", "z"]}))
    table.drop_column("gone").add_column("late", "STRING", first=True).rename_column("k", "order_id").rename_column("attrs", "extras")
    table.change_type("order_id", "BIGINT")
    table.write(pa.table({"late": ["l"], "id": [4], "order_id": [4], "extras": pa.array([[("a", 9)]], ATTRS)}))
    options = {"file-index.bitmap.extras.version": "1", "file-index.bsi.columns": "order_id"}
    table.alter_options({**bitmap("extras[a],extras[b],late,order_id"), **options})
    assert table.rewrite_file_index().rewritten == 2
    names = {row["schema_id"]: set() for row in table.file_indexes().to_pylist()}
    for row in table.file_indexes().to_pylist():
        names[row["schema_id"]].add((row["column_name"], row["index_type"]))
    old, new = (names[schema_id] for schema_id in sorted(names))
    assert old == {("attrs[a]", "bitmap"), ("attrs[b]", "bitmap"), ("k", "bitmap"), ("k", "bsi")}
    assert new == {("extras[a]", "bitmap"), ("extras[b]", "bitmap"), ("late", "bitmap"), ("order_id", "bitmap"), ("order_id", "bsi")}
    for predicate, ids, files in (
        ("extras['a'] = 3", [2], 1),
        ("extras['b'] = 2", [1], 1),
        ("order_id = 2", [2], 1),
        ("late = 'l'", [4], 1),
    ):
        scan = table.scan(predicate)
        assert scan.to_arrow()["id"].to_pylist() == ids, predicate
        assert sum(len(split.files) for split in scan.plan().splits) == files, predicate
    assert table.rewrite_file_index().rewritten == 0


def test_deletes_and_all_levels_of_a_primary_key_table_are_indexed(create) -> None:
    table = create("id BIGINT, city STRING", options={"write-only": "true", **EMBED})
    table.write(pa.table({"id": range(20), "city": ["a", "b"] * 10}))
    table.compact(full=True)
    table.write(pa.table({"id": [1, 2], "city": ["c", "c"]}))
    table.delete("id = 3")
    table.alter_options({**bitmap("city"), "file-index.bloom-filter.columns": "id", "file-index.bloom-filter.id.items": "20"})
    assert table.rewrite_file_index().rewritten == table.files().num_rows == 3
    assert sorted(table.scan("city = 'c'").to_arrow()["id"].to_pylist()) == [1, 2]
    assert table.scan("city = 'b'").count() == 8
    assert set(table.file_indexes()["record_count"].to_pylist()) == {20, 2, 1}
    table.compact(full=True)
    assert table.rewrite_file_index().rewritten == 0


@pytest.mark.local_files
def test_broken_and_missing_containers_are_replaced(cities) -> None:
    cities.alter_options({**bitmap("city"), **BESIDE})
    cities.rewrite_file_index()
    first, second, third = sorted(Path(cities.path).glob("bucket-0/*.index"))
    first.write_bytes(b"no container")
    second.unlink()
    whole = third.read_bytes()
    third.write_bytes(whole[:-10])
    with pytest.raises(CorruptFile, match="rewrite_file_index"):
        cities.file_indexes()
    notes = [row["note"] for row in cities.index_health().to_pylist()]
    assert len(notes) == 3
    assert all(note.startswith("unusable") for note in notes)
    assert cities.rewrite_file_index().rewritten == 3
    assert listed(cities) == [("city", "bitmap", "FILE")]
    assert all(not row["note"].startswith("unusable") for row in cities.index_health().to_pylist())
    assert {first.name, second.name, third.name}.isdisjoint(places(cities))


@pytest.mark.local_files
def test_an_index_of_another_number_of_rows_is_replaced(cities) -> None:
    cities.alter_options({**bitmap("city"), **BESIDE})
    cities.rewrite_file_index()
    cities.write(pa.table({"id": [999], "city": ["one"], "attrs": pa.nulls(1), "n": pa.nulls(1)}))
    by_rows = {row["record_count"]: row["index_file_path"] for row in cities.file_indexes().to_pylist()}
    shutil.copy(by_rows[1], by_rows[50])
    assert cities.rewrite_file_index().rewritten == 1
    assert cities.scan("city = 'city-4'").count() == 17


def test_an_index_that_cannot_hold_a_files_values_is_left_out_once_and_for_all(create) -> None:
    table = create("id BIGINT, n BIGINT", primary_keys=(), options=EMBED)
    table.write(pa.table({"id": [1, 2], "n": [-(2**63), 5]}))
    table.write(pa.table({"id": [3], "n": [7]}))
    table.alter_options({**bitmap("id"), "file-index.bsi.columns": "n"})
    assert table.rewrite_file_index().rewritten == 2
    assert table.file_indexes().num_rows == 3
    assert table.rewrite_file_index().snapshot_id is None
    assert table.scan("n = 5").to_arrow()["id"].to_pylist() == [2]


@pytest.mark.local_files
def test_expired_snapshots_take_no_file_that_is_used(cities) -> None:
    for options in ({**bitmap("city"), **BESIDE}, bitmap("city,n"), bitmap("n")):
        cities.alter_options(options)
        assert cities.rewrite_file_index().rewritten == 3
    assert cities.expire_snapshots(retain_min=1, retain_max=1, older_than=FAR).data_files == 6
    assert cities.scan("n = 77").to_arrow()["id"].to_pylist() == [77]
    assert cities.scan().to_arrow().num_rows == 150
    assert cities.list_orphan_files(FAR) == []
    assert len(list(Path(cities.path).glob("bucket-0/*.index"))) == 3


def test_a_compaction_that_removed_the_files_wins(cities, monkeypatch) -> None:
    """The compaction comes between reading the files and committing their indexes."""
    cities.alter_options({**bitmap("city"), **BESIDE})
    original, compacted = FileStoreCommit.rewrite_indexes, []

    def compact_first(*arguments, **named):
        if not compacted:
            compacted.append(Table.open(cities.path).compact(full=True))
        return original(*arguments, **named)

    monkeypatch.setattr(FileStoreCommit, "rewrite_indexes", compact_first)
    done = cities.rewrite_file_index()
    assert compacted[0].files_after == 1
    assert (done.files, done.rewritten) == (3, 0)
    assert places(cities) == [f"{cities.files()['file_name'][0].as_py()}.index"]
    assert cities.list_orphan_files(FAR) == []
    assert cities.scan("city = 'city-4'").count() == 17


def test_rows_that_come_meanwhile_stay(cities, monkeypatch) -> None:
    cities.alter_options(bitmap("city"))
    original, wrote = FileStoreCommit.rewrite_indexes, []

    def write_first(*arguments, **named):
        if not wrote:
            more = pa.table({"id": [999], "city": ["city-4"], "attrs": pa.nulls(1), "n": pa.nulls(1)})
            wrote.append(Table.open(cities.path).write(more))
        return original(*arguments, **named)

    monkeypatch.setattr(FileStoreCommit, "rewrite_indexes", write_first)
    assert cities.rewrite_file_index().rewritten == 3
    assert cities.scan("city = 'city-4'").count() == 18


@pytest.mark.local_files
def test_concurrent_rewrites_leave_one_index_for_each_file(cities) -> None:
    cities.alter_options({**bitmap("city"), **BESIDE})
    results = []
    threads = [threading.Thread(target=lambda: results.append(Table.open(cities.path).rewrite_file_index())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(result.rewritten for result in results) == 3
    assert sorted(path.name for path in Path(cities.path).glob("bucket-0/*.index")) == sorted(places(cities))
    assert cities.scan("city = 'city-4'").count() == 17


@pytest.mark.local_files
def test_a_failed_rewrite_leaves_no_side_file(cities) -> None:
    cities.alter_options({**bitmap("city"), **BESIDE})
    sorted(Path(cities.path).glob("bucket-0/*.parquet"))[1].write_bytes(b"damaged")
    with pytest.raises(CorruptFile):
        cities.rewrite_file_index()
    assert list(Path(cities.path).glob("bucket-0/*.index")) == []
    assert cities.snapshots().num_rows == 3


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after-data-files", "after-link"])
@pytest.mark.sampled(2)
def test_a_killed_rewrite_leaves_the_rows_and_at_most_orphans(create, point) -> None:
    table = create("id BIGINT, city STRING", options={"write-only": "true", **BESIDE})
    table.write(pa.table({"id": range(20), "city": ["a", "b"] * 10}))
    table.alter_options(bitmap("city"))
    code, acknowledged, err = finish(start(table.path, [["rewrite-index", None]], fault=point))
    assert (code, acknowledged) == (-signal.SIGKILL, []), err
    assert table.scan("city = 'a'").count() == 10
    left = [Path(orphan.path).name for orphan in table.list_orphan_files(FAR) if orphan.path.endswith(".index")]
    assert len(left) == (point == "after-data-files")
    table.remove_orphan_files(FAR)
    assert table.rewrite_file_index().rewritten == (point == "after-data-files")
    assert listed(table) == [("city", "bitmap", "FILE")]
    assert table.scan("city = 'a'").count() == 10


def test_progress_counts_files(cities) -> None:
    events = []
    cities.alter_options(bitmap("city"))
    Table.open(cities.path, progress=events.append).rewrite_file_index()
    told = dict.fromkeys((event.stage, event.done, event.total, event.unit) for event in events)
    assert list(told) == [("rewrite-file-index", at, 3, "files") for at in (0, 1, 2, 3)]


GOLDEN_INDEXED = (
    "append_idx",
    "append_bitmap_v1",
    "append_range_bitmap",
    "append_map",
    "edges",
    "all_null",
    "pk_dv",
    "pk_map",
    "evolved_append",
)


@pytest.mark.parametrize("name", GOLDEN_INDEXED)
def test_what_paimon_built_by_the_same_options_is_left_alone(tmp_path, name) -> None:
    shutil.copytree(GOLDEN / name / "table", tmp_path / "t")
    table = Table.open(tmp_path / "t")
    assert table.file_indexes().num_rows > 0
    done = table.rewrite_file_index()
    assert (done.files > 0, done.rewritten, done.snapshot_id) == (True, 0, None)


@pytest.mark.parametrize("name", ["append_parts", "pk_dv", "pk_parts", "evolved", "append_embedded"])
def test_rows_of_paimons_tables_are_the_same_after_a_rewrite(tmp_path, name) -> None:
    shutil.copytree(GOLDEN / name / "table", tmp_path / "t")
    table = Table.open(tmp_path / "t")
    city = "city_new" if name == "evolved" else "city"
    dropped = {key: None for key in table.options if key.startswith("file-index.")}
    expected = expected_rows(GOLDEN / name / "expected.jsonl", table.table_schema)
    for threshold in (EMBED, BESIDE):
        table.alter_options({**dropped, **bitmap(f"{city},day"), "file-index.range-bitmap.columns": "qty", **threshold})
        assert table.rewrite_file_index().rewritten == table.files().num_rows
        table.expire_snapshots(retain_min=1, retain_max=1, older_than=FAR)
        assert golden_rows(table.scan().to_arrow(), table.table_schema) == expected
        store, found = entries(table)
        for entry in found:
            container = index_place(store, entry).container
            assert isinstance(container, ContainerReader)
            assert {index.index_type for index in container.entries()} == {"bitmap", "range-bitmap"}


@pytest.mark.parametrize("name", ["append_bsi", "append_range_bitmap", "append_map", "evolved_append", "pk_dv_embedded"])
def test_what_is_built_again_equals_paimons_byte_for_byte(tmp_path, name) -> None:
    """But for bitmaps, whose parts stand in the order of a Java hash map there: they are as long. Bloom filters are no longer."""
    shutil.copytree(GOLDEN / name / "table", tmp_path / "t")
    table = Table.open(tmp_path / "t")

    def payloads():
        store, found = entries(table)
        places = {entry.file.file_name: index_place(store, entry) for entry in found}
        return {
            (file, index.column, index.index_type): place.container.payload(index).whole()
            for file, place in places.items()
            for index in place.container.entries()
        }

    before = payloads()
    options = {key: value for key, value in table.options.items() if key.startswith("file-index.")}
    table.alter_options(dict.fromkeys(options)).rewrite_file_index()
    assert table.file_indexes().num_rows == 0
    table.alter_options(options).rewrite_file_index()
    after = payloads()
    assert after.keys() == before.keys()
    for key, payload in before.items():
        if key[2] == BLOOM:  # Java's has room for all items, ours for the values of the file
            assert len(after[key]) <= len(payload)
        else:
            assert len(after[key]) == len(payload)
            assert key[2] == "bitmap" or after[key] == payload


BLOOM, BLOCKS = "bloom-filter", "bloom-filter-blocks"


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_row_blocks_come_stay_and_go_with_their_bloom_filter(create, file_format) -> None:
    bloom, rows = "file-index.bloom-filter.s.block-rows", 3000
    table = create("id BIGINT, s STRING, old STRING", primary_keys=(), options={"file.format": file_format, **BESIDE})
    texts = [f"text {number * 7919 % rows}" if number % 10 else None for number in range(rows)]
    table.write(pa.table({"id": range(rows), "s": texts, "old": texts}))
    table.alter_options({"file-index.bloom-filter.columns": "s", bloom: "0"})
    table.rewrite_file_index()
    assert [kind for _, kind, _ in listed(table)] == [BLOOM]
    table.alter_options({bloom: "500"})
    assert table.rewrite_file_index().rewritten == 1
    assert [kind for _, kind, _ in listed(table)] == [BLOOM, BLOCKS]
    assert table.rewrite_file_index().bytes_written == 0
    scan = table.scan(f"s = '{texts[1234]}'")
    assert scan.to_arrow()["id"].to_pylist() == [1234]
    assert BLOCKS in str(scan.explain())
    assert table.scan(f"s IN ('{texts[1]}', '{texts[2999]}', 'no text')").to_arrow()["id"].to_pylist() == [1, 2999]
    assert table.fsck("deep").problems == ()
    assert table.drop_index("s", "bloom-filter", dry_run=True).removal.bytes == sum(table.file_indexes()["index_size_in_bytes"].to_pylist())
    table.drop_index("s")
    assert listed(table) == []


def test_row_blocks_push_no_index_out_of_the_manifest(create) -> None:
    options = {
        "file-index.bloom-filter.columns": "id",
        "file-index.bloom-filter.id.block-rows": "500",
        "file-index.in-manifest-threshold": "3 kb",
    }
    table = create("id BIGINT, n INT", primary_keys=(), options=options)
    table.write(pa.table({"id": range(3000), "n": pa.array(range(3000), pa.int32())}))
    assert listed(table) == [("id", BLOOM, "EMBEDDED")]
    assert table.rewrite_file_index().rewritten == 0
    table.alter_options({"file-index.in-manifest-threshold": "1 mb"})
    table.write(pa.table({"id": range(3000), "n": pa.array(range(3000), pa.int32())}))
    assert listed(table) == [("id", BLOOM, "EMBEDDED"), ("id", BLOCKS, "EMBEDDED")]
    assert table.rewrite_file_index().rewritten == 0
    assert table.scan("id = 1234").count() == 2


def test_row_blocks_are_found_by_a_columns_name_when_it_was_written_and_by_keys_of_maps(create) -> None:
    rows = 3000
    options = {
        **BESIDE,
        "file-index.bloom-filter.columns": "s,attrs[k]",
        "file-index.bloom-filter.s.block-rows": "300",
        "file-index.bloom-filter.attrs[k].block-rows": "300",
    }
    table = create("id BIGINT, s STRING, attrs MAP<STRING, INT>", primary_keys=(), options=options)

    def write(first: int, name: str) -> None:
        ids = range(first, first + rows)
        attrs = pa.array([[("k", at * 7919 % 100_003)] if at % 9 else [("other", at)] for at in ids], ATTRS)
        table.write(pa.table({"id": ids, name: [f"text {at * 7919 % 100_003}" for at in ids], "attrs": attrs}))

    def found(condition: str) -> tuple[list[int], int, bool]:
        scan = table.scan(condition)
        explained = str(scan.explain())
        return scan.to_arrow()["id"].to_pylist(), explained.count(f"{BLOCKS}"), "warning" in explained.lower()

    write(0, "s")
    table.alter_options({"file-index.bloom-filter.columns": "attrs[k]", "file-index.bloom-filter.s.block-rows": None})
    table.rename_column("s", "label")
    table.add_column("s", "STRING")  # another column by the old name: none of the old file's values are its own
    table.alter_options({"file-index.bloom-filter.columns": "label,s,attrs[k]", "file-index.bloom-filter.label.block-rows": "300"})
    write(rows, "label")
    assert {column for column, kind, _ in listed(table) if kind == BLOCKS} == {"s", "label", "attrs[k]"}
    for at in (1, 1234, rows + 5, 2 * rows - 1):
        value = at * 7919 % 100_003
        ids, blocks, warned = found(f"label = 'text {value}'")
        assert (ids, warned) == ([at], False)
        assert blocks
        assert found(f"s = 'text {value}'")[0] == []
        assert found(f"attrs['k'] = {value}")[0] == ([at] if at % 9 else [])
        assert found(f"attrs['k'] = {value} AND label = 'text {value}'")[0] == ([at] if at % 9 else [])
    assert table.fsck("deep").problems == ()
