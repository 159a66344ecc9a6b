# Tags tell wall clock time.
# ruff: noqa: DTZ001, DTZ005
"""Tags, branches and rollback: every state that is kept stays whole, and nothing else is left."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import manifest.io.posix
from lsm.scan.planner import ScanPlanner
from manifest.expire.branches import create_branch, delete_branch, fast_forward
from manifest.expire.orphans import branches_of, list_orphans, remove_orphans
from manifest.expire.rollback import rollback_to
from manifest.expire.snapshots import expire_snapshots
from manifest.expire.tags import delete_tag, expire_tags
from manifest.io.errors import CommitConflict, HistoryBusy, SnapshotNotFound, TableNotFound, UnsupportedTable
from manifest.io.file_io import FileIO, LocalFileIO
from manifest.io.paths import branch_name, split_branch, tag_name, with_branch
from manifest.io.posix import lock_directory
from manifest.io.wrapped import WrappedFileIO
from manifest.schema.change import AddColumn, ChangeOptions
from manifest.snapshot.pending_history import PendingHistory
from manifest.snapshot.snapshot import ReadState, Tag
from manifest.storage.resolve import file_io_for
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, InvalidArgument
from tests.build import keyed
from tests.examples import some
from tests.manifest.commit_kit import check_table, committer, data_file, live_names, make_table, message

ALWAYS = 2**62


@pytest.fixture
def store(tmp_path):
    return make_table(tmp_path / "t", options={"write-only": "true", "manifest.merge-min-count": "3"})


def append(store, **fields):
    entries = store.live_entries(store.snapshots.latest())
    number = int(entries.max_sequence_number.max()) + 1 if len(entries) else 0
    file = data_file(store, seq=(number, number), **fields)
    committer(store).commit([message(store, [file])])
    return file.file_name


def rewrite(store):
    """Compact everything into one new file."""
    before = [entry.file for entry in store.live_entries(store.snapshots.latest()).entries()]
    if before:
        after = data_file(store, level=5, seq=(0, max(file.max_sequence_number for file in before)))
        committer(store).commit([message(store, (), before, [after])])


def branch_of(store, name):
    return FileStore.open(with_branch(store.root, name))


def check_history(store):
    """Every snapshot and tag of every branch is whole, and no file is there that none of them needs."""
    for manager in branches_of(store):
        name = manager.paths.branch
        seen = store if name == "main" else branch_of(store, name)
        check_table(seen)
        for tag in manager.tags().values():
            for entry in seen.live_entries(tag).entries():
                assert all(map(seen.file_io.exists, seen.physical_files(entry.partition, entry.bucket, entry.file)))
    assert list_orphans(store, ALWAYS) == []


def test_rollback_makes_an_older_snapshot_the_newest_and_cleans_up(store):
    first, second = append(store), append(store)
    rewrite(store)
    append(store)
    done = rollback_to(store, store.snapshots.get(2))
    assert (done.snapshots, done.data_files) == (2, 2)
    assert store.snapshots.ids() == [1, 2]
    assert live_names(store) == sorted([first, second])
    assert store.file_io.read(store.paths.latest_hint) == b"2"
    check_history(store)
    append(store)
    assert store.snapshots.latest_id() == 3


def test_rollback_to_a_tag_whose_snapshot_has_expired_brings_it_back(store):
    first = append(store)
    store.snapshots.create_tag("v1", store.snapshots.latest())
    for _ in range(3):
        append(store)
    rewrite(store)
    store.snapshots.create_tag("later", store.snapshots.latest())
    expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS)
    done = rollback_to(store, store.snapshots.tag("v1"))
    assert done.tags == ("later",)
    assert (store.snapshots.ids(), live_names(store)) == ([1], [first])
    assert (store.file_io.read(store.paths.latest_hint), store.file_io.read(store.paths.earliest_hint)) == (b"1", b"1")
    assert b"tagCreateTime" not in store.file_io.read(store.paths.snapshot_file(1))
    check_history(store)


@pytest.mark.parametrize("next_step", ["rollback", "commit"])
def test_a_killed_rollback_is_finished_by_whatever_comes_next(store, next_step):
    for _ in range(4):
        append(store)

    class Dying(WrappedFileIO):
        left = 2

        def delete(self, path):
            if "/snapshot/" in path:
                if not self.left:
                    raise KeyboardInterrupt
                self.left -= 1
            return self.inner.delete(path)

    dying = FileStore(Dying(LocalFileIO()), store.root, store.schema)
    with pytest.raises(KeyboardInterrupt):
        rollback_to(dying, store.snapshots.get(1))
    check_table(store)
    assert (store.snapshots.ids(), store.snapshots.stored_ids()) == ([1], [1, 2])
    assert (store.snapshots.latest_id(), store.snapshots.latest().id) == (1, 1)  # done for whoever reads
    if next_step == "rollback":
        rollback_to(store, store.snapshots.get(1))
        assert store.snapshots.ids() == [1]
    else:
        added = append(store)
        assert store.snapshots.ids() == [1, 2]
        assert added in live_names(store)
        assert len(live_names(store)) == 2
    assert not store.file_io.exists(store.paths.pending_history)
    remove_orphans(store, ALWAYS)  # what the snapshots needed that had gone before the kill
    check_history(store)


def test_a_commit_of_another_engine_makes_the_note_of_a_killed_rollback_void(store):
    for _ in range(3):
        append(store)
    pending = PendingHistory(store.snapshots.get(1), {2: store.snapshots.get(2).delta_manifest_list, 3: "gone"})
    store.file_io.write(store.paths.pending_history, pending.to_json(store.paths.pending_history))
    store.snapshots.write_latest_hint(1)
    assert store.snapshots.latest_id() == 3
    append(store)
    assert store.snapshots.ids() == [1, 2, 3, 4]
    assert not store.file_io.exists(store.paths.pending_history) or store.snapshots.pending_history() is None


def test_a_damaged_note_of_a_rollback_is_an_error_that_names_it(store):
    append(store)
    append(store)
    pending = PendingHistory(store.snapshots.get(1), {2: store.snapshots.get(2).delta_manifest_list})
    content = pending.to_json(store.paths.pending_history)
    store.file_io.write(store.paths.pending_history, content.replace(b"doomed", b"doomee"))
    store.file_io.write(store.paths.latest_hint, b"1", overwrite=True)
    with pytest.raises(CorruptFile, match="ROLLBACK"):
        store.snapshots.latest_id()


def test_rows_read_before_a_rollback_cannot_be_committed_after_it(store):
    append(store)
    append(store)
    read = store.snapshots.latest().key
    rollback_to(store, store.snapshots.get(1))
    with pytest.raises(CommitConflict, match="rolled back"):
        committer(store).commit([message(store, [data_file(store, seq=(5, 5))])], read=ReadState(read))
    append(store)
    append(store)
    with pytest.raises(CommitConflict, match="replaced snapshot 2"):
        committer(store).commit([message(store, [data_file(store, seq=(5, 5))])], read=ReadState(read))


def test_a_deleted_tag_takes_only_what_nothing_else_needs(store):
    append(store)
    store.snapshots.create_tag("a", store.snapshots.latest())
    store.snapshots.create_tag("b", store.snapshots.latest())
    rewrite(store)
    assert delete_tag(store, "a").data_files == 0
    expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS)
    assert delete_tag(store, "b").data_files == 1
    with pytest.raises(SnapshotNotFound, match="no tag 'b'"):
        delete_tag(store, "b")
    check_history(store)


def test_tags_expire_by_their_own_time(store):
    append(store)
    latest = store.snapshots.latest()
    store.snapshots.create_tag("day", latest, 24 * 3600 * 1000)
    store.snapshots.create_tag("ever", latest)
    tag = store.snapshots.tag("day")
    assert tag.tag_time_retained == timedelta(days=1)
    assert tag.expires_at == tag.tag_create_time + timedelta(days=1)
    assert expire_tags(store).tags == ()
    assert expire_tags(store, datetime.now() + timedelta(days=2)).tags == ("day",)
    assert list(store.snapshots.tags()) == ["ever"]


def test_a_tags_times_are_written_as_java_writes_them(store):
    append(store)
    tag = store.snapshots.create_tag("t", store.snapshots.latest(), 90_000)
    written = json.loads(store.file_io.read(store.paths.tag("t")))
    made = tag.tag_create_time
    assert written["tagCreateTime"] == [made.year, made.month, made.day, made.hour, made.minute, made.second, made.microsecond * 1000]
    assert written["tagTimeRetained"] == 90.0
    assert Tag.from_json(json.dumps({**written, "tagCreateTime": [2024, 2, 29, 1, 2]}), "tag-t").tag_create_time == datetime(
        2024, 2, 29, 1, 2
    )
    with pytest.raises(CorruptFile, match="tag-t"):
        Tag.from_json(json.dumps({**written, "tagCreateTime": [2024, 13, 1]}), "tag-t")


def test_a_branch_from_a_tag_has_a_history_and_a_schema_of_its_own(store):
    base = append(store)
    store.snapshots.create_tag("v1", store.snapshots.latest())
    create_branch(store, "dev", "v1")
    dev = branch_of(store, "dev")
    assert (dev.snapshots.ids(), live_names(dev), list(dev.snapshots.tags())) == ([1], [base], ["v1"])
    dev.schemas.alter([AddColumn(path=("x",), type="INT")])
    dev = branch_of(store, "dev")
    added = append(dev)
    main = append(store)
    assert live_names(dev) == sorted([base, added])
    assert live_names(store) == sorted([base, main])
    assert FileStore.open(store.root).schema.id == 0
    assert dev.snapshots.latest().schema_id == 1
    check_history(store)


def test_an_empty_branch_has_the_schemas_only(store):
    append(store)
    create_branch(store, "empty")
    branch = branch_of(store, "empty")
    assert (branch.snapshots.latest(), branch.schemas.ids()) == (None, [0])
    append(branch)
    assert branch.snapshots.ids() == [1]
    check_history(store)


def test_expiry_on_one_branch_spares_the_files_of_the_others(store):
    base = append(store)
    store.snapshots.create_tag("v1", store.snapshots.latest())
    create_branch(store, "dev", "v1")
    delete_tag(store, "v1")
    dev = branch_of(store, "dev")
    rewrite(dev)
    delete_tag(dev, "v1")
    expire_snapshots(dev, retain_min=1, older_than_ms=ALWAYS)
    assert live_names(store) == [base]
    check_history(store)
    rewrite(store)
    append(store)
    expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS)
    check_history(store)
    assert not store.file_io.exists(f"{store.root}/bucket-0/{base}")


def test_fast_forward_replaces_what_main_did_since(store):
    base = append(store)
    store.snapshots.create_tag("v1", store.snapshots.latest())
    create_branch(store, "dev", "v1")
    store.snapshots.create_tag("same", store.snapshots.latest())  # the branch has this state, too
    lost = [append(store), append(store)]
    store.snapshots.create_tag("mine", store.snapshots.latest())
    store.schemas.alter([AddColumn(path=("mine",), type="INT")])
    branch_of(store, "dev").schemas.alter([AddColumn(path=("theirs",), type="INT")])
    kept = append(branch_of(store, "dev"))
    done = fast_forward(store, "dev")
    main = FileStore.open(store.root)
    assert (done.snapshots, done.tags) == (2, ("mine",))
    assert (main.snapshots.ids(), live_names(main)) == ([1, 2], sorted([base, kept]))
    assert main.snapshots.tags().keys() == {"v1", "same"}
    assert "theirs" in main.schema.names
    assert not any(store.file_io.exists(f"{store.root}/bucket-0/{name}") for name in lost)
    check_history(main)
    append(main)
    assert main.snapshots.latest_id() == 3


class Stalling(WrappedFileIO):
    """A storage that cannot take back a creation that is on its way, as object stores."""

    cancels_creates = False


def test_where_a_late_commit_cannot_be_cancelled_fast_forward_takes_the_schemas_too(store):
    base = append(store)
    store.snapshots.create_tag("v1", store.snapshots.latest())
    create_branch(store, "dev", "v1")
    append(store)
    store.schemas.alter([ChangeOptions(options={"snapshot.num-retained.max": "90"})])
    branch_of(store, "dev").schemas.alter([AddColumn(path=("theirs",), type="INT")])
    kept = append(branch_of(store, "dev"))
    fast_forward(FileStore.open(store.root, Stalling(store.file_io)), "dev")
    main = FileStore.open(store.root)
    assert main.schema.names == (*store.schema.names, "theirs")
    assert live_names(main) == sorted([base, kept])
    assert main.snapshots.latest_id() == 3, "every id stays taken"
    check_table(main)


def test_a_store_refuses_a_fast_forward_to_other_columns_with_the_same_ids(store):
    append(store)
    store.snapshots.create_tag("v1", store.snapshots.latest())
    create_branch(store, "dev", "v1")
    store.schemas.alter([AddColumn(path=("mine",), type="INT")])
    mine = append(FileStore.open(store.root))
    branch_of(store, "dev").schemas.alter([AddColumn(path=("theirs",), type="INT")])
    append(branch_of(store, "dev"))
    with pytest.raises(UnsupportedTable, match=r"different columns with one id in schema 1, .* nothing was changed"):
        fast_forward(FileStore.open(store.root, Stalling(store.file_io)), "dev")
    main = FileStore.open(store.root)
    assert "mine" in main.schema.names
    assert mine in live_names(main)
    check_table(main)


class Store(Stalling):
    """A storage that compares and replaces without the lock of a directory."""

    def replace(self, path: str, old: bytes, data: bytes) -> bool:
        if self.read(path) != old:
            return False
        self.write(path, data, overwrite=True)
        return True


@pytest.mark.parametrize("storage", [WrappedFileIO, Store])
def test_fast_forward_takes_the_schemas_and_tags_of_a_branch_without_commits(store, storage):
    base = append(store)
    store.snapshots.create_tag("v1", store.snapshots.latest())
    create_branch(store, "dev", "v1")
    dev = branch_of(store, "dev")
    dev.schemas.alter([AddColumn(path=("theirs",), type="INT")])
    dev.snapshots.create_tag("v2", dev.snapshots.latest())
    fast_forward(FileStore.open(store.root, storage(store.file_io)), "dev")
    main = FileStore.open(store.root)
    assert main.schema.names == (*store.schema.names, "theirs")
    assert main.snapshots.tags().keys() == {"v1", "v2"}
    assert live_names(main) == [base]
    check_table(main)


class Killed(BaseException):
    """The process ends here."""


class KilledAt(Store):
    """A storage whose process ends before its change number ``last``."""

    def __init__(self, inner: FileIO, last: int) -> None:
        super().__init__(inner)
        self.left = last

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed

    def write(self, *args: Any, **options: Any) -> Any:
        self._count()
        return super().write(*args, **options)

    def create_exclusive(self, *args: Any, **options: Any) -> Any:
        self._count()
        return super().create_exclusive(*args, **options)

    def delete(self, *args: Any, **options: Any) -> Any:
        self._count()
        return super().delete(*args, **options)


def check_schemas(store):
    for snapshot_id in store.snapshots.ids():
        for entry in store.live_entries(store.snapshots.get(snapshot_id)).entries():
            assert store.schemas.get(entry.file.schema_id)


@pytest.mark.slow
@pytest.mark.parametrize("each", [3, pytest.param(1, marks=pytest.mark.long)])
def test_a_fast_forward_killed_on_a_store_leaves_the_schemas_of_all_snapshots(tmp_path, each):
    for last in count(0, each):
        store = make_table(tmp_path / str(last), options={"write-only": "true"})
        append(store)
        store.snapshots.create_tag("v1", store.snapshots.latest())
        create_branch(store, "dev", "v1")
        append(branch_of(store, "dev"))
        for value in ("91", "92"):
            store.schemas.alter([ChangeOptions(options={"snapshot.num-retained.max": value})])
            append(FileStore.open(store.root))
        try:
            fast_forward(FileStore.open(store.root, KilledAt(store.file_io, last)), "dev")
        except Killed:
            check_table(FileStore.open(store.root))
            check_schemas(FileStore.open(store.root))
            fast_forward(FileStore.open(store.root, Store(store.file_io)), "dev")
            check_table(FileStore.open(store.root))
        else:
            break
    assert last > 5
    assert FileStore.open(store.root).schemas.ids() == [0]


def test_a_deleted_branch_leaves_what_main_needs(store):
    base = append(store)
    store.snapshots.create_tag("v1", store.snapshots.latest())
    create_branch(store, "dev", "v1")
    append(branch_of(store, "dev"))
    assert delete_branch(store, "dev").data_files == 1
    assert live_names(store) == [base]
    check_history(store)
    with pytest.raises(TableNotFound, match="no branch 'dev'"):
        branch_of(store, "dev")
    with pytest.raises(SnapshotNotFound):
        delete_branch(store, "dev")


def test_a_branch_appears_whole_or_not_at_all(store):
    append(store)
    store.snapshots.create_tag("v1", store.snapshots.latest())

    class Full(WrappedFileIO):
        def write(self, path, data, *, overwrite=False, durable=True):
            if "/tag/" in path:
                raise OSError("no space")
            self.inner.write(path, data, overwrite=overwrite, durable=durable)

    with pytest.raises(OSError, match="no space"):
        create_branch(FileStore(Full(LocalFileIO()), store.root, store.schema), "dev", "v1")
    assert store.snapshots.branch_names() == []
    assert store.file_io.list(store.paths.branches) == []
    create_branch(store, "dev", "v1")
    with pytest.raises(InvalidArgument, match="branch 'dev' exists"):
        create_branch(store, "dev")


@pytest.mark.parametrize("name", ["", " ", "main", "12", "a/b", "../x", ".hidden", "a\\b", "x\0", "a$branch_b"])
def test_names_that_could_leave_the_directory_are_refused(store, name):
    with pytest.raises(InvalidArgument):
        create_branch(store, name)
    with pytest.raises(InvalidArgument):
        branch_name(name)
    if name not in {"main", "12"}:
        with pytest.raises(InvalidArgument):
            tag_name(name)


def test_a_branch_stands_in_the_path_as_the_format_spells_it():
    assert split_branch(with_branch("/w/t", "dev")) == ("/w/t", "dev")
    assert split_branch("/w/a$branch_x/t") == ("/w/a$branch_x/t", "main")
    assert split_branch("/w/t$branch_main") == ("/w/t", "main")
    assert with_branch("/w/t$branch_a", "b") == "/w/t$branch_b"


@pytest.mark.parametrize(
    "change",
    [
        lambda store: delete_tag(store, "v1"),
        lambda store: expire_tags(store, datetime.now() + timedelta(days=1)),
        lambda store: rollback_to(store, store.snapshots.get(1)),
    ],
    ids=["delete", "expire", "rollback"],
)
def test_a_tag_is_not_deleted_between_the_two_steps_of_its_replacement(store, monkeypatch, change):
    append(store)
    append(store)
    store.snapshots.create_tag("v1", store.snapshots.latest(), 1)
    monkeypatch.setattr(manifest.io.posix, "_LOCK_SECONDS", 0)
    with (
        lock_directory(store.paths.tags),
        pytest.raises(HistoryBusy, match="did nothing, because another process replaces or deletes a tag"),
    ):
        change(store)
    assert (store.snapshots.ids(), list(store.snapshots.tags())) == ([1, 2], ["v1"])
    change(store)
    assert store.snapshots.tags() == {}
    check_history(store)


def test_rows_of_a_snapshot_that_was_rolled_back_are_not_put_back(store):
    append(store)
    file = append(store)
    old = store.snapshots.latest()
    copy = message(store, [data_file(store)])
    rollback_to(store, store.snapshots.get(1))
    with pytest.raises(CommitConflict, match="snapshot 2 was removed while its rows were copied"):
        committer(store).overwrite([copy], copied=old)
    assert store.snapshots.ids() == [1]
    assert file not in live_names(store)


STEPS = ["append", "compact", "truncate", "tag", "untag", "branch", "unbranch", "forward", "rollback", "expire", "add column"]


@settings(max_examples=some(6), deadline=None, suppress_health_check=list(HealthCheck))
@example([("tag", False, 0), ("append", False, 0), ("append", False, 0), ("expire", False, 0), ("rollback", False, 0)])
@example(
    [
        (step, False, choice)
        for step, choice in (
            *(("tag", 0), ("append", 0), ("append", 0), ("tag", 0), ("branch", 1)),
            *(("rollback", 0), ("add column", 0), ("append", 0), ("forward", 0)),
        )
    ]
)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.booleans(), st.integers(0, 3)), min_size=3, max_size=14))
def test_whatever_happens_every_kept_state_is_whole_and_nothing_else_is_left(tmp_path_factory, steps):
    table = make_table(tmp_path_factory.mktemp("h") / "t", options={"write-only": "true", "manifest.merge-min-count": "3"})
    append(table)
    for number, (step, aside, choice) in enumerate(steps):
        main = FileStore.open(table.root)
        names = main.snapshots.branch_names()
        store = branch_of(main, names[choice % len(names)]) if aside and names else main
        manager = store.snapshots
        tags = sorted(manager.tags())
        with suppress(SnapshotNotFound):
            match step:
                case "append":
                    append(store)
                case "compact":
                    rewrite(store)
                case "truncate":
                    committer(store).truncate()
                case "tag" if manager.latest() is not None:
                    manager.create_tag(f"t{number}", manager.latest())
                case "untag" if tags:
                    delete_tag(store, tags[choice % len(tags)])
                case "branch":
                    known = sorted(main.snapshots.tags())
                    create_branch(main, f"b{number}", known[choice % len(known)] if known else None)
                case "unbranch" if names:
                    delete_branch(main, names[choice % len(names)])
                case "forward" if names:
                    fast_forward(main, names[choice % len(names)])
                case "rollback" if tags:
                    rollback_to(store, manager.tag(tags[choice % len(tags)]))
                case "add column":
                    store.schemas.alter([AddColumn(path=(f"x{number}",), type="INT")])
                case "expire":
                    expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS)
        check_history(FileStore.open(table.root))


@pytest.fixture
def ahead(tmp_path):
    """A branch whose first snapshot is two after the newest of main, which was rolled back since."""
    store = make_table(tmp_path / "ahead")
    for name in "abcd":
        append(store, name=f"{name}.parquet")
    store.snapshots.create_tag("last", store.snapshots.get(4))
    create_branch(store, "side", "last")
    rollback_to(store, store.snapshots.get(2))
    return store


def test_a_move_to_a_branch_that_is_ahead_leaves_no_gap(ahead):
    gone = fast_forward(ahead, "side")
    assert (gone.snapshots, ahead.snapshots.ids()) == (2, [4])
    assert live_names(ahead) == [f"{name}.parquet" for name in "abcd"]
    delete_branch(ahead, "side")
    assert list_orphans(ahead, ALWAYS) == []
    check_table(ahead)


def test_what_lies_before_a_gap_expires_and_what_came_in_it_stays(ahead):
    """Other engines leave one."""
    branch = FileStore.open(f"{ahead.root}$branch_side").paths
    for path, ours in ((branch.snapshot_file(4), ahead.paths.snapshot_file(4)), (branch.tag("last"), ahead.paths.tag("last"))):
        ahead.file_io.write(ours, ahead.file_io.read(path), overwrite=True)
    delete_branch(ahead, "side")
    delete_tag(ahead, "last")
    ahead.file_io.delete(ahead.paths.latest_hint)
    assert ahead.snapshots.ids() == [1, 2, 4]
    assert remove_orphans(ahead, ALWAYS) == []
    assert expire_snapshots(ahead, retain_min=1, older_than_ms=ALWAYS, limit=1).snapshots == 1
    assert expire_snapshots(ahead, retain_min=1, older_than_ms=ALWAYS).snapshots == 1
    assert ahead.snapshots.ids() == [4]
    assert live_names(ahead) == [f"{name}.parquet" for name in "abcd"]
    check_table(ahead)


@pytest.mark.parametrize("target", ["branch", "table"])
def test_a_reader_of_what_is_dropped_meanwhile_never_takes_it_for_empty(target: str) -> None:
    """Object stores delete file by file: between opening and planning all snapshots may go."""
    path = f"memory://{uuid.uuid4().hex}/t"
    table = keyed(path, "id BIGINT")
    table.write(pa.table({"id": [1]}))
    table.create_tag("v1")
    table.create_branch("side", "v1")
    opened = FileStore.open(with_branch(path, "side") if target == "branch" else path, file_io_for(path)[0])
    assert opened.snapshots.latest() is not None
    if target == "branch":
        table.delete_branch("side")
    else:
        opened.storage.retire_directory(path, [opened.paths.schema_file(0)])
    assert opened.snapshots.latest() is None
    with pytest.raises(TableNotFound, match="dropped after it was opened"):
        ScanPlanner(opened).plan(snapshot=None)
