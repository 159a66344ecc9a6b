# Partition values and tags are told in wall clock time.
# ruff: noqa: DTZ001, DTZ005
"""Tags, branches, rollback and partitions of tables with rows, and the views of them."""

from __future__ import annotations

import datetime as dt
import json
import time
import uuid
from datetime import timedelta

import pyarrow as pa
import pytest

from manifest.schema.partition_time import PartitionTime
from manifest.store import FileStore
from paimon_base.errors import UnknownColumn, UnsupportedOption
from pyspark_paimon import BranchExists, InvalidArgument, SnapshotExpired, SnapshotNotFound, Table, TableNotFound, TagExists
from tests.build import keyed

COLUMNS = "id BIGINT, city STRING"


def write(table, *ids, city="a", **options):
    return table.write(pa.table({"id": pa.array(ids, pa.int64()), "city": [city] * len(ids)}), options={"write-only": "true", **options})


def keys(table, **travel):
    return sorted(table.scan(**travel).to_arrow()["id"].to_pylist())


@pytest.fixture
def table(table_root) -> Table:
    table = keyed(f"{table_root}/t", COLUMNS)
    write(table, 1, 2)
    return table


@pytest.fixture
def days(table_root) -> Table:
    table = Table.create(f"{table_root}/d", "id INT, day DATE, zone STRING", partition_keys=["day", "zone"])
    dates = [dt.date(2024, 1, 30), dt.date(2024, 1, 31), dt.date(2024, 1, 31), dt.date(2024, 2, 1)]
    table.write(pa.table({"id": pa.array([1, 2, 3, 4], pa.int32()), "day": dates, "zone": ["x", "x", "y", "x"]}))
    return table


def test_a_tag_outlives_its_snapshot(table):
    table.create_tag("v1")
    write(table, 3)
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(SnapshotExpired):
        table.scan(snapshot=1)
    assert keys(table, tag="v1") == [1, 2]
    assert table.delete_tag("v1").data_files == 1
    assert table.list_orphan_files(older_than=2**62) == []
    with pytest.raises(SnapshotNotFound, match="v1"):
        table.scan(tag="v1")


def test_tags_may_be_made_for_a_while_by_argument_or_by_option(table):
    table.create_tag("short", time_retained=timedelta(milliseconds=0))
    table.alter_options({"tag.default-time-retained": "2 d"}).create_tag("days", 1)
    table.create_tag("kept", time_retained=timedelta(days=400))
    assert table.tags()["time_retained"].to_pylist() == [timedelta(days=2), timedelta(days=400), timedelta(0)]
    assert table.expire_tags().tags == ("short",)
    with pytest.raises(TagExists, match="tag 'kept' exists; move it by replace_tag"):
        table.create_tag("kept")
    with pytest.raises(SnapshotNotFound):
        table.create_tag("nothing", 9)
    with pytest.raises(TagExists, match="choose another name"):
        table.rename_tag("kept", "days")
    table.create_branch("side", "kept")
    with pytest.raises(BranchExists, match="branch 'side' exists"):
        table.create_branch("side")
    assert issubclass(TagExists, InvalidArgument)
    assert issubclass(BranchExists, InvalidArgument)


def test_rollback_goes_to_a_snapshot_or_a_tag(table):
    write(table, 3)
    write(table, 4)
    table.create_tag("late")
    assert (table.rollback_to(2).snapshots, keys(table)) == (1, [1, 2, 3])
    assert table.tags().num_rows == 0
    table.create_tag("two", 2)
    write(table, 9)
    table.rollback_to(tag="two")
    assert keys(table) == [1, 2, 3]
    # An object store gives no id twice: each rollback is a snapshot of its own there.
    assert write(table, 5).snapshot_id == (7 if "://" in table.path else 3)
    for wrong in ({}, {"snapshot": 1, "tag": "two"}):
        with pytest.raises(InvalidArgument, match="exactly one of"):
            table.rollback_to(**wrong)
    with pytest.raises(SnapshotNotFound):
        table.rollback_to(77)


def test_changes_after_a_rollback_read_the_new_snapshot_of_an_id(table):
    write(table, 3)
    assert keys(table) == [1, 2, 3]
    table.rollback_to(snapshot=1)
    write(table, 4)
    table.update("id = 4", {"city": "'b'"})
    assert keys(table) == [1, 2, 4]
    table.delete("id = 2")
    assert keys(table) == [1, 4]


