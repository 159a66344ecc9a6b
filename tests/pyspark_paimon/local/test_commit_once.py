"""A commit id commits once: whatever runs beside it, before it or long after it, and however much of the history is gone."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lsm.commit import row_transaction
from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit import commit_markers
from manifest.commit import repeated_commits as runs
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.io.paths import TablePaths
from manifest.store import FileStore
from pyspark_paimon import CommitConflict, CommitReplayed, Table
from pyspark_paimon.request.requests import WriteRequest
from pyspark_paimon.spark.driver.commit import commit_rows
from pyspark_paimon.spark.wire.jobs import ByBucket, RowsJob

SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
OPTIONS = {"snapshot.expire.limit": "0"}


def rows(*pairs: tuple[int, int]) -> pa.Table:
    ids, numbers = zip(*pairs, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array(numbers, pa.int64())})


def content(table: Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in Table.open(table.path).scan().to_arrow().to_pylist())


def expire(table: Table) -> None:
    """Others write, and everything older expires."""
    for number in range(2):
        table.write(rows((1000 + number, 0)))
    table.expire_snapshots(retain_min=1, retain_max=1, limit=100)


@pytest.fixture(params=["append", "sums", "vectors", "dynamic"])
def table(create, request) -> Table:
    """Tables on which to do a thing twice is to be seen."""
    make: dict[str, Callable[[], Table]] = {
        "append": lambda: create("id BIGINT, n BIGINT", primary_keys=(), options=OPTIONS),
        "sums": lambda: create("id BIGINT, n BIGINT", options={**OPTIONS, **SUMS}),
        "vectors": lambda: create("id BIGINT, n BIGINT", primary_keys=(), options={**OPTIONS, "deletion-vectors.enabled": "true"}),
        "dynamic": lambda: create("id BIGINT, n BIGINT", options={**OPTIONS, **SUMS, "bucket": "-1"}),
    }
    return make[request.param]()


@contextmanager
def asked_before(monkeypatch: pytest.MonkeyPatch, rival: Callable[[], Any]) -> Iterator[None]:
    """Whoever asks whether a commit was made is told, and then another run is faster than all that he does with the answer."""
    ask = runs.committed_before
    again = threading.Lock()

    def asked(*arguments: Any) -> Any:
        answer = ask(*arguments)
        if again.acquire(blocking=False):
            rival()
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(row_transaction, "committed_before", asked)
        yield


def test_a_run_that_asked_before_the_other_one_committed_and_opened_after_it(table, monkeypatch) -> None:
    table.write(rows((1, 1)))
    write = lambda: Table.open(table.path).write(rows((1, 10), (2, 20)), commit_id="nightly")  # noqa: E731
    first: list[Any] = []
    with asked_before(monkeypatch, lambda: first.append(write())):
        second = write()
    expected = content(table)
    assert second.snapshot_id == first[0].snapshot_id
    assert sum(n for _, n in expected) == 31
    assert write().replayed
    assert content(table) == expected


def test_a_batch_that_asked_before_the_other_run_committed(table, monkeypatch) -> None:
    write = lambda: Table.open(table.path).write(rows((1, 10)), commit_id="job", batch_id=4)  # noqa: E731
    with asked_before(monkeypatch, write):
        write()
    assert content(table) == [(1, 10)]


@pytest.mark.parametrize("numbered", [{}, {"batch_id": 3}], ids=["id", "batch"])
def test_a_run_that_asked_before_the_other_one_committed_and_expired(table, monkeypatch, numbered) -> None:
    def rival() -> None:
        Table.open(table.path).write(rows((1, 10)), commit_id="nightly", **numbered)
        expire(table)

    with asked_before(monkeypatch, rival), pytest.raises(CommitReplayed, match="nightly"):
        Table.open(table.path).write(rows((1, 10)), commit_id="nightly", **numbered)
    assert content(table) == [(1, 10), (1000, 0), (1001, 0)]


def test_a_rival_that_commits_and_expires_between_the_last_look_and_the_attempt(table, monkeypatch) -> None:
    table.write(rows((1, 1)))
    turn = FileStoreCommit._attempt
    rivals = [True]

    def late(self: FileStoreCommit, *arguments: Any, **named: Any) -> Any:
        if self.user == "nightly" and rivals:
            rivals.clear()
            Table.open(table.path).write(rows((1, 10)), commit_id="nightly")
            expire(table)
        return turn(self, *arguments, **named)

    monkeypatch.setattr(FileStoreCommit, "_attempt", late)
    monkeypatch.setattr("manifest.io.file_io.LocalFileIO.fair_lock", lambda *_: nullcontext())
    with pytest.raises(CommitReplayed, match="nightly"):
        table.write(rows((1, 10)), commit_id="nightly")
    assert sum(n for _, n in content(table)) == 11


def test_alone_a_run_commits_although_the_whole_history_expired_meanwhile(table, monkeypatch) -> None:
    table.write(rows((1, 1)))
    ask = runs.committed_before

    def slow(*arguments: Any) -> Any:
        answer = ask(*arguments)
        expire(table)
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(row_transaction, "committed_before", slow)
        assert not table.write(rows((1, 10)), commit_id="nightly").replayed
    assert sum(n for _, n in content(table)) == 11


REPEATED: dict[str, Callable[[Table], Any]] = {
    "write": lambda table: table.write(rows((1, 10)), commit_id="X"),
    "overwrite": lambda table: table.write(rows((1, 10)), mode="overwrite", commit_id="X"),
    "overwrite with nothing": lambda table: table.write(rows((1, 10)).slice(0, 0), mode="overwrite", commit_id="X"),
}
CHANGES: dict[str, Callable[[Table], Any]] = {
    "delete": lambda table: table.delete("n = 1", commit_id="X"),
    "update": lambda table: table.update("n < 50", set={"n": pc.add(pc.field("n"), 1)}, commit_id="X"),
}


@pytest.mark.parametrize("what", REPEATED)
def test_a_repeat_after_expiry_is_an_error_and_a_first_use_is_not(table, what) -> None:
    table.write(rows((1, 1), (2, 1)))
    expire(table)
    assert not REPEATED[what](table).replayed, "history is incomplete, but the id was never used"
    done = content(table)
    assert REPEATED[what](table).replayed
    assert content(table) == done
    expire(table)
    done = content(table)
    with pytest.raises(CommitReplayed, match="X"):
        REPEATED[what](table)
    assert content(table) == done


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}], ids=["files", "vectors"])
@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "keys"])
@pytest.mark.sampled(2)
def test_a_change_repeated_after_expiry_is_an_error_and_a_first_use_is_not(create, keys, options, what) -> None:
    table = create("id BIGINT, n BIGINT", primary_keys=keys, options={**OPTIONS, **options})
    table.write(rows((1, 1), (2, 1)))
    expire(table)
    assert CHANGES[what](table).snapshot_id
    table.write(rows((3, 1)))
    assert CHANGES[what](table).replayed
    expire(table)
    done = content(table)
    assert (3, 1) in done
    with pytest.raises(CommitReplayed, match="X"):
        CHANGES[what](table)
    assert content(table) == done


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_whose_first_run_committed_after_it_asked_is_made_once(create, monkeypatch, what) -> None:
    table = create("id BIGINT, n BIGINT", primary_keys=(), options=OPTIONS)
    table.write(rows((1, 1), (2, 5)))
    with asked_before(monkeypatch, lambda: CHANGES[what](Table.open(table.path))):
        CHANGES[what](table)
    assert content(table) == ([(2, 5)] if what == "delete" else [(1, 2), (2, 6)])


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "sums"])
def test_two_jobs_of_one_id_that_servers_run_without_knowing_of_each_other(create, keys) -> None:
    """Both asked before either had committed; the tasks of the second one opened after the commit of the first one."""
    table = create("id BIGINT, n BIGINT", primary_keys=keys, options={**OPTIONS, **(SUMS if keys else {})})
    store = FileStore.open(table.path)
    job = RowsJob(request=WriteRequest(commit_id="X", mode="upsert" if keys else "append"), route=ByBucket())
    for _ in range(2):
        with TableWrite(store, WriteJob(commit_id="X")) as write:
            write.write(rows((1, 10)).to_batches()[0])
            messages = write.prepare_commit()
        commit_rows(FileStore.open(table.path), job, messages, 1, asked_for=False)
    assert content(table) == [(1, 10)]


def test_partitions_are_dropped_once(create) -> None:
    table = create("id BIGINT, p STRING", primary_keys=(), partition_keys=["p"], options=OPTIONS)
    table.write(pa.table({"id": [1], "p": ["a"]}))
    first = table.drop_partitions([{"p": "a"}], commit_id="X")
    table.write(pa.table({"id": [2], "p": ["a"]}))
    assert table.drop_partitions([{"p": "a"}], commit_id="X").snapshot_id == first.snapshot_id
    assert table.scan().count() == 1
    for number in range(2):
        table.write(pa.table({"id": [number], "p": ["b"]}))
    table.expire_snapshots(retain_min=1, retain_max=1, limit=100)
    with pytest.raises(CommitReplayed):
        table.drop_partitions([{"p": "a"}], commit_id="X")
    assert table.scan("p = 'a'").count() == 1


def notes(table: Table) -> list[Path]:
    return [path for path in Path(TablePaths(table.path).writers).rglob("*") if path.is_file()]


@pytest.mark.slow("dynamic")
def test_a_write_that_surely_failed_can_be_repeated_long_after(table, monkeypatch) -> None:
    table.write(rows((1, 1)))
    with monkeypatch.context() as patch:

        def conflict(*_: Any, **__: Any) -> Any:
            raise CommitConflict("as the test wants it")

        patch.setattr("manifest.commit.file_store_commit.append_change", conflict)
        with pytest.raises(CommitConflict):
            table.write(rows((1, 10)), commit_id="X")
    assert notes(table) == []
    expire(table)
    assert not table.write(rows((1, 10)), commit_id="X").replayed


def test_after_a_rollback_a_write_can_be_repeated_and_is_then_made_once(table) -> None:
    base = table.write(rows((1, 1))).snapshot_id
    table.write(rows((1, 10)), commit_id="X")
    table.rollback_to(base)
    assert not table.write(rows((1, 10)), commit_id="X").replayed
    assert table.write(rows((1, 10)), commit_id="X").replayed
    assert sum(n for _, n in content(table)) == 11


@pytest.mark.local_files
def test_notes_go_after_their_time_and_ids_made_here_leave_none(create) -> None:
    table = create("id BIGINT, n BIGINT", primary_keys=(), options={"commit-id.time-retained": "2 d"})
    table.write(rows((1, 1)))
    assert notes(table) == []
    for number in range(3):
        table.write(rows((1, 1)), commit_id="old" if number == 0 else f"X{number}")
    assert len(notes(table)) == 3
    long_ago = int(timedelta(days=3).total_seconds())
    for note in notes(table):
        os.utime(note, (note.stat().st_mtime - long_ago,) * 2)
    store = FileStore.open(table.path)
    commit_markers.write_marker(store, "old", 0, 5)
    assert [note.name for note in notes(table) if note.name.startswith("old.")] == [
        note.name for note in notes(table) if note.name.startswith("old.0.5.")
    ]


def test_other_states_of_the_table_do_not_mind_the_notes(table) -> None:
    table.write(rows((1, 10)), commit_id="X")
    assert table.list_orphan_files(older_than=2**62) == []
    assert table.fsck().problems == ()
    assert table.write(rows((1, 10)), commit_id="X").replayed


class Interrupted(BaseException):
    """A run that ends where it stands, as a kill would."""


class Turns:
    """Threads of which one goes on at a time, from one point of its way to the next, as chance has it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.local = threading.local()
        self.errors: list[BaseException] = []

    def run(self, jobs: list[Callable[[], None]], kills: int) -> None:
        gates = [threading.Semaphore(0) for _ in jobs]
        done = threading.Semaphore(0)
        ended: set[int] = set()
        doomed: set[int] = set()

        def thread(number: int) -> None:
            self.local.stop = lambda: (done.release(), gates[number].acquire(), self._die(number in doomed))
            gates[number].acquire()
            try:
                jobs[number]()
            except (CommitReplayed, CommitConflict, Interrupted):
                pass
            except BaseException as error:  # noqa: BLE001 -- told at the end
                self.errors.append(error)
            finally:
                ended.add(number)
                done.release()

        threads = [threading.Thread(target=thread, args=(number,)) for number in range(len(jobs))]
        for one in threads:
            one.start()
        while len(ended) < len(jobs):
            number = self.chance.choice([one for one in range(len(jobs)) if one not in ended])
            if kills and self.chance.random() < 0.05:
                kills -= 1
                doomed.add(number)
            gates[number].release()
            done.acquire()
        for one in threads:
            one.join()
        assert self.errors == []

    @staticmethod
    def _die(doomed: bool) -> None:
        if doomed:
            raise Interrupted

    def point(self, _: str = "") -> None:
        stop = getattr(self.local, "stop", None)
        if stop is not None:
            stop()


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 40))])
def test_any_interleaving_of_runs_of_one_id_with_commits_and_expiries(create, monkeypatch, seed) -> None:
    """Whatever happens, the id's ten are there at most once, and exactly once if a run was told that they are."""
    chance = random.Random(seed)
    table = create("id BIGINT, n BIGINT", primary_keys=() if seed % 2 else ("id",), options={**OPTIONS, **({} if seed % 2 else SUMS)})
    table.write(rows((0, 0)))
    turns = Turns(chance)
    told: list[int] = []
    numbered = {"batch_id": 0} if seed % 3 == 0 else {}

    def one() -> None:
        result = Table.open(table.path).write(rows((1, 10)), commit_id="X", **numbered)
        told.append(result.rows)

    def other() -> None:
        Table.open(table.path).write(rows((2, 1)))
        if chance.random() < 0.7:
            Table.open(table.path).expire_snapshots(retain_min=1, retain_max=1, limit=100)

    monkeypatch.setattr("manifest.io.failpoints.point", turns.point)
    for module, name in (
        (runs, "list_markers"),
        (commit_markers, "list_markers"),
        (runs, "write_marker"),
        (commit_markers, "write_marker"),
        (runs, "commit_history"),
    ):
        monkeypatch.setattr(module, name, stopping(turns, getattr(module, name)))
    monkeypatch.setattr(row_transaction, "committed_before", stopping(turns, runs.committed_before))
    monkeypatch.setattr(FileStoreCommit, "_attempt", stopping(turns, FileStoreCommit._attempt))
    monkeypatch.setattr("manifest.io.file_io.LocalFileIO.fair_lock", lambda *_: nullcontext())  # fairness only: safety must not rest on it
    for _ in range(3):
        turns.run([one, one, one, other, other, other], kills=2)
        found = sum(n for key, n in content(table) if key == 1)
        assert found == 10 if told else found in {0, 10}
    with suppress(CommitReplayed):
        one()
    assert sum(n for key, n in content(table) if key == 1) == (10 if told else 0)
    assert sum(n for key, n in content(table) if key == 2) <= 9


def stopping(turns: Turns, function: Callable[..., Any]) -> Callable[..., Any]:
    def stopped(*arguments: Any, **named: Any) -> Any:
        turns.point()
        answer = function(*arguments, **named)
        turns.point()
        return answer

    return stopped
