"""A dry run of whatever destroys changes no byte, and tells what the same call then takes away."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.expire.dry_run import DryRunFileIO
from manifest.io.errors import SnapshotNotFound
from manifest.io.file_io import LocalFileIO
from paimon_base.errors import InvalidArgument
from paimon_base.log import TREE
from pyspark_paimon import Catalog, Table
from pyspark_paimon.results.results import Removal

LATER = "2100-01-01"


def rows(day: str, ids: range, city: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "day": [day] * len(ids), "city": [city] * len(ids)})


def made(path: Path) -> Table:
    """Snapshots, a tag that alone has files, one whose time is over, a branch with files of its own, an index, orphans."""
    options = {"bucket": "1", "file-index.bitmap.columns": "city", "file-index.in-manifest-threshold": "1b", "write-only": "true"}
    ddl = "(id INT, day STRING, city STRING, PRIMARY KEY (id, day)) PARTITIONED BY (day)"
    table = Catalog(path).create_table("t", ddl, options=options)
    for at, day in enumerate(("2020-01-01", "2020-01-02")):
        table.write(rows(day, range(10 * at, 10 * at + 10)))
    table.create_tag("kept", 1)
    table.create_tag("base")
    table.create_branch("side", "base")
    Table.open(table.path, branch="side").write(rows("2020-01-03", range(5)))
    table.compact(full=True)
    table.write(rows("2020-01-02", range(3), "b"))
    return table


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("dry")
    made(home)
    return home


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "warehouse"))


def listing(home: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path.relative_to(home)): (path.read_bytes(), path.stat().st_mtime_ns) for path in home.rglob("*") if path.is_file()}


def opened(home: Path) -> Table:
    return Catalog(home).table("t")


CALLS: dict[str, Callable[[Path, bool], Any]] = {
    "write all": lambda home, dry: opened(home).write(
        rows("2020-01-09", range(1)), "overwrite", options={"dynamic-partition-overwrite": "false"}, dry_run=dry
    ),
    "write touched": lambda home, dry: opened(home).write(rows("2020-01-02", range(1)), "overwrite", dry_run=dry),
    "write named": lambda home, dry: opened(home).write(
        rows("2020-01-01", range(1)), "overwrite", partition={"day": "2020-01-01"}, dry_run=dry
    ),
    "delete": lambda home, dry: opened(home).delete("id < 4", dry_run=dry),
    "delete keys": lambda home, dry: opened(home).delete(keys={"id": [1], "day": ["2020-01-01"]}, dry_run=dry),
    "update": lambda home, dry: opened(home).update("id < 4", values={"city": "x"}, dry_run=dry),
    "drop_partitions": lambda home, dry: opened(home).drop_partitions([{"day": "2020-01-01"}], dry_run=dry),
    "expire_partitions": lambda home, dry: opened(home).expire_partitions(datetime.fromisoformat("2020-01-02T12:00"), dry_run=dry),
    "expire_snapshots": lambda home, dry: opened(home).expire_snapshots(retain_min=1, retain_max=1, older_than=LATER, dry_run=dry),
    "remove_orphan_files": lambda home, dry: opened(home).remove_orphan_files(LATER, dry_run=dry),
    "delete_tag": lambda home, dry: opened(home).delete_tag("kept", dry_run=dry),
    "replace_tag": lambda home, dry: opened(home).replace_tag("kept", dry_run=dry),
    "expire_tags": lambda home, dry: opened(home).expire_tags(dry_run=dry),
    "delete_branch": lambda home, dry: opened(home).delete_branch("side", dry_run=dry),
    "fast_forward": lambda home, dry: opened(home).fast_forward("side", dry_run=dry),
    "rollback_to": lambda home, dry: opened(home).rollback_to(2, dry_run=dry),
    "restore": lambda home, dry: opened(home).restore(2, dry_run=dry),
    "drop_index": lambda home, dry: opened(home).drop_index("city", dry_run=dry),
    "drop_table": lambda home, dry: Catalog(home).drop_table("t", dry_run=dry),
    "maintenance": lambda home, dry: opened(home).maintenance(orphans_older_than=LATER, dry_run=dry),
    "fsck": lambda home, dry: opened(home).fsck(repair=True, dry_run=dry),
}
DELETES = {"expire_snapshots", "delete_tag", "delete_branch", "fast_forward", "rollback_to", "drop_table"}
"""What deletes files at once: they are those that the dry run counted."""


@pytest.mark.parametrize("name", CALLS)
def test_a_dry_run_changes_no_byte_and_tells_what_goes(home: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, TREE)
    (home / "default.db" / "t" / "day=2020-01-01" / "bucket-0" / "data-left-0.parquet").write_bytes(b"left")
    if name in {"expire_snapshots", "replace_tag"}:
        opened(home).delete_tag("base")
        opened(home).delete_branch("side")
    if name in {"delete_tag", "replace_tag"}:
        opened(home).expire_snapshots(retain_min=1, retain_max=1, older_than=LATER)
    before = listing(home)
    count = opened(home).count()
    caplog.clear()
    told = CALLS[name](home, True)
    assert listing(home) == before
    assert caplog.records == [], "nothing was done, so nothing is said"
    assert opened(home).count() == count
    removal = told if isinstance(told, Removal) else getattr(told, "removal", None)
    done = CALLS[name](home, False)
    after = listing(home)
    if name in DELETES:
        gone = {path: content for path, (content, _) in before.items() if path not in after}
        assert (removal.files, removal.bytes) == (len(gone), sum(map(len, gone.values()))), gone
        assert removal.data_files == sum("/bucket-" in path for path in gone)
        assert done is None or (told.snapshots, told.data_files, told.manifests) == (done.snapshots, done.data_files, done.manifests)
    if name in {"drop_partitions", "expire_partitions", "restore", "write all", "write touched", "write named"}:
        assert removal.rows >= count - opened(home).count() > -10
        assert removal.files == removal.data_files > 0
        assert removal.bytes > 0
    assert getattr(done, "removal", None) is None


def test_what_is_lost_is_counted_in_rows(home: Path) -> None:
    table = opened(home)
    assert (
        table.drop_partitions([{"day": "2020-01-01"}], dry_run=True).removal
        == table.write(rows("2020-01-01", range(1)), "overwrite", dry_run=True).removal
    )
    assert table.delete("id < 4", dry_run=True).removal == Removal(rows=7)
    assert str(table.delete("id < 4", dry_run=True)) == "dry run: would remove 7 rows"
    column = next(name for name in table.schema.names if name not in {*table.primary_keys, *table.partition_keys})
    assert str(table.update("id < 4", values={column: None}, dry_run=True)) == "dry run: would update 7 rows"
    assert table.delete_branch("side", dry_run=True).removal.rows == 5
    assert table.rollback_to(2, dry_run=True).removal.snapshots == 2
    assert table.restore(1, dry_run=True).partitions == ("day=2020-01-02",)
    assert (table.drop_index("city", dry_run=True).rewritten, table.drop_index("city", dry_run=True).removal.files) == (3, 3)
    whole = Catalog(home).drop_table("t", dry_run=True)
    assert (whole.snapshots, whole.tags, whole.files) == (4, ("base", "kept"), len(listing(home)))


def test_a_dry_run_raises_what_the_call_would(home: Path) -> None:
    table = opened(home)
    for call in (table.delete_tag, table.delete_branch, table.fast_forward):
        with pytest.raises(SnapshotNotFound):
            call("none", dry_run=True)
    with pytest.raises(InvalidArgument, match="no bsi index"):
        table.drop_index("city", "bsi", dry_run=True)
    with pytest.raises(InvalidArgument, match="deletes nothing"):
        table.write(rows("2020-01-01", range(1)), dry_run=True)


def test_a_storage_on_which_nothing_happens_shows_what_would_have(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "old").write_bytes(b"12")
    dry, root = DryRunFileIO(LocalFileIO()), str(tmp_path)
    dry.write(f"{root}/a/new", b"345")
    assert dry.create_exclusive(f"{root}/a/old", b"") is False
    assert sorted((status.name, status.size) for status in dry.list(f"{root}/a")) == [("new", 3), ("old", 2)]
    assert (dry.delete(f"{root}/a/old"), dry.delete(f"{root}/a/old"), dry.delete(f"{root}/none")) == (True, False, False)
    assert (dry.exists(f"{root}/a/old"), dry.deleted) == (False, {f"{root}/a/old": 2})
    with pytest.raises(FileNotFoundError):
        dry.read(f"{root}/a/old")
    dry.write(f"{root}/a/old", b"again")
    assert (dry.read(f"{root}/a/old"), dry.size(f"{root}/a/old"), dry.read_range(f"{root}/a/old", 1, 2)) == (b"again", 5, b"ga")
    dry.retire_directory(f"{root}/a", [])
    assert (dry.is_directory(f"{root}/a"), dry.list(f"{root}/a")) == (False, [])
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["old"]
