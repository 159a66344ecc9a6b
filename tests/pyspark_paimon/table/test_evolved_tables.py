"""Tables whose rows lie in several files (data evolution): read as the engines that wrote them read them, filtered exactly, refused where not built."""

import json
import pickle
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.formats.blob import BlobFileWriter
from lsm.write.copy_on_write import AppendChange
from manifest.entry.manifest_file import ManifestFile
from manifest.io.checksum import CHECKSUM_MEMBER
from manifest.io.errors import InvalidSchema, UnsupportedTable
from pyspark_paimon import CorruptFile, FilterFailed, Table, UnsupportedOption, UnsupportedType
from tests.build import tuples
from tests.damaged_tables import Surgeon
from tests.examples import some
from tests.interop.evolved_tables import HOME, TABLES


def lines(rows):
    plain = [{name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()} for row in rows]
    return sorted(json.dumps(row) for row in plain)


def expected(name):
    return [json.loads(line) for line in (HOME / name / "expected.jsonl").read_text(encoding="utf-8").splitlines()]


def opened(name):
    return Table.open(HOME / name / "table")


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_those_of_their_engines(name):
    table = opened(name)
    rows = table.scan().to_arrow().to_pylist()
    assert lines(rows) == lines(expected(name))
    assert table.count() == table.scan().aggregate({"rows": "count"})["rows"][0].as_py() == len(rows)
    assert table.fsck(depth="deep").problems == ()
    scan = pickle.loads(pickle.dumps(table.scan()))
    assert lines(row for split in scan.plan().splits for batch in scan.read(split) for row in batch.to_pylist()) == lines(rows)


@pytest.mark.parametrize("limits", [{"blob_batch_rows": 1}, {"blob_batch_rows": 3, "blob_batch_bytes": 40}, {"blob_batch_bytes": 1}])
def test_blobs_come_in_batches_of_any_size(set_thresholds, limits):
    set_thresholds(**limits)
    assert lines(opened("blobs").scan().to_arrow().to_pylist()) == lines(expected("blobs"))


@pytest.mark.parametrize("name", TABLES)
def test_each_column_alone(name):
    table, rows = opened(name), expected(name)
    for column in table.schema.names:
        assert lines(table.scan(columns=[column]).to_arrow().to_pylist()) == lines({column: row[column]} for row in rows)


@given(st.sampled_from(["updated", "indexed", "deleted"]), st.data())
def test_filters_see_the_newest_values_and_only_them(name, data):
    """Old values of a column lie in files that are read, with statistics and indexes that tell of them."""
    rows = expected(name)
    seen = st.sampled_from(sorted({row["s"] for row in rows if row["s"]} | {f"s{i}" for i in range(12)} | {"none"}))
    text, number = data.draw(seen), data.draw(st.sampled_from([-1, 0, 1, 2, 6, 777, 778]))
    ids = st.integers(-1, 900)
    low = data.draw(ids)
    tests = {
        f"s = '{text}'": lambda row: row["s"] == text,
        f"n = {number}": lambda row: row["n"] == number,
        "s IS NULL": lambda row: row["s"] is None,
        f"id >= {low}": lambda row: row["id"] >= low,
    }
    first, second = data.draw(st.sampled_from(sorted(tests))), data.draw(st.sampled_from(sorted(tests)))
    word, joined = data.draw(st.sampled_from([("AND", all), ("OR", any)]))
    wanted = [row for row in rows if joined([tests[first](row), tests[second](row)])]
    scan = opened(name).scan(f"{first} {word} {second}", columns=["id"])
    assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(row["id"] for row in wanted)
    assert scan.count() == len(wanted)
    head = opened(name).scan(f"{first} {word} {second}", order_by="id DESC", limit=3).to_arrow()["id"].to_pylist()
    assert head == sorted((row["id"] for row in wanted), reverse=True)[:3]


