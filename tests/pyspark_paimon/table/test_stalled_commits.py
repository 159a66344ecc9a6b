"""A commit that stalls at the step that makes it visible, while the history of its table changes.

The outcome is that of the two operations in some order, the table is whole, and nothing that may be visible is deleted.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import manifest.io.posix
from manifest.io.errors import TableNotFound, UnsafeFileIO
from manifest.storage.object_store import ObjectStoreFileIO
from paimon_base.errors import PaimonError
from pyspark_paimon import Table
from tests.build import ids, keyed

_FOREVER = 2**62


@pytest.fixture(params=["local", "memory"])
def path(request, tmp_path, monkeypatch) -> str:
    """Where a table goes; waiting for the lock of a directory ends at once, for safety must not rest on it."""
    monkeypatch.setattr(manifest.io.posix, "_TURN_SECONDS", 0.0)
    return str(tmp_path / "t") if request.param == "local" else f"memory://{uuid.uuid4().hex}/t"


@pytest.fixture
def stall(monkeypatch):
    """Call a function once, before or after the next step that makes a snapshot visible."""

    def stalled(meanwhile: Callable[[], Any], when: str = "before") -> None:
        waiting = [meanwhile]

        def around(create: Callable[..., Any], target: str) -> Callable[..., Any]:
            def step(*args: Any, **options: Any) -> Any:
                if not waiting or "/snapshot/snapshot-" not in args[1]:
                    return create(*args, **options)
                now = waiting.pop()
                if when == "before":
                    now()
                    return create(*args, **options)
                try:
                    return create(*args, **options)
                finally:
                    now()

            assert target
            return step

        monkeypatch.setattr(os, "link", around(os.link, "local"))
        monkeypatch.setattr(ObjectStoreFileIO, "create_exclusive", around(ObjectStoreFileIO.create_exclusive, "memory"))

    return stalled


def rows(*keys: int, v: str = "x") -> pa.Table:
    return pa.table({"id": pa.array(keys, pa.int32()), "v": [v] * len(keys)})


def made(path: str, **options: str) -> Table:
    """Snapshots 1, 2 and 3 add the rows 1, 2 and 3; the branch 'side' has the rows 1, 20 and 21."""
    table = keyed(path, "id INT NOT NULL, v STRING", {"write-only": "true", **options})
    table.write(rows(1))
    table.create_tag("first")
    table.create_branch("side", "first")
    side = Table.open(path, branch="side")
    side.write(rows(20))
    side.write(rows(21))
    table.write(rows(2))
    table.write(rows(3))
    return Table.open(path)


def keys(path: str, **where: Any) -> list[int]:
    return ids(Table.open(path, **where))


def outcome(action: Callable[[], Any]) -> str:
    """Return "done", or the name of the typed error."""
    try:
        action()
    except PaimonError as error:
        return type(error).__name__
    return "done"


def problems(path: str) -> list[str]:
    return [f"{one.path}: {one.message}" for one in Table.open(path).fsck(depth="deep").problems]


def check_whole(path: str) -> None:
    assert problems(path) == []
    before = keys(path)
    Table.open(path).remove_orphan_files(older_than=_FOREVER)
    assert keys(path) == before
    Table.open(path).write(rows(99))
    assert keys(path) == [*before, 99]
    assert problems(path) == []


def check_next(path: str, before: list[int]) -> None:
    """On an object store, a put that comes after its name was free again leaves a snapshot that ``fsck`` reports, but hides nothing."""
    Table.open(path).write(rows(98))
    before.append(98)
    before.sort()
    assert keys(path) == before


CHANGES: dict[str, tuple[Callable[[Table], Any], list[int]]] = {
    "rollback to a snapshot": (lambda t: t.rollback_to(1), [1]),
    "rollback to the last snapshot but one": (lambda t: t.rollback_to(2), [1, 2]),
    "rollback to a tag": (lambda t: t.rollback_to(tag="first"), [1]),
    "fast-forward": (lambda t: t.fast_forward("side"), [1, 20, 21]),
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("later", [0, 1, 3])
@pytest.mark.sampled(5)
def test_a_commit_beside_a_change_of_history_is_part_of_it_or_fails(path, stall, change, when, later):
    """``later``: commits that others make after the change, which take the ids that it has freed."""
    table = made(path)
    act, changed = CHANGES[change]

    def meanwhile() -> None:
        act(Table.open(path))
        for number in range(later):
            Table.open(path).write(rows(50 + number))

    stall(meanwhile, when)
    done = outcome(lambda: table.write(rows(4)))
    others = [50 + number for number in range(later)]
    allowed = [sorted([*changed, *others])] if when == "after" else []
    if done == "done":
        allowed.append(sorted([*changed, *others, 4]))
    elif when == "before":
        allowed.append(sorted([*changed, *others]))
    assert keys(path) in allowed, done
    check_whole(path)


@pytest.mark.slow("local-5-before")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commits", [1, 2, 3, 5])
@pytest.mark.sampled(3)
def test_a_commit_that_stalls_while_its_base_expires_loses_nothing(path, stall, when, commits):
    table = made(path)

    def meanwhile() -> None:
        for number in range(commits):
            Table.open(path).write(rows(50 + number))
            Table.open(path).expire_snapshots(retain_min=1, retain_max=2, older_than=_FOREVER)

    stall(meanwhile, when)
    done = outcome(lambda: table.write(rows(4)))
    others = [50 + number for number in range(commits)]
    found = keys(path)
    assert found == [1, 2, 3, 4, *others] or (done != "done" and found == [1, 2, 3, *others])
    check_next(path, found)
    if when == "after" or not path.startswith("memory://"):
        check_whole(path)


@pytest.mark.parametrize("when", ["before", "after"])
def test_all_snapshots_up_to_a_stalled_one_may_expire(path, stall, when):
    """The name of the stalled snapshot is free again, and its base is gone."""
    table = made(path)

    def meanwhile() -> None:
        for number in range(4):
            Table.open(path).write(rows(50 + number))
        Table.open(path).expire_snapshots(retain_min=1, retain_max=1, older_than=_FOREVER)

    stall(meanwhile, when)
    done = outcome(lambda: table.write(rows(4)))
    found = keys(path)
    assert found == [1, 2, 3, 4, 50, 51, 52, 53] or (done != "done" and found == [1, 2, 3, 50, 51, 52, 53])
    check_next(path, found)
    if when == "after" or not path.startswith("memory://"):
        check_whole(path)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("stalls", [False, True])
def test_a_writer_does_not_outlive_its_table(tmp_path, stall, stalls, again):
    path = str(tmp_path / "t")
    table = made(path)
    writer = table.writer()
    writer.write(rows(4))

    def drop() -> None:
        shutil.rmtree(path)
        if again:
            Table.create(path, "id INT NOT NULL, v STRING", primary_keys=["id"], options={"bucket": "1"}, comment="another one")

    if stalls:
        stall(drop)
    else:
        drop()
    with pytest.raises(TableNotFound):
        writer.commit()
    if not again:
        assert not list(Path(path, "snapshot").glob("*"))
        keyed(path, "id INT NOT NULL, v STRING")
    assert keys(path) == []
    Table.open(path).write(rows(7))
    assert keys(path) == [7]
    assert problems(path) == []


@pytest.mark.parametrize("stalls", [False, True])
def test_a_writer_does_not_outlive_its_branch(tmp_path, stall, stalls):
    path = str(tmp_path / "t")
    table = made(path)
    writer = Table.open(path, branch="side").writer()
    writer.write(rows(22))
    if stalls:
        stall(lambda: table.delete_branch("side"))
    else:
        table.delete_branch("side")
    with pytest.raises(TableNotFound):
        writer.commit()
    assert keys(path) == [1, 2, 3]
    check_whole(path)
    table.create_branch("side", "first")
    assert keys(path, branch="side") == [1]


def meanwhile_in_prepare(monkeypatch, table: Table, action: Callable[[], Any]) -> None:
    """Call ``action`` once, after a write has looked up keys and before it is committed."""
    from manifest.commit.file_store_commit import FileStoreCommit

    waiting, attempt = [action], FileStoreCommit._run

    def attempted(*args: Any, **options: Any) -> Any:
        if waiting:
            waiting.pop()()
        return attempt(*args, **options)

    monkeypatch.setattr(FileStoreCommit, "_run", attempted)


def overwrite(path: str, *with_keys: int) -> Callable[[], Any]:
    return lambda: Table.open(path).write(rows(*with_keys, v="new"), "overwrite")


LOOKED_UP: dict[str, dict[str, str]] = {
    "first-row": {"merge-engine": "first-row", "changelog-producer": "lookup"},
    "first-row without changelog": {"merge-engine": "first-row"},
    "lookup changelog": {"changelog-producer": "lookup"},
    "full compaction changelog": {"changelog-producer": "full-compaction"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "aggregation": {"merge-engine": "aggregation", "changelog-producer": "lookup", "fields.v.aggregate-function": "last_value"},
    "partial update": {"merge-engine": "partial-update", "changelog-producer": "lookup"},
}


@pytest.mark.parametrize("compacts", [False, True])
@pytest.mark.parametrize("kind", LOOKED_UP)
def test_what_a_look_up_has_read_is_checked_at_commit(tmp_path, monkeypatch, kind, compacts):
    """An overwrite between the look-up and the commit must not take away what rows were dropped or merged for."""
    path = str(tmp_path / "t")
    table = keyed(path, "id INT NOT NULL, v STRING", LOOKED_UP[kind])
    table.write(rows(1, 2))
    table.compact(full=True)
    if not compacts:
        table = Table.open(path)
    meanwhile_in_prepare(monkeypatch, table, overwrite(path, 9))
    done = outcome(lambda: table.write(rows(2, 20)))
    monkeypatch.undo()
    if compacts:
        Table.open(path).compact(full=True)
    assert keys(path) in (([2, 9, 20], [9]) if done == "done" else ([9],)), done
    assert problems(path) == []


@pytest.mark.parametrize("kind", ["fixed", "dynamic", "cross-partition"])
def test_the_buckets_of_keys_are_checked_at_commit(tmp_path, monkeypatch, kind):
    path = str(tmp_path / "t")
    options = {"bucket": "1" if kind == "fixed" else "-1", "dynamic-bucket.target-row-num": "1"}
    columns = "id INT NOT NULL, v STRING"
    partitions = ["v"] if kind == "cross-partition" else []
    table = Table.create(path, columns, primary_keys=["id"], partition_keys=partitions, options=options)
    table.write(rows(1, 2))
    meanwhile_in_prepare(monkeypatch, table, lambda: Table.open(path).write(rows(3, 4, v="b")))
    done = outcome(lambda: table.write(rows(3, 5, v="a")))
    monkeypatch.undo()
    assert done == "done"
    found = sorted((row["id"], row["v"]) for row in Table.open(path).scan().to_arrow().to_pylist())
    assert found in ([(1, "x"), (2, "x"), (3, "a"), (4, "b"), (5, "a")], [(1, "x"), (2, "x"), (3, "b"), (4, "b"), (5, "a")])
    assert problems(path) == []


@pytest.mark.parametrize("change", ["insert", "delete", "update"])
def test_the_rows_that_a_merge_did_not_find_are_checked_at_commit(tmp_path, monkeypatch, change):
    """Another write makes a row match, or not match any more, after the merge has read the table."""
    path = str(tmp_path / "t")
    table = keyed(path, "id INT NOT NULL, v STRING")
    table.write(rows(1, 2, v="a"))
    acts = {
        "insert": lambda: Table.open(path).write(rows(3, v="c")),
        "delete": lambda: Table.open(path).delete("id = 2"),
        "update": lambda: Table.open(path).update("id = 2", values={"v": "c"}),
    }
    meanwhile_in_prepare(monkeypatch, table, acts[change])
    source = pa.table({"k": pa.array([7, 8], pa.int32()), "v": ["a", "c"]})
    merge = table.merge(source, on="target.v = source.v").when_not_matched_insert(values={"id": "source.k", "v": "source.v"})
    done = outcome(merge.execute)
    monkeypatch.undo()
    found = keys(path)
    serial = {  # the merge first, or the other one first
        "insert": ([1, 2, 3, 8], [1, 2, 3]),
        "delete": ([1, 8],),
        "update": ([1, 2, 8], [1, 2]),
    }[change]
    assert found in serial if done == "done" else found in {"insert": [[1, 2, 3]], "delete": [[1]], "update": [[1, 2]]}[change], done


@pytest.mark.parametrize("told", [errno.EEXIST, errno.EIO, errno.ESTALE, errno.ENOENT, errno.EPERM])
def test_a_link_that_succeeds_and_answers_with_an_error_is_a_commit(tmp_path, monkeypatch, told):
    """A network file system repeats a request whose answer was lost, and reports what the second one met."""
    path = str(tmp_path / "t")
    table = made(path)
    link = os.link

    def linked(source: str, target: str) -> None:
        link(source, target)
        raise OSError(told, os.strerror(told), source, None, target)

    monkeypatch.setattr(os, "link", linked)
    result = table.write(rows(4))
    monkeypatch.undo()
    assert result.snapshot_id == 4
    assert keys(path) == [1, 2, 3, 4]
    check_whole(path)


@pytest.mark.parametrize("told", [errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_hard_links_is_refused_at_once(tmp_path, monkeypatch, told):
    path = str(tmp_path / "t")
    table = made(path)
    tries: list[str] = []

    def refused(source: str, target: str) -> None:
        tries.append(target)
        raise OSError(told, os.strerror(told), source, None, target)

    monkeypatch.setattr(os, "link", refused)
    with pytest.raises(UnsafeFileIO, match=r"hard link.*Nothing was committed.*object store"):
        table.write(rows(4))
    monkeypatch.undo()
    assert len(tries) == 1
    assert keys(path) == [1, 2, 3]
    check_whole(path)


@pytest.mark.parametrize("name", ["snapshot-002", "snapshot-0", "snapshot-+2", "snapshot-2 ", "snapshot-٢"])
def test_a_file_whose_name_is_nearly_a_snapshots_is_none(tmp_path, name):
    path = str(tmp_path / "t")
    table = made(path)
    shutil.copy(f"{path}/snapshot/snapshot-2", f"{path}/snapshot/{name}")
    table.rollback_to(1)
    assert keys(path) == [1]
    Table.open(path).write(rows(5))
    assert keys(path) == [1, 5]
    assert Table.open(path).snapshots()["snapshot_id"].to_pylist() == [1, 2]
