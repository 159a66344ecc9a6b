"""Between a commit and its compaction: the rows are there, the call says so whatever follows, a repetition finishes and counts nothing twice."""

from __future__ import annotations

import errno
import re
import signal
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lsm.commit.post_commit import compact_after_commit
from lsm.commit.row_transaction import resequence
from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.io import failpoints
from manifest.io.errors import CommitReplayed, OutOfDisk, StorageError
from manifest.io.file_io import LocalFileIO
from manifest.snapshot.snapshot import CommitKind
from manifest.store import FileStore
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from tests.build import keyed
from tests.pyspark_paimon.table_worker import finish, start

ENGINES_VIEW = {"deletion-vectors.merge-on-read": "false"}
VECTORS = {"deletion-vectors.enabled": "true"}
ENGINES = {
    "deduplicate": VECTORS,
    "partial-update": {**VECTORS, "merge-engine": "partial-update"},
    "aggregation": {**VECTORS, "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
}
AFTER_WRITE = {"deduplicate": 10, "partial-update": 10, "aggregation": 11, "first-row": 1}
Change = tuple[Callable[[Table], Any], Callable[[str], dict[int, int]]]


def rows(values: dict[int, int]) -> pa.Table:
    return pa.table({"id": list(values), "n": list(values.values())})


def made(path: Any, engine: str, **options: str) -> Table:
    table = Table.create(path / "t", "id BIGINT, n BIGINT", primary_keys=["id"], options={"bucket": "2", **ENGINES[engine], **options})
    table.write(rows(dict.fromkeys(range(1, 9), 1)))
    return table


def state(table: Table, **how: Any) -> dict[int, int]:
    scan = table.scan(**how)
    found = [(row["id"], row["n"]) for row in scan.to_arrow().to_pylist()]
    assert len(dict(found)) == len(found) == scan.count()
    return dict(found)


def written(engine: str) -> dict[int, int]:
    return {**dict.fromkeys(range(1, 9), 1), 3: AFTER_WRITE[engine], 4: AFTER_WRITE[engine], 20: 10}


CHANGES: dict[str, Change] = {
    "write": (lambda table: table.write(rows({3: 10, 4: 10, 20: 10}), commit_id="once"), written),
    "overwrite": (lambda table: table.write(rows({3: 10, 20: 10}), mode="overwrite", commit_id="once"), lambda _: {3: 10, 20: 10}),
    "delete": (lambda table: table.delete("id < 5", commit_id="once"), lambda _: dict.fromkeys(range(5, 9), 1)),
    "update": (
        lambda table: table.update("id < 5", set={"n": 7}, commit_id="once"),
        lambda _: {key: 7 if key < 5 else 1 for key in range(1, 9)},
    ),
}
CASES = [(engine, what) for engine in ENGINES for what in CHANGES if engine == "deduplicate" or what in {"write", "overwrite"}]


def cut_off(monkeypatch: pytest.MonkeyPatch, change: Callable[[], Any]) -> None:
    """A call that ends where a fault point lies."""

    def point(name: str) -> None:
        if name == "between-append-and-compact":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "point", point)
        with pytest.raises(KeyboardInterrupt):
            change()


@pytest.mark.parametrize(("engine", "what"), CASES)
def test_a_change_that_ends_after_its_commit_is_there_whole_and_a_repetition_settles_it(tmp_path, monkeypatch, engine, what) -> None:
    table = made(tmp_path, engine)
    change, expected = CHANGES[what]
    cut_off(monkeypatch, lambda: change(table))
    assert state(Table.open(table.path)) == expected(engine)
    before = FileStore.open(table.path).snapshots.latest_id()
    result = change(table)
    assert (result.replayed, result.snapshot_id, result.compact_lost) == (True, before, False)
    assert state(table) == state(table, options=ENGINES_VIEW) == expected(engine)
    again = change(table)
    assert (again.replayed, FileStore.open(table.path).snapshots.latest_id()) == (True, result.compact_snapshot_id or before)
    assert table.fsck("deep").problems == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "mode"),
    [
        pytest.param(engine, mode, marks=() if (engine, mode) == ("aggregation", None) else pytest.mark.long)
        for engine in ENGINES
        for mode in (None, "overwrite")
    ],
)
def test_a_killed_write_counts_once(tmp_path, engine, mode) -> None:
    table = made(tmp_path, engine)
    new = [{"id": 3, "n": 10}, {"id": 4, "n": 10}, {"id": 20, "n": 10}]
    code, acknowledged, err = finish(start(table.path, [["rows", [mode, new, "once"]]], fault="between-append-and-compact"))
    assert (code, acknowledged) == (-signal.SIGKILL, []), err
    expected = written(engine) if mode is None else {3: 10, 4: 10, 20: 10}
    assert state(Table.open(table.path)) == expected
    assert Table.open(table.path).write(pa.Table.from_pylist(new, table.schema), mode=mode, commit_id="once").replayed
    assert state(table) == state(table, options=ENGINES_VIEW) == expected
    assert table.fsck("deep").problems == ()


