"""A round of maintenance, dry runs of what destroys, and indexes that go."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_base.errors import InvalidArgument
from pyspark_paimon import Table

LATER = 4_102_444_800_000


@pytest.fixture
def table(tmp_path):
    made = Table.create(
        str(tmp_path / "t"),
        "id BIGINT NOT NULL, day STRING NOT NULL, city STRING, attrs MAP<STRING, INT>, PRIMARY KEY (day, id) PARTITIONED BY (day)",
        options={
            "bucket": 1,
            "file-index.bloom-filter.columns": "city, attrs[a]",
            "file-index.bloom-filter.city.fpp": "0.05",
            "file-index.bitmap.columns": "city",
            "partition.expiration-time": "7 d",
            "partition.timestamp-formatter": "yyyy-MM-dd",
            "snapshot.num-retained.min": 1,
            "snapshot.num-retained.max": 2,
            "write-only": True,
        },
    )
    for turn in range(4):
        for day in ("2020-01-01", "2999-01-01"):
            made.write(pa.table({"id": [turn, 7], "day": [day] * 2, "city": [f"c{turn}", "x"]}), missing="null")
    return made


def contents(table):
    return table.scan().to_arrow().sort_by([("day", "ascending"), ("id", "ascending")])


def everything(table):
    return sorted((str(path), path.stat().st_mtime) for path in Path(table.path).rglob("*") if path.is_file())


def orphan(table):
    path = Path(table.path, "day=2999-01-01", "bucket-0", "data-left-0.parquet")
    path.write_bytes(b"12345")
    old = time.time() - 10 * 86_400
    os.utime(path, (old, old))
    return path


@pytest.mark.slow
def test_an_expiry_by_hand_has_no_limit_of_its_own(tmp_path) -> None:
    """``snapshot.expire.limit``, 50 by default, holds for commits only."""
    table = Table.create(tmp_path / "many", "id BIGINT", options={"write-only": "true"})
    for at in range(70):
        table.write({"id": [at]})
    assert table.expire_snapshots(retain_min=1, retain_max=1, limit=3).snapshots == 3
    assert table.expire_snapshots(retain_min=1, retain_max=1).snapshots == 66
    assert table.snapshots()["snapshot_id"].to_pylist() == [70]


def test_one_round_expires_compacts_indexes_and_cleans(table):
    wanted = contents(table).filter(pc.equal(contents(table)["day"], "2999-01-01"))
    left = orphan(table)
    table.alter_options({"write-only": None, "file-index.bitmap.columns": "city, id"})
    done = table.maintenance(full=True)
    assert done.errors == {}
    assert done.partitions == ("day=2020-01-01",)
    assert (done.compacted.files_before, done.compacted.files_after) == (4, 1)
    assert (done.orphans, done.orphan_bytes) == (1, 5)
    assert not left.exists()
    assert contents(table).equals(wanted)
    assert table.snapshots().num_rows <= 2
    again = table.maintenance()
    assert (again.partitions, again.compacted.snapshot_id, again.indexes.rewritten, again.orphans) == ((), None, 0, 0)
    assert table.fsck("deep").clean


def test_a_dry_run_changes_nothing_and_tells_what_would_go(table):
    orphan(table)
    before = everything(table)
    done = table.maintenance(dry_run=True)
    assert (done.partitions, done.expired.snapshots, done.orphans, done.compacted) == (("day=2020-01-01",), 6, 1, None)
    assert table.drop_partitions([{"day": "2020-01-01"}], dry_run=True).partitions == ("day=2020-01-01",)
    assert table.delete("city LIKE 'c%'", dry_run=True).rows == 8
    assert table.delete(keys={"day": ["2020-01-01"] * 2, "id": [7, 99]}, dry_run=True).rows == 1
    assert table.update("id = 7", values={"city": "y"}, dry_run=True).rows == 2
    assert table.expire_snapshots(retain_min=3, retain_max=3, older_than=LATER, dry_run=True).snapshots == 5
    assert table.rollback_to(5, dry_run=True).snapshots == 3
    assert [len(table.remove_orphan_files(dry_run=True)), len(table.list_orphan_files())] == [1, 1]
    assert everything(table) == before
    assert table.expire_snapshots(retain_min=3, retain_max=3, older_than=LATER).snapshots == 5


def test_a_time_that_is_none_is_refused_before_anything_is_done(table):
    before = everything(table)
    with pytest.raises(InvalidArgument, match="is not a time"):
        table.maintenance(orphans_older_than="yesterday")
    assert everything(table) == before


def test_a_step_that_fails_is_told_and_the_others_go_on(table):
    data = table.files().to_pylist()[0]
    next(Path(table.path).rglob(data["file_name"])).unlink()
    done = table.maintenance(partitions=False, full=True)
    assert list(done.errors) == ["compacted"]
    assert data["file_name"] in done.errors["compacted"]
    assert done.expired.snapshots > 0


def test_an_index_goes_from_the_options_and_the_files(table):
    def built():
        return {(row["column_name"], row["index_type"]) for row in table.file_indexes().to_pylist()}

    table.drop_index("city", "bitmap")
    assert ("city", "bitmap") not in built()
    assert ("city", "bloom-filter") in built()
    with pytest.raises(InvalidArgument, match="no bitmap index"):
        table.drop_index("city", "bitmap")
    table.drop_index("city")
    assert "city" not in {column for column, _ in built()}
    assert "file-index.bloom-filter.city.fpp" not in table.options
    table.drop_index("attrs[a]")
    assert built() == set()
    assert not [key for key in table.options if key.startswith("file-index.bloom")]
    assert table.scan("city = 'x'").count() == 2


@pytest.mark.parametrize(("hours", "found"), [(23, 0), (25, 1)])
def test_orphans_are_a_day_old_unless_the_caller_says_otherwise(table, hours, found):
    stray = Path(table.path) / "day=2999-01-01/bucket-0/data-left-0.parquet"
    stray.write_bytes(b"left")
    then = time.time() - hours * 3600
    os.utime(stray, (then, then))
    assert len(table.list_orphan_files()) == found
    table.remove_orphan_files()
    assert stray.exists() is (found == 0)
