"""What an attempt at a commit comes to, and what becomes of its files and of the note of its run."""

import errno

import pytest

from manifest.commit.commit_markers import list_markers
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.transaction import Committed, LostRace, NothingToCommit, Refused, Unknown
from manifest.io.errors import CatalogRefused, CommitGaveUp, OutOfDisk, UnsafeFileIO
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from tests.manifest.commit_kit import committer, data_file, make_table, message


class Creating(WrappedFileIO):
    """Answers the creation of each snapshot by the next of ``answers``, which may raise; else creates it."""

    def __init__(self):
        super().__init__(LocalFileIO())
        self.answers = []

    def create_exclusive(self, path, data, **options):
        answer = self.answers.pop(0) if self.answers else None
        return super().create_exclusive(path, data, **options) if answer is None else answer(path, data)


def raising(error):
    def answer(path, data):
        raise error

    return answer


def created_then(error):
    def answer(path, data):
        LocalFileIO().create_exclusive(path, data)
        raise error

    return answer


def taken(path, data):
    return False


TIMEOUT = OSError(errno.EIO, "timeout")


@pytest.fixture
def store(tmp_path):
    options = {"write-only": "true", "commit.max-retries": "1", "commit.min-retry-wait": "1 ms"}
    return make_table(tmp_path / "t", file_io=Creating(), options=options)


@pytest.fixture
def outcomes(monkeypatch):
    attempt, seen = FileStoreCommit._attempt, []

    def recorded(self, pending, *, first):
        seen.append(attempt(self, pending, first=first))
        return seen[-1]

    monkeypatch.setattr(FileStoreCommit, "_attempt", recorded)
    return seen


def manifests(store):
    return sorted(status.name for status in store.file_io.list(f"{store.root}/manifest"))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([None], [Committed(1)]),
        ([created_then(TIMEOUT)], [Committed(1)]),
        ([taken, None], [LostRace(), Committed(1)]),
        ([raising(TIMEOUT), None], [Unknown(), Committed(1)]),
    ],
    ids=["created", "created but failed", "lost", "no answer"],
)
def test_an_attempt_that_did_not_commit_is_followed_by_another(store, outcomes, answers, expected):
    store.storage.answers += answers
    commit = committer(store, "w")
    assert commit.commit([message(store, [data_file(store)], base_snapshot_id=0)]).snapshot_id == 1
    assert (outcomes, commit.retries) == (expected, len(expected) - 1)


@pytest.mark.parametrize(
    "error", [UnsafeFileIO("t"), CatalogRefused("no"), OutOfDisk(errno.ENOSPC, "full", "t")], ids=lambda error: type(error).__name__
)
def test_a_refusal_is_raised_and_leaves_nothing(store, outcomes, error):
    store.storage.answers += [raising(error)]
    with pytest.raises(type(error)):
        committer(store, "w").commit([message(store, [data_file(store)], base_snapshot_id=0)])
    assert outcomes == [Refused(error)]
    assert (manifests(store), list_markers(store, "w", BATCH_IDENTIFIER)) == ([], {})


def test_lost_races_leave_no_files_and_no_note(store, outcomes):
    store.storage.answers += [taken, taken]
    with pytest.raises(CommitGaveUp, match="2 attempts"):
        committer(store, "w").commit([message(store, [data_file(store)], base_snapshot_id=0)])
    assert outcomes == [LostRace(), LostRace()]
    assert (manifests(store), list_markers(store, "w", BATCH_IDENTIFIER)) == ([], {})


def test_files_and_note_stay_while_an_outcome_is_unknown(store, outcomes):
    store.storage.answers += [raising(TIMEOUT), taken]
    with pytest.raises(CommitGaveUp, match="2 attempts"):
        committer(store, "w").commit([message(store, [data_file(store)], base_snapshot_id=0)])
    assert outcomes == [Unknown(), LostRace()]
    assert len(manifests(store)) == 3
    assert len(list_markers(store, "w", BATCH_IDENTIFIER)) == 1


def test_an_interrupt_while_the_snapshot_is_created_leaves_the_note(store, outcomes):
    store.storage.answers += [raising(KeyboardInterrupt())]
    with pytest.raises(KeyboardInterrupt):
        committer(store, "w").commit([message(store, [data_file(store)], base_snapshot_id=0)])
    assert (outcomes, len(list_markers(store, "w", BATCH_IDENTIFIER))) == ([], 1)


def test_an_empty_change_makes_no_attempt_at_a_snapshot(store, outcomes):
    assert committer(store, "w").truncate().snapshot_id is None
    assert (outcomes, manifests(store), list_markers(store, "w", BATCH_IDENTIFIER)) == ([NothingToCommit()], [], {})