@pytest.mark.parametrize("name", [path.parent.name for path in sorted(HOME.glob("*/row_tracking.json"))])
def test_ids_and_numbers_of_rows_are_the_engines(name):
    told = json.loads((HOME / name / "row_tracking.json").read_text(encoding="utf-8"))
    table = Table.open(f"{HOME / name / 'table'}$row_tracking")
    assert [(field.name, str(field.type)) for field in table.table_schema.fields] == [(one["name"], one["type"]) for one in told["columns"]]
    assert lines(table.scan().to_arrow().to_pylist()) == lines(told["rows"])
    wanted = [row for row in told["rows"] if row["_ROW_ID"] > 2 and row["id"] < 600]
    found = table.scan("_ROW_ID > 2 AND id < 600", columns=["_SEQUENCE_NUMBER", "_ROW_ID"]).to_arrow()
    assert sorted(found["_ROW_ID"].to_pylist()) == sorted(row["_ROW_ID"] for row in wanted)
    assert found["_SEQUENCE_NUMBER"].to_pylist() == [
        {row["_ROW_ID"]: row for row in wanted}[at]["_SEQUENCE_NUMBER"] for at in found["_ROW_ID"].to_pylist()
    ]


def test_rows_without_ids_are_told(tmp_path):
    Table.create(tmp_path / "t", "id INT").write(pa.table({"id": pa.array([1], pa.int32())}))
    with pytest.raises(UnsupportedTable, match=r"row-tracking\.enabled"):
        Table.open(f"{tmp_path}/t$row_tracking").scan().to_arrow()
    deleted = Table.open(f"{HOME}/deleted/table$row_tracking").scan(columns=["_ROW_ID", "id"]).to_arrow()
    assert deleted["_ROW_ID"].to_pylist() == deleted["id"].to_pylist(), "rows that are gone leave gaps"


def test_values_of_files_that_were_superseded_prune_nothing_and_find_nothing():
    table = opened("updated")
    assert table.scan("n = -1").to_arrow()["id"].to_pylist() == [1]
    assert table.scan("id = 1 AND n = 777").count() == table.scan("id = 1 AND n = 1").count() == 0
    assert table.scan().aggregate({"n": ["min", "max"]}).to_pylist() == [{"n_min": -1, "n_max": 777}]


def test_what_moves_rows_and_changes_between_snapshots_are_refused_by_the_option():
    table, deleted = opened("updated"), opened("deleted")
    source = pa.table({"id": pa.array([7], pa.int32())})
    for act in (
        lambda: table.scan(incremental=(1, 2)).count(),
        lambda: next(iter(table.follow())),
        lambda: table.compact(order_by="id"),
        lambda: table.delete("id = 1"),
        lambda: table.merge(source, on="id").when_matched_delete().execute(),
        lambda: deleted.update("id = 1", {"n": 1}),
        lambda: deleted.compact(full=True),
    ):
        with pytest.raises(UnsupportedTable, match=r"'(data-evolution|row-tracking)\.enabled'"):
            act()


def files_of(table):
    names = ["first_row_id", "record_count", "write_cols", "min_sequence_number", "max_sequence_number"]
    rows = Table.open(f"{table.path}$files").scan(columns=names).to_arrow().to_pylist()
    return sorted(((row[names[0]], row[names[1]], row[names[2]], row[names[3]], row[names[4]]) for row in rows), key=str)


def ids_of(table):
    rows = Table.open(f"{table.path}$row_tracking").scan(columns=["id", "_ROW_ID"]).to_arrow().to_pylist()
    return {row["id"]: row["_ROW_ID"] for row in rows}


def test_an_update_writes_only_its_columns_of_ranges_with_matches(tmp_path):
    table = tracked(tmp_path / "t")
    for first in (0, 10, 20):
        table.write(numbered(first, 10))
    before = ids_of(table)
    assert table.update("id IN (3, 14)", set={"n": "n + 100"}).rows == 2
    assert files_of(table)[:2] == [(0, 10, None, 1, 1), (0, 10, ["n"], 4, 4)]
    assert table.update("id = 3 AND n = 103", values={"s": None}).rows == 1
    assert table.update("n = 3 AND id = 3", values={"s": "old value"}).rows == 0
    assert table.update("s = 's14'", set={"s": "concat(s, '!')", "n": "-1"}).rows == 1
    found = {row["id"]: (row["n"], row["s"]) for row in table.scan().to_arrow().to_pylist()}
    assert found == {i: (i % 7, f"s{i}") for i in range(30)} | {3: (103, None), 14: (-1, "s14!")}
    assert ids_of(table) == before
    assert table.scan("n = 103").count() == table.scan("s = 's14!'").count() == 1
    assert table.scan("n = 100 OR s = 's14'").count() == 0
    assert table.fsck(depth="deep").problems == ()
    with pytest.raises(FilterFailed, match="divisor is zero"):
        table.update("id = 1", set={"n": "CAST(1 / (id - 1) AS INT)"})
    assert len(list((tmp_path / "t").rglob("data-*.parquet"))) == len(files_of(table)), "nothing is left of a failed update"


