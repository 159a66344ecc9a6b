"""What the processes of the race and kill tests run; a module of its own, so that they can import it."""

import os
import sys
from contextlib import nullcontext

from manifest.expire.snapshots import expire_snapshots
from manifest.io import failpoints
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.store import FileStore
from tests.manifest.commit_kit import committer, data_file, message, renumber


class Unqueued(WrappedFileIO):
    """Files of committers that do not take turns, as those of other machines and engines do not."""

    def fair_lock(self, directory):
        return nullcontext()


def race(path, worker, commits):
    """Commit upserts of the same keys, all numbered from 0: returns (snapshot, file rows) per acknowledgement."""
    store = FileStore.open(path, Unqueued(LocalFileIO()))
    acknowledged = []
    for number in range(commits):
        rows = 1 + worker * commits + number
        new = data_file(store, rows=rows)
        result = committer(store, f"worker-{worker}", resequence=renumber(store)).commit(
            [message(store, [new], base_snapshot_id=0)], number
        )
        acknowledged.append((result.snapshot_id, rows))
    return acknowledged


def race_compactions(path, worker, commits):
    """Compact whatever is there: returns (won, lost)."""
    store = FileStore.open(path, Unqueued(LocalFileIO()))
    won = 0
    for _ in range(commits):
        latest = store.snapshots.latest()
        before = [entry.file for entry in store.live_entries(latest).entries() if entry.bucket == 0]
        after = data_file(store, level=5, rows=sum(file.row_count for file in before), seq=(0, max(f.max_sequence_number for f in before)))
        won += committer(store).commit([message(store, (), before, [after])]).compact_snapshot_id is not None
    return won, commits - won


def write_until_killed(path, acknowledgements):
    """Commit rows and compactions for ever, noting every acknowledgement durably; the fault point ends it."""
    store = FileStore.open(path)
    for number in range(1, 100):
        new = data_file(store, rows=number, seq=(1000 * number, 1000 * number))
        live = [entry.file for entry in store.live_entries(store.snapshots.latest()).entries()]
        after = data_file(store, level=5, rows=number + sum(f.row_count for f in live), seq=(0, 1000 * number))
        messages = [message(store, [new], [*live, new], [after])]
        acknowledgements.write(f"start {number}\n")
        acknowledgements.flush()
        committer(store, f"user-{number}").commit(messages, number)
        acknowledgements.write(f"done {number}\n")
        acknowledgements.flush()
        expire_snapshots(store, retain_min=3, older_than_ms=2**62)


if __name__ == "__main__":
    os.environ[failpoints.VARIABLE] = sys.argv[2]
    write_until_killed(sys.argv[1], sys.stdout)
