"""How many requests follow on one another for each job on a store: budgets, told by a clock that only requests advance."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pytest

from manifest.commit.file_store_commit import FileStoreCommit
from manifest.io.file_cache import SHARED
from manifest.storage.bucket import forget_buckets
from manifest.storage.object_store import PROBE
from manifest.store import FileStore
from pyspark_paimon import Table
from tests.build import keyed
from tests.manifest.commit_kit import data_file, message
from tests.stores.rounds import counted

pytestmark = pytest.mark.sizes

pytest.importorskip("obstore", reason="object stores need the extra 'objectstore'")

ROWS = 200_000
INDEXES = {"file-index.bloom-filter.columns": "id,city", "file-index.bitmap.columns": "n", "file-index.in-manifest-threshold": "1 b"}


def rows(ids):
    ids = np.asarray(ids)
    cities = pa.array([f"c{number}" for number in range(5000)])
    return pa.table({"id": pa.array(ids, pa.int64()), "city": cities.take(pa.array(ids % 5000)), "n": pa.array(ids % 50, pa.int32())})


def written(buckets, total=ROWS, **options):
    path = f"memory://b{uuid.uuid4().hex}/w/t"
    settings = {"bucket": str(buckets), **INDEXES, **options}
    table = Table.create(path, "id BIGINT, city STRING, n INT", primary_keys=["id"], options=settings)
    table.write(rows(np.random.default_rng(buckets).permutation(total) * 2))
    table.compact(full=True)
    return path


@pytest.fixture(scope="module")
def path():
    return written(4)


@pytest.fixture
def rounds(monkeypatch):
    with counted(monkeypatch) as found:
        SHARED.clear()
        yield found
    SHARED.clear()


def told(rounds):
    return f"\n{rounds.told()}"


def test_a_key_lookup_takes_eight_requests_in_turn_from_the_opening_of_the_table_and_three_later(path, rounds):
    table = Table.open(path)
    assert table.scan("id = 77778").to_arrow().num_rows == 1
    assert rounds.count <= 8, told(rounds)
    rounds.again()
    assert table.scan("id = 77778").to_arrow().num_rows == 1
    assert rounds.count <= 3, told(rounds)


def test_a_filter_that_the_indexes_say_no_to_takes_six(path, rounds):
    table = Table.open(path)
    assert table.scan("city = 'nowhere'").to_arrow().num_rows == 0
    assert rounds.count <= 6, told(rounds)


def test_rows_that_a_bitmap_finds_take_eleven(path, rounds):
    assert Table.open(path).scan("city = 'c77' AND n = 27").to_arrow().num_rows == 0
    found = Table.open(path).scan("city = 'c78' AND n = 28").to_arrow().num_rows
    rounds.again()
    rounds.seconds = 0.005  # a thread that ends its split before the next one is begun would take that, too
    SHARED.clear()
    assert Table.open(path).scan("city = 'c78' AND n = 28").to_arrow().num_rows == found > 0
    assert rounds.count <= 11, told(rounds)


@pytest.mark.slow
def test_a_full_scan_takes_as_many_whatever_the_number_of_files(rounds):
    needed = []
    rounds.seconds = 0.05  # so that each thread has something to do
    for buckets in (2, 16):
        path = written(buckets, 60_000 * buckets)
        counts = []
        while len(counts) < 3 and min(counts, default=9) > 8:  # a thread that starts late reads another's file after it
            SHARED.clear()
            rounds.again()
            assert Table.open(path).scan().to_arrow().num_rows == 60_000 * buckets
            counts.append(rounds.count)
        needed.append(min(counts))
    assert needed[0] == needed[1] <= 8, told(rounds)


@pytest.mark.parametrize("options", [{}, {"write-only": "true"}], ids=["expires", "write-only"])
def test_an_upsert_of_a_hundred_rows_takes_twelve_from_the_opening_of_the_table_and_eight_later(path, rounds, options):
    """Nine if ``write-only``: there is no expiry beside which the hint is written."""
    forget_buckets([path[: path.index("/w/")]])  # a new process tries the bucket out
    table = Table.open(path)
    assert table.write(rows(range(100)), options=options).rows == 100
    assert rounds.count <= 12, told(rounds)
    assert [what for _, what, key in rounds.requests if PROBE in key] == ["PUT new", "PUT new", "DELETE"]
    rounds.again()
    assert table.write(rows(range(100)), options=options).rows == 100
    assert rounds.count <= (9 if options else 8), told(rounds)


@pytest.mark.parametrize(("snapshots", "kept"), [(2, 1), (14, None), (14, 12)], ids=["few", "more than stay", "expired before"])
def test_an_upsert_takes_as_many_however_many_snapshots_there_are_or_were(rounds, snapshots, kept):
    path = written(2, 1000, **{"num-sorted-run.compaction-trigger": "100"})
    for number in range(snapshots - 2):
        Table.open(path).write(rows([number]))
    if kept is not None:
        Table.open(path).expire_snapshots(retain_min=kept, retain_max=kept, older_than=2**62)
    forget_buckets([path[: path.index("/w/")]])
    SHARED.clear()
    rounds.again()
    table = Table.open(path)
    assert table.write(rows(range(100))).rows == 100
    assert rounds.count <= 12, told(rounds)
    rounds.again()
    assert table.write(rows(range(100))).rows == 100
    assert rounds.count <= 8, told(rounds)
    assert table.snapshots().num_rows == (kept or snapshots) + 2


@pytest.mark.slow
def test_expiry_takes_one_request_in_turn_for_each_snapshot_and_a_few_for_all(rounds):
    path = f"memory://b{uuid.uuid4().hex}/w/t"
    table = keyed(path, "id BIGINT, city STRING, n INT", {"write-only": "true"})
    needed = []
    for snapshots in (5, 25):
        for number in range(snapshots + 1):
            table.write(rows([number]))
        SHARED.clear()
        rounds.again()
        assert Table.open(path).expire_snapshots(retain_min=1, retain_max=1).snapshots >= snapshots
        needed.append(rounds.count)
    assert needed[0] <= 25, told(rounds)
    assert needed[1] - needed[0] <= 25, told(rounds)
    assert table.fsck("deep").problems == ()


@pytest.mark.long
def test_a_plan_of_ten_thousand_files_in_fifty_manifests_takes_four(rounds):
    path = f"memory://b{uuid.uuid4().hex}/w/t"
    options = {"bucket": "1", "write-only": "true", "manifest.merge-min-count": "1000", "commit.max-retries": "0"}
    Table.create(path, "id INT NOT NULL, part STRING", primary_keys=["id"], options=options)
    store = FileStore.open(path)
    for number in range(50):
        first = 1000 * number
        files = [
            data_file(
                store, name=f"data-{number}-{at}.parquet", keys=(first + at, first + at), seq=(first + at, first + at), rows=1, level=1
            )
            for at in range(200)
        ]
        FileStoreCommit(store, str(uuid.uuid4()), fresh=True).commit([message(store, files)])
    SHARED.clear()
    table = Table.open(path)
    rounds.again()
    assert table.scan().plan().file_count == 10_000
    assert rounds.count <= 4, told(rounds)
    assert len([what for _, what, key in rounds.requests if "/manifest/manifest-" in key and "list" not in key]) == 50


def test_the_same_questions_to_local_files_start_no_thread(tmp_path, monkeypatch):
    import threading

    table = keyed(tmp_path / "t", "id BIGINT, city STRING, n INT")
    table.write(rows(range(100)))
    started = []
    monkeypatch.setattr(threading.Thread, "start", lambda self: started.append(self.name))
    assert table.scan("id = 7").to_arrow().num_rows == 1
    assert [snapshot["snapshot_id"] for snapshot in table.snapshots().to_pylist()] == [1]
    assert started == []


@pytest.mark.slow
def test_a_filter_between_compactions_searches_the_runs_of_a_bucket_together(rounds):
    path = written(4)
    table = Table.open(Table.open(path).alter_options({"write-only": "true"}).path)
    for first in (0, 1000, 2000):
        table.write(rows(range(first, first + 2000)))
    SHARED.clear()
    table = Table.open(path)
    rounds.again()
    found = table.scan("city = 'c78' AND n = 28").to_arrow().num_rows
    assert found
    assert rounds.count <= 18, told(rounds)
    rounds.again()
    assert table.scan("city = 'c78' AND n = 28").to_arrow().num_rows == found
    assert rounds.count <= 7, told(rounds)