def test_a_merge_writes_columns_of_matched_rows_and_appends_others(tmp_path):
    table = tracked(tmp_path / "t")
    for first in (0, 10):
        table.write(numbered(first, 10))
    before = ids_of(table)
    source = pa.table({"id": pa.array([4, 30, 31], pa.int32()), "n": pa.array([-4, -30, -31], pa.int32()), "s": ["m4", "m30", "m31"]})
    done = table.merge(source, on="id").when_matched_update_all().when_not_matched_insert_all(condition="s.id > 30").execute()
    assert (done.updated, done.inserted, done.deleted) == (1, 1, 0)
    assert ["n", "s"] in [file[2] for file in files_of(table)], "the column that matches is not written anew"
    assert ids_of(table) == before | {31: 20}
    assert table.merge(source, on="id").when_matched_update({"n": "s.n * 2"}, condition="t.id = 31").execute().updated == 1
    found = {row["id"]: (row["n"], row["s"]) for row in table.scan("id IN (4, 30, 31)").to_arrow().to_pylist()}
    assert found == {4: (-4, "m4"), 31: (-62, "m31")}
    nothing = table.snapshots().num_rows
    assert table.merge(source.slice(1, 1), on="id").when_matched_update_all().execute().updated == 0
    assert table.snapshots().num_rows == nothing
    assert table.fsck(depth="deep").problems == ()


@pytest.mark.parametrize("rows", [10, 200_000], ids=["one batch", "several batches"])
def test_a_merge_that_changes_no_column_only_appends(tmp_path, rows):
    table = tracked(tmp_path / "t")
    table.write(numbered(0, rows))
    source = pa.table({"id": pa.array([4, rows], pa.int32()), "n": pa.array([-4, -5], pa.int32()), "s": ["m4", "new"]})
    done = table.merge(source, on="id").when_not_matched_insert_all().execute()
    assert (done.updated, done.inserted, done.snapshot_id) == (0, 1, 2)
    assert table.merge(source.select(["id"]), on="id").when_matched_update({"id": "s.id"}).execute().snapshot_id is None
    assert table.scan(f"id IN (4, {rows})", order_by="id").to_arrow()["s"].to_pylist() == ["s4", "new"]
    assert [file[:3] for file in files_of(table)] == [(0, rows, None), (rows, 1, None)]
    assert table.list_orphan_files(2**62) == []


@pytest.mark.parametrize("name", [name for name in TABLES if name != "deleted"])
def test_a_compaction_joins_ranges_and_keeps_rows_and_ids(tmp_path, name):
    table = Table.open(shutil.copytree(HOME / name / "table", tmp_path / "t"))
    before, column = ids_of(table), {"added": "d", "partitioned": "v", "blobs": "id"}.get(name, "n")
    table.compact(full=True)
    assert lines(table.scan().to_arrow().to_pylist()) == lines(expected(name))
    assert ids_of(table) == before
    assert not any(set(file[2] or ()) - {"id", "p", "q"} for file in files_of(table))
    assert table.compact(full=True).snapshot_id is None
    table.update("id = 3", values={column: -3})
    assert table.scan("id IN (3, -3)", columns=[column]).to_arrow()[column].to_pylist() == [-3]
    assert sorted(ids_of(table).values()) == sorted(before.values())
    assert table.fsck(depth="deep").problems == ()


def test_columns_of_rows_beside_blobs_are_updated(tmp_path):
    table = Table.open(shutil.copytree(HOME / "blobs" / "table", tmp_path / "t"))
    before = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    table.update("id = 3", set={"id": "300"})
    before[300] = {**before.pop(3), "id": 300}
    assert {row["id"]: row for row in table.scan().to_arrow().to_pylist()} == before
    with pytest.raises(UnsupportedTable, match="column 'p': values of type BLOB are not updated"):
        table.update("id = 4", values={"p": b"new"})


