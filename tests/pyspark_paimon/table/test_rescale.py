"""Another number of buckets for stored rows: nothing lost, nothing twice, and the table goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lsm.commit.copy_rows
import lsm.commit.rescale
from manifest.io.errors import CommitConflict, UnsupportedTable
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Table

DDL = "id BIGINT, day STRING, n INT, PRIMARY KEY (id, day) NOT ENFORCED"


def rows_of(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: (row.get("day") or "", row["id"], row["n"]))


def buckets_of(table: Table) -> dict[str, int]:
    """Return the number of buckets of each partition."""
    store = table._engine.store()
    entries = store.live_entries(store.snapshots.latest())
    assert len(set(zip(entries.partition, entries.total_buckets.tolist(), strict=True))) == len(set(entries.partition)), (
        "one number a partition"
    )
    return {
        str(*store.partition.decode(p)) if store.schema.partition_keys else "": t
        for p, t in zip(entries.partition, entries.total_buckets.tolist(), strict=True)
    }


def made(path: Path, **options: str) -> Table:
    table = Table.create(path, DDL, partition_keys=["day"], options={"bucket": "2", **options})
    for step in range(3):
        table.write([{"id": i, "day": day, "n": step} for i in range(step * 5, 20) for day in ("a", "b", "c")])
    table.delete("id = 7")
    return table


ENGINES: list[dict[str, str]] = [
    {},
    {"deletion-vectors.enabled": "true"},
    {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "aggregation.remove-record-on-delete": "true"},
    {"changelog-producer": "input"},
    {"file.format": "orc"},
]


def test_nulls_of_a_column_with_a_default_stay_null(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", DDL, options={"bucket": "2"})
    table.write([{"id": 1, "day": "a", "n": None}, {"id": 2, "day": "a", "n": 2}])
    table.set_default("n", 7)
    before = rows_of(table)
    table.rescale(3)
    assert rows_of(table) == before


@pytest.mark.slow("1-plain")
@pytest.mark.parametrize("options", ENGINES, ids=[" ".join(options.values()) or "plain" for options in ENGINES])
@pytest.mark.parametrize("buckets", [1, 5])
def test_rows_move_into_the_new_buckets(tmp_path: Path, options: dict[str, str], buckets: int) -> None:
    table = made(tmp_path / "t", **options)
    before, snapshots = rows_of(table), table.snapshots().num_rows
    preview = table.rescale(buckets, dry_run=True)
    assert preview.partitions == ("day=a", "day=b", "day=c")
    assert (rows_of(table), table.options["bucket"]) == (before, "2")
    done = table.rescale(buckets)
    assert done.partitions == ("day=a", "day=b", "day=c")
    assert table.options["bucket"] == str(buckets)
    assert buckets_of(table) == dict.fromkeys("abc", buckets)
    assert rows_of(table) == before
    assert table.snapshots().num_rows == snapshots + 3
    assert table.history(1)["operation"][0].as_py() == "rescale"
    assert table.rescale(buckets).partitions == ()
    table.write([{"id": 1, "day": "a", "n": 100}])
    table.compact(full=True)
    newest = next(row["n"] for row in rows_of(table) if row["id"] == 1 and row["day"] == "a")
    assert newest == (
        100 if options.get("merge-engine") != "aggregation" else 100 + next(r["n"] for r in before if (r["id"], r["day"]) == (1, "a"))
    )
    assert table.fsck("deep").clean


def test_a_table_without_partitions_rescales(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, n INT", options={"bucket": "2", "bucket-key": "id"})
    table.write([{"id": i % 7, "n": i} for i in range(50)])
    before = rows_of(table)
    assert table.rescale(3).snapshot_id == 2
    assert (rows_of(table), buckets_of(table)) == (before, {"": 3})
    assert [row["n"] for row in table.scan("id = 3").to_arrow().to_pylist()] == [row["n"] for row in before if row["id"] == 3]
    table.write([{"id": 1, "n": 1000}])
    assert table.count() == 51


def test_partitions_follow_a_new_option_one_by_one(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    before = rows_of(table)
    with pytest.raises(InvalidArgument, match=r"alter_options\(\{'bucket': '4'\}\) first"):
        table.rescale(4, [{"day": "a"}])
    table.alter_options({"bucket": "4"})
    assert table.rescale(partitions=[{"day": "b"}]).partitions == ("day=b",)
    assert buckets_of(table) == {"a": 2, "b": 4, "c": 2}
    table.write([{"id": 1, "day": "b", "n": 5}])
    with pytest.raises(UnsupportedTable, match="overwrite it to change its number of buckets"):
        table.write([{"id": 1, "day": "a", "n": 5}])
    assert table.rescale().partitions == ("day=a", "day=c")
    assert [row for row in rows_of(table) if (row["id"], row["day"]) != (1, "b")] == [r for r in before if (r["id"], r["day"]) != (1, "b")]


def test_rows_of_a_concurrent_commit_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t")
    late = [{"id": 100, "day": "a", "n": 1}], [{"id": 12, "day": "b", "n": 50}, {"id": 101, "day": "a", "n": 2}]
    writers = []
    for rows in late:  # begun before the option changes, committed amid the rewriting
        writers.append(table.writer())
        writers[-1].write(rows)
    before, read, rounds = rows_of(table), lsm.commit.copy_rows.read_split, iter(writers)

    def racing(*arguments: Any, **options: Any) -> Any:
        yield from read(*arguments, **options)
        writer = next(rounds, None)
        if writer is not None:
            writer.commit()

    monkeypatch.setattr(lsm.commit.copy_rows, "read_split", racing)
    assert table.rescale(3).partitions == ("day=a", "day=b", "day=c")
    for writer in writers:
        writer.close()
    kept = [row for row in before if (row["id"], row["day"]) != (12, "b")]
    assert rows_of(table) == sorted([*kept, *late[0], *late[1]], key=lambda row: (row["day"], row["id"]))
    assert buckets_of(table) == dict.fromkeys("abc", 3)
    assert table.fsck("deep").clean


def test_an_interrupted_rescale_is_finished_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t")
    before, done = rows_of(table), lsm.commit.rescale.rescale_partition
    calls = iter(range(10))

    def dying(*arguments: Any, **options: Any) -> Any:
        if next(calls) == 1:
            raise CommitConflict("others were faster")
        return done(*arguments, **options)

    monkeypatch.setattr("pyspark_paimon.operations.rescale.rescale_partition", dying)
    with pytest.raises(CommitConflict):
        table.rescale(6)
    assert buckets_of(table) == {"a": 6, "b": 2, "c": 2}
    assert rows_of(table) == before
    assert table.rescale().partitions == ("day=b", "day=c")
    assert (rows_of(table), buckets_of(table)) == (before, dict.fromkeys("abc", 6))


@pytest.mark.parametrize("bucket", ["-1", "-2"])
def test_a_table_without_a_fixed_number_is_refused(tmp_path: Path, bucket: str) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, n INT", primary_keys=["id"], options={"bucket": bucket})
    with pytest.raises(UnsupportedTable, match=f"option 'bucket' is {bucket}, so the table has no fixed number of buckets"):
        table.rescale(4)


@pytest.mark.parametrize("buckets", [0, -1, 2**31, 2**70])
def test_a_wrong_number_changes_nothing(tmp_path: Path, buckets: int) -> None:
    table = made(tmp_path / "t")
    with pytest.raises(InvalidArgument, match=f"has 1 to 2147483647 buckets, not {buckets}"):
        table.rescale(buckets)
    assert table.options["bucket"] == "2"