@pytest.mark.parametrize("error", [OutOfDisk(errno.ENOSPC, "no space left"), OSError(errno.EIO, "input/output error")])
@pytest.mark.parametrize("mode", [None, "overwrite"])
def test_errors_after_the_commit_leave_no_call_and_nothing_counts_twice(tmp_path, monkeypatch, caplog, mode, error) -> None:
    table = made(tmp_path, "aggregation", **{"overwrite-upgrade": "false"})
    full = False

    def point(name: str) -> None:
        nonlocal full
        full |= name == "between-append-and-compact"

    def failing(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **how: Any) -> Any:
            if full:
                raise error
            return method(*arguments, **how)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "point", point)
        for name in ("write", "create_exclusive", "open_output"):
            patch.setattr(LocalFileIO, name, failing(getattr(LocalFileIO, name)))
        result = table.write(rows({3: 10, 20: 10}), mode=mode, commit_id="once")
        assert full
        full = False
    committed = FileStore.open(table.path).snapshots.latest()
    assert committed is not None
    assert (result.snapshot_id, result.compact_snapshot_id, result.compact_lost) == (committed.id, None, True)
    assert committed.commit_kind is (CommitKind.APPEND if mode is None else CommitKind.OVERWRITE)
    assert "'once'" in caplog.text
    expected = {3: 10, 20: 10} if mode else {**dict.fromkeys(range(1, 9), 1), 3: 11, 20: 10}
    assert state(table) == expected
    again = table.write(rows({3: 10, 20: 10}), mode=mode, commit_id="once")
    assert (again.replayed, again.snapshot_id, again.compact_lost) == (True, result.snapshot_id, False)
    assert state(table) == state(table, options=ENGINES_VIEW) == expected
    assert table.fsck("deep").problems == ()


@pytest.mark.long
def test_a_name_that_the_log_tells_of_a_commit_is_remembered_when_its_snapshot_has_expired(tmp_path, monkeypatch, caplog) -> None:
    """The caller gave no id: what was made up for it is told where the compaction fails, so that somebody may repeat the call with it."""
    table = made(tmp_path, "aggregation")
    create, committed = LocalFileIO.create_exclusive, False

    def point(name: str) -> None:
        nonlocal committed
        committed |= name == "between-append-and-compact"

    def failing(storage: LocalFileIO, path: str, data: bytes, **how: Any) -> bool:
        if committed:
            raise StorageError(errno.EIO, "Input/output error", path)
        return create(storage, path, data, **how)

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "point", point)
        patch.setattr(LocalFileIO, "create_exclusive", failing)
        assert table.write(rows({3: 10})).compact_lost
    name = next(iter(re.findall(r"committed as snapshot \d+ by '([^']+)'", caplog.text)))
    table.write(rows({4: 1}))
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=2**61)
    before = state(table)
    with pytest.raises(CommitReplayed):
        table.write(rows({3: 10}), commit_id=name)
    assert state(table) == before


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.sampled(2)
def test_no_snapshot_beside_overwrites_is_empty_or_half(tmp_path, engine) -> None:
    table = made(tmp_path, engine, **{"snapshot.num-retained.min": "100"})
    states = [state(table)]
    for turn in range(4):
        table.write(rows(dict.fromkeys(range(turn, turn + 6), turn * 10)), mode="overwrite")
        states.append(state(table))
        table.write(rows({turn: 100 + turn, 50 + turn: 5}))
        states.append(state(table))
    seen = [state(table, snapshot=snapshot) for snapshot in FileStore.open(table.path).snapshots.ids()]
    assert all(found in states for found in seen)
    hidden = [state(table, snapshot=s.id, options=ENGINES_VIEW) for s in FileStore.open(table.path).snapshots.backwards() if s.id > 1]
    assert {} not in hidden, "an overwrite is settled when it is committed"


def test_gentle_compaction_leaves_rows_to_others_for_a_while_and_to_us_not_at_all(tmp_path) -> None:
    table = made(tmp_path, "deduplicate", **{"lookup-compact": "gentle", "lookup-compact.max-interval": "5"})
    seen = []
    for number in range(100, 108):
        result = table.write(rows(dict.fromkeys(range(1, 9), number)))
        assert state(table) == state(table, snapshot=result.snapshot_id) == dict.fromkeys(range(1, 9), number)
        seen.append(state(table, options=ENGINES_VIEW).get(1))
    assert None in seen
    assert 104 in seen or 103 in seen, "the files that wait are counted, whichever writer left them"