@pytest.mark.slow
@pytest.mark.parametrize("compacts", [False, True])
def test_updates_that_race_lose_nothing(tmp_path, compacts):
    table = tracked(tmp_path / "t")
    for first in (0, 10, 20):
        table.write(numbered(first, 10))
    table.update("TRUE", values={"n": 0})
    before = ids_of(table)

    def change(at):
        own = Table.open(tmp_path / "t")
        for _ in range(4):
            if compacts and at == 0:
                own.compact(full=True)
            else:
                own.update("id < 25", set={"n": "n + 1"} if at % 2 else {"n": "n + 1", "s": "concat(s, '.')"})

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(change, range(3)))
    times, dots = (8, 4) if compacts else (12, 8)
    wanted = {i: (times if i < 25 else 0, f"s{i}" + "." * (dots if i < 25 else 0)) for i in range(30)}
    assert {row["id"]: (row["n"], row["s"]) for row in table.scan().to_arrow().to_pylist()} == wanted
    assert ids_of(table) == before
    assert table.fsck(depth="deep").problems == ()


def test_columns_of_a_range_that_a_compaction_joined_meanwhile_are_written_again(tmp_path, monkeypatch):
    table = tracked(tmp_path / "t")
    for first in (0, 10):
        table.write(numbered(first, 10))
    real, calls = AppendChange.run, []

    def run(change, splits):
        found = real(change, splits)
        if not calls:
            calls.append(Table.open(tmp_path / "t").compact(full=True).snapshot_id)
        return found

    monkeypatch.setattr(AppendChange, "run", run)
    done = table.update("id = 12", values={"s": "new"})
    assert calls == [3]
    assert (done.rows, done.snapshot_id) == (1, 4)
    assert files_of(table) == [(0, 20, None, 1, 2), (0, 20, ["s"], 4, 4)]
    assert len(list((tmp_path / "t").rglob("data-*.parquet"))) == 4, "columns of the lost round are deleted"
    assert table.scan("s = 'new'").to_arrow()["id"].to_pylist() == [12]


@pytest.mark.parametrize("at", [5, 20, 300, -1, -3, -8])
def test_a_blob_file_that_was_damaged_is_named(tmp_path, at):
    shutil.copytree(HOME / "blobs" / "table", tmp_path / "t")
    file = max((tmp_path / "t").rglob("*.blob"), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    content[at] ^= 0x11
    file.write_bytes(content)
    with pytest.raises(CorruptFile, match=file.name):
        Table.open(tmp_path / "t").scan().to_arrow()


def test_a_blob_file_that_is_missing_leaves_no_rows_without_a_word(tmp_path):
    shutil.copytree(HOME / "blobs" / "table", tmp_path / "t")
    next(iter((tmp_path / "t").rglob("*.blob"))).unlink()
    table = Table.open(tmp_path / "t")
    with pytest.raises(CorruptFile):
        table.scan().to_arrow()
    assert len(table.scan(columns=["id"]).to_arrow()) == 13


def tracked(path):
    return Table.create(path, "id INT, n INT, s STRING", options={"row-tracking.enabled": "true", "data-evolution.enabled": "true"})


def numbered(first, count):
    ids = list(range(first, first + count))
    return pa.table({"id": pa.array(ids, pa.int32()), "n": pa.array([i % 7 for i in ids], pa.int32()), "s": [f"s{i}" for i in ids]})


def test_rows_that_are_appended_are_numbered_through(tmp_path):
    table = tracked(tmp_path / "t")
    table.write(numbered(0, 10))
    table.write(numbered(10, 5))
    table.write(numbered(100, 2), mode="overwrite")
    table.write(numbered(15, 4))
    files = Table.open(f"{tmp_path}/t$files").scan(columns=["first_row_id", "record_count", "min_sequence_number", "max_sequence_number"])
    assert tuples(files) == [(15, 2, 3, 3), (17, 4, 4, 4)]
    assert Table.open(f"{tmp_path}/t$snapshots").scan().to_arrow()["next_row_id"].to_pylist() == [10, 15, 17, 21]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [15, 16, 17, 18, 100, 101]
    assert table.scan("s = 's16'").count() == 1
    assert table.fsck(depth="deep").problems == ()


def test_writers_that_race_never_share_a_row_id(tmp_path):
    table = tracked(tmp_path / "t")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda at: Table.open(tmp_path / "t").write(numbered(at * 10, at + 1)), range(8)))
    files = Table.open(f"{tmp_path}/t$files").scan(columns=["first_row_id", "record_count"]).to_arrow().to_pylist()
    taken = sorted(row["first_row_id"] + at for row in files for at in range(row["record_count"]))
    assert taken == list(range(36))
    assert table.count() == 36


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"data-evolution.enabled": "true"}, "data-evolution"),
        ({"row-tracking.enabled": "true", "bucket": "2", "bucket-key": "id"}, "row-tracking"),
        ({"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}, "data-evolution"),
    ],
)
def test_what_does_not_go_together_is_refused_when_the_table_is_made(tmp_path, options, named):
    with pytest.raises(UnsupportedOption, match=named):
        Table.create(tmp_path / "t", "id INT, s STRING", options=options)
    with pytest.raises(UnsupportedOption, match="row-tracking"):
        Table.create(tmp_path / "t", "id INT, s STRING", primary_keys=["id"], options={"row-tracking.enabled": "true"})


