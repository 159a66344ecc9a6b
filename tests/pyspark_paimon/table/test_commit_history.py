"""Operation, metrics and user properties of commits."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.snapshot.commit_info import CommitInfo, check_properties, commit_properties
from manifest.snapshot.snapshot import CommitKind, Snapshot
from pyspark_paimon import InvalidArgument, Table

NOTE = {"ticket": "DATA-7", "job": "nightly"}
DDL = "id BIGINT, n INT, day STRING"


def rows(*ids: int, n: int = 1, day: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([n] * len(ids), pa.int32()), "day": [day] * len(ids)})


def newest(table: Table) -> tuple[str, dict[str, int], dict[str, str]]:
    row = table.history(1).to_pylist(maps_as_pydicts="strict")[0]
    return row["operation"], row["metrics"], row["properties"]


@pytest.fixture
def table(table_root) -> Table:
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "50"}
    return Table.create(f"{table_root}/t", DDL, primary_keys=["id", "day"], partition_keys=["day"], options=options)


@pytest.fixture
def log(table_root) -> Table:
    return Table.create(f"{table_root}/log", DDL, partition_keys=["day"])


def test_history_names_each_operation_and_its_rows(table):
    table.write(rows(1, 2, 3), properties=NOTE)
    operation, metrics, properties = newest(table)
    assert (operation, metrics["rows"], metrics["files"], properties) == ("upsert", 3, 1, NOTE)
    table.delete("id = 1", properties=NOTE)
    operation, metrics, properties = newest(table)
    assert (operation, metrics["rows"], properties) == ("delete", 1, NOTE)
    table.update("id = 2", set={"n": 5}, properties=NOTE)
    operation, metrics, properties = newest(table)
    assert (operation, metrics["rows"], properties) == ("update", 1, NOTE)
    merge = table.merge(rows(2, 9, day="a"), on=["id", "day"], properties=NOTE)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    operation, metrics, properties = newest(table)
    assert (operation, metrics["updated"], metrics["inserted"], metrics["deleted"], properties) == ("merge", 1, 1, 0, NOTE)
    table.compact(full=True, properties=NOTE)
    operation, metrics, properties = newest(table)
    assert (operation, metrics["files_after"], properties) == ("compact", 1, NOTE)
    table.write(rows(5, day="b"), "overwrite", properties=NOTE)
    operation, metrics, properties = newest(table)
    assert (operation, metrics["rows"], properties) == ("overwrite", 1, NOTE)
    table.restore(1, properties=NOTE)
    operation, metrics, properties = newest(table)
    assert (operation, metrics["restored_snapshot"], properties) == ("restore", 1, NOTE)
    table.drop_partitions([{"day": "a"}], properties=NOTE)
    assert newest(table) == ("drop-partitions", {"partitions": 1}, NOTE)
    table.analyze()
    assert newest(table)[0] == "analyze"
    assert None not in table.snapshots()["operation"].to_pylist()


def test_append_table_history(log):
    log.write(rows(1, 2, 3), properties=NOTE)
    log.delete("id = 1", properties=NOTE)
    assert (newest(log)[0], newest(log)[1]["rows"], newest(log)[2]) == ("delete", 1, NOTE)
    log.update("id = 2", set={"n": 5})
    assert (newest(log)[0], newest(log)[1]["rows"], newest(log)[2]) == ("update", 1, {})
    log.merge(rows(2, 9), on="id").when_matched_update({"n": "s.n"}).when_not_matched_insert_all().execute()
    assert newest(log)[0] == "merge"
    assert newest(log)[1].items() >= {"updated": 1, "inserted": 1, "deleted": 0}.items()
    assert log.history()["operation"].to_pylist() == ["merge", "update", "delete", "append"]


def test_a_compaction_after_a_write_is_named_compact(table_root):
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}
    table = Table.create(f"{table_root}/t", "id BIGINT, n INT, day STRING", primary_keys=["id"], options=options)
    for number in range(4):
        table.write(rows(1, n=number), properties=NOTE)
    found = table.snapshots()
    kinds = list(zip(found["commit_kind"].to_pylist(), found["operation"].to_pylist(), strict=True))
    assert set(kinds) == {("APPEND", "upsert"), ("COMPACT", "compact")}
    noted = [bool(properties) for properties in found["properties"].to_pylist()]
    assert noted == [kind == "APPEND" for kind, _ in kinds]


def test_a_writer_notes_properties_of_each_commit(table):
    with table.writer() as writer:
        writer.write(rows(1))
        writer.commit(properties={"batch": "first"})
        writer.write(rows(2))
        writer.commit()
    noted = [row["properties"] for row in table.snapshots().to_pylist(maps_as_pydicts="strict") if row["operation"] == "upsert"]
    assert noted == [{"batch": "first"}, {}]


def test_batch_numbers_are_shown_and_the_number_of_other_commits_is_null(table):
    table.write(rows(1))
    table.write(rows(2), commit_id="job", batch_id=7)
    assert table.snapshots()["commit_identifier"].to_pylist() == [None, 7]


def test_history_is_limited(table):
    for number in range(3):
        table.write(rows(number))
    assert table.history(2)["snapshot_id"].to_pylist() == [3, 2]
    assert table.history(0).num_rows == 0
    with pytest.raises(InvalidArgument, match="limit"):
        table.history(-1)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"pyspark-paimon.rows": "1"}, "reserved"),
        ({"sequence.generation.max-sequence-number": "1"}, "reserved"),
        ({"rows": 1}, "must be text"),
        ({7: "a"}, "must be text"),
        ({"": "a"}, "at least one character"),
        ({"a": "x" * 20_000}, "characters"),
        ({"a": "\ud800"}, "surrogate"),
    ],
)
def test_invalid_properties_are_refused_before_the_commit(table, log, properties, message):
    calls = [
        lambda: table.write(rows(1), properties=properties),
        lambda: table.delete("id = 1", properties=properties),
        lambda: table.update("id = 1", set={"n": 2}, properties=properties),
        lambda: table.merge(rows(1), on=["id", "day"], properties=properties),
        lambda: table.compact(properties=properties),
        lambda: table.drop_partitions([{"day": "a"}], properties=properties),
        lambda: log.write(rows(1), properties=properties),
    ]
    for call in calls:
        with pytest.raises(InvalidArgument, match=message):
            call()
    assert table.snapshots().num_rows == log.snapshots().num_rows == 0


def snapshot_with(properties: dict[str, str]) -> Snapshot:
    return Snapshot(
        id=1,
        schema_id=0,
        base_manifest_list="a",
        delta_manifest_list="b",
        commit_user="u",
        commit_identifier=1,
        commit_kind=CommitKind.APPEND,
        time_millis=0,
        total_record_count=1,
        delta_record_count=1,
        properties=properties,
    )


def test_snapshots_of_other_engines_have_no_operation():
    snapshot = snapshot_with({"sequence.generation.max-sequence-number": "9", "theirs": "1", "pyspark-paimon.first-replaced": "4"})
    assert CommitInfo.of(snapshot) == CommitInfo(None, {}, {"theirs": "1"})
    assert CommitInfo.of(snapshot.model_copy(update={"properties": None})) == CommitInfo(None, {}, {})


_NAMES = st.text(min_size=1, max_size=12).filter(lambda text: "\ud800" not in text)


@settings(deadline=None)
@given(
    st.dictionaries(_NAMES, st.text(max_size=20), max_size=4),
    st.dictionaries(st.sampled_from(["rows", "files", "updated"]), st.integers(0, 1 << 62), max_size=3),
)
def test_any_texts_return_as_they_were_given(properties, metrics):
    noted = commit_properties("update", metrics, check_properties(properties))
    text = snapshot_with(noted).to_json()
    assert CommitInfo.of(Snapshot.from_json(text, "snapshot-1")) == CommitInfo("update", metrics, properties)


def test_a_rollback_is_named_where_it_is_a_commit(table):
    table.write(rows(1))
    table.write(rows(2))
    table.rollback_to(1)
    operations = table.snapshots()["operation"].to_pylist()
    assert operations in (["upsert"], ["upsert", "rollback", "rollback"]), (
        "a file system deletes, a store overwrites with the state of before"
    )
    table.write(rows(3))
    assert newest(table)[0] == "upsert"


def test_expired_partitions_and_repairs_are_named(tmp_path):
    options = {"partition.timestamp-formatter": "yyyy-MM-dd", "partition.expiration-time": "7 d"}
    table = Table.create(tmp_path / "t", DDL, partition_keys=["day"], options=options)
    table.write(rows(1, day="2020-01-01"))
    table.write(rows(2, day="2999-01-01"))
    table.expire_partitions(properties=NOTE)
    assert newest(table) == ("expire-partitions", {"partitions": 1}, NOTE)
