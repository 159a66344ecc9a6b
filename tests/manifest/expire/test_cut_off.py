"""Expiry, rollback, tags and branches, cut off at every change of the storage: what stands is whole, the rest is found as orphans."""

from __future__ import annotations

import errno
import shutil
import threading
import uuid
from collections.abc import Callable
from datetime import datetime

import pytest

from manifest.entry.live import live
from manifest.expire.branches import create_branch, delete_branch, fast_forward, rename_branch
from manifest.expire.holders import holders_of
from manifest.expire.orphans import branches_of, list_orphans, remove_orphans
from manifest.expire.rollback import rollback_to
from manifest.expire.snapshots import expire_snapshots
from manifest.expire.tags import create_tag, delete_tag, expire_tags, rename_tag, replace_tag
from manifest.io.errors import SnapshotExpired, SnapshotNotFound, StorageError, TagExists
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from pyspark_paimon.plugins.fsck.walk import walk
from pyspark_paimon.results.fsck_problem import Findings
from tests.manifest.commit_kit import check_table, committer, data_file, live_names, make_table, message

ALWAYS = 2**62
CHANGES = ("write", "create_exclusive", "replace", "delete", "delete_directory", "rename_directory", "mkdirs")


class CutOff(BaseException):
    """As a kill: nobody handles it."""


class Quick(WrappedFileIO):
    """Syncs nothing: the tests kill no machine."""

    def __init__(self):
        super().__init__(LocalFileIO())

    def write(self, path, data, *, overwrite=False, durable=True):
        self.inner.write(path, data, overwrite=overwrite, durable=False)


class Dying(Quick):
    """Dies at its n-th change, before it or (``after``) when it is done; counts them. ``watch`` is told of each."""

    def __init__(self, at: int | None = None, *, after: bool = False, watch: Callable[[str, str], None] | None = None) -> None:
        super().__init__()
        self.at, self.after, self.changes, self.watch = at, after, 0, watch


def _dying(name):
    def change(self, *arguments, **named):
        number, self.changes = self.changes, self.changes + 1
        if self.at is not None and (number > self.at or (number == self.at and not self.after)):
            raise CutOff
        if self.watch is not None:
            self.watch(name, arguments[0])
        answer = getattr(Quick, name)(self, *arguments, **named)
        if number == self.at:
            raise CutOff
        return answer

    return change


for _name in CHANGES:
    setattr(Dying, _name, _dying(_name))


def append(store, **fields):
    entries = store.live_entries(store.snapshots.latest())
    number = int(entries.max_sequence_number.max()) + 1 if len(entries) else 0
    log = data_file(store, seq=(number, number), name=f"changelog-{uuid.uuid4()}.parquet")
    committer(store).commit([message(store, [data_file(store, seq=(number, number), **fields)], changelog_files=[log])])


def rewrite(store):
    before = [entry.file for entry in store.live_entries(store.snapshots.latest()).entries()]
    after = data_file(store, level=5, seq=(0, max(file.max_sequence_number for file in before)))
    committer(store).commit([message(store, (), before, [after])])


@pytest.fixture
def make(tmp_path):
    """The same table again and again: rewritten twice, tagged twice, with a branch."""
    made = iter(range(10**6))
    store = make_table(tmp_path / "t", options={"write-only": "true", "manifest.merge-min-count": "3", "bucket": "1"})
    append(store)
    append(store)
    store.snapshots.create_tag("early", store.snapshots.latest())
    rewrite(store)
    append(store)
    create_branch(store, "side", "early")
    rewrite(store)
    append(store)
    store.snapshots.create_tag("late", store.snapshots.latest())

    def made_anew():
        copy = tmp_path / f"t{next(made)}"
        shutil.copytree(store.root, copy)
        return FileStore.open(copy, Quick())

    return made_anew


OPERATIONS = {
    "expire": lambda store: expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS),
    "roll back": lambda store: rollback_to(store, store.snapshots.get(3)),
    "roll back to a tag": lambda store: rollback_to(store, store.snapshots.tag("early")),
    "tag": lambda store: store.snapshots.create_tag("new", store.snapshots.get(4)),
    "delete a tag": lambda store: delete_tag(store, "early"),
    "branch": lambda store: create_branch(store, "other", "early"),
    "delete a branch": lambda store: delete_branch(store, "side"),
    "fast forward": lambda store: fast_forward(store, "side"),
}
EXPIRED_FIRST = {"roll back to a tag", "delete a tag"}