def test_rows_that_are_deleted_by_marks_leave_the_others_their_ids(tmp_path):
    path, options = tmp_path / "t", {"row-tracking.enabled": "true", "deletion-vectors.enabled": "true"}
    table = Table.create(path, "id INT, n INT", options=options)
    for first in (0, 10):
        table.write(pa.table({"id": pa.array(range(first, first + 10), pa.int32()), "n": pa.array([1] * 10, pa.int32())}))
    assert table.delete("id % 3 = 0").rows == 7
    table.write(pa.table({"id": pa.array([30], pa.int32()), "n": pa.array([2], pa.int32())}))
    rows = Table.open(f"{path}$row_tracking").scan(columns=["id", "_ROW_ID"]).to_arrow().to_pylist()
    assert {row["id"]: row["_ROW_ID"] for row in rows} == {i: i for i in range(20) if i % 3} | {30: 20}
    for change in (lambda: table.update("id = 1", {"n": 3}), lambda: table.compact(full=True)):
        with pytest.raises(UnsupportedTable, match=r"row-tracking\.enabled"):
            change()
    assert table.fsck(depth="deep").problems == ()


@pytest.mark.parametrize("ranged", [True, False], ids=["row ids in the list", "row ids in the manifests alone"])
@pytest.mark.parametrize("counter", [0, None])
def test_new_rows_replace_none_where_another_engine_counts_no_row_ids(tmp_path, monkeypatch, counter, ranged):
    def unranged(*given):
        return meta(*given).model_copy(update={"min_row_id": None, "max_row_id": None})

    meta = ManifestFile._meta
    if not ranged:
        monkeypatch.setattr(ManifestFile, "_meta", unranged)
    table = Table.create(tmp_path / "t", "id INT, s STRING", options={"row-tracking.enabled": "true", "data-evolution.enabled": "true"})
    for first in (0, 5):
        table.write(pa.table({"id": pa.array(range(first, first + 5), pa.int32()), "s": ["old"] * 5}))
    newest = tmp_path / "t" / "snapshot" / "snapshot-2"
    snapshot = {key: value for key, value in json.loads(newest.read_text()).items() if key not in {"nextRowId", CHECKSUM_MEMBER}}
    newest.write_text(json.dumps(snapshot | ({} if counter is None else {"nextRowId": counter})))
    table = Table.open(table.path)
    table.write(pa.table({"id": pa.array([10], pa.int32()), "s": ["new"]}))
    assert table.scan(order_by="id").to_arrow().to_pydict() == {"id": list(range(11)), "s": ["old"] * 10 + ["new"]}
    assert [row["_ROW_ID"] for row in Table.open(f"{table.path}$row_tracking").scan("id = 10").to_arrow().to_pylist()] == [10]


def blob_table(path, ddl="id INT, p BLOB, q BYTES NOT NULL", **options):
    every = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob-field": "q", **options}
    return Table.create(path, ddl, options=every)


BLOBS = st.lists(st.tuples(st.none() | st.binary(max_size=300), st.binary(max_size=3)), max_size=12)


