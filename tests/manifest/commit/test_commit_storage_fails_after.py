"""The snapshot is there, and then the storage fails: the call tells of the commit, and a repetition counts nothing twice."""

import errno

import pytest

from manifest.commit.commit_markers import list_markers
from manifest.expire.snapshots import expire_snapshots
from manifest.io.errors import CommitReplayed, StorageError
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from manifest.store import FileStore
from tests.manifest.commit_kit import check_table, committer, data_file, live_names, make_table, message
from tests.manifest.commit_workers import Unqueued


class FailsAfter(WrappedFileIO):
    """Once snapshot 2 is there, the next ``failures`` questions about snapshots meet an I/O error.

    As an object store does, it cannot cancel creations.
    """

    cancels_creates = False

    def __init__(self, failures):
        super().__init__(LocalFileIO())
        self.failures = failures
        self.created = False

    def create_exclusive(self, path, data, **options):
        options["guard"] = None
        created = self.inner.create_exclusive(path, data, **options)
        self.created |= path.endswith("/snapshot-2")
        return created

    def _fail(self, path):
        if self.created and self.failures and "/snapshot" in path:
            self.failures -= 1
            raise StorageError(errno.EIO, "Input/output error", path)

    def read(self, path):
        self._fail(path)
        return self.inner.read(path)

    def exists(self, path):
        self._fail(path)
        return self.inner.exists(path)

    def list(self, path):
        self._fail(path)
        return self.inner.list(path)


@pytest.fixture
def path(tmp_path):
    store = make_table(tmp_path / "t")
    committer(store).commit([message(store, [data_file(store)])])
    return store.root


def test_a_passing_failure_leaves_the_commit_acknowledged(path):
    store = FileStore.open(path, FailsAfter(2))
    new = data_file(store, seq=(10, 19))
    assert committer(store, "me").commit([message(store, [new])]).snapshot_id == 2
    check_table(store)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_lasting_failure_tells_of_the_commit_and_its_name_is_remembered(path, fresh):
    store = FileStore.open(path, FailsAfter(1000))
    new = data_file(store, seq=(10, 19))
    with pytest.raises(StorageError, match="committed as snapshot 2 by 'me'"):
        committer(store, "me", fresh=fresh).commit([message(store, [new])])
    store = FileStore.open(path)
    assert new.file_name in live_names(store)
    assert set(list_markers(store, "me", BATCH_IDENTIFIER).values()) == {1}
    again = committer(store, "me").commit([message(store, [data_file(store, seq=(10, 19))])])
    assert (again.snapshot_id, again.replayed) == (2, True)
    committer(store).commit([message(store, [data_file(store, seq=(20, 29))])])
    expire_snapshots(store, retain_min=1, retain_max=1, older_than_ms=2**62)
    with pytest.raises(CommitReplayed):
        committer(store, "me").commit([message(store, [data_file(store, seq=(10, 19))])])
    check_table(store)


def test_failures_after_a_guarded_creation_do_not_matter(path):
    class Guarded(FailsAfter):
        cancels_creates = True

    store = FileStore.open(path, Guarded(1000))
    assert committer(store).commit([message(store, [data_file(store, seq=(10, 19))])]).snapshot_id == 2
    check_table(FileStore.open(path))


def test_a_creation_that_cannot_be_looked_up_is_looked_up_again(path):
    class Unanswered(FailsAfter):
        def create_exclusive(self, path, data, **options):
            created = super().create_exclusive(path, data, **options)
            if self.created and self.failures:
                raise StorageError(errno.EIO, "Input/output error", path)
            return created

    store = FileStore.open(path, Unanswered(1))
    new = data_file(store, seq=(10, 19))
    assert committer(store, "me").commit([message(store, [new])]).snapshot_id == 2
    assert store.snapshots.ids() == [1, 2]
    check_table(store)


def test_a_snapshot_in_a_gap_that_others_left_does_not_stand(tmp_path):
    """Between the look at the base and the snapshot's creation others commit and expire so much that the id after ours is free, too."""
    store = make_table(tmp_path / "t", options={"write-only": "true"})
    committer(store).commit([message(store, [data_file(store, seq=(0, 0))])])

    class Overtaken(Unqueued):
        def __init__(self):
            super().__init__(LocalFileIO())
            self.waiting = True

        def create_exclusive(self, path, data, **options):
            if path.endswith("/snapshot-2") and self.waiting:
                self.waiting = False
                for number in range(1, 5):
                    committer(store).commit([message(store, [data_file(store, seq=(number, number))])])
                expire_snapshots(store, retain_min=1, older_than_ms=2**62)
                assert store.snapshots.ids() == [5]
            return self.inner.create_exclusive(path, data, **options)

    late = FileStore.open(store.root, Overtaken())
    result = committer(late).commit([message(late, [data_file(late, seq=(9, 9), rows=1)])])
    assert result.snapshot_id == 6
    assert store.snapshots.ids() == [5, 6]
    assert len(live_names(FileStore.open(store.root))) == 6
    check_table(FileStore.open(store.root))


class Followed(Unqueued):
    """As soon as snapshot 2 is there, ``follow`` runs, before its committer looks at it. Creations cannot be cancelled."""

    cancels_creates = False

    def __init__(self, follow):
        super().__init__(LocalFileIO())
        self.follow = follow

    def create_exclusive(self, path, data, **options):
        options["guard"] = None
        created = self.inner.create_exclusive(path, data, **options)
        if path.endswith("/snapshot-2"):
            self.follow()
        return created


def test_a_commit_whose_files_are_compacted_away_at_once_is_acknowledged(path):
    new = data_file(FileStore.open(path), seq=(10, 19))

    def compact():
        store = FileStore.open(path)
        before = [entry.file for entry in store.live_entries(store.snapshots.latest()).entries()]
        committer(store, "other").commit([message(store, (), before, [data_file(store, level=5, rows=20, seq=(0, 19))])])
        assert new.file_name not in live_names(store)

    store = FileStore.open(path, Followed(compact))
    assert committer(store, "me").commit([message(store, [new])]).snapshot_id == 2
    check_table(FileStore.open(path))


def test_a_commit_whose_base_expires_at_once_is_acknowledged(path):
    new = data_file(FileStore.open(path), seq=(10, 19))

    def expire():
        store = FileStore.open(path)
        committer(store, "other").commit([message(store, [data_file(store, seq=(20, 29))])])
        expire_snapshots(store, retain_min=1, retain_max=1, older_than_ms=2**62)
        assert store.snapshots.ids() == [3]

    store = FileStore.open(path, Followed(expire))
    assert committer(store, "me").commit([message(store, [new])]).snapshot_id == 2
    assert new.file_name in live_names(FileStore.open(path))
