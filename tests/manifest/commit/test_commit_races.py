"""Processes that commit at once, and processes that die while they commit."""

import itertools
import multiprocessing
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from manifest.expire.orphans import list_orphans, remove_orphans
from manifest.io import failpoints
from manifest.store import FileStore
from tests.manifest.commit_kit import check_table, committer, data_file, live_names, make_table, message
from tests.manifest.commit_workers import race, race_compactions

HERE = Path(__file__).parents[1]
ALWAYS = 2**62


@pytest.fixture(scope="module")
def pool():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.manifest.commit_workers"])
    with ProcessPoolExecutor(6, mp_context=context) as executor:
        yield executor


def race_table(path):
    retries = {"commit.max-retries": "200", "commit.min-retry-wait": "40 ms", "commit.max-retry-wait": "200 ms"}
    return make_table(path, options={"write-only": "true", "bucket": "1", "manifest.merge-min-count": "10", **retries})


@pytest.mark.slow
def test_racing_writers_lose_nothing_and_commit_in_sequence_order(tmp_path, pool):
    store = race_table(tmp_path / "t")
    runs = [pool.submit(race, store.root, worker, 20) for worker in range(6)]
    acknowledged = dict(pair for run in runs for pair in run.result(timeout=120))
    assert sorted(acknowledged) == list(range(1, 121))
    assert store.snapshots.ids() == list(range(1, 121))
    entries = [entry.file for entry in store.live_entries(store.snapshots.latest()).entries()]
    entries.sort(key=lambda file: file.min_sequence_number)
    assert [file.row_count for file in entries] == [acknowledged[snapshot_id] for snapshot_id in range(1, 121)]
    assert all(a.max_sequence_number < b.min_sequence_number for a, b in itertools.pairwise(entries))
    assert list_orphans(store, ALWAYS) == []
    check_table(FileStore.open(store.root))


def test_racing_compactions_win_once_each_and_lose_no_row(tmp_path, pool):
    store = race_table(tmp_path / "t")
    committer(store).commit([message(store, [data_file(store, rows=1)])])
    writers = [pool.submit(race, store.root, worker, 5) for worker in range(3)]
    compactors = [pool.submit(race_compactions, store.root, worker, 5) for worker in range(3)]
    acknowledged = [pair for run in writers for pair in run.result(timeout=120)]
    won = sum(run.result(timeout=120)[0] for run in compactors)
    assert len(store.snapshots.ids()) == 1 + len(acknowledged) + won
    assert store.snapshots.latest().total_record_count == 1 + sum(rows for _, rows in acknowledged)
    assert list_orphans(store, ALWAYS) == []
    check_table(store)


FIRST_COMMIT = [("after-manifest", 1), ("after-temp-snapshot", 1), ("after-link", 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("point", "visit"), [*((point, 4) for point in failpoints.POINTS), *FIRST_COMMIT])
@pytest.mark.sampled(3)
def test_a_killed_committer_leaves_the_acknowledged_rows(tmp_path, point, visit):
    store = make_table(tmp_path / "t", options={"bucket": "1", "manifest.merge-min-count": "3"})
    command = [sys.executable, str(HERE / "commit_workers.py"), store.root, f"{point}:{visit}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={"PYTHONPATH": f"{HERE}:{HERE.parents[1]}"})
    assert run.returncode == -9, run.stderr
    done = [int(line.split()[1]) for line in run.stdout.splitlines() if line.startswith("done")]
    started = [int(line.split()[1]) for line in run.stdout.splitlines() if line.startswith("start")]
    check_table(store, newest=3)  # older ones may be half expired
    latest = store.snapshots.latest()
    rows = latest.total_record_count if latest else 0
    assert rows in {sum(done), sum(started)}  # what was in flight is there whole, or not at all
    if point in {"after-link", "after-hint", "between-append-and-compact", "inside-expiry"} and started != done:
        assert rows == sum(started)

    survivors = live_names(store) if latest else []
    committer(store).commit([message(store, [data_file(store, rows=1, seq=(10**6, 10**6))])])
    remove_orphans(store, ALWAYS)
    check_table(store, newest=4)
    assert set(survivors) <= set(live_names(store))
    assert list_orphans(store, ALWAYS) == []
