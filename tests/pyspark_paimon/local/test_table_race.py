"""Processes that race on one table: what is read equals the acknowledgements, replayed in the order of their commits."""

from __future__ import annotations

import random

import pytest

from manifest.snapshot.snapshot import CommitKind
from manifest.store import FileStore
from pyspark_paimon import Table
from tests.pyspark_paimon.table_worker import finish, start

Action = tuple[str, object]
MATCHES = {"city LIKE 'a%'": lambda city: city.startswith("a"), "city = 'b'": lambda city: city == "b"}


def distinct_keys(process: int, commits: int) -> list[Action]:
    return [("write", [["+I", process * 100_000 + commit * 10 + at, f"p{process}"] for at in range(10)]) for commit in range(commits)]


def same_keys(process: int, commits: int) -> list[Action]:
    """Upserts and deletes of five keys by all processes, with deletes and updates by filter and compactions in between."""
    chance = random.Random(process)
    actions: list[Action] = []
    for _ in range(commits):
        what = chance.random()
        if what < 0.15:
            actions.append(("delete", chance.choice(list(MATCHES))))
        elif what < 0.25:
            actions.append(("update", [chance.choice(list(MATCHES)), chance.choice("ab") + "!"]))
        elif what < 0.35:
            actions.append(("compact", chance.random() < 0.5))
        else:
            keys = chance.sample(range(5), chance.randint(1, 3))
            actions.append(
                (
                    "write",
                    [[chance.choice(["+I", "+I", "-D"]), key, chance.choice("ab") + f"{process}" * chance.randint(0, 1)] for key in keys],
                )
            )
    return actions


def replayed(acknowledged: list[tuple[int, Action]]) -> dict[int, str]:
    state: dict[int, str] = {}
    for _, (what, argument) in sorted(acknowledged, key=lambda pair: pair[0]):
        if what == "delete":
            state = {key: city for key, city in state.items() if not MATCHES[str(argument)](city)}
        elif what == "update":
            matches, new = MATCHES[argument[0]], argument[1]  # type: ignore[index]
            state = {key: new if matches(city) else city for key, city in state.items()}
        elif what == "write":
            for kind, key, city in argument:  # type: ignore[attr-defined]
                state.pop(key, None)
                if kind != "-D":
                    state[key] = city
    return state


def race(table: Table, plans: list[list[Action]]) -> None:
    store = FileStore.open(table.path)
    workers = [start(table.path, plan) for plan in plans]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    acknowledged: list[tuple[int, Action]] = []
    for worker in workers:
        worker.stdin.close()
        worker.stdin = None
    for worker, plan in zip(workers, plans, strict=True):
        code, lines, err = finish(worker)
        assert code == 0, err
        changes = [line for line in lines if line["snapshot"] is not None and plan[line["action"]][0] != "compact"]
        committed = {
            snapshot.commit_user: snapshot.id for snapshot in store.snapshots.backwards() if snapshot.commit_kind is not CommitKind.COMPACT
        }
        acknowledged += [(committed[line["commit"]], plan[line["action"]]) for line in changes]
        assert all(line["snapshot"] >= committed[line["commit"]] for line in changes)
    state = {row["id"]: row["city"] for row in table.scan().to_arrow().to_pylist()}
    assert state == replayed(acknowledged)
    assert table.scan().count() == len(state)
    ids = table.snapshots()["snapshot_id"].to_pylist()
    assert ids == list(range(1, len(ids) + 1))
    assert {snapshot for snapshot, _ in acknowledged} <= set(ids)
    assert len({snapshot for snapshot, _ in acknowledged}) == len(acknowledged)
    table.compact(full=True)
    assert table.fsck("deep").problems == ()
    assert {row["id"]: row["city"] for row in table.scan().to_arrow().to_pylist()} == state


@pytest.mark.slow
@pytest.mark.parametrize("plan", [pytest.param(distinct_keys, marks=pytest.mark.long), same_keys])
@pytest.mark.parametrize(
    ("processes", "commits"), [pytest.param(3, 4, id="small"), pytest.param(6, 20, id="large", marks=pytest.mark.long)]
)
@pytest.mark.parametrize(
    "buckets",
    [{"bucket": "2"}, {"dynamic-bucket.target-row-num": "20"}, {"bucket": "2", "deletion-vectors.enabled": "true"}],
    ids=["fixed", "dynamic", "vectors"],
)
@pytest.mark.sampled(3)
def test_racing_processes_lose_nothing(create, plan, processes, commits, buckets) -> None:
    options = {**buckets, "num-sorted-run.compaction-trigger": "4", "commit.max-retries": "100", "snapshot.num-retained.min": "2000"}
    table = create("id BIGINT, city STRING", options={**options, "snapshot.num-retained.max": "3000"})
    race(table, [plan(process, commits) for process in range(processes)])
