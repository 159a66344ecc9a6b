"""``warm`` and the daemon: processes that have loaded what they need before somebody waits for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.connect.session")
import psutil

from pyspark_paimon import Table, warm
from pyspark_paimon.spark.client.session import spark_session
from tests.build import keyed

pytestmark = pytest.mark.spark

FORKED = """
import os, sys
from pathlib import Path
from pyspark_paimon.spark.daemon import preload

preload()
threads = sorted(Path(task, "comm").read_text().strip() for task in Path("/proc/self/task").iterdir())
loaded = set(sys.modules)
child = os.fork()
if not child:
    import pyarrow as pa
    from lsm.write.table_write import TableWrite
    from manifest.store import FileStore
    from pyspark_paimon.spark.read.reader import reader_for
    from pyspark_paimon.spark.source import PaimonDataSource
    source = PaimonDataSource({"path": sys.argv[1]})
    reader = source.reader(source.schema())
    assert sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part)) == 2
    with TableWrite(FileStore.open(sys.argv[1])) as write:
        write.write(pa.table({"id": [3], "city": ["Rome"]}))
        assert len(write.prepare_commit()) == 1
    ours = {name for name in set(sys.modules) - loaded if name.split(".")[0] in {"fileindex", "lsm", "manifest", "pyarrow", "numpy"}}
    os.write(1, repr(sorted(ours)).encode() + b"\\n")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(threads, "polars" in loaded)
"""


def processes() -> set[str]:
    """What the Python processes of this session's server are for."""
    below = psutil.Process().children(recursive=True)
    found = [" ".join(each.cmdline()[1:]) for each in below if each.status() != psutil.STATUS_ZOMBIE]
    return {words.split()[-1] for words in found if "pyspark.daemon" in words}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_what_the_daemon_has_loaded_serves_a_forked_worker_and_started_no_thread(tmp_path):
    table = keyed(tmp_path / "t", "id BIGINT, city STRING")
    table.write(pa.table({"id": [1, 2], "city": ["Oslo", "Lima"]}))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER"}
    done = subprocess.run([sys.executable, "-c", FORKED, table.path], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    new, threads = done.stdout.splitlines()
    few = {"lsm.write", "lsm.merge", "pyspark_paimon.plugins.file_formats.orc", "manifest.commit"}
    assert not [name for name in eval(new) if name in few], "a worker imports next to nothing"
    assert threads in {"['jemalloc_bg_thd', 'python'] False", "['python'] False"}, "but what its own library stops and starts around a fork"


@pytest.mark.long
def test_warm_starts_every_process_that_a_first_write_and_scan_need(spark, tmp_path):
    own = spark_session(new=True)
    assert warm(own) > 0
    started = processes()
    table = Table.create(tmp_path / "t", "id BIGINT", primary_keys=["id"], options={"bucket": "1"}, spark=own)
    table.write(pa.table({"id": [1, 2]}))
    assert table.scan().to_arrow().num_rows == 2
    assert processes() - started <= {"pyspark.sql.worker.data_source_pushdown_filters"}
    assert len(started) >= 5


def test_a_warm_read_in_no_sensible_number_of_tasks_is_refused(spark):
    from pyspark_paimon import InvalidArgument
    from pyspark_paimon.spark.wire.errors import raise_typed_errors

    for tasks in ("0", "many"):
        with pytest.raises(InvalidArgument, match=r"paimon\.warm"), raise_typed_errors():
            spark.read.format("paimon").options(**{"path": "/", "paimon.warm": tasks}).load().collect()


def test_the_first_command_of_a_session_says_that_it_starts_python(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("pyspark_paimon.jobs.progress._START_PATIENCE", 0.0)
    fresh, events = spark_session(new=True), []
    table = Table.create(tmp_path / "t", "id BIGINT", primary_keys=["id"], options={"bucket": "1"}, spark=fresh, progress=events.append)
    assert [(event.stage, event.done) for event in events] == [("start", 0), ("start", 1)]
    table.write(pa.table({"id": [1]}))
    again = Table.open(table.path, spark=fresh, progress=events.append)
    assert again.scan().count() == 1
    assert {event.stage for event in events[2:]} <= {"write", "scan"}
