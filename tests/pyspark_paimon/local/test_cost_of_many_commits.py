"""What a commit costs does not depend on how many there were: it reads the snapshots it needs, and lists none."""

import shutil

import pyarrow as pa
import pytest

from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from tests.build import keyed

BEFORE = 25


class Watching(WrappedFileIO):
    """Notes the snapshot files that are read, and how many names of snapshots are listed."""

    def __init__(self):
        super().__init__(LocalFileIO())
        self.read_snapshots = []
        self.listed = 0

    def read(self, path):
        if "/snapshot/snapshot-" in path:
            self.read_snapshots.append(path)
        return super().read(path)

    def list(self, path):
        names = super().list(path)
        self.listed += len(names) if path.endswith("/snapshot") else 0
        return names


def rows(number):
    return pa.table({"id": [number, number + 1], "city": ["Oslo", "Lima"], "n": pa.array([1, 2], pa.int32())})


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("commits") / "t"
    table = keyed(path, "id BIGINT, city STRING, n INT", {"num-sorted-run.compaction-trigger": "3"})
    for number in range(BEFORE):
        table.write(rows(number))
    return path


@pytest.fixture
def watching():
    return Watching()


@pytest.fixture
def table(written, watching):
    return Table(LocalEngine(str(written), file_io=watching))


def test_a_write_reads_few_snapshots_and_lists_none(table, watching):
    snapshot = table.write(rows(100)).snapshot_id
    assert snapshot is not None
    assert snapshot > BEFORE
    assert len(set(watching.read_snapshots)) <= 3  # the newest before, its own rows and its compaction
    assert watching.listed == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.write(rows(100), mode="overwrite"),
        lambda table: table.compact(full=True),
        lambda table: table.delete("id = 3"),
        lambda table: table.update("id = 4", {"n": 5}),
    ],
    ids=["overwrite", "compaction", "delete", "update"],
)
def test_other_changes_of_one_call_read_few_snapshots_too(table, watching, change, tmp_path):
    shutil.copytree(table.path, tmp_path / "t")
    change(Table(LocalEngine(str(tmp_path / "t"), file_io=watching)))
    assert len(set(watching.read_snapshots)) <= 3
    assert watching.listed == 0


def test_a_write_that_may_be_a_repetition_looks_for_itself_in_the_whole_history(table, watching):
    first = table.write(rows(200), commit_id="nightly")
    again = table.write(rows(200), commit_id="nightly")
    assert (again.replayed, again.snapshot_id) == (True, first.snapshot_id)
    assert len(set(watching.read_snapshots)) > BEFORE


def test_a_scan_reads_one_snapshot_and_lists_none(table, watching):
    assert table.scan("id = 3").to_arrow().num_rows == 1
    assert len(set(watching.read_snapshots)) == 1
    assert watching.listed == 0
