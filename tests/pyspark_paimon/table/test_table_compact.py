"""Compaction as an operation: by partition, by options, by columns, and as a job of its own beside writers."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from pyspark_paimon import InvalidArgument, InvalidFilter, Table, UnknownColumn, UnsupportedOption
from tests.pyspark_paimon.table_worker import finish, start


def rows(ids, city="x") -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids), "n": pa.array([at % 3 for at in ids], pa.int32())})


def levels(table: Table) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for row in table.files().select(["partition", "level"]).to_pylist():
        found.setdefault(row["partition"], set()).add(row["level"])
    return found


def partitioned(create) -> Table:
    options = {"write-only": "true"}
    table = create("id BIGINT, city STRING, n INT", primary_keys=("id", "city"), partition_keys=("city",), options=options)
    for city in ("a", "b", "c") * 2:
        table.write(rows(range(4), city))
    return table


def test_a_filter_on_partition_columns_limits_it(create) -> None:
    table = partitioned(create)
    assert table.compact(full=True, filter="city >= 'b' AND city <> 'c'").buckets == 1
    assert levels(table) == {"city=a": {0}, "city=b": {5}, "city=c": {0}}
    assert table.compact(full=True, filter="city = 'nowhere'").snapshot_id is None
    assert table.compact(full=True).buckets == 2


def test_other_filters_are_refused(create) -> None:
    table = partitioned(create)
    with pytest.raises(InvalidArgument, match="partition columns"):
        table.compact(filter="n = 1")
    with pytest.raises(InvalidArgument, match="not by both"):
        table.compact(partitions=[{"city": "a"}], filter="city = 'a'")
    with pytest.raises(InvalidFilter):
        table.compact(filter="city = ")
    with pytest.raises(InvalidArgument, match="none"):
        create(name="plain").compact(filter="id = 1")


@pytest.mark.parametrize("option", [{"full-compaction.delta-commits": "3"}, {"changelog-producer": "full-compaction"}])
def test_a_batch_write_compacts_fully_if_full_compactions_are_asked_for(create, option) -> None:
    table = create(options=option)
    for at in range(3):
        assert table.write(rows(range(at, at + 5))).compact_snapshot_id is not None
        assert levels(table) == {"": {5}}
    assert table.scan().count() == 7


def test_runs_never_exceed_the_stop_trigger_however_many_files_a_write_makes(create) -> None:
    options = {"num-sorted-run.compaction-trigger": "3", "num-sorted-run.stop-trigger": "4", "target-file-size": "1 kb"}
    table = create(options=options)
    chance = random.Random(1)
    state: dict[int, str] = {}
    for at in range(12):
        ids = chance.sample(range(6000), chance.choice([5, 50, 3000]))
        table.write(rows(ids, f"w{at}"))
        state |= dict.fromkeys(ids, f"w{at}")
        files = table.files()["level"].to_pylist()
        assert files.count(0) + len(set(files) - {0}) <= 4
    assert {row["id"]: row["city"] for row in table.scan().to_arrow().to_pylist()} == state


def test_a_write_only_table_is_never_held_up(create) -> None:
    table = create(options={"write-only": "true", "num-sorted-run.stop-trigger": "2", "num-sorted-run.compaction-trigger": "2"})
    for at in range(5):
        table.write(rows([at]))
    assert table.files().num_rows == 5
    assert table.compact().files_after == 1


def test_a_writer_makes_up_for_compactions_that_never_came(create) -> None:
    table = create()
    for at in range(10):
        table.write(rows(range(at, at + 20)), options={"write-only": "true"})
    assert table.files().num_rows == 10
    table.write(rows([5], "last"))
    assert table.files().num_rows == 1
    assert table.scan("city = 'last'").count() == 1


def test_a_full_compaction_is_due_when_the_interval_has_passed(create) -> None:
    table = create(options={"compaction.optimization-interval": "1 ms", "num-sorted-run.compaction-trigger": "9"})
    table.write(rows([1]))
    table.write(rows([2]))
    table.write(rows([3]))
    assert levels(table) == {"": {9}}


def test_a_small_bucket_is_compacted_fully(create) -> None:
    small = create(name="small", options={"compaction.total-size-threshold": "1 mb", "num-sorted-run.compaction-trigger": "9"})
    large = create(name="large", options={"compaction.total-size-threshold": "1 kb", "num-sorted-run.compaction-trigger": "9"})
    for table in (small, large):
        for at in range(3):
            table.write(rows([at]))
    assert levels(small) == {"": {9}}
    assert large.files().num_rows == 3


APPEND = "a INT, b STRING, day STRING"


def scattered(create, **rest) -> Table:
    table = create(APPEND, primary_keys=(), options={"target-file-size": "4 kb", "metadata.stats-mode": "full"}, **rest)
    rng = np.random.default_rng(5)
    for _ in range(3):
        a, b = rng.integers(0, 1000, 8000), rng.integers(0, 1000, 8000)
        table.write(pa.table({"a": pa.array(a, pa.int32()), "b": [f"{at:05}" for at in b], "day": [f"d{at % 2}" for at in a]}))
    return table


def all_rows(table: Table) -> list[dict]:
    return sorted(table.scan().to_arrow().to_pylist(), key=str)


@pytest.mark.parametrize("strategy", ["order", "zorder", "hilbert"])
def test_rows_of_an_append_table_are_sorted_by_columns(create, strategy) -> None:
    table = scattered(create)
    before = all_rows(table)
    files = table.files().num_rows
    kept = [sum(len(split.files) for split in table.scan(text).plan().splits) for text in ("a = 500", "b = '00500'")]
    result = table.compact(order_by=["A", "b"], strategy=strategy)
    assert all_rows(table) == before
    assert result.files_after == table.files().num_rows >= 5
    after = [sum(len(split.files) for split in table.scan(text).plan().splits) for text in ("a = 500", "b = '00500'")]
    assert kept == [files, files]
    assert after[0] < result.files_after
    assert (after[1] < result.files_after) == (strategy != "order")


def test_partitions_are_sorted_each_by_itself(create) -> None:
    table = scattered(create, partition_keys=("day",))
    before = all_rows(table)
    assert table.compact(order_by="a", filter="day = 'd1'").buckets == 1
    assert all_rows(table) == before
    one, other = (table.scan(f"day = '{day}'", columns=["a"]).to_arrow()["a"].to_pylist() for day in ("d1", "d0"))
    assert one == sorted(one)
    assert other != sorted(other)


def test_what_cannot_be_sorted_is_refused(create) -> None:
    table = create("a INT, m ARRAY<INT>, day STRING", primary_keys=(), partition_keys=("day",))
    for order_by, error, text in [
        (["x"], UnknownColumn, "x"),
        (["day"], InvalidArgument, "partition column"),
        (["m"], InvalidArgument, "no order"),
        (["a", "a"], InvalidArgument, "once"),
        ([], InvalidArgument, "at least one"),
    ]:
        with pytest.raises(error, match=text):
            table.compact(order_by=order_by)
    with pytest.raises(InvalidArgument, match="strategy"):
        table.compact(order_by="a", strategy="random")
    with pytest.raises(InvalidArgument, match="append tables without buckets"):
        create(name="keyed").compact(order_by="n")
    with pytest.raises(InvalidArgument, match="append tables without buckets"):
        create(APPEND, name="buckets", primary_keys=(), options={"bucket": "2", "bucket-key": "a"}).compact(order_by="a")
    with pytest.raises(UnsupportedOption):
        table.compact(options={"bucket": "3"})
    wide = create(", ".join(f"c{at} INT" for at in range(9)), name="wide", primary_keys=())
    with pytest.raises(InvalidArgument, match="at most 8"):
        wide.compact(order_by=[f"c{at}" for at in range(9)], strategy="hilbert")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("writers", "commits", "producer"),
    [
        pytest.param(2, 3, "lookup", id="small"),
        pytest.param(4, 25, "none", id="large", marks=pytest.mark.long),
        pytest.param(4, 25, "lookup", id="large, with a changelog", marks=pytest.mark.long),
    ],
)
def test_a_dedicated_compaction_job_and_write_only_writers_lose_nothing(create, writers, commits, producer) -> None:
    options = {"write-only": "true", "bucket": "2", "commit.max-retries": "200", "num-sorted-run.compaction-trigger": "2"}
    table = create("id BIGINT, city STRING", options={**options, "changelog-producer": producer})
    table.write(pa.table({"id": [0], "city": ["seed"]}))
    plans = [
        [("write", [["+I", at, f"w{writer}-{commit}"] for at in range(commit, commit + 6)]) for commit in range(commits)]
        for writer in range(writers)
    ]
    plans.append([("compact", at % 2 == 1) for at in range(commits + 1)])
    workers = [start(table.path, plan) for plan in plans]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.close()
        worker.stdin = None
    written: list[tuple[int, list]] = []
    compactions = []
    for worker, plan in zip(workers, plans, strict=True):
        code, lines, err = finish(worker)
        assert code == 0, err
        acknowledged = [(line["snapshot"], plan[line["action"]]) for line in lines if line["snapshot"] is not None]
        written += [(snapshot, argument) for snapshot, (what, argument) in acknowledged if what == "write"]
        compactions += [snapshot for snapshot, (what, _) in acknowledged if what == "compact"]
    assert len(written) == writers * commits
    assert compactions
    state = {0: "seed"}
    for _, argument in sorted(written, key=lambda pair: pair[0]):
        state |= {key: city for _, key, city in argument}
    assert {row["id"]: row["city"] for row in table.scan().to_arrow().to_pylist()} == state
    table.compact(full=True)
    assert {row["id"]: row["city"] for row in table.scan().to_arrow().to_pylist()} == state
    if producer == "lookup":
        told: dict[int, str] = {}
        for snapshot in table.snapshots()["snapshot_id"].to_pylist():
            for row in table.scan(incremental=(snapshot - 1, snapshot)).to_arrow().to_pylist():
                if row["_row_kind"] in {"-U", "-D"}:
                    assert told.pop(row["id"]) == row["city"]
                else:
                    told[row["id"]] = row["city"]
        assert told == state


@pytest.mark.parametrize(
    "options",
    [
        {"deletion-vectors.enabled": "true"},
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "changelog-producer": "lookup"},
        {"merge-engine": "partial-update", "deletion-vectors.enabled": "true"},
        {"sequence.field": "n"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_many_small_runs_are_merged_like_few(create, options):
    table = create("id BIGINT, city STRING, n INT", options={**options, "write-only": "true"})
    table.write([{"id": number, "city": "base", "n": 50} for number in range(40)])
    table.compact(full=True)
    sums = options.get("merge-engine") == "aggregation"
    expected = dict.fromkeys(range(40), ("base", 50))
    for turn in range(20):
        ids = [turn, turn + 30, 7]
        table.write([{"id": number, "city": f"turn {turn}", "n": 41 + turn} for number in ids])
        for number in ids:
            held = expected.get(number, (None, 0))[1]
            if "sequence.field" not in options or 41 + turn >= held:
                expected[number] = (f"turn {turn}", 41 + turn + held if sums else 41 + turn)

    def rows(opened):
        return {row["id"]: (row["city"], row["n"]) for row in opened.scan().to_arrow().to_pylist()}

    assert rows(table) == expected
    table.compact()
    assert rows(table) == expected