@settings(max_examples=some(15), deadline=None)
@given(st.lists(BLOBS, max_size=4), st.sampled_from(["1 b", "300 b", "1 kb", None]), st.sampled_from([1, 3, None]))
def test_blobs_are_read_as_they_were_written(writes, size, most):
    options = {key: str(value) for key, value in (("blob.target-file-size", size), ("target-file-row-num", most)) if value is not None}
    with tempfile.TemporaryDirectory() as home:
        table, rows = blob_table(f"{home}/t", **options), []
        for write in writes:
            new = [{"id": len(rows) + at, "p": p, "q": q} for at, (p, q) in enumerate(write)]
            table.write(new)
            rows += new
        assert table.scan(order_by="id").to_arrow().to_pylist() == rows
        assert table.scan("p IS NULL", columns=["id"]).count() == sum(row["p"] is None for row in rows)
        before = ids_of(table)
        assert before == {row["id"]: row["id"] for row in rows}
        if rows:
            table.update("id = 0", set={"id": "-1"})
            table.compact(full=True)
            rows[0]["id"] = -1
        assert table.scan(order_by="id").to_arrow().to_pylist() == rows
        assert table.fsck(depth="deep").problems == ()
        assert table.list_orphan_files(2**62) == []


def test_ranges_with_other_blob_columns_are_not_joined(tmp_path):
    table = blob_table(tmp_path / "t", "id INT, p BLOB, q BYTES")
    rows = [{"id": 1, "p": b"old", "q": None}, {"id": 2, "p": None, "q": b"two"}]
    table.write(rows[:1])
    table.write(rows[1:])
    table = table.drop_column("p").add_column("r", "BLOB")
    rows = [{"id": row["id"], "q": row["q"], "r": None} for row in rows] + [
        {"id": 3, "q": b"", "r": b"new"},
        {"id": 4, "q": None, "r": None},
    ]
    table.write(rows[2:3])
    table.write(rows[3:])
    table.compact(full=True)
    assert [file[:2] for file in files_of(table) if file[2] in (None, ["id"])] == [(0, 2), (2, 2)]
    assert table.scan(order_by="id").to_arrow().to_pylist() == rows
    table.update("TRUE", set={"id": "id + 10"})
    table.compact(full=True)
    assert table.scan(order_by="id").to_arrow().to_pylist() == [{**row, "id": row["id"] + 10} for row in rows]
    assert table.fsck(depth="deep").problems == ()


def test_a_blob_table_of_another_engine_is_appended_to_and_overwritten(tmp_path):
    table = Table.open(shutil.copytree(HOME / "blobs" / "table", tmp_path / "t"))
    rows = table.scan(order_by="id").to_arrow()
    table.write(rows)
    assert lines(table.scan().to_arrow().to_pylist()) == lines(expected("blobs") * 2)
    table.write(rows.slice(3, 4), mode="overwrite")
    assert table.scan(order_by="id").to_arrow().equals(rows.slice(3, 4))
    table.compact(full=True)
    assert table.scan(order_by="id").to_arrow().equals(rows.slice(3, 4))
    assert table.fsck(depth="deep").problems == ()


def test_a_failed_write_of_blobs_leaves_no_file(tmp_path, monkeypatch):
    table = blob_table(tmp_path / "t", **{"blob.target-file-size": "1 b"})

    def fail(writer, value):
        if value == b"bad":
            raise OSError("the disk is gone")
        real(writer, value)

    real = BlobFileWriter.write
    monkeypatch.setattr(BlobFileWriter, "write", fail)
    with pytest.raises(OSError, match="the disk is gone"):
        table.write([{"id": 1, "p": b"good", "q": b""}, {"id": 2, "p": b"bad", "q": b""}])
    assert not [path for path in (tmp_path / "t").rglob("*") if path.suffix in {".blob", ".parquet"}]


