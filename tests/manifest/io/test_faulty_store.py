"""Commits on a store that fails: nothing half visible, nothing left, nothing lost that was acknowledged."""

import errno

import pytest

from manifest.expire.orphans import list_orphans
from manifest.expire.snapshots import expire_snapshots
from manifest.io.errors import CommitConflict, CommitGaveUp, OutOfDisk, UnsafeFileIO
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.store import FileStore
from tests.manifest.commit_kit import check_table, committer, data_file, live_names, make_table, message, renumber

ALWAYS = 2**62


class Faulty(WrappedFileIO):
    """Calls ``fault(call, path)`` before each change; what it raises happens, what it returns replaces the call."""

    def __init__(self):
        super().__init__(LocalFileIO())
        self.calls = []
        self.fault = lambda call, path: None

    def write(self, path, data, **options):
        self.calls.append(("write", path))
        self.fault("write", path)
        super().write(path, data, **options)

    def create_exclusive(self, path, data, **options):
        self.calls.append(("create", path))
        answer = self.fault("create", path)
        return answer(path, data) if callable(answer) else super().create_exclusive(path, data, **options)


def full(path):
    return OutOfDisk(errno.ENOSPC, "full", path)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """A commit within a commit waits in vain for its turn."""
    monkeypatch.setattr("manifest.io.posix._TURN_SECONDS", 0.1)


@pytest.fixture
def store(tmp_path):
    store = make_table(
        tmp_path / "t", file_io=Faulty(), options={"write-only": "true", "commit.max-retries": "3", "commit.min-retry-wait": "1 ms"}
    )
    committer(store).commit([message(store, [data_file(store)])])
    store.storage.calls.clear()
    return store


def next_message(store, number=1):
    return message(store, [data_file(store, seq=(10 * number, 10 * number + 9))], base_snapshot_id=store.snapshots.latest_id())


def metadata_files(store):
    return sorted(status.name for d in ("manifest", "snapshot") for status in store.file_io.list(f"{store.root}/{d}"))


def test_a_full_disk_at_any_write_leaves_the_table_as_it_was(store):
    committed = next_message(store)
    before = metadata_files(store)
    writes = 0
    for position in range(20):
        seen = iter(range(100))

        def fault(call, path, seen=seen, position=position):
            if not path.endswith("LATEST") and next(seen) == position:
                raise full(path)

        store.storage.fault = fault
        try:
            committer(store).commit([committed])
            break
        except OutOfDisk:
            writes += 1
        assert metadata_files(store) == before
        assert store.snapshots.latest_id() == 1
    assert writes == 5  # the note of the run, a manifest, two lists and the snapshot
    store.storage.fault = lambda call, path: None
    check_table(FileStore.open(store.root))
    assert list_orphans(store, ALWAYS) == []


def test_without_atomic_creation_nothing_is_committed(store):
    before = metadata_files(store)

    def fault(call, path):
        if call == "create":
            raise UnsafeFileIO(path)

    store.storage.fault = fault
    with pytest.raises(UnsafeFileIO):
        committer(store).commit([next_message(store)])
    assert metadata_files(store) == before


def test_a_snapshot_that_was_made_although_the_call_failed_counts_once(store):
    def made_then_failed(path, data):
        LocalFileIO().create_exclusive(path, data)
        raise OSError(errno.EIO, "connection reset")

    store.storage.fault = lambda call, path: made_then_failed if call == "create" else None
    result = committer(store).commit([next_message(store)])
    assert result.snapshot_id == 2
    assert store.snapshots.ids() == [1, 2]
    check_table(store)


def test_a_snapshot_that_appears_late_counts_once_and_keeps_its_files(store):
    late = {}

    def fails_first(path, data):
        if not late:
            late[path] = data
            raise OSError(errno.EIO, "timeout")
        for delayed, content in late.items():
            LocalFileIO().create_exclusive(delayed, content)
        return LocalFileIO().create_exclusive(path, data)

    store.storage.fault = lambda call, path: fails_first if call == "create" else None
    message_ = next_message(store)
    result = committer(store).commit([message_])
    assert (result.snapshot_id, store.snapshots.ids()) == (2, [1, 2])
    assert live_names(store).count(message_.new_files[0].file_name) == 1
    check_table(store)


def test_a_store_that_never_answers_is_given_up_and_abort_is_still_safe(store):
    def fault(call, path):
        if call == "create":
            raise OSError(errno.EIO, "timeout")

    store.storage.fault = fault
    commit, sent = committer(store), next_message(store)
    with pytest.raises(CommitGaveUp, match=r"commit\.max-retries"):
        commit.commit([sent])
    assert len([call for call, _ in store.storage.calls if call == "create"]) == 4
    assert len(commit.abort([sent])) == 1
    check_table(store)


def test_lost_races_are_given_up_after_the_retries_and_leave_nothing(store):
    before = metadata_files(store)
    store.storage.fault = lambda call, path: (lambda *_: False) if call == "create" else None
    with pytest.raises(CommitGaveUp, match="4 attempts"):
        committer(store).commit([next_message(store)])
    assert metadata_files(store) == before


def test_a_timeout_ends_the_retries(store):
    impatient = store.with_options({"commit.timeout": "1 ms", "commit.max-retries": "1000", "commit.min-retry-wait": "2 ms"})
    store.storage.fault = lambda call, path: (lambda *_: False) if call == "create" else None
    with pytest.raises(CommitGaveUp):
        committer(impatient).commit([next_message(store)])


