"""Expiry: which snapshots go, and that no file goes that anything retained needs."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.entry.manifest_file import ManifestFile
from manifest.expire.orphans import list_orphans, remove_orphans
from manifest.expire.snapshots import ExpiredSnapshots, expire_snapshots
from manifest.io.errors import SnapshotExpired
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.store import FileStore
from tests.examples import some
from tests.manifest.commit_kit import EMPTY, check_table, committer, data_file, live_names, make_table, message

ALWAYS = 2**62


@pytest.fixture
def store(tmp_path):
    return make_table(tmp_path / "t", options={"write-only": "true"})


def append(store, number, **fields):
    file = data_file(store, seq=(number, number), **fields)
    committer(store).commit([message(store, [file])])
    return file


def rewrite(store):
    """Compact everything into one new file."""
    before = [entry.file for entry in store.live_entries(store.snapshots.latest()).entries()]
    after = data_file(store, level=5, seq=(0, max(file.max_sequence_number for file in before)))
    committer(store).commit([message(store, (), before, [after])])
    return before, after


def path(store, file):
    return store.physical_files(EMPTY, 0, file)[0]


def files_below(store):
    return {p for d in ("manifest", "bucket-0", "snapshot") for p in (f"{d}/{s.name}" for s in store.file_io.list(f"{store.root}/{d}"))}


def test_young_snapshots_stay(store):
    for number in range(15):
        append(store, number)
    assert expire_snapshots(store) == ExpiredSnapshots()
    assert len(store.snapshots.ids()) == 15


def test_old_snapshots_go_but_for_the_least_number(store):
    for number in range(15):
        append(store, number)
    assert expire_snapshots(store, older_than_ms=ALWAYS).snapshots == 5
    assert store.snapshots.ids() == list(range(6, 16))
    assert store.file_io.read(store.paths.earliest_hint) == b"6"
    check_table(store)


def test_too_many_snapshots_go_whatever_their_age(store):
    for number in range(6):
        append(store, number)
    assert expire_snapshots(store, retain_min=1, retain_max=4).snapshots == 2
    assert store.snapshots.ids() == [3, 4, 5, 6]


def test_one_call_expires_no_more_than_the_limit(store):
    for number in range(6):
        append(store, number)
    assert expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS, limit=2).snapshots == 2
    assert expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS, limit=9).snapshots == 3
    assert store.snapshots.ids() == [6]


def test_age_is_that_of_the_snapshot_that_replaced_it(store):
    append(store, 0)
    time.sleep(0.01)
    cut = time.time_ns() // 1_000_000
    time.sleep(0.01)
    append(store, 1)
    assert expire_snapshots(store, retain_min=1, older_than_ms=cut).snapshots == 0
    assert expire_snapshots(store, retain_min=1, older_than_ms=cut + 10_000).snapshots == 1


def test_a_consumer_holds_expiry_back(store):
    for number in range(5):
        append(store, number)
    store.file_io.write(f"{store.paths.consumers}/consumer-c", json.dumps({"nextSnapshot": 3}).encode())
    assert expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS).snapshots == 2
    assert store.snapshots.earliest_id() == 3


def test_only_what_nobody_retained_needs_is_deleted(store):
    first = append(store, 0)
    before, after = rewrite(store)
    kept = append(store, 1)
    result = expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS)
    assert [file.file_name for file in before] == [first.file_name]
    assert (result.snapshots, result.data_files) == (2, 1)
    assert not store.file_io.exists(path(store, first))
    assert live_names(store) == sorted([after.file_name, kept.file_name])
    check_table(store)
    assert list_orphans(store, ALWAYS) == []
    with pytest.raises(SnapshotExpired):
        store.snapshots.get(1)


def test_a_tag_pins_its_files(store):
    first = append(store, 0)
    store.snapshots.create_tag("v1", store.snapshots.latest())
    rewrite(store)
    append(store, 1)
    expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS)
    assert live_names(store, store.snapshots.tag("v1")) == [first.file_name]
    assert store.file_io.exists(path(store, first))
    assert list_orphans(store, ALWAYS) == []
    store.snapshots.delete_tag("v1")
    assert path(store, first) in {orphan.path for orphan in list_orphans(store, ALWAYS)}


def test_a_branch_pins_its_files(store):
    first = append(store, 0)
    branch = store.paths.for_branch("dev")
    store.file_io.write(branch.snapshot_file(1), store.file_io.read(store.paths.snapshot_file(1)))
    rewrite(store)
    append(store, 1)
    expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS)
    assert store.file_io.exists(path(store, first))
    assert list_orphans(store, ALWAYS) == []


def test_an_upgraded_file_survives_the_expiry_of_its_old_entry(store):
    file = append(store, 0)
    committer(store).commit([message(store, (), [file], [file.upgrade(5)])])
    append(store, 1)
    expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS)
    check_table(store)


def test_after_an_index_rewrite_only_the_old_index_goes(store):
    old = append(store, 0, name="data-1-0.parquet", extra=["data-1-0.parquet.index"])
    new = data_file(store, name="data-1-0.parquet", extra=["data-1-0-1.index"], seq=(0, 0))
    committer(store).commit([message(store, (), [old], [new])])
    append(store, 1)
    assert expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS).data_files == 1
    assert not store.file_io.exists(store.physical_files(EMPTY, 0, old)[1])
    check_table(store)


def test_expiry_runs_after_a_commit_unless_write_only(tmp_path):
    options = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "3"}
    busy = make_table(tmp_path / "busy", options=options)
    quiet = make_table(tmp_path / "quiet", options={**options, "write-only": "true"})
    for number in range(6):
        append(busy, number)
        append(quiet, number)
    assert busy.snapshots.ids() == [4, 5, 6]
    assert quiet.snapshots.ids() == [1, 2, 3, 4, 5, 6]


def test_an_expiry_that_fails_does_not_fail_the_commit(tmp_path, caplog):
    store = make_table(tmp_path / "t", options={"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"})
    append(store, 0)
    store.file_io.write(f"{store.paths.consumers}/consumer-c", b"garbage")
    append(store, 1)
    assert store.snapshots.ids() == [1, 2]
    assert "expiring old snapshots failed" in caplog.text


def test_empty_directories_go_only_if_asked(tmp_path):
    for clean in ("true", "false"):
        store = make_table(
            tmp_path / clean, partitions=("part",), options={"write-only": "true", "snapshot.clean-empty-directories": clean}
        )
        partition = store.partition.encode(("a",))
        committer(store).commit([message(store, [data_file(store, partition=partition)], partition=partition)])
        committer(store).truncate()
        other = store.partition.encode(("b",))
        committer(store).commit([message(store, [data_file(store, partition=other)], partition=other)])
        expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS)
        assert store.file_io.exists(store.paths.partition_dir(("a",))) == (clean == "false")
        assert store.file_io.exists(store.paths.partition_dir(("b",)))


def test_an_interrupted_expiry_is_finished_by_the_next(store):
    first = append(store, 0)
    rewrite(store)
    append(store, 1)
    snapshot = store.snapshots.get(2)
    store.file_io.delete(path(store, first))
    for meta in store.manifest_lists.read(snapshot.delta_manifest_list):
        store.file_io.delete(store.paths.manifest(meta.file_name)) if meta.num_added_files == 0 else None
    store.file_io.delete(store.paths.manifest(store.snapshots.get(1).delta_manifest_list))
    fresh = FileStore.open(store.root)
    assert expire_snapshots(fresh, retain_min=1, older_than_ms=ALWAYS).snapshots == 2
    check_table(fresh)
    assert list_orphans(fresh, ALWAYS) == []


@settings(max_examples=some(6), deadline=None)
@given(st.lists(st.sampled_from(["append", "compact", "tag", "truncate", "expire"]), min_size=2, max_size=12))
def test_after_expiry_every_retained_state_is_whole_and_nothing_else_is_left(tmp_path_factory, steps):
    store = make_table(tmp_path_factory.mktemp("e") / "t", options={"write-only": "true", "manifest.merge-min-count": "3"})
    for number, step in enumerate(steps):
        latest = store.snapshots.latest()
        if step == "append" or latest is None:
            append(store, number)
        elif step == "compact" and live_names(store):
            rewrite(store)
        elif step == "tag":
            store.snapshots.create_tag(f"t{number}", latest)
        elif step == "truncate":
            committer(store).truncate()
        elif step == "expire":
            expire_snapshots(store, retain_min=2, older_than_ms=ALWAYS)
    expire_snapshots(store, retain_min=1, older_than_ms=ALWAYS, limit=1000)
    fresh = FileStore.open(store.root)
    check_table(fresh)
    for tag in fresh.snapshots.tags().values():
        for entry in fresh.live_entries(tag).entries():
            assert fresh.file_io.exists(path(fresh, entry.file))
    assert list_orphans(fresh, ALWAYS) == []


def test_orphans_are_what_nothing_refers_to(store):
    append(store, 0, extra=["x.index"])
    before = files_below(store)
    strays = [
        store.paths.manifest("manifest-stray-0"),
        f"{store.root}/bucket-0/data-stray-0.parquet",
        f"{store.root}/bucket-7/data-stray-0.parquet",
        f"{store.root}/index/index-stray-0",
        f"{store.root}/statistics/stat-stray",
        f"{store.root}/snapshot/.snapshot-2.u.tmp",
    ]
    elsewhere = [f"{store.root}/schema/.schema-1.u.tmp", f"{store.root}/mine/notes.txt", f"{store.root}/a=b/bucket-0/x"]
    for stray in [*strays, *elsewhere]:
        store.file_io.write(stray, b"123")
    assert list_orphans(store, 0) == []
    assert [orphan.path for orphan in list_orphans(store, ALWAYS)] == sorted(strays)
    removed = remove_orphans(store, ALWAYS)
    assert {orphan.size for orphan in removed} == {3}
    assert all(map(store.file_io.exists, elsewhere))
    assert files_below(store) == before
    assert list_orphans(store, ALWAYS) == []


def test_orphans_are_looked_for_in_every_partition(tmp_path):
    store = make_table(tmp_path / "t", partitions=("part",))
    partition = store.partition.encode(("a/b",))
    committer(store).commit([message(store, [data_file(store, partition=partition)], partition=partition)])
    stray = f"{store.paths.bucket_dir(('a/b',), 1)}/data-stray.parquet"
    store.file_io.write(stray, b"1")
    assert [orphan.path for orphan in list_orphans(store, ALWAYS)] == [stray]


class CountsLists(WrappedFileIO):
    """Counts the manifest lists that are read."""

    def __init__(self):
        super().__init__(LocalFileIO())
        self.lists = 0

    def read(self, path):
        self.lists += "/manifest-list-" in path
        return self.inner.read(path)


@pytest.mark.slow
def test_what_an_expiry_reads_does_not_grow_with_the_tags(tmp_path):
    read = []
    for tags in (2, 20):
        store = make_table(tmp_path / f"t{tags}", options={"write-only": "true"})
        for number in range(tags):
            append(store, number)
            rewrite(store)
            store.snapshots.create_tag(f"tag-{number}", store.snapshots.latest())
        append(store, tags)
        append(store, tags + 1)
        expire_snapshots(store, retain_min=2, older_than_ms=ALWAYS)
        append(store, tags + 2)
        counting = CountsLists()
        assert expire_snapshots(FileStore.open(store.root, counting), retain_min=2, older_than_ms=ALWAYS).snapshots == 1
        read.append(counting.lists)
        for tag in store.snapshots.tags().values():
            assert all(map(store.file_io.exists, (path(store, entry.file) for entry in store.live_entries(tag).entries())))
    assert read[0] == read[1]


def test_an_expiry_decodes_only_manifests_that_can_hold_what_goes(tmp_path, monkeypatch):
    """What it costs follows the files about to go, not the table."""
    store = make_table(tmp_path / "t", partitions=("part",), options={"write-only": "true", "manifest.merge-min-count": "1000"})
    places = [(store.partition.encode((f"p{number}",)), number % 2) for number in range(6)]
    files = []
    for number, (partition, bucket) in enumerate(places):
        file = data_file(store, partition=partition, bucket=bucket, seq=(number, number))
        committer(store).commit([message(store, [file], partition=partition, bucket=bucket)])
        files.append(file)
    partition, bucket = places[2]
    after = data_file(store, partition=partition, bucket=bucket, level=5, seq=(2, 2))
    committer(store).commit([message(store, (), [files[2]], [after], partition=partition, bucket=bucket)])
    read = []
    reading = ManifestFile.read_metas
    monkeypatch.setattr(ManifestFile, "read_metas", lambda self, metas, *some: read.append(len(metas)) or reading(self, metas, *some))
    done = expire_snapshots(FileStore.open(store.root), retain_max=1, retain_min=1, older_than_ms=ALWAYS)
    assert (done.snapshots, done.data_files) == (6, 1)
    assert sum(read) == 1 + 2  # what the compaction says, and of the state what touches that partition
    assert not store.file_io.exists(store.physical_files(partition, bucket, files[2])[0])
    assert set(live_names(store)) == {after.file_name, *(file.file_name for file in files if file is not files[2])}
