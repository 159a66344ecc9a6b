"""No thread to start, no memory to be had: what is there does the work, and what is wrong is never told as a damaged file."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow import orc

import lsm.read.row_group
import manifest.avro.container
from lsm.parquet.reader import decoding
from manifest.io.errors import OutOfMemory, OutOfThreads, StorageError
from manifest.io.threads import WorkerPool, map_in_threads, start_one, start_some
from manifest.storage.parallel import run_parallel
from paimon_base.errors import CorruptFile
from pyspark_paimon import Table
from pyspark_paimon.scheduling.thread_pool import interleave

NO_MEMORY = [
    MemoryError(),
    pa.ArrowMemoryError("malloc of size 8388608 failed"),
    pa.ArrowInvalid("Unknown error: std::bad_alloc"),
    OSError("ZSTD decompression failed: Allocation error : not enough memory"),
    zstandard.ZstdError("zstd decompress error: Allocation error : not enough memory"),
]


@pytest.fixture
def few_threads(monkeypatch) -> Callable[[int], None]:
    """Have the process start so many threads more, and then none."""
    start = threading.Thread.start

    def limit(count: int) -> None:
        left = [count]

        def starting(thread: threading.Thread) -> None:
            if not left[0]:
                raise RuntimeError("can't start new thread")
            left[0] -= 1
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", starting)

    return limit


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_work_is_done_by_the_threads_that_start(few_threads, count):
    few_threads(count)
    assert map_in_threads(lambda one: one * 2, range(20), 4) == list(range(0, 40, 2))


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_sources_are_read_by_the_threads_that_start(few_threads, count):
    few_threads(count)
    sources = [lambda first=first: iter(range(first, first + 3)) for first in range(0, 30, 10)]
    assert list(interleave(sources, threads=3)) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_jobs_at_a_store_are_done_by_the_threads_that_start(few_threads, count):
    few_threads(count)
    assert run_parallel([lambda at=at: at for at in range(5)]) == list(range(5))


def test_a_pool_without_a_thread_does_the_work_once_in_the_thread_of_the_caller(few_threads, monkeypatch):
    done: list[int] = []
    with WorkerPool(2) as pool:
        few_threads(0)
        pool.submit(done.append, 1).result()
        with pytest.raises(ZeroDivisionError):
            pool.submit(lambda: 1 // 0).result()
        with pytest.raises(OutOfThreads, match="no thread can be started; raise the limit"):
            start_one(threading.Thread(target=done.append, args=(2,)))
        assert start_some([threading.Thread(target=done.append, args=(2,))]) == []
        monkeypatch.undo()
        pool.submit(done.append, 3).result()
    assert done == [1, 3]


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_table_is_written_and_read_with_few_threads(tmp_path, few_threads, count, kind):
    table = Table.create(tmp_path / "t", "id BIGINT, s STRING", primary_keys=["id"], options={"bucket": "3", "file.format": kind})
    rows = pa.table({"id": range(100), "s": [f"s{one}" for one in range(100)]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manifest.io.group_sync._threads", lambda _: WorkerPool(4))
        few_threads(count)
        table.write(rows)
        assert table.scan().count() == 100
        assert table.compact(full=True).rows == 100
        assert table.scan().to_arrow().num_rows == 100


@pytest.mark.parametrize("error", NO_MEMORY, ids=lambda error: type(error).__name__)
def test_want_of_memory_is_no_damage_of_the_file(error):
    if isinstance(error, zstandard.ZstdError):
        pytest.skip("of Avro blocks, below")
    with pytest.raises(OutOfMemory, match="data-1"), decoding("data-1.parquet", "Parquet"):
        raise error


def test_want_of_a_thread_is_no_damage_of_the_file():
    with pytest.raises(OutOfThreads), decoding("data-1.parquet", "Parquet"):
        raise pa.ArrowInvalid("Unknown error: Failed to launch worker thread: Resource temporarily unavailable")


def test_errors_of_storage_keep_their_type():
    with pytest.raises(StorageError) as found, decoding("data-1.parquet", "Parquet"):
        raise StorageError(5, "Input/output error", "elsewhere")
    assert found.value.filename == "elsewhere"
    with pytest.raises(CorruptFile), decoding("data-1.parquet", "Parquet"):
        raise pa.ArrowInvalid("Couldn't deserialize thrift")


@pytest.mark.parametrize("error", NO_MEMORY, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("place", ["parquet", "orc", "conform", "manifest"])
def test_a_scan_without_memory_says_so(tmp_path, monkeypatch, place, error):
    if isinstance(error, zstandard.ZstdError) and place != "manifest":
        pytest.skip("a decoder of Avro blocks")
    if place == "conform" and isinstance(error, OSError):
        pytest.skip("a decoder's error, and here nothing is decoded any more")
    kind = "orc" if place == "orc" else "parquet"
    table = Table.create(tmp_path / "t", "id INT, s STRING", options={"bucket": "-1", "file.format": kind})
    table.write(pa.table({"id": range(100), "s": [f"s{one}" for one in range(100)]}))
    table.change_type("id", "BIGINT")  # so that reading casts

    def failing(*_: Any, **__: Any) -> Any:
        raise error

    places = {
        "parquet": (pq.ParquetFile, "iter_batches"),
        "orc": (orc.ORCFile, "read_stripe"),
        "conform": (lsm.read.row_group, "to_read_schema"),
        "manifest": (manifest.avro.container, "_read"),
    }
    monkeypatch.setattr(*places[place], failing)
    with pytest.raises(OutOfMemory, match="out of memory"):
        _fresh(tmp_path / "t").scan().to_arrow()


def _fresh(path: Any) -> Table:
    """The table as another process finds it."""
    from manifest.io.file_cache import SHARED

    SHARED.clear()
    return Table.open(path)