def test_rollback_goes_to_the_newest_snapshot_until_a_time(table):
    first = table.snapshots()["commit_time"][0].as_py()
    time.sleep(0.01)
    write(table, 3)
    assert table.rollback_to(timestamp=first, dry_run=True).snapshots == 1
    assert (table.rollback_to(timestamp=first).snapshot_id, keys(table)) == (1, [1, 2])
    with pytest.raises(SnapshotNotFound):
        table.rollback_to(timestamp=first - timedelta(days=1))
    with pytest.raises(SnapshotNotFound, match="watermark"):
        table.rollback_to(watermark=5)
    with pytest.raises(InvalidArgument, match="exactly one of"):
        table.rollback_to(1, timestamp=first)


def test_a_branch_is_opened_by_name_or_by_path_and_written_apart(table):
    table.create_tag("v1")
    table.create_branch("dev", "v1")
    branch = Table.open(table.path, branch="dev")
    assert branch.path == f"{table.path}$branch_dev"
    write(branch, 7)
    branch.add_column("n", "INT").compact(full=True)
    assert keys(Table.open(branch.path)) == [1, 2, 7]
    assert (keys(table), table.schema.names, branch.schema.names) == ([1, 2], ["id", "city"], ["id", "city", "n"])
    branch.delete("id = 1")
    assert (keys(branch), keys(table)) == ([2, 7], [1, 2])
    assert branch.scan(tag="v1").count() == 2
    assert table.list_orphan_files(older_than=2**62) == []
    assert table.branches().select(["branch_name", "schema_id", "earliest_snapshot_id", "latest_snapshot_id"]).to_pylist() == [
        {"branch_name": "dev", "schema_id": 1, "earliest_snapshot_id": 1, "latest_snapshot_id": branch.snapshots().num_rows}
    ]
    table.fast_forward("dev")
    assert (keys(table), table.schema.names) == ([2, 7], ["id", "city", "n"])
    table.delete_branch("dev")
    assert keys(table) == [2, 7]
    with pytest.raises(TableNotFound, match="no branch 'dev'"):
        keys(branch)


def test_branches_are_managed_on_the_table_itself(table):
    table.create_branch("dev")
    branch = Table.open(table.path, branch="dev")
    assert keys(branch) == []
    with pytest.raises(InvalidArgument, match="on the table itself"):
        branch.create_branch("other")
    with pytest.raises(InvalidArgument, match="create_branch"):
        Table.create(f"{table.path}$branch_new", COLUMNS)
    with pytest.raises(SnapshotNotFound, match="no snapshot"):
        table.fast_forward("dev")
    with pytest.raises(InvalidArgument, match=r"'\.\./up' is not a valid branch name"):
        Table.open(table.path, branch="../up")


def test_partitions_are_dropped_by_all_or_some_of_their_columns(days):
    done = days.drop_partitions([{"day": dt.date(2024, 1, 31), "zone": "y"}])
    assert (done.partitions, done.snapshot_id) == (("day=2024-01-31/zone=y",), 2)
    assert days.scan().count() == 3
    assert days.drop_partitions([{"zone": "nowhere"}]).snapshot_id is None
    assert len(days.drop_partitions([{"zone": "x"}, {"day": "2024-02-01"}]).partitions) == 3
    assert (days.scan().count(), days.scan(snapshot=1).count()) == (0, 4)
    assert days.snapshots()["commit_kind"].to_pylist() == ["APPEND", "OVERWRITE", "OVERWRITE"]
    with pytest.raises(UnknownColumn, match="'id'"):
        days.drop_partitions([{"id": 3}])
    for nothing in ([], [{}]):
        with pytest.raises(InvalidArgument):
            days.drop_partitions(nothing)


def test_the_partitions_view_counts_rows_files_and_bytes(days):
    view = days.partitions()
    assert view["partition"].to_pylist() == [
        "day=2024-01-30/zone=x",
        "day=2024-01-31/zone=x",
        "day=2024-01-31/zone=y",
        "day=2024-02-01/zone=x",
    ]
    assert view["row_count"].to_pylist() == view["file_count"].to_pylist() == [1, 1, 1, 1]
    assert sum(view["file_size"].to_pylist()) == sum(days.files()["file_size"].to_pylist())
    assert all(abs(time - dt.datetime.now()) < timedelta(hours=1) for time in view["last_update_time"].to_pylist())


def test_partitions_expire_by_the_time_in_their_values(days):
    assert days.expire_partitions(dt.datetime(2024, 1, 31)).partitions == ("day=2024-01-30/zone=x",)
    with pytest.raises(InvalidArgument, match=r"partition\.expiration-time"):
        days.expire_partitions()
    days.alter_options({"partition.expiration-time": "36500 d"})
    assert days.expire_partitions().partitions == ()
    days.alter_options({"partition.expiration-time": "1 d", "partition.expiration-max-num": "2"})
    assert days.expire_partitions().partitions == ("day=2024-01-31/zone=x", "day=2024-01-31/zone=y")
    assert days.scan().to_arrow()["id"].to_pylist() == [4]