def whole(store):
    """Every state of every branch has all its files, and nothing but orphans is left over, which go."""
    store = FileStore.open(store.root, Quick())
    check_table(store)
    found = Findings(1000)
    list(walk(store, found))
    assert found.problems == []
    states_have_files(store)
    remove_orphans(store, ALWAYS)
    assert list_orphans(store, ALWAYS) == []
    states_have_files(store)


def states_have_files(store):
    """Every state that a reader sees, and every one that a file has: other engines do not know of a pending change."""
    for manager in branches_of(store):
        seen = store if manager.paths.branch == "main" else FileStore.open(f"{store.root}$branch_{manager.paths.branch}")
        snapshots = [*(manager.get(snapshot_id) for snapshot_id in manager.ids()), *manager.all_stored().values()]
        for state in [*manager.tags().values(), *manager.stored_tags().values(), *snapshots]:
            entries = live(
                seen.manifests.read_metas([meta for name, size in state.manifest_lists for meta in seen.manifest_lists.read(name, size)])
            )
            for entry in entries.entries():
                assert all(map(seen.file_io.exists, seen.physical_files(entry.partition, entry.bucket, entry.file))), state.id
        for snapshot in snapshots:
            if logs := snapshot.changelog_manifest_list:
                for meta in seen.manifest_lists.read(logs):
                    for entry in seen.manifests.read_meta(meta).entries():
                        assert all(map(seen.file_io.exists, seen.physical_files(entry.partition, entry.bucket, entry.file)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "step"), [(False, 5), pytest.param(False, 1, marks=pytest.mark.long), pytest.param(True, 1, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("what", OPERATIONS)
@pytest.mark.sampled(2)
def test_a_cut_at_any_change_leaves_whole_states_and_orphans(make, what, after, step):
    at, seen, target = 0, set(), 2 if what in EXPIRED_FIRST else 3
    while True:
        store = make()
        before = store.snapshots.latest_id()
        if what in EXPIRED_FIRST:
            expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS)
        dying = Dying(at, after=after)
        try:
            OPERATIONS[what](FileStore.open(store.root, dying))
        except CutOff:
            pass
        else:
            break
        if what.startswith("roll back"):  # done or not, nothing between
            assert store.snapshots.latest_id() in {before, target}
            seen.add(store.snapshots.latest_id())
        if store.snapshots.ids() == [target, 6]:  # what comes back stands beside the last that goes: no gap, for that counts no more
            assert store.snapshots.latest_id() == target
            assert len(live_names(store)) == 2
        whole(store)
        states = {i: store.snapshots.get(i).delta_manifest_list for i in store.snapshots.ids()}
        assert all(states.get(tag.id, tag.delta_manifest_list) == tag.delta_manifest_list for tag in store.snapshots.tags().values())
        again = FileStore.open(store.root, Quick())
        names = live_names(again)
        append(again)
        assert len(set(live_names(again)).symmetric_difference(names)) == 1  # the next commit stands on what was read
        ids = again.snapshots.ids()
        assert ids == list(range(ids[0], ids[-1] + 1))
        if what == "expire":
            expire_snapshots(again, retain_min=1, older_than_ms=ALWAYS)
        if what == "roll back":
            OPERATIONS[what](again)
        whole(again)
        at += step
    assert at
    assert step > 1 or seen in (set(), {target} if after else {before, target})  # the note is the first change, and with it all is done
    whole(store)


def on_side(act):
    return lambda store: act(FileStore.open(f"{store.root}$branch_side", store.file_io))


CHANGES_OF_HISTORY = {
    "roll back": OPERATIONS["roll back"],
    "roll back to a tag": OPERATIONS["roll back to a tag"],
    "fast forward": OPERATIONS["fast forward"],
    "roll back a branch": on_side(lambda store: rollback_to(store, store.snapshots.tag("early"))),
}
VERBS = {
    **OPERATIONS,
    "tag": lambda store: create_tag(store, "new", store.snapshots.latest()),
    "tag again": lambda store: create_tag(store, "late", store.snapshots.latest()),
    "delete a removed tag": lambda store: delete_tag(store, "late"),
    "replace a tag": lambda store: replace_tag(store, "early", store.snapshots.latest(), None),
    "replace a removed tag": lambda store: replace_tag(store, "late", store.snapshots.latest(), None),
    "rename a removed tag": lambda store: rename_tag(store, "late", "later"),
    "read a removed tag": lambda store: store.snapshots.tag("late"),
    "travel to a removed tag": lambda store: store.snapshots.travel(version="late"),
    "expire tags": lambda store: expire_tags(store, older_than=datetime(2999, 1, 1)),  # noqa: DTZ001  # tags store wall clock times
    "branch off a removed tag": lambda store: create_branch(store, "other", "late"),
    "rename a branch": lambda store: rename_branch(store, "side", "other"),
    "remove orphans": lambda store: remove_orphans(store, ALWAYS),
    "write": append,
    "find holders": lambda store: holders_of(store, lambda _, entries: {entry.file.file_name for entry in entries}),
    "write to the branch": on_side(append),
    "expire the branch": on_side(OPERATIONS["expire"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("change", CHANGES_OF_HISTORY)
@pytest.mark.sampled(16)
def test_no_verb_is_fooled_by_a_change_that_was_cut_off(make, change, verb):
    at = 0
    while True:
        store = make()
        if change == "roll back a branch":
            on_side(append)(store)
        try:
            CHANGES_OF_HISTORY[change](FileStore.open(store.root, Dying(at)))
        except CutOff:
            pass
        else:
            break
        store = FileStore.open(store.root, Quick())
        pending = store.snapshots.pending_history()
        removed, text = pending is not None and "late" not in store.snapshots.tags(), ""
        try:
            VERBS[verb](store)
        except TagExists:  # the rollback did not begin
            assert verb == "tag again"
            assert not removed
        except SnapshotNotFound as error:
            text = str(error)
        assert "did you mean 'late'" not in text
        assert not (removed and "there is no tag 'late'" in text and "late" in store.snapshots.stored_tags())
        states_have_files(FileStore.open(store.root, Quick()))
        whole(store)
        append(FileStore.open(store.root, Quick()))
        whole(store)
        at += 1 if at < 3 else 6


def at_change(number, act):
    """Storage beside which another process acts, once, before a change."""
    seen: list[str] = []

    def watch(_name: str, path: str) -> None:
        seen.append(path)
        if len(seen) == number + 1:
            act()

    return Dying(watch=watch)


@pytest.mark.slow
def test_who_tags_beside_an_expiry_is_seen_or_told(make):
    """At each change that an expiry makes, another process tags what it expires: the tag is whole, or it was refused."""
    told: list[bool] = []
    while True:
        store = make()
        rival, tagged, before = FileStore.open(store.root, Quick()), store.snapshots.get(1), len(told)

        def tag(rival=rival, tagged=tagged):
            try:
                rival.snapshots.create_tag("new", tagged)
                told.append(True)
            except SnapshotNotFound:
                told.append(False)

        OPERATIONS["expire"](FileStore.open(store.root, at_change(before, tag)))
        if len(told) == before:
            break
        assert ("new" in store.snapshots.tags()) == told[-1]
        whole(store)
    assert set(told) == {True, False}


@pytest.mark.slow
def test_a_branch_whose_tag_goes_while_it_is_made_is_whole_or_refused(make):
    made: list[bool] = []
    while True:
        store = make()
        OPERATIONS["expire"](store)
        delete_branch(store, "side")
        rival, deleted = FileStore.open(store.root, Quick()), []

        def delete(rival=rival, deleted=deleted):
            deleted.append(delete_tag(rival, "early"))

        try:
            create_branch(FileStore.open(store.root, at_change(len(made), delete)), "new", "early")
            made.append(True)
        except SnapshotNotFound:
            made.append(False)
        assert (store.snapshots.branch_names() == ["new"]) == made[-1]
        whole(store)
        if not deleted:
            break
    assert set(made) == {True, False}


@pytest.mark.slow
def test_tags_made_by_threads_beside_expiries_are_whole_or_refused(make):
    store = make()
    stop = threading.Event()
    made: list[str] = []

    def tags():
        mine = FileStore.open(store.root)
        number = 0
        while not stop.is_set():
            number += 1
            oldest = mine.snapshots.earliest_id()
            try:
                mine.snapshots.create_tag(f"t{number}", mine.snapshots.get(oldest))
                made.append(f"t{number}")
            except SnapshotNotFound:
                pass

    thread = threading.Thread(target=tags)
    thread.start()
    for _ in range(8):
        append(store)
        expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS, limit=1)
    stop.set()
    thread.join()
    assert set(made) <= set(store.snapshots.tags())
    whole(store)


def test_a_tag_that_names_what_is_gone_is_named_and_can_be_deleted(make):
    store = make()
    tag = store.snapshots.tag("early")
    store.file_io.delete(store.paths.manifest(tag.base_manifest_list))
    fresh = FileStore.open(store.root)
    for call in (lambda: expire_snapshots(fresh, retain_min=1, older_than_ms=ALWAYS), lambda: list_orphans(fresh, ALWAYS)):
        with pytest.raises(CorruptFile, match=r"is missing, but .*snapshot 2 needs it"):
            call()
    assert fresh.snapshots.ids() == [1, 2, 3, 4, 5, 6]


def test_a_tag_of_a_snapshot_that_was_rolled_back_is_read_from_the_tag(make):
    store = make()
    store.file_io.delete(store.paths.snapshot_file(6))
    store.file_io.write(store.paths.latest_hint, b"5", overwrite=True)
    assert store.snapshots.readable(6).id == 6
    with pytest.raises(SnapshotNotFound):
        store.snapshots.readable(7)


def test_a_snapshot_that_comes_back_from_its_tag_names_no_changelog_that_is_gone(make):
    store = make()
    OPERATIONS["expire"](store)
    rollback_to(store, store.snapshots.tag("early"))
    assert store.snapshots.latest().changelog_manifest_list is None
    assert len(live_names(store)) == 2
    whole(store)


def test_a_snapshot_that_expires_while_it_is_tagged_is_told(make):
    store = make()
    first = store.snapshots.get(1)
    OPERATIONS["expire"](store)
    with pytest.raises(SnapshotExpired, match="snapshot 1 has expired"):
        store.snapshots.create_tag("new", first)
    assert "new" not in store.snapshots.tags()


class Failing(Quick):
    """The storage refuses some operations until ``cause`` is None."""

    def __init__(self, cause: Callable[[str, str], bool]) -> None:
        super().__init__()
        self.cause: Callable[[str, str], bool] | None = cause

    def delete(self, path):
        if self.cause is not None and self.cause("delete", path):
            raise StorageError(errno.EIO, "Input/output error", path)
        return self.inner.delete(path)

    def list(self, path):
        if self.cause is not None and self.cause("list", path):
            raise StorageError(errno.EIO, "Input/output error", path)
        return self.inner.list(path)


def tagged(path):
    """Four snapshots, the second of which is tagged and has expired with the first."""
    store = make_table(path, file_io=Quick())
    for _ in range(2):
        append(store)
    store.snapshots.create_tag("old", store.snapshots.get(2))
    for _ in range(2):
        append(store)
    return store


def test_files_that_cannot_be_deleted_are_orphans_of_a_rollback_that_stands(tmp_path, caplog):
    tagged(tmp_path / "t")
    failing = Failing(lambda name, path: name == "delete" and "/bucket-0/" in path)
    store = FileStore.open(tmp_path / "t", failing)
    assert rollback_to(store, store.snapshots.tag("old")).snapshots == 2
    assert store.snapshots.latest_id() == 2
    assert "orphans" in caplog.text
    whole(store)


def test_a_tag_whose_files_cannot_be_found_out_is_deleted_all_the_same(tmp_path, caplog):
    expire_snapshots(tagged(tmp_path / "t"), retain_min=2, retain_max=2, older_than_ms=ALWAYS)
    store = FileStore.open(tmp_path / "t", Failing(lambda name, path: name == "list" and path.endswith("/branch")))
    assert delete_tag(store, "old").tags == ("old",)
    assert store.snapshots.tags() == {}
    assert "orphans" in caplog.text
    whole(store)


def test_a_rollback_to_an_expired_state_that_the_storage_cuts_off_says_so_and_breaks_nothing(tmp_path):
    expire_snapshots(tagged(tmp_path / "t"), retain_min=2, retain_max=2, older_than_ms=ALWAYS)
    failing = Failing(lambda name, path: name == "delete" and path.endswith("/snapshot-3"))
    store = FileStore.open(tmp_path / "t", failing)
    with pytest.raises(StorageError, match=r"rollback to snapshot 2 was interrupted.*call it again to finish"):
        rollback_to(store, store.snapshots.tag("old"))
    whole(store)
    failing.cause = None
    rollback_to(store, store.snapshots.tag("old"))
    assert store.snapshots.ids() == [2]
    whole(store)