@pytest.mark.parametrize(
    ("ddl", "options", "reason"),
    [
        ("id INT, p BLOB", {"data-evolution.enabled": None}, "a BLOB needs options"),
        ("p BLOB", {}, "needs another column"),
        ("id INT, p ARRAY<BLOB>", {}, "not a part of one"),
        ("id INT, p BLOB", {"blob-field": "x"}, "'x' is not a column; columns are: id, p"),
        ("id INT, p STRING", {"blob-field": "p"}, "column 'p' has type STRING, but needs BYTES"),
        ("id INT, p BLOB", {"vector-field": "id"}, "vector-field"),
        ("id INT, v VECTOR<FLOAT, 3>", {}, r"VECTOR<FLOAT, 3> is not supported: Paimon 1\.4 stores it in no Parquet"),
        ("id INT, v VECTOR<FLOAT>", {}, "a VECTOR without a length"),
    ],
)
def test_blobs_and_vectors_that_no_table_has_are_refused_when_it_is_made(tmp_path, ddl, options, reason):
    every = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", **options}
    with pytest.raises((UnsupportedOption, InvalidSchema, UnsupportedType), match=reason):
        Table.create(tmp_path / "t", ddl, options={key: value for key, value in every.items() if value is not None})


def test_blobs_that_are_never_null_are_read(tmp_path):
    shutil.copytree(HOME / "blobs" / "table", tmp_path / "t")
    for path in (tmp_path / "t" / "schema").iterdir():
        path.write_text(path.read_text().replace('"BLOB"', '"BLOB NOT NULL"'))
    found = Table.open(str(tmp_path / "t")).scan().to_arrow()
    assert not found.schema.field("p").nullable
    assert lines(found.to_pylist()) == lines(expected("blobs"))


def test_blobs_in_lists_are_refused_by_column(tmp_path):
    shutil.copytree(HOME / "blobs" / "table", tmp_path / "t")
    for path in (tmp_path / "t" / "schema").iterdir():
        schema = json.loads(path.read_text())
        for field in schema["fields"]:
            if field["type"] == "BLOB":
                field["type"] = {"type": "ARRAY", "element": "BLOB"}
        path.write_text(json.dumps(schema))
    with pytest.raises(UnsupportedTable, match=r"column '[pq]' is ARRAY<BLOB>"):
        Table.open(str(tmp_path / "t")).scan().to_arrow()


def _drop(pick):
    def damage(surgeon):
        entries = surgeon.entries()
        wrong = next(entry for entry in entries if pick(entry.file))
        surgeon.reentry([entry for entry in entries if entry is not wrong])

    return damage


BROKEN_RANGES = {
    "the first BLOB file is gone": (_drop(lambda file: file.is_blob and file.first_row_id == 0), "lack some of them"),
    "the last BLOB file is gone": (_drop(lambda file: file.is_blob and file.first_row_id == 4), "lack some of them"),
    "BLOB files have a gap": (
        lambda surgeon: surgeon.change(lambda entry: entry.file.is_blob and entry.file.first_row_id == 2, first_row_id=3),
        "lack some of them",
    ),
    "the rows of BLOB files are gone": (_drop(lambda file: not file.is_blob), "no file has their other columns"),
    "a file has no row ids": (lambda surgeon: surgeon.change(lambda entry: entry.file.is_blob, first_row_id=None), "has no row ids"),
    "a file has other rows": (
        lambda surgeon: surgeon.change(lambda entry: not entry.file.is_blob, row_count=6),
        "lack some of them",
    ),
}


@pytest.mark.parametrize("name", BROKEN_RANGES)
def test_a_check_finds_ranges_of_rows_that_cannot_be_read(tmp_path, name):
    damage, message = BROKEN_RANGES[name]
    table = blob_table(tmp_path / "t", **{"blob.target-file-size": "1 b", "target-file-row-num": "5"})
    table.write([{"id": at, "p": bytes([at]), "q": bytes([at])} for at in range(5)])
    assert table.fsck().problems == ()
    damage(Surgeon(table.path))
    table = Table.open(table.path)
    found = table.fsck(depth="quick").problems
    assert {problem.kind for problem in found} == {"row-range"}
    assert any(message in problem.message for problem in found)
    with pytest.raises(CorruptFile):
        table.scan().to_arrow()


def test_a_check_finds_files_of_different_rows(tmp_path):
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = Table.create(tmp_path / "t", "id INT, n INT", options=options)
    table.write([{"id": at, "n": at} for at in range(5)])
    table.update("id >= 0", {"n": 7})
    Surgeon(table.path).change(lambda entry: True, first_row_id=1)
    [found] = Table.open(table.path).fsck(depth="quick").problems
    assert found.kind == "row-range"
    assert "has other row ids than" in found.message
