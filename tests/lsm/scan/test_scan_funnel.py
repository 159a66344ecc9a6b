"""The scan funnel: what every stage may drop, and what it must keep."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fileindex.predicate.tree import And, ColumnRef, Compare, In, IsNull, Op, Or
from lsm.scan.file_pruner import ManifestPruner
from lsm.scan.planner import ScanPlanner
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.io.errors import UnsupportedTable
from manifest.schema.manager import SchemaManager
from manifest.store import FileStore
from manifest.types.data_type import DataField
from paimon_base.errors import CorruptFile, UnknownColumn
from tests.lsm.small_tables import compact, create, scan, write

ID, V, DAY = ColumnRef("id"), ColumnRef("v"), ColumnRef("day")


def eq(column, value):
    return Compare(column, Op.EQ, value)


def files(result):
    return sorted(f.row_count for split in result.plan.splits for f in split.files)


@pytest.fixture
def keyed(tmp_path):
    """One bucket, three flushes: ids 0-9 and 5-14 overlap, ids 100-109 stand alone."""
    path = create(tmp_path / "t", "id INT NOT NULL, v INT", keys=["id"], bucket="1", file_index__in_manifest_threshold="1 mb")
    write(path, {"id": list(range(10)), "v": [1] * 10})
    write(path, {"id": list(range(5, 15)), "v": [2] * 10})
    write(path, {"id": list(range(100, 110)), "v": [3] * 10})
    return path


@pytest.fixture
def whole_manifests(monkeypatch):
    """No manifest is skipped by its ranges, so that later stages see its files."""
    monkeypatch.setattr(ManifestPruner, "select", lambda _, metas: list(metas))


def test_stages_come_in_funnel_order_and_add_up(keyed):
    result = scan(keyed, eq(V, 3))
    manifests = ["snapshot", "manifest list", "manifest ranges"]
    files = ["partition", "bucket", "level", "key range", "value stats", "embedded index", "splits"]
    assert [stage.name for stage in result.plan.report] == manifests + files
    counted = result.plan.report[3:-1]
    assert all(later.kept + later.dropped == earlier.kept for earlier, later in pairwise(counted))
    assert all(later.bytes_kept + later.bytes_dropped == earlier.bytes_kept for earlier, later in pairwise(counted))
    assert all(stage.millis >= 0 for stage in result.plan.report)


def test_a_value_that_only_the_older_version_has_still_reads_the_newer_one(keyed):
    result = scan(keyed, eq(V, 1))
    assert result.dropped["value stats"] == 1
    assert len(files(result)) == 2
    assert result.plan.report[7].note == "1 file kept for older or newer versions of their keys"
    assert sorted(result.table["id"].to_pylist()) == [0, 1, 2, 3, 4]


def test_a_section_without_any_match_is_dropped_whole(keyed):
    result = scan(keyed, eq(V, 3))
    assert result.dropped["value stats"] == 2
    assert result.table.num_rows == 10
    assert result.plan.splits[0].raw_convertible


def test_a_section_is_cut_before_the_key_filter_drops_files(keyed):
    """Dropping the newer file by its keys must not make the older one look alone, for another conjunct."""
    result = scan(keyed, And((Compare(ID, Op.LT, 7), eq(V, 1))))
    assert sorted(result.table["id"].to_pylist()) == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("whole_manifests")
def test_a_key_range_drops_files_even_where_versions_overlap(keyed):
    result = scan(keyed, eq(ID, 3))
    assert result.dropped["key range"] == 2
    assert result.table.to_pylist() == [{"id": 3, "v": 1}]
    assert scan(keyed, Compare(ID, Op.GT, 14)).dropped["key range"] == 2


def test_a_condition_on_key_or_value_is_no_key_filter(keyed):
    result = scan(keyed, Or((eq(ID, 3), eq(V, 3))))
    assert result.dropped["key range"] == 0
    assert result.table.num_rows == 11


def test_after_a_compaction_every_file_stands_for_itself(keyed):
    compact(keyed)
    assert scan(keyed, eq(V, 9)).plan.splits == ()
    result = scan(keyed, eq(V, 2))
    assert [split.raw_convertible for split in result.plan.splits] == [True]
    assert result.table.num_rows == 10


def test_deleted_rows_do_not_come_back_through_pruning(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL, v INT", keys=["id"], bucket="1")
    write(path, {"id": [1, 2, 3], "v": [7, 7, 7]})
    write(path, {"id": [2], "v": [0]}, kinds=[3])
    for predicate in (None, eq(V, 7), eq(ID, 2), And((eq(ID, 2), eq(V, 7)))):
        assert 2 not in scan(path, predicate).table["id"].to_pylist()


@pytest.mark.usefixtures("whole_manifests")
def test_an_embedded_index_drops_what_statistics_cannot(tmp_path):
    path = create(
        tmp_path / "t",
        "id INT NOT NULL, v INT",
        keys=["id"],
        bucket="1",
        file_index__bitmap__columns="v",
        file_index__in_manifest_threshold="1 mb",
    )
    write(path, {"id": [1, 2], "v": [1, 9]})
    write(path, {"id": [11, 12], "v": [5, 9]})
    result = scan(path, eq(V, 5))
    assert (result.dropped["value stats"], result.dropped["embedded index"]) == (0, 1)
    assert "v: bitmap x2" in result.plan.report[8].note
    assert result.table.to_pylist() == [{"id": 11, "v": 5}]
    assert scan(path, eq(V, 5), options={"file-index.read.enabled": "false"}).dropped["embedded index"] == 0


def test_an_embedded_index_spares_every_version_of_a_key(tmp_path):
    path = create(
        tmp_path / "t",
        "id INT NOT NULL, v INT",
        keys=["id"],
        bucket="1",
        file_index__bitmap__columns="v",
        file_index__in_manifest_threshold="1 mb",
    )
    write(path, {"id": [1, 2], "v": [5, 9]})
    write(path, {"id": [1, 2], "v": [4, 9]})
    result = scan(path, eq(V, 5))
    assert result.dropped["embedded index"] == 0
    assert result.table.num_rows == 0


def test_buckets_follow_from_equalities_on_the_whole_bucket_key(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL, v INT", keys=["id"], bucket="8")
    write(path, {"id": list(range(200)), "v": [1] * 200})
    one = scan(path, eq(ID, 77))
    assert one.dropped["bucket"] == 7
    assert one.table.to_pylist() == [{"id": 77, "v": 1}]
    several = scan(path, In(ID, (1, 2, 3)))
    assert several.dropped["bucket"] >= 5
    assert sorted(several.table["id"].to_pylist()) == [1, 2, 3]
    assert scan(path, Compare(ID, Op.LE, 3)).dropped["bucket"] == 0


def test_partitions_are_pruned_exactly_also_through_or(tmp_path):
    path = create(tmp_path / "t", "day INT NOT NULL, id INT NOT NULL, v INT", keys=["day", "id"], partitions=["day"], bucket="1")
    for day in range(4):
        write(path, {"day": [day] * 3, "id": [1, 2, 3], "v": [day] * 3})
    assert scan(path, eq(DAY, 2)).dropped["partition"] + scan(path, eq(DAY, 2)).dropped["manifest list"] >= 3
    mixed = scan(path, Or((eq(DAY, 2), And((eq(DAY, 3), eq(ID, 1))))))
    assert len(mixed.plan.splits) == 2
    assert sorted((r["day"], r["id"]) for r in mixed.table.to_pylist()) == [(2, 1), (2, 2), (2, 3), (3, 1)]
    wanted = FileStore.open(path).partition.encode((1,))
    assert set(scan(path, partitions=[wanted]).table["day"].to_pylist()) == {1}
    assert scan(path, eq(DAY, 9)).plan.splits == ()
    assert scan(path, IsNull(DAY)).plan.splits == ()


@pytest.mark.usefixtures("whole_manifests")
def test_append_files_are_pruned_one_by_one(tmp_path):
    path = create(tmp_path / "t", "v INT", bucket="-1")
    for start in (0, 1000, 2000, 3000):
        write(path, {"v": list(range(start, start + 1000))})
    result = scan(path, And((Compare(V, Op.GE, 1000), Compare(V, Op.LT, 2000))))
    assert (result.dropped["value stats"], result.table.num_rows) == (3, 1000)


def test_four_buckets_of_which_one_holds_the_values_leave_one_file(tmp_path):
    path = create(tmp_path / "t", "p INT NOT NULL, id INT NOT NULL, v INT", keys=["p", "id"], partitions=["p"], bucket="1")
    for part in range(4):
        write(path, {"p": [part] * 1000, "id": list(range(1000)), "v": list(range(part * 1000, part * 1000 + 1000))})
    assert len(files(scan(path))) == 4
    assert len(files(scan(path, And((Compare(V, Op.GE, 1000), Compare(V, Op.LE, 1999)))))) == 1


def test_a_limit_stops_planning_only_where_row_counts_are_certain(tmp_path):
    appended = create(tmp_path / "a", "v INT", bucket="-1", source__split__target_size="1b", source__split__open_file_cost="1b")
    keyed = create(tmp_path / "k", "v INT NOT NULL", keys=["v"], bucket="1", source__split__target_size="1b")
    for path in (appended, keyed):
        for start in (0, 10, 20, 30):
            write(path, {"v": list(range(start, start + 10))})
    assert [len(scan(appended, limit=limit).plan.splits) for limit in (0, 10, 15, 20)] == [0, 1, 2, 2]
    assert len(scan(appended, limit=1000).plan.splits) == 4
    assert len(scan(appended, Compare(V, Op.GE, 5), limit=1).plan.splits) == 4
    assert len(scan(keyed, limit=15).plan.splits) == 4


def test_a_limit_cuts_the_plan_of_a_compacted_primary_key_table(tmp_path):
    path = create(tmp_path / "t", "v INT NOT NULL", keys=["v"], bucket="4", source__split__target_size="1b")
    for _ in range(2):
        write(path, {"v": list(range(100))})
    assert len(scan(path, limit=1).plan.splits) == 4
    compact(path)
    for limit in (1, 30, 60, 100):
        cut = scan(path, limit=limit)
        rows = [split.row_count for split in cut.plan.splits]
        assert sum(rows[:-1]) < limit <= sum(rows)
        assert cut.table.num_rows >= limit
    write(path, {"v": list(range(100))})
    assert len(scan(path, limit=1).plan.splits) == 4


def test_an_empty_table_has_an_empty_plan(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL", keys=["id"], bucket="1")
    result = scan(path)
    assert (result.plan.snapshot_id, result.plan.splits, result.table.num_rows) == (0, (), 0)


def test_old_snapshots_are_planned_as_they_were(keyed):
    store = FileStore.open(keyed)
    assert ScanPlanner(store).plan(snapshot=store.snapshots.get(1)).row_count == 10


def test_unknown_columns_are_named(keyed):
    with pytest.raises(UnknownColumn, match="'w'"):
        scan(keyed, eq(ColumnRef("w"), 1))
    with pytest.raises(UnknownColumn, match="'w'"):
        scan(keyed, columns=["id", "w"])


def test_a_merge_engine_that_is_not_built_is_refused_by_name(keyed):
    with pytest.raises(UnsupportedTable, match="newest-row"):
        scan(keyed, options={"merge-engine": "newest-row"})


def test_a_missing_manifest_is_a_corrupt_file_that_is_named(keyed):
    store = FileStore.open(keyed)
    meta = store.manifest_metas(store.snapshots.latest())[0]
    store.file_io.delete(store.paths.manifest(meta.file_name))
    with pytest.raises(CorruptFile, match=meta.file_name):
        scan(keyed)


def test_files_of_a_schema_before_a_new_column_are_dropped_by_it(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL, v INT", keys=["id"], bucket="1")
    write(path, {"id": [1], "v": [1]})
    store = FileStore.open(path)
    added = DataField(7, "w", store.schema.field("v").type)
    changed = store.schema.model_copy(update={"id": 1, "fields": (*store.schema.fields, added), "highest_field_id": 7})
    store.file_io.write(store.paths.schema_file(1), changed.to_json().encode())
    assert SchemaManager(store.file_io, path).latest().names == ("id", "v", "w")
    write(path, {"id": [2], "v": [2], "w": [5]})
    assert scan(path, eq(ColumnRef("w"), 5)).dropped["value stats"] == 1
    assert scan(path, IsNull(ColumnRef("w"))).table["id"].to_pylist() == [1]
    assert sorted(scan(path).table["id"].to_pylist()) == [1, 2]


def test_the_postpone_bucket_is_not_visible(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL, v INT", keys=["id"], bucket="1")
    write(path, {"id": [1], "v": [1]})
    store = FileStore.open(path)
    (entry,) = store.live_entries(store.snapshots.latest()).entries()
    waiting = entry.file.model_copy(update={"file_name": "data-waiting.avro"})
    message = CommitMessage(
        partition=entry.partition, bucket=-2, total_buckets=-2, new_files=(waiting,), compact_before=(), compact_after=()
    )
    FileStoreCommit(store, "other").commit([message])
    result = scan(path)
    assert (result.dropped["bucket"], result.rows) == (1, 1)


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_versions_that_are_folded_into_a_row_stay_together_whatever_their_own_values(keyed, monkeypatch, engine):
    """Of such an engine the row may match although none of its versions does; a section of one file has one version a key."""
    monkeypatch.setattr(FileStore, "check_readable", lambda _: None)
    store = FileStore.open(keyed, dynamic_options={"merge-engine": engine})
    plan = ScanPlanner(store).plan(eq(V, 7), snapshot=store.snapshots.latest())
    assert {stage.name: stage.dropped for stage in plan.report}["value stats"] == 1
    assert [len(split.files) for split in plan.splits] == [2]