def beaten_once(store, rival):
    """The first snapshot that is created loses to ``rival``."""
    raced = []

    def fault(call, path):
        if call == "create" and not raced:
            raced.append(path)
            committer(FileStore.open(store.root)).commit([rival])

    store.storage.fault = fault


def test_a_lost_race_is_retried_on_the_newer_state(store):
    rival, mine = next_message(store, 1), next_message(store, 5)
    beaten_once(store, rival)
    assert committer(store).commit([mine]).snapshot_id == 3
    assert list_orphans(store, ALWAYS) == []
    check_table(store)


def test_a_lost_race_renumbers_rows_that_would_be_older(store):
    rival, mine = next_message(store, 5), next_message(store, 1)
    beaten_once(store, rival)
    assert committer(store, resequence=renumber(store)).commit([mine]).snapshot_id == 3
    newest = max(store.live_entries(store.snapshots.latest()).entries(), key=lambda entry: entry.file.max_sequence_number)
    assert newest.file.min_sequence_number == 60
    assert list_orphans(store, ALWAYS) == []


def test_a_failed_renumbering_leaves_the_files_to_the_caller(store):
    rival, mine = next_message(store, 5), next_message(store, 1)
    beaten_once(store, rival)
    with pytest.raises(CommitConflict):
        committer(store).commit([mine])
    committer(store).abort([mine])
    assert list_orphans(store, ALWAYS) == []
    check_table(store)


def test_renumbered_files_go_when_the_commit_fails_after_all(store):
    rival, mine = next_message(store, 5), next_message(store, 1)
    committer(FileStore.open(store.root)).commit([rival])
    store.storage.fault = lambda call, path: (lambda *_: False) if call == "create" else None
    with pytest.raises(CommitGaveUp):
        committer(store, resequence=renumber(store)).commit([mine])
    assert [orphan.path for orphan in list_orphans(store, ALWAYS)] == [store.physical_files(mine.partition, 0, mine.new_files[0])[0]]


def test_a_compaction_that_loses_its_snapshot_race_is_checked_again(store):
    (old,) = [entry.file for entry in store.live_entries(store.snapshots.latest()).entries()]
    winner, loser = (data_file(store, level=5) for _ in range(2))
    beaten_once(store, message(store, (), [old], [winner]))
    result = committer(store).commit([message(store, (), [old], [loser])])
    assert (result.compact_snapshot_id, result.compact_lost) == (None, True)
    assert live_names(store) == [winner.file_name]
    assert list_orphans(store, ALWAYS) == []


def test_an_overwrite_that_loses_a_race_also_replaces_the_winners_rows(store):
    rival, mine = next_message(store, 1), next_message(store, 5)
    beaten_once(store, rival)
    committer(store).overwrite([mine])
    assert live_names(store) == [mine.new_files[0].file_name]
    check_table(store)


def test_a_lost_hint_does_not_lose_the_commit(store):
    def fault(call, path):
        if path.endswith("LATEST"):
            raise OSError(errno.EIO, "no")

    store.storage.fault = fault
    assert committer(store).commit([next_message(store)]).snapshot_id == 2
    assert store.snapshots.latest_id() == 2


def outrun(store):
    """Two commits and an expiry of all but the newest snapshot."""
    fresh = FileStore.open(store.root)
    for number in (1, 2):
        committer(fresh, resequence=renumber(fresh)).commit([next_message(fresh, number)])
    expire_snapshots(fresh, retain_min=1, older_than_ms=ALWAYS)


@pytest.mark.parametrize("moment", ["manifest", "snapshot"])
def test_a_slow_commit_never_takes_the_place_of_an_expired_snapshot(store, moment):
    raced = []

    def fault(call, path):
        if (call == "create" or (moment == "manifest" and "manifest-list-" in path)) and not raced:
            raced.append(path)
            outrun(store)

    store.storage.fault = fault
    slow = next_message(store, 7)
    assert committer(store).commit([slow]).snapshot_id == 4
    assert store.snapshots.ids() == [3, 4]
    assert slow.new_files[0].file_name in live_names(store)
    assert len(live_names(store)) == 4
    assert list_orphans(store, ALWAYS) == []
    check_table(FileStore.open(store.root))


def test_a_commit_that_others_build_on_and_outrun_at_once_stands(store):
    def made_then_outrun(path, data):
        store.storage.fault = lambda call, path: None
        LocalFileIO().create_exclusive(path, data)
        outrun(store)
        return True

    store.storage.fault = lambda call, path: made_then_outrun if call == "create" else None
    mine = message(store, [data_file(store, seq=(5, 9))], base_snapshot_id=1)
    assert committer(store, resequence=renumber(store)).commit([mine]).snapshot_id == 2
    assert store.snapshots.ids() == [4]
    assert len(live_names(store)) == 4
    assert list_orphans(store, ALWAYS) == []


def test_an_interrupt_leaves_no_more_than_an_error_does(store):
    """Rows that were numbered anew go with the commit that was not made."""
    committed = next_message(store, 0)
    rewritten = []

    def renumbered(*arguments):
        rewritten.extend(renumber(store)(*arguments))
        return rewritten

    def interrupted(call, path):
        if call == "create":
            raise KeyboardInterrupt

    store.storage.fault = interrupted
    with pytest.raises(KeyboardInterrupt):
        committer(store, resequence=renumbered).commit([committed])
    assert rewritten
    assert not any(store.file_io.exists(path) for file in rewritten for path in store.physical_files(b"\0" * 12, 0, file))
