"""Metadata written by the original engine decodes to what that engine lists."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from manifest.avro.container import read_container
from manifest.avro.schemas import INDEX_MANIFEST, MANIFEST_ENTRY, MANIFEST_LIST, layout
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind, ManifestEntry
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.wrapped import WrappedFileIO
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from sparkexpr.values.column_type import Kind

GOLDEN = Path(__file__).parents[1] / "golden"
TABLES = sorted(path.parent.name for path in GOLDEN.glob("*/table"))
TEXT_KINDS = {Kind.CHAR, Kind.VARCHAR, Kind.INT, Kind.BIGINT, Kind.BOOLEAN, Kind.SMALLINT, Kind.TINYINT}


def manifests(kind):
    return sorted(path for path in GOLDEN.glob("*/table/manifest/*") if path.name.rpartition("-")[0].startswith(kind))


def entry_manifests():
    return [path for path in manifests("manifest-") if not path.name.startswith("manifest-list-")]


@pytest.fixture(params=TABLES)
def table(request):
    return FileStore.open(GOLDEN / request.param / "table"), json.loads((GOLDEN / request.param / "files.json").read_text())


def test_live_files_are_those_the_engine_lists(table):
    store, files = table
    entries = store.live_entries(store.snapshots.latest()).entries()
    found = {entry.file.file_name: entry for entry in entries}
    assert len(found) == len(entries)
    assert found.keys() == {file["file"] for file in files}
    for expected in files:
        entry = found[expected["file"]]
        file = entry.file
        shown = {
            "bucket": entry.bucket,
            "totalBuckets": entry.total_buckets,
            "size": file.file_size,
            "level": file.level,
            "rowCount": file.row_count,
            "deleteRowCount": file.delete_row_count,
            "minSequenceNumber": file.min_sequence_number,
            "maxSequenceNumber": file.max_sequence_number,
            "schemaId": file.schema_id,
            "extraFiles": list(file.extra_files),
            "embeddedIndexLength": None if file.embedded_index is None else len(file.embedded_index),
            "valueStatsCols": None if file.value_stats_cols is None else list(file.value_stats_cols),
            "fileSource": None if file.file_source is None else ["APPEND", "COMPACT"][file.file_source],
            "externalPath": file.external_path,
        }
        assert shown == {key: expected[key] for key in shown}
        assert (
            datetime.fromtimestamp(file.creation_time / 1000, UTC).isoformat(timespec="microseconds")[:26] == expected["creationTime"][:26]
        )


def test_partitions_and_key_bounds_are_those_the_engine_lists(table):
    store, files = table
    expected = {file["file"]: file for file in files}
    for entry in store.live_entries(store.snapshots.latest()).entries():
        shown = expected[entry.file.file_name]
        groups = [(store.partition, entry.partition, shown["partition"])]
        if store.key is not None:
            groups += [(store.key, entry.file.min_key, shown["minKey"]), (store.key, entry.file.max_key, shown["maxKey"])]
        for row_type, row, values in groups:
            for name, kind, value in zip(row_type.names, row_type.types, row_type.decode(row), strict=True):
                if kind.kind in TEXT_KINDS:
                    assert value == values[name]


def test_every_physical_file_is_where_the_paths_say(table):
    store, _ = table
    for entry in store.live_entries(store.snapshots.latest()).entries():
        data, *_ = paths = store.physical_files(entry.partition, entry.bucket, entry.file)
        assert all(map(store.file_io.exists, paths))
        assert store.file_io.size(data) == entry.file.file_size


def test_index_files_are_where_the_paths_say(table):
    store, _ = table
    for entry in store.index_entries(store.snapshots.latest()):
        path = store.paths.index(entry.file_name, store.partition.decode(entry.partition), entry.bucket, entry.external_path)
        assert store.file_io.size(path) == entry.file_size


def test_record_counts_of_snapshots_are_those_of_their_files(table):
    store, _ = table
    for snapshot_id in store.snapshots.ids():
        snapshot = store.snapshots.get(snapshot_id)
        assert store.live_entries(snapshot).row_count.sum() == snapshot.total_record_count
        delta = store.delta_entries(snapshot)
        assert (np.where(delta.kind == FileKind.ADD, 1, -1) * delta.row_count).sum() == snapshot.delta_record_count


@pytest.mark.parametrize("path", entry_manifests(), ids=lambda p: f"{p.parts[-4]}/{p.name[-8:]}")
def test_columns_equal_records(path):
    container = read_container(str(path), path.read_bytes())
    entries = EntryColumns.from_container(container)
    expected = [ManifestEntry.from_avro(record) for record in container.records()]
    assert entries.short.all()  # the fast path was taken, not fastavro's
    assert entries.entries() == expected
    assert EntryColumns.of(expected).identities() == entries.identities()
    assert EntryColumns.of(expected).entries() == expected
    assert entries.deleted().entries() == [entry.deleted() for entry in expected]


def test_ranges_and_counts_that_we_write_equal_the_engines(table, tmp_path):
    store, _ = table
    ours = FileStore(_Elsewhere(store.storage, tmp_path), store.root, store.schema).manifests
    for snapshot_id in store.snapshots.ids():
        for meta in store.manifest_metas(store.snapshots.get(snapshot_id)):
            (written,) = ours.write(store.manifests.read_meta(meta))
            same = {"file_name": meta.file_name, "file_size": meta.file_size, "column_ranges": None}
            assert written.model_copy(update=same) == meta


class _Elsewhere(WrappedFileIO):
    """Reads where it should, writes into another directory."""

    def __init__(self, inner, directory):
        super().__init__(inner)
        self.directory = directory

    def write(self, path, data, **options):
        self.inner.write(str(self.directory / Path(path).name), data, **options)


@pytest.mark.parametrize(("kind", "schema"), [("manifest-list-", MANIFEST_LIST), ("index-manifest-", INDEX_MANIFEST)])
def test_our_schemas_are_a_superset_of_the_engines(kind, schema):
    def drop_newer(shape):
        if isinstance(shape, tuple):
            return tuple(
                drop_newer(item)
                for item in shape
                if not (isinstance(item, tuple) and item and item[0] in {"_SOURCE_META", "_COLUMN_RANGES"})
            )
        return shape

    for path in manifests(kind):
        theirs = read_container(str(path), path.read_bytes()).schema
        assert theirs.layout == drop_newer(layout(schema))


def test_our_entry_schema_extends_the_engines_by_one_last_field():
    ours = layout(MANIFEST_ENTRY)
    for path in entry_manifests():
        theirs = read_container(str(path), path.read_bytes()).schema.layout
        assert theirs[:-1] == ours[:-1]
        assert theirs[-1][1] == ours[-1][1][:-1]


def test_snapshots_survive_a_round_trip():
    for path in [*GOLDEN.glob("*/table/snapshot/snapshot-*"), *GOLDEN.glob("*/table/tag/tag-*")]:
        snapshot = Snapshot.from_json(path.read_bytes(), str(path))
        assert json.loads(snapshot.to_json()) == json.loads(path.read_text())


def test_snapshot_kinds_are_those_the_engine_lists():
    for name in TABLES:
        store = FileStore.open(GOLDEN / name / "table")
        expected = json.loads((GOLDEN / name / "snapshots.json").read_text())
        found = [store.snapshots.get(snapshot_id) for snapshot_id in store.snapshots.ids()]
        shown = [{"snapshot": s.id, "kind": s.commit_kind.value, "totalRecordCount": s.total_record_count} for s in found]
        assert shown == [{key: row[key] for key in shown[0]} for row in expected]


def test_a_list_record_survives_a_round_trip():
    for path in manifests("manifest-list-"):
        for record in read_container(str(path), path.read_bytes()).records():
            assert ManifestFileMeta.from_avro(record).to_avro() == {**record, "_COLUMN_RANGES": None}  # which only we write
