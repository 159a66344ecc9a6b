"""Children that fork from a process with an open write, and end: the write goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pyspark_paimon import Table
from tests.build import ids
from tests.children import run_python

pytestmark = pytest.mark.local_files
ENDS = {
    "exit": "sys.exit(0)",
    "error": "raise RuntimeError('of the child')",
    "collection": "del write; gc.collect(); os._exit(0)",
    "end of the program": "sys.exitfunc = None; exit_normally()",
}
SCRIPT = """
import atexit, gc, glob, os, sys
import pyarrow as pa
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from paimon_base.thresholds import Thresholds, use_thresholds
from manifest.store import FileStore

def exit_normally():
    atexit._run_exitfuncs()
    os._exit(0)

store = FileStore.open(sys.argv[1])
write = TableWrite(store)
with use_thresholds(Thresholds(route_rows=500)), write as job:
    for first in range(0, 20_000, 1_000):
        job.write(pa.table({"id": pa.array(range(first, first + 1_000), pa.int64()), "s": [f"{k * 7919 % 100_003:08}" for k in range(1_000)]}))
    assert glob.glob(os.environ['TMPDIR'] + '/paimon-spill-*/*'), 'rows are spilled'
    child = os.fork()
    if not child:
        END
    os.waitpid(child, 0)
    FileStoreCommit(store, "test", fresh=True).commit(job.prepare_commit())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("end", ENDS)
def test_a_forked_child_that_ends_takes_nothing_of_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    options = {"bucket": "1", "write-buffer-size": "64 kb"}
    table = Table.create(tmp_path / "t", "id BIGINT, s STRING", primary_keys=["id"], options=options)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    run_python(SCRIPT.replace("END", ENDS[end]), table.path, flags=("-W", "ignore"), timeout=120)
    assert ids(table) == list(range(20_000))
    assert not list(tmp_path.glob("paimon-spill-*")), "the parent deletes them"
