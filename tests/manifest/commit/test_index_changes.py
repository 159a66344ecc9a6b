"""Index files and changelog files in commits: merged into the index manifest, checked against what the writer read."""

import pickle

import pytest

from manifest.commit.index_change import IndexChange
from manifest.commit.message import CommitMessage
from manifest.entry.index_manifest import DELETION_VECTORS, HASH, DeletionVectorRange, IndexFile
from manifest.expire.orphans import list_orphans
from manifest.expire.snapshots import expire_snapshots
from manifest.io.errors import CommitConflict
from manifest.snapshot.snapshot import CommitKind
from tests.manifest.commit_kit import EMPTY, check_table, committer, data_file, live_names, make_table, message


@pytest.fixture
def store(tmp_path):
    return make_table(tmp_path / "t")


def index_file(store, name, *marked):
    path = store.paths.index(name)
    store.file_io.write(path, b"\x01", durable=False)
    ranges = tuple(DeletionVectorRange(data_file=file.file_name, offset=1, length=26, cardinality=3) for file in marked)
    return IndexFile(file_name=name, file_size=1, row_count=len(ranges), vectors=ranges)


def marks(new=(), removed=(), *, base=(), compaction=False, kind=DELETION_VECTORS):
    return IndexChange(kind=kind, new=tuple(new), removed=tuple(removed), base=tuple(base), compaction=compaction)


def index_names(store, snapshot=None):
    return sorted(entry.file_name for entry in store.index_entries(snapshot or store.snapshots.latest()))


def with_file(store, bucket=0, **fields):
    file = data_file(store, bucket=bucket, level=5, **fields)
    committer(store).commit([message(store, [file], bucket=bucket)])
    return file


def test_marks_made_with_rows_are_an_overwrite_and_need_no_new_file(store):
    file = with_file(store)
    result = committer(store).commit([message(store, index_changes=(marks([index_file(store, "index-1", file)]),))])
    snapshot = store.snapshots.get(result.snapshot_id)
    assert snapshot.commit_kind is CommitKind.OVERWRITE
    assert snapshot.delta_record_count == 0
    assert index_names(store) == ["index-1"]
    assert store.index_entries(snapshot)[0].vectors[0].data_file == file.file_name
    check_table(store)


def test_a_hash_file_comes_with_its_rows_in_an_append(store):
    change = marks([index_file(store, "index-h")], kind=HASH)
    result = committer(store).commit([message(store, [data_file(store)], index_changes=(change,))])
    assert store.snapshots.get(result.snapshot_id).commit_kind is CommitKind.APPEND
    assert [(e.index_type, e.file_name) for e in store.index_entries(store.snapshots.latest())] == [(HASH, "index-h")]


def test_marks_of_a_compaction_come_with_its_snapshot(store):
    old = with_file(store)
    new, made = data_file(store, seq=(10, 19)), data_file(store, seq=(10, 19), level=4)
    change = marks([index_file(store, "index-1", old)], compaction=True)
    result = committer(store).commit([message(store, [new], [new], [made], index_changes=(change,))])
    assert index_names(store, store.snapshots.get(result.snapshot_id)) == []
    assert index_names(store, store.snapshots.get(result.compact_snapshot_id)) == ["index-1"]


def test_a_change_replaces_the_files_of_its_bucket_and_kind_only(store):
    files = [with_file(store, bucket) for bucket in (0, 1)]
    first = [message(store, index_changes=(marks([index_file(store, f"index-{b}", files[b])]),), bucket=b) for b in (0, 1)]
    committer(store).commit(first)
    hashes = marks([index_file(store, "index-h")], kind=HASH)
    committer(store).commit([message(store, [data_file(store, seq=(20, 29))], index_changes=(hashes,))])
    gone = first[0].index_changes[0].new
    committer(store).commit([message(store, index_changes=(marks([index_file(store, "index-2", files[0])], gone, base=["index-0"]),))])
    assert index_names(store) == ["index-1", "index-2", "index-h"]


def test_two_changes_from_one_base_conflict_and_the_first_stays(store):
    file = with_file(store)
    committer(store).commit([message(store, index_changes=(marks([index_file(store, "index-1", file)]),))])
    late = message(store, index_changes=(marks([index_file(store, "index-2", file)]),))
    with pytest.raises(CommitConflict, match="DELETION_VECTORS files were replaced"):
        committer(store).commit([late])
    assert index_names(store) == ["index-1"]


def test_a_writer_that_only_relied_on_the_marks_conflicts_too(store):
    file, other = with_file(store), with_file(store, keys=(10, 19), seq=(10, 19))
    made = data_file(store, keys=(10, 19), level=4, seq=(0, 9))
    committer(store).commit([message(store, index_changes=(marks([index_file(store, "index-1", file)]),))])
    result = committer(store).commit([message(store, (), [other], [made], index_changes=(marks(compaction=True),))])
    assert result.lost_compactions == ((EMPTY, 0),)
    assert live_names(store) == sorted([file.file_name, other.file_name])
    assert not store.file_io.exists(store.physical_files(EMPTY, 0, made)[0])


