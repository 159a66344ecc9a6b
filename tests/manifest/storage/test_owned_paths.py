"""Whatever options, names in metadata, links and foreign files say: only the table's own files are written and deleted."""

from __future__ import annotations

import ast
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.entry.data_file import DataFileMeta, ManifestEntry
from manifest.expire.delete_files import delete_files, delete_metadata
from manifest.expire.orphans import Reachable, list_orphans
from manifest.io.errors import PathNotAllowed, PathNotOwned, UnsupportedTable
from manifest.io.file_io import LocalFileIO
from manifest.options.core_options import CoreOptions
from manifest.storage.allowed_roots import ROOTS, GuardedFileIO
from manifest.storage.owned_paths import OwnedRoots, restrict_to_owned, without_owner
from manifest.store import FileStore
from paimon_base.errors import PaimonError
from pyspark_paimon import Table
from tests.iceberg_files import latest_metadata
from tests.manifest.storage.test_allowed_roots import WAYS
from tests.source_tree import mentioning, parsed

READS = {
    *("read", "read_many", "read_range", "size", "identity", "exists", "is_directory", "list"),
    *("open_input", "open_ranges", "sync", "lock", "fair_lock", "local_path"),
}
LATER = 4_102_441_200_000
PLACES = {
    "sibling": "{table}/../other/secret",
    "absolute": "{other}/secret",
    "beside": "{table}-2/secret",
    "empty name": "{table}//etc/secret",
    "dot": "{table}/./secret",
    "link": "{table}/link/secret",
    "link below": "{table}/bucket-0/link/deeper/secret",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A table's directory with links to another directory, which has files."""
    other = tmp_path / "other"
    (other / "deeper").mkdir(parents=True)
    (tmp_path / "t" / "bucket-0").mkdir(parents=True)
    for file in (other / "secret", other / "deeper" / "secret"):
        file.write_bytes(b"secret")
    (tmp_path / "t" / "link").symlink_to(other)
    (tmp_path / "t" / "bucket-0" / "link").symlink_to(other)
    return tmp_path / "t"


def _all_files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", sorted(WAYS.keys() - READS))
def test_no_method_changes_a_file_outside(home: Path, way: str, place: str) -> None:
    io, before = restrict_to_owned(LocalFileIO(), OwnedRoots(str(home))), _all_files(home.parent / "other")
    with pytest.raises(PathNotOwned, match="not in the table's own directory") as caught:
        WAYS[way](io, PLACES[place].format(table=home, other=home.parent / "other"))
    assert _all_files(home.parent / "other") == before
    assert pickle.loads(pickle.dumps(caught.value)).path == caught.value.path


@pytest.mark.parametrize("way", ["mkdirs", "cancel_creates"])
def test_a_link_is_no_directory_of_the_table(home: Path, way: str) -> None:
    with pytest.raises(PathNotOwned):
        WAYS[way](restrict_to_owned(LocalFileIO(), OwnedRoots(str(home))), f"{home}/link")


def test_files_of_others_are_read(home: Path) -> None:
    io = restrict_to_owned(LocalFileIO(), OwnedRoots(str(home)))
    assert io.read(f"{home}/link/secret") == io.read(f"{home}/../other/secret") == b"secret"


def test_a_link_itself_can_be_deleted_and_its_target_stays(home: Path) -> None:
    assert restrict_to_owned(LocalFileIO(), OwnedRoots(str(home))).delete(f"{home}/link")
    assert (home.parent / "other" / "secret").exists()


def test_the_table_itself_may_be_behind_a_link(home: Path) -> None:
    (home.parent / "linked").symlink_to(home)
    io = restrict_to_owned(LocalFileIO(), OwnedRoots(f"{home.parent}/linked"))
    io.write(f"{home.parent}/linked/bucket-0/new", b"x")
    assert (home / "bucket-0" / "new").read_bytes() == b"x"


def test_a_store_of_another_table_replaces_the_restriction(home: Path) -> None:
    first, second = OwnedRoots(str(home)), OwnedRoots(str(home.parent / "t2"))
    io = restrict_to_owned(restrict_to_owned(LocalFileIO(), first), second)
    assert io == GuardedFileIO(LocalFileIO(), second)
    assert without_owner(io) == LocalFileIO()
    assert pickle.loads(pickle.dumps(io)) == io


OPTIONS = {"bucket": "1", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}


def _table(path: Path, **options: str) -> Table:
    table = Table.create(str(path), "id INT, v STRING", primary_keys=["id"], options={**OPTIONS, **options})
    table.write(pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    return table


@pytest.mark.parametrize("directory", ["../other", "/other", "a/../../other", "a//b", ".", "s3://bucket/x", "a\\..\\b", "file:/x"])
def test_a_data_directory_outside_is_refused_by_name(tmp_path: Path, directory: str) -> None:
    with pytest.raises(PaimonError, match=r"data-file\.path-directory"):
        _table(tmp_path / "t", **{"data-file.path-directory": directory})


def test_a_data_directory_below_the_table_is_used(tmp_path: Path) -> None:
    _table(tmp_path / "t", **{"data-file.path-directory": "files/data/"})
    assert list((tmp_path / "t" / "files" / "data" / "bucket-0").glob("data-*"))


def test_a_foreign_data_directory_is_read_and_never_written(tmp_path: Path) -> None:
    other, store = _table(tmp_path / "other"), FileStore.open(_table(tmp_path / "t").path)
    foreign = store.with_options({"data-file.path-directory": "../other"})
    assert foreign.paths.data.endswith("/t/../other")
    with pytest.raises(UnsupportedTable, match=r"data-file\.path-directory"):
        foreign.check_writable()
    assert other.count() == 2


def _names(where: str) -> Iterator[str]:
    yield from (f"../../{where}/secret", f"../../{where}/./secret", f"a/../../../{where}/secret")


@pytest.mark.parametrize("name", list(_names("other")))
def test_names_in_manifests_delete_nothing_outside(home: Path, name: str) -> None:
    table = _table(home.parent / "table")
    store = FileStore.open(table.path)
    entry = next(iter(store.live_entries(store.snapshots.latest()).entries()))
    for change in ({"file_name": name}, {"extra_files": (name,)}, {"external_path": str(home.parent / "other" / "secret")}):
        dead = entry.model_copy(update={"file": entry.file.model_copy(update=change)})
        delete_files(store, [dead], Reachable())
        assert (home.parent / "other" / "secret").exists(), change
    newest = store.snapshots.latest()
    assert newest is not None
    for change in ({"statistics": f"../{name}"}, {"changelog_manifest_list": f"../{name}"}):
        delete_metadata(store, [newest.model_copy(update=change)], Reachable(indexes={newest.index_manifest or ""}))
        assert (home.parent / "other" / "secret").exists(), change


def _entry_at(store: FileStore, path: str) -> ManifestEntry:
    entry = next(iter(store.live_entries(store.snapshots.latest()).entries()))
    file: DataFileMeta = entry.file.model_copy(update={"external_path": path})
    return entry.model_copy(update={"file": file})


@pytest.mark.parametrize(
    ("path", "is_deleted"),
    [
        ("{external}/bucket-0/{name}", True),
        ("{external}/{name}", False),
        ("{external}/bucket-1/{name}", False),
        ("{external}/../elsewhere/bucket-0/{name}", False),
        ("{elsewhere}/bucket-0/{name}", False),
    ],
)
def test_an_external_file_is_deleted_only_where_this_table_puts_it(tmp_path: Path, path: str, is_deleted: bool) -> None:
    table = _table(tmp_path / "t")
    store = FileStore.open(table.path).with_options({"data-file.external-paths": f"file://{tmp_path}/external, s3://b/p"})
    name = next(iter(store.live_entries(store.snapshots.latest()).entries())).file.file_name
    target = Path(os.path.normpath(path.format(external=tmp_path / "external", elsewhere=tmp_path / "elsewhere", name=name)))
    target.parent.mkdir(parents=True)
    (tmp_path / "external").mkdir(exist_ok=True)
    target.write_bytes(b"rows")
    said = path.format(external=tmp_path / "external", elsewhere=tmp_path / "elsewhere", name=name)
    delete_files(store, [_entry_at(store, f"file:{said}")], Reachable())
    assert target.exists() is not is_deleted


@pytest.mark.parametrize("option", ["data-file.external-paths", "data-file.path-directory"])
def test_files_of_a_table_that_an_option_names_stay(tmp_path: Path, option: str) -> None:
    table = _table(tmp_path / "t")
    other = FileStore.open(_table(tmp_path / "t" / "inner" if option.endswith("directory") else tmp_path / "other").path)
    theirs = next(iter(other.live_entries(other.snapshots.latest()).entries()))
    [path, *_] = other.physical_files(theirs.partition, theirs.bucket, theirs.file)
    store = FileStore.open(table.path).with_options({option: "inner" if option.endswith("directory") else f"file:{other.root}"})
    delete_files(store, [theirs, _entry_at(store, path)], Reachable())
    delete_files(store, [theirs.model_copy(update={"file": theirs.file.model_copy(update={"external_path": path})})], Reachable())
    if option.endswith("directory"):
        with pytest.raises(PathNotOwned, match="inner"):
            list_orphans(store, LATER)
    assert Path(path).exists()
    assert Table.open(other.root).count() == 2


def test_an_option_that_names_the_file_system_owns_nothing(tmp_path: Path) -> None:
    store = FileStore.open(_table(tmp_path / "t").path).with_options({"data-file.external-paths": "file:///, /"})
    assert store.owned.further_roots == ()
    assert not store.owned.owns("/etc/passwd")


def test_a_store_behind_a_link_writes_in_a_process_that_allows_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = _table(tmp_path / "home").path
    (tmp_path / "linked").symlink_to(home)
    sent = pickle.dumps(FileStore.open(tmp_path / "linked"))
    monkeypatch.setenv(ROOTS, str(tmp_path))
    store = pickle.loads(sent)
    store.file_io.write(f"{store.root}/bucket-0/new", b"x")
    assert (Path(home) / "bucket-0" / "new").exists()
    monkeypatch.setenv(ROOTS, str(tmp_path / "elsewhere"))
    with pytest.raises(PathNotAllowed):
        pickle.loads(sent).file_io.read(f"{store.root}/bucket-0/new")


@pytest.mark.parametrize("directory", ["index", "statistics", "changelog", "manifest", "bucket-7", "snapshot"])
def test_orphans_behind_links_stay(tmp_path: Path, directory: str) -> None:
    table = _table(tmp_path / "t")
    home = tmp_path / "home"
    place = tmp_path / "t" / directory
    if place.exists():
        place.rename(home)
    else:
        home.mkdir()
    mine = home / "thesis.doc"
    mine.write_text("mine")
    os.utime(mine, (1, 1))
    place.symlink_to(home)
    with pytest.raises(PathNotOwned, match=directory):
        table.remove_orphan_files(older_than=LATER)
    assert mine.exists()


def test_what_options_name_elsewhere_is_owned(tmp_path: Path) -> None:
    options = {"metadata.iceberg.storage": "hadoop-catalog"}
    table = _table(tmp_path / "db.db" / "t", **options)
    assert FileStore.open(table.path).owned.further_roots == (f"{tmp_path}/iceberg/db/t/metadata",)
    assert CoreOptions.of(options).has_iceberg_metadata
    assert list((tmp_path / "iceberg" / "db" / "t" / "metadata").glob("v*.metadata.json"))


def test_paths_in_iceberg_lists_delete_nothing_outside_of_the_metadata(home: Path) -> None:
    import fastavro

    path = home.parent / "table"
    table = _table(path, **{"metadata.iceberg.storage": "table-location", "metadata.iceberg.manifest-compression": "null"})
    for number in range(4):
        table.write([{"id": number, "v": "new"}])
        table.compact(full=True)
        metadata = latest_metadata(table)
        lists = {snapshot["snapshot-id"]: Path(snapshot["manifest-list"]) for snapshot in metadata["snapshots"]}
        with lists.pop(metadata["current-snapshot-id"]).open("rb") as file:
            reader = fastavro.reader(file)
            schema, records = reader.writer_schema, list(reader)
        crafted = [{**record, "manifest_path": f"{path}/metadata/../../other/secret", "content": 0} for record in records]
        for older in lists.values():  # the next commit expires these
            with older.open("wb") as file:
                fastavro.writer(file, schema, crafted)
    assert (home.parent / "other" / "secret").exists()
    assert table.count() == 4


def test_a_table_of_iceberg_with_the_same_name_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = {"metadata.iceberg.storage": "hadoop-catalog"}
    first = _table(tmp_path / "db.db" / "t", **options)
    first.write([{"id": 3, "v": "c"}])
    home = tmp_path / "iceberg" / "db" / "u"
    (tmp_path / "iceberg" / "db" / "t").rename(home)
    for file in (home / "metadata").glob("v*.metadata.json"):
        file.write_text(file.read_text().replace(f'"location": "{first.path}"', f'"location": "{home}"').replace(first.path, str(home)))
    before = _all_files(home)
    table = _table(tmp_path / "db.db" / "u", **options)
    assert "is a table of Iceberg" in caplog.text
    table.write([{"id": 3, "v": "c"}])
    assert _all_files(home) == before
    assert table.count() == 3
    table.remove_orphan_files(older_than=LATER)
    assert _all_files(home) == before


def test_orphans_of_a_table_of_an_iceberg_catalog_stay(tmp_path: Path) -> None:
    table = _table(tmp_path / "db.db" / "t", **{"metadata.iceberg.storage": "hadoop-catalog"})
    metadata = tmp_path / "iceberg" / "db" / "t" / "metadata"
    for name in ("00001-0b5e2e3c-6f0e-4d6c-8a53-0d9c1f3a2b11.metadata.json", "0b5e2e3c-m0.avro"):
        (metadata / name).write_bytes(b"{}")
    before = _all_files(metadata)
    table.remove_orphan_files(older_than=LATER)
    assert _all_files(metadata) == before


def test_an_index_entry_names_no_other_file_of_the_table(tmp_path: Path) -> None:
    store = FileStore.open(_table(tmp_path / "t", **{"deletion-vectors.enabled": "true"}).path)
    Table.open(store.root).delete("id = 1")
    store = FileStore.open(store.root)
    newest = store.snapshots.latest()
    assert newest is not None
    entries = store.index_entries(newest)
    crafted = [entry.model_copy(update={"file_name": "schema-0", "external_path": f"{store.root}/schema/schema-0"}) for entry in entries]
    name = store.index_manifests.write(crafted)
    delete_metadata(store, [newest.model_copy(update={"index_manifest": name})], Reachable())
    assert (tmp_path / "t" / "schema" / "schema-0").exists()
    assert entries


DELETIONS = {"delete", "delete_many", "delete_directory", "unlink", "rmtree", "remove", "rmdir", "retire_directory", "cancel_creates"}
OUTSIDE_OF_TABLES = {
    "lsm/data_files/spill.py": "temporary files of this process",
    "lsm/write_buffer/sort_buffer.py": "as above",
    "lsm/cross_partition/staged_rows.py": "as above",
    "manifest/io/": "the storage itself, below the restriction",
    "manifest/storage/": "as above",
    "pyspark_paimon/plugins/hdfs/": "as above",
    "pyspark_paimon/plugins/catalogs/jdbc/": "rows of a database",
    "pyspark_paimon/plugins/catalogs/rest/": "requests to a server",
    "manifest/expire/dry_run.py": "changes nothing",
    "pyspark_paimon/operations/expire.py": "counts what the storage below it deletes",
    "pyspark_paimon/demo.py": "the demo's own directory",
    "pyspark_paimon/plugins/cli/output.py": "a file that the user named",
    "pyspark_paimon/plugins/cli/write.py": "rows",
    "pyspark_paimon/plugins/sql/alter.py": "rows",
    "pyspark_paimon/spark/client/forks.py": "a directory that this process made",
    "pyspark_paimon/spark/driver/job_files.py": "files of this user's jobs",
    "pyspark_paimon/catalog/directory_catalog.py": "a table or database that the user drops",
    "pyspark_paimon/plugins/catalogs/hive/catalog.py": "as above",
}
"""Modules that delete something else than files of a table, or below the restriction."""
OWNERS = ("store.file_io", "_store.file_io", "self.file_io", "self._file_io", "branch.file_io", "file_io", "self._files")
"""Receivers that are the storage of a store, which is restricted."""
NO_FILES = {"clause", "vectors", "self.vectors", "state", "rows", "self.failed", "np", "table"}


def _deletions() -> Iterator[tuple[str, int, str]]:
    for path in mentioning(*(f".{name}" for name in DELETIONS)):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Attribute) and node.attr in DELETIONS:
                yield str(path), node.lineno, ast.unparse(node.value)


@pytest.mark.slow
def test_every_deletion_goes_through_the_storage_of_a_store() -> None:
    deletions = list(_deletions())
    others = [
        f"{name}:{line}: {receiver}"
        for name, line, receiver in deletions
        if not any(name.startswith(module) for module in OUTSIDE_OF_TABLES)
        and receiver not in NO_FILES
        and not any(receiver == owner or receiver.endswith(f".{owner}") for owner in OWNERS)
    ]
    assert others == []
    assert len(deletions) > 80