@pytest.mark.parametrize("buckets", ["2", "-1"])
def test_who_follows_a_changelog_has_all_of_it_once_rows_of_shared_buckets_are_committed(tmp_path, buckets) -> None:
    """As a stream sink commits: writers that own no bucket, then what follows the commit."""
    table = Table.create(
        tmp_path / "t", "id BIGINT, n BIGINT", primary_keys=["id"], options={"bucket": buckets, "changelog-producer": "lookup"}
    )
    told: dict[int, int] = {}
    offset = None
    for number in range(5):
        store, user = FileStore.open(table.path), f"batch-{number}"
        with TableWrite(store, WriteJob(write_only=True, commit_id=user)) as write:
            write.write(rows(dict.fromkeys(range(number, number + 6), number)))
            messages = write.prepare_commit()
        result = FileStoreCommit(store, user, resequence=resequence(store, user)).commit(messages)
        compact_after_commit(store, user, result, messages)
        for batch in table.follow(start="from-snapshot", snapshot=1) if offset is None else table.follow(offset=offset):
            offset = batch.offset
            for row in batch.rows.to_pylist():
                if row["_row_kind"] in {"+I", "+U"}:
                    told[row["id"]] = row["n"]
                elif row["_row_kind"] == "-D":
                    del told[row["id"]]
        assert told == state(table)


def test_a_repeated_write_brings_the_changelog_that_its_first_call_did_not_come_to_make(tmp_path, monkeypatch) -> None:
    table = keyed(tmp_path / "t", "id BIGINT, n BIGINT", {"changelog-producer": "lookup"})
    table.write(rows({1: 1, 2: 1}))
    first = table.scan().snapshot_id
    assert first is not None
    cut_off(monkeypatch, lambda: table.write(rows({1: 2}), commit_id="once"))
    assert table.changelog(first).count() == 0
    assert table.write(rows({1: 2}), commit_id="once").replayed
    changes = table.changelog(first).to_arrow().to_pylist()
    assert [(row["_row_kind"], row["n"]) for row in changes] == [("-U", 1), ("+U", 2)]


def test_states_before_and_after_a_compaction_do_not_differ(tmp_path) -> None:
    table = made(tmp_path, "deduplicate")
    base = table.scan().snapshot_id
    result = table.write(pa.table({"id": [1, 2, 30], "n": [5, 0, 3], "_row_kind": ["+I", "-D", "+I"]}))
    assert base is not None
    assert result.snapshot_id is not None

    def differences(start: int, end: int) -> set[tuple[str, int, int]]:
        found = table.scan(incremental=(start, end), incremental_mode="diff").to_arrow().to_pylist()
        return {(row["_row_kind"], row["id"], row["n"]) for row in found}

    changed = {("-U", 1, 1), ("+U", 1, 5), ("-D", 2, 1), ("+I", 30, 3)}
    assert differences(base, result.snapshot_id) == differences(base, result.snapshot_id + 1) == changed
    assert differences(result.snapshot_id, result.snapshot_id + 1) == set()


class ReadsNoMore(LocalFileIO):
    """Storage that reads no snapshot any more once a commit has been made."""

    def read(self, path):
        if READS_NO_MORE and "/snapshot/" in path:
            raise OSError(errno.EIO, "the disk gives up", path)
        return super().read(path)

    def exists(self, path):
        if READS_NO_MORE and "/snapshot/" in path:
            raise OSError(errno.EIO, "the disk gives up", path)
        return super().exists(path)


READS_NO_MORE: list[str] = []


@pytest.mark.parametrize("what", CHANGES)
def test_what_waits_cannot_be_found_out(tmp_path, monkeypatch, what):
    """The first looks after the commit fail: the call tells of it, a repetition, too, and a later one finishes."""
    change, leaves = CHANGES[what]
    made(tmp_path, "deduplicate")
    table = Table(LocalEngine(str(tmp_path / "t"), file_io=ReadsNoMore()))

    def point(name: str) -> None:
        if name == "between-append-and-compact":
            READS_NO_MORE.append(name)

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "point", point)
        try:
            result = change(table)
        finally:
            READS_NO_MORE.clear()
    assert result.snapshot_id is not None
    assert result.compact_lost
    assert state(Table.open(str(tmp_path / "t"))) == leaves("deduplicate")
    again = change(Table.open(str(tmp_path / "t")))
    assert (again.replayed, again.compact_lost, again.snapshot_id) == (True, False, result.snapshot_id)
    assert state(Table.open(str(tmp_path / "t")), options=ENGINES_VIEW) == leaves("deduplicate")


def test_a_repetition_that_cannot_look_says_so(tmp_path, monkeypatch):
    table = made(tmp_path, "deduplicate")
    cut_off(monkeypatch, lambda: CHANGES["write"][0](table))

    def live_entries(*_: Any, **__: Any) -> Any:
        raise StorageError(errno.EIO, "the disk gives up", "manifest")

    with monkeypatch.context() as patch:
        patch.setattr(FileStore, "live_entries", live_entries)
        told = CHANGES["write"][0](table)
    assert (told.replayed, told.compact_lost) == (True, True)
    assert not CHANGES["write"][0](table).compact_lost