def test_marks_of_a_file_that_was_rewritten_meanwhile_conflict(store):
    old = with_file(store)
    made = data_file(store, level=5)
    committer(store).commit([message(store, (), [old], [made])])
    with pytest.raises(CommitConflict, match=f"{old.file_name}, in which rows are marked"):
        committer(store).commit([message(store, index_changes=(marks([index_file(store, "index-1", old)]),))])


def test_a_lost_compaction_takes_its_index_files_along_and_the_other_buckets_stay(store):
    files = [with_file(store, bucket) for bucket in (0, 1)]
    committer(store).commit([message(store, index_changes=(marks([index_file(store, "index-won", files[0])]),))])
    parts = []
    for bucket in (0, 1):
        new, made = data_file(store, bucket=bucket, seq=(10, 19)), data_file(store, bucket=bucket, seq=(10, 19), level=4)
        change = marks([index_file(store, f"index-{bucket}", files[bucket])], compaction=True)
        parts.append(message(store, [new], [new], [made], index_changes=(change,), bucket=bucket))
    result = committer(store).commit(parts)
    assert result.lost_compactions == ((EMPTY, 0),)
    assert index_names(store) == ["index-1", "index-won"]
    assert not store.file_io.exists(store.paths.index("index-0"))
    check_table(store)


def test_an_overwrite_removes_the_index_files_of_what_it_replaces(tmp_path):
    store = make_table(tmp_path / "t", partitions=("part",))
    one, two = (store.partition.encode((value,)) for value in ("a", "b"))
    for name, partition in (("index-a", one), ("index-b", two)):
        file = data_file(store, partition=partition)
        committer(store).commit([message(store, [file], partition=partition)])
        change = marks([index_file(store, name, file)])
        committer(store).commit([message(store, partition=partition, index_changes=(change,))])
    fresh = marks([index_file(store, "index-h")], kind=HASH)
    committer(store).overwrite([message(store, [data_file(store, partition=one)], partition=one, index_changes=(fresh,))], dynamic=True)
    assert index_names(store) == ["index-b", "index-h"]
    committer(store).truncate()
    assert store.snapshots.latest().index_manifest is None


def test_an_abort_deletes_index_and_changelog_files_that_nothing_uses(store):
    file = with_file(store)
    used, unused = index_file(store, "index-used", file), index_file(store, "index-unused", file)
    committer(store).commit([message(store, index_changes=(marks([used]),))])
    log = data_file(store, name="changelog-x-0.parquet")
    failed = message(store, changelog_files=(log,), index_changes=(marks([used, unused], base=["index-used"]),), base_snapshot_id=2)
    deleted = committer(store).abort([failed])
    assert deleted == sorted([store.paths.index("index-unused"), *store.physical_files(EMPTY, 0, log)])
    assert store.file_io.exists(store.paths.index("index-used"))


def test_changelog_files_are_listed_apart_and_counted(store):
    logs = [data_file(store, name=f"changelog-{n}-0.parquet", rows=n) for n in (3, 4)]
    new, made = data_file(store), data_file(store, level=5)
    result = committer(store).commit([message(store, [new], [new], [made], changelog_files=(logs[0],), compact_changelog=(logs[1],))])
    rows, compacted = (store.snapshots.get(n) for n in (result.snapshot_id, result.compact_snapshot_id))
    assert (rows.changelog_record_count, compacted.changelog_record_count) == (3, 4)
    metas = store.manifest_lists.read(rows.changelog_manifest_list, rows.changelog_manifest_list_size)
    assert store.manifests.read_meta(metas[0]).file_name == [logs[0].file_name]
    assert live_names(store) == [made.file_name]
    assert list_orphans(store, 2**62) == []


def test_expiry_deletes_index_files_that_only_expired_snapshots_use(store):
    file = with_file(store)
    committer(store).commit([message(store, index_changes=(marks([index_file(store, "index-1", file)]),))])
    gone = store.index_entries(store.snapshots.latest())[0].file
    committer(store).commit([message(store, index_changes=(marks([index_file(store, "index-2", file)], [gone], base=["index-1"]),))])
    expire_snapshots(store, retain_min=1, retain_max=1, older_than_ms=2**62)
    assert [store.file_io.exists(store.paths.index(f"index-{n}")) for n in (1, 2)] == [False, True]
    assert list_orphans(store, 2**62) == []


def test_a_message_travels_with_its_changes(store):
    change = marks([index_file(store, "index-1", data_file(store))], base=["index-0"], compaction=True)
    sent = message(store, index_changes=(change,))
    assert CommitMessage.model_validate_json(sent.model_dump_json()) == sent
    assert pickle.loads(pickle.dumps(sent)) == sent
    assert sent.has_compaction
    assert not sent.has_rows
    assert sent.without_compaction().is_empty
