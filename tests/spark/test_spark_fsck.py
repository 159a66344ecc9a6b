"""A check of a table over Spark Connect: the same findings as in process, files shared out among tasks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from manifest.io.errors import TableNotFound
from pyspark_paimon import Table

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_tasks_find_what_threads_find_and_name_it(spark, tmp_path):
    options = {"bucket": "4", "write-only": "true", "file-index.bitmap.columns": "n", "file-index.in-manifest-threshold": "1b"}
    here = Table.create(f"{tmp_path}/t", "id BIGINT, n INT, part STRING", ["id", "part"], ["part"], options)
    for first in range(0, 300, 100):
        ids = list(range(first, first + 100))
        here.write(pa.table({"id": ids, "n": pa.array([i % 7 for i in ids], pa.int32()), "part": ["a", "b"] * 50}))
    told = []
    there = Table.open(here.path, spark=spark, progress=told.append)
    for depth in ("quick", "footers", "deep"):
        ours, theirs = here.fsck(depth), there.fsck(depth)
        assert theirs.clean
        assert theirs.counts == ours.counts
    assert told[-1].stage == "fsck"
    assert told[-1].done == told[-1].total
    assert there.scan().to_arrow().num_rows == 300
    assert there.list_orphan_files() == there.remove_orphan_files() == []
    assert (told[-1].stage, told[-1].done) == ("orphans", told[-1].total)
    assert {event.stage for event in told} - {"start"} == {"fsck", "scan", "orphans"}
    victim = min(Path(here.path).glob("part=b/bucket-2/*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-7])
    gone = min(Path(here.path).glob("part=a/bucket-1/*.index"))
    gone.unlink()
    found = there.fsck("deep")
    assert {(problem.kind.value, problem.path) for problem in found.problems} == {("file-size", str(victim)), ("missing-file", str(gone))}
    assert found.problems == here.fsck("deep").problems
    hint = Path(here.path, "snapshot", "LATEST")
    hint.write_text("77")
    mended = there.fsck("quick", repair=True)
    assert [(repair.kind.value, repair.path) for repair in mended.repairs] == [("write-hint", str(hint))]
    assert (hint.read_text(), Path(mended.repairs[0].copies[0]).read_text()) == ("3", "77")
    assert [problem.kind.value for problem in mended.problems] == ["missing-file", "file-size"]


def test_a_table_that_cannot_be_opened_is_an_error(spark, tmp_path):
    with pytest.raises(TableNotFound):
        Table.open(f"{tmp_path}/none", spark=spark)