def test_partitions_expire_by_their_last_change(days):
    days.alter_options({"partition.expiration-time": "1 d", "partition.expiration-strategy": "update-time"})
    assert days.expire_partitions().partitions == ()
    assert len(days.expire_partitions(dt.datetime.now() + timedelta(hours=1)).partitions) == 4


@pytest.mark.parametrize(
    ("pattern", "formatter", "values", "expected"),
    [
        (None, None, ("2024-01-31", "7"), dt.datetime(2024, 1, 31)),
        (None, None, ("2024-1-1 7:05:06.25", "7"), dt.datetime(2024, 1, 1, 7, 5, 6, 250000)),
        ("$day $hour:00", None, ("2024-01-31", "7"), dt.datetime(2024, 1, 31, 7)),
        (None, "yyyyMMdd", ("20240131", "7"), dt.datetime(2024, 1, 31)),
        ("$day$hour", "dd/MM/yyyy'T'HH", ("31/01/2024T", "07"), dt.datetime(2024, 1, 31, 7)),
        (None, None, ("yesterday", "7"), None),
        (None, None, (None, "7"), None),
        (None, "yyyyMMdd", ("20240231", "7"), None),
    ],
)
def test_the_time_of_a_partition_is_read_by_pattern_and_formatter(pattern, formatter, values, expected):
    assert PartitionTime(("day", "hour"), pattern, formatter).of(values) == expected


@pytest.mark.parametrize(
    "option",
    [
        {"partition.expiration-time": "soon"},
        {"partition.expiration-strategy": "custom"},
        {"partition.timestamp-formatter": "EEE yyyy"},
        {"partition.expiration-max-num": "0"},
    ],
)
def test_expiration_options_that_cannot_be_honoured_are_refused_by_name(days, option):
    with pytest.raises(UnsupportedOption, match=next(iter(option))):
        days.alter_options(option)


def test_the_views_show_schemas_and_consumers(table):
    table.add_column("n", "INT").set_comment("people")
    schemas = table.schemas().to_pylist()
    assert [(row["schema_id"], row["comment"], len(json.loads(row["fields"]))) for row in schemas] == [
        (0, None, 2),
        (1, None, 3),
        (2, "people", 3),
    ]
    assert dict(schemas[2]["options"]) == table.options
    store = FileStore.open(table.path)
    store.file_io.write(store.paths.consumer("job"), b'{"nextSnapshot": 2}')
    assert table.consumers().to_pylist() == [{"consumer_id": "job", "next_snapshot_id": 2}]


@pytest.mark.parametrize("where", ["root", "memory"])
def test_a_scan_reads_its_own_snapshot_or_none_after_a_rollback(table_root, where):
    """On a local disk the next commit has the id of the snapshot that went. On an object store the rollback has overwritten it."""
    root = f"memory://{uuid.uuid4().hex}" if where == "memory" else table_root
    table = keyed(f"{root}/t", COLUMNS)
    write(table, 1, 2)
    write(table, 3)
    scans = [table.scan(), table.scan("id >= 0"), Table.open(table.path).scan(snapshot=2)]
    tagged = Table.open(table.path)
    tagged.create_tag("two", 2)
    of_tag = tagged.scan(tag="two")
    table.create_branch("side", "two")
    table.rollback_to(1)
    write(table, 4)
    for scan in (*scans, of_tag):
        with pytest.raises(SnapshotNotFound):
            scan.to_arrow()
    assert keys(table) == [1, 2, 4]
    table.fast_forward("side")
    assert keys(table, tag="two") == [1, 2, 3]
    assert sorted(of_tag.to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_a_change_says_what_it_did(table) -> None:
    table.create_tag("v1")
    for name in ("kept", "gone"):
        table.create_branch(name, "v1")
    done = {
        "snapshot 3, consumer 'c' reads snapshot 3 next": table.reset_consumer("c", 3),
        "consumer 'c' deleted": table.reset_consumer("c"),
        "1 snapshot with 0 data files and 0 manifests deleted, tags v1, branch 'gone' deleted": table.delete_branch("gone"),
        "history of branch 'kept' taken": table.fast_forward("kept"),
        "nothing to do": table.clear_consumers(),
    }
    assert {text: str(change) for text, change in done.items()} == {text: text for text in done}
    for name in ("a", "b"):
        table.reset_consumer(name, 1)
    assert str(table.clear_consumers()) == "consumer 'a' deleted, consumer 'b' deleted"
