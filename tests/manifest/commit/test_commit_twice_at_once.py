"""Two runs of one write, such as a client's repetition beside the job that it thinks is lost: the rows come once."""

from contextlib import contextmanager, nullcontext
from threading import Barrier, Thread

import pytest

from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.store import FileStore
from tests.manifest.commit_kit import check_table, committer, data_file, live_names, make_table, message


class AfterRival(WrappedFileIO):
    """Whose turn comes when the rival has had his: what was known before is old by then."""

    def __init__(self, rival):
        super().__init__(LocalFileIO())
        self.rival = rival

    @contextmanager
    def fair_lock(self, directory):
        rival, self.rival = self.rival, nullcontext
        rival()
        yield


@pytest.mark.parametrize("operation", ["commit", "overwrite", "replace"])
@pytest.mark.parametrize("keys", [("id",), ()], ids=["primary key", "append"])
def test_a_repetition_that_waits_for_its_first_run_commits_nothing(tmp_path, operation, keys):
    store = make_table(tmp_path / "t", keys=keys)
    committer(store).commit([message(store, [old := data_file(store, name="old")])])

    def run(store):
        if operation == "replace":
            after = data_file(store, seq=(10, 19), keys=(10, 19))
            made = message(store, before=[old], after=[after])
            return after, lambda: committer(store, "nightly").replace([made])
        new = data_file(store, seq=(10, 19), keys=(10, 19))
        made = message(store, [new], base_snapshot_id=1)
        return new, lambda: getattr(committer(store, "nightly"), operation)([made])

    results = []
    first, commit_first = run(FileStore.open(store.root))
    late = FileStore.open(store.root, AfterRival(lambda: results.append(commit_first())))
    _, commit_late = run(late)
    results.append(commit_late())
    assert [result.snapshot_id for result in results] == [2, 2]
    assert store.snapshots.ids() == [1, 2]
    assert live_names(store) == sorted({first.file_name} | ({"old"} if operation == "commit" else set()))
    check_table(store)


def test_many_runs_of_one_write_at_once_make_one_snapshot(tmp_path):
    store = make_table(tmp_path / "t", keys=())
    start, results = Barrier(6), []

    def run():
        made = message(store, [data_file(store)], base_snapshot_id=0)
        mine = FileStore.open(store.root)
        start.wait()
        results.append(committer(mine, "nightly").commit([made]).snapshot_id)

    threads = [Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * 6
    assert len(live_names(store)) == 1
