"""Commits: what they make visible, what they refuse, and what they leave behind."""

import json

import pytest

from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.repeated_commits import committed_before
from manifest.io.errors import CommitConflict, CommitGaveUp, CommitReplayed
from manifest.schema.change import ChangeOptions
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, CommitKind, ReadState
from paimon_base.errors import InvalidArgument
from tests.manifest.commit_kit import (
    EMPTY,
    check_table,
    committer,
    data_file,
    live_model,
    live_names,
    make_table,
    message,
    renumber,
    set_watermark,
)


@pytest.fixture
def store(tmp_path):
    return make_table(tmp_path / "t")


@pytest.fixture
def parts(tmp_path):
    return make_table(tmp_path / "p", partitions=("part",))


def kinds(store):
    return [store.snapshots.get(snapshot_id).commit_kind for snapshot_id in store.snapshots.ids()]


def test_one_commit_appends_then_compacts(store):
    new = [data_file(store, seq=(0, 4)), data_file(store, seq=(5, 9))]
    after = data_file(store, level=5, rows=12)
    result = committer(store).commit([message(store, new, new, [after])])
    assert (result.snapshot_id, result.compact_snapshot_id, result.replayed, result.compact_lost) == (1, 2, False, False)
    assert kinds(store) == [CommitKind.APPEND, CommitKind.COMPACT]
    append, compact = (store.snapshots.get(i) for i in (1, 2))
    assert append.commit_identifier == compact.commit_identifier == BATCH_IDENTIFIER
    assert (append.total_record_count, compact.total_record_count, compact.delta_record_count) == (20, 12, -8)
    assert live_names(store, append) == sorted(file.file_name for file in new)
    assert live_names(store) == [after.file_name]
    check_table(store)


def test_a_commit_that_loses_gives_up_at_its_timeout(tmp_path, monkeypatch):
    options = {"commit.timeout": "60 ms", "commit.max-retries": "1000", "commit.min-retry-wait": "20 ms", "commit.max-retry-wait": "20 ms"}
    store = make_table(tmp_path / "t", options=options)
    monkeypatch.setattr(SnapshotManager, "try_create", lambda *_, **__: False)
    job = committer(store)
    with pytest.raises(CommitGaveUp, match="attempts failed"):
        job.commit([message(store, [data_file(store)])])
    assert 1 <= job.retries < 20  # by the clock: not by the 1,000 retries


def test_an_empty_commit_makes_no_snapshot(store):
    assert committer(store).commit([]).snapshot_id is None
    assert committer(store).commit([message(store)]).snapshot_id is None
    assert store.snapshots.latest() is None


def test_snapshot_json_has_what_the_engine_writes_and_no_nulls(store):
    committer(store, "me").commit([message(store, [data_file(store, seq=(0, 0))])])
    set_watermark(store, 1, 17)
    committer(store, "me").commit([message(store, [data_file(store, seq=(10, 19))])], 3, properties={"k": "v"})
    text = json.loads(store.file_io.read(store.paths.snapshot_file(2)))
    assert list(text) == [
        *("version", "id", "schemaId", "baseManifestList", "baseManifestListSize", "deltaManifestList", "deltaManifestListSize"),
        *("commitUser", "commitIdentifier", "commitKind", "timeMillis", "totalRecordCount", "deltaRecordCount", "watermark"),
        *("properties", "nextRowId", "crc32"),
    ]
    for key in ("baseManifestList", "deltaManifestList"):
        assert store.file_io.size(store.paths.manifest(text[key])) == text[f"{key}Size"]


@pytest.mark.parametrize(("stored", "carried"), [(17, 17), (-(2**63), None), (None, None)])
def test_the_watermark_of_another_engine_is_carried_along(store, stored, carried):
    committer(store).commit([message(store, [data_file(store, seq=(0, 0))])])
    set_watermark(store, 1, stored)
    committer(store).commit([message(store, [data_file(store, seq=(10, 19))])])
    committer(store).overwrite([message(store, [data_file(store, seq=(20, 29))])])
    assert [store.snapshots.get(i).watermark for i in (1, 2, 3)] == [stored, carried, carried]


def test_a_replayed_commit_answers_what_the_first_one_did(store):
    new = [data_file(store)]
    after = data_file(store, level=5)
    commit = committer(store)
    messages = [message(store, new, new, [after], base_snapshot_id=0)]
    first = commit.commit(messages, 7)
    again = FileStoreCommit(store, commit.user).commit(messages, 7)
    assert (again.snapshot_id, again.compact_snapshot_id, again.replayed) == (first.snapshot_id, first.compact_snapshot_id, True)
    assert store.snapshots.latest_id() == 2
    found = committed_before(store, commit.user, 7)
    assert (found.snapshot_id, found.compact_snapshot_id) == (1, 2)
    assert committed_before(store, commit.user, 8) is None
    assert committed_before(store, "other", 7) is None


def test_a_replay_finishes_a_commit_that_stopped_before_its_compaction(store):
    new, user = [data_file(store)], "u"
    committer(store, user).commit([message(store, new)], 1)
    after = data_file(store, level=5)
    result = committer(store, user).commit([message(store, new, new, [after])], 1)
    assert (result.snapshot_id, result.compact_snapshot_id, result.replayed) == (1, 2, True)


def test_a_replay_whose_compaction_files_are_gone_loses_only_the_compaction(store):
    new = [data_file(store)]
    after = data_file(store, level=5)
    messages = [message(store, new, new, [after])]
    committer(store, "u").commit([message(store, new)], 1)
    store.file_io.delete(store.physical_files(EMPTY, 0, after)[0])
    result = committer(store, "u").commit(messages, 1)
    assert (result.snapshot_id, result.compact_lost) == (1, True)
    assert live_names(store) == [new[0].file_name]


def expire_first(store):
    for snapshot_id in store.snapshots.ids()[:-1]:
        store.file_io.delete(store.paths.snapshot_file(snapshot_id))


@pytest.mark.parametrize("noted", [True, False], ids=["with a note", "without a note"])
@pytest.mark.parametrize(
    ("how", "reason"),
    [("still live", "is in the table"), ("gone", "is gone"), ("pinned by a tag", "is in the table"), ("user went on", "already")],
)
def test_a_replay_after_expiry_is_refused(store, how, reason, noted):
    new = data_file(store)
    messages = [message(store, [new])]
    committer(store, "u").commit(messages, 1)
    if how == "pinned by a tag":
        store.snapshots.create_tag("keep", store.snapshots.latest())
    if how != "still live":
        committer(store, "v").commit([message(store, (), [new], [data_file(store, level=5)])])
    committer(store, "u" if how == "user went on" else "v").commit([message(store, [data_file(store, seq=(20, 29))])], 2)
    expire_first(store)
    if how == "gone":
        store.file_io.delete(store.physical_files(EMPTY, 0, new)[0])
    if not noted:  # as other engines and an expiry of notes leave it
        store.file_io.delete_directory(store.paths.writers, recursive=True)
    before = store.snapshots.latest_id()
    with pytest.raises(CommitReplayed, match="u" if noted else reason):
        committer(store, "u").commit(messages, 1)
    assert store.snapshots.latest_id() == before


def test_a_slow_first_commit_after_expiry_is_accepted(store):
    for number in range(3):
        committer(store).commit([message(store, [data_file(store, seq=(number, number))])])
    expire_first(store)
    result = committer(store).commit([message(store, [data_file(store, seq=(10, 19))])])
    assert (result.snapshot_id, result.replayed) == (4, False)


def test_a_compaction_that_lost_is_dropped_and_its_files_deleted(store):
    old = [data_file(store, seq=(0, 9))]
    committer(store).commit([message(store, old)])
    winner, loser = (data_file(store, level=5) for _ in range(2))
    new = data_file(store, seq=(10, 19))
    committer(store).commit([message(store, (), old, [winner])])
    result = committer(store).commit([message(store, [new], old, [loser])])
    assert (result.snapshot_id, result.compact_snapshot_id, result.compact_lost) == (3, None, True)
    assert result.lost_compactions == ((EMPTY, 0),)
    assert live_names(store) == sorted([winner.file_name, new.file_name])
    assert not store.file_io.exists(store.physical_files(EMPTY, 0, loser)[0])
    check_table(store)


def test_only_the_bucket_that_lost_drops_its_compaction(store):
    old = [data_file(store, bucket=bucket) for bucket in (0, 1)]
    committer(store).commit([message(store, [old[b]], bucket=b) for b in (0, 1)])
    after = [data_file(store, bucket=bucket, level=5) for bucket in (0, 1)]
    committer(store).commit([message(store, (), [old[0]], [data_file(store, level=5)])])
    result = committer(store).commit([message(store, (), [old[b]], [after[b]], bucket=b) for b in (0, 1)])
    assert (result.compact_snapshot_id, result.lost_compactions) == (3, ((EMPTY, 0),))
    assert after[1].file_name in live_names(store)
    assert after[0].file_name not in live_names(store)


def test_a_lost_upgrade_keeps_the_data_file_that_it_shares(store):
    old = data_file(store)
    committer(store).commit([message(store, [old])])
    taken = data_file(store, level=5)
    committer(store).commit([message(store, (), [old], [taken])])
    result = committer(store).commit([message(store, (), [old], [old.upgrade(5)])])
    assert result.compact_lost
    assert store.file_io.exists(store.physical_files(EMPTY, 0, old)[0])


def test_an_upgrade_moves_a_file_without_rewriting_it(store):
    old = data_file(store)
    committer(store).commit([message(store, [old], [old], [old.upgrade(5)])])
    assert live_model(store) == [(EMPTY, 0, 5, old.file_name)]


def test_overlapping_runs_of_one_level_conflict(store):
    committer(store).commit([message(store, (), (), [data_file(store, keys=(0, 10), level=5)])])
    result = committer(store).commit([message(store, (), (), [data_file(store, keys=(10, 20), level=5)])])
    assert result.compact_lost
    result = committer(store).commit([message(store, (), (), [data_file(store, keys=(11, 20), level=5)])])
    assert not result.compact_lost


def test_another_bucket_count_conflicts(parts):
    here, there = (parts.partition.encode((text,)) for text in "ab")
    committer(parts).commit([message(parts, [data_file(parts, partition=here)], partition=here)])
    with pytest.raises(CommitConflict, match="2 buckets"):
        committer(parts).commit([message(parts, [data_file(parts, partition=here, seq=(10, 19))], partition=here, total=3)])
    assert committer(parts).commit([message(parts, [data_file(parts, partition=there)], partition=there, total=3)]).snapshot_id == 2


def test_files_are_never_added_twice(store):
    new = data_file(store)
    committer(store).commit([message(store, [new])])
    with pytest.raises(CommitConflict):
        committer(store).commit([message(store, [new])])


def test_sequence_order_is_commit_order(store):
    slow = message(store, [data_file(store, seq=(0, 4)), data_file(store, seq=(5, 9))], base_snapshot_id=0)
    committer(store).commit([message(store, [data_file(store, seq=(0, 6))])])
    result = committer(store, resequence=renumber(store)).commit([slow])
    entries = [entry.file for entry in store.live_entries(store.snapshots.latest()).entries()]
    assert sorted((file.min_sequence_number, file.max_sequence_number) for file in entries) == [(0, 6), (7, 11), (12, 16)]
    assert result.snapshot_id == 2
    for file in slow.new_files:
        assert not store.file_io.exists(store.physical_files(EMPTY, 0, file)[0])
    check_table(store)


def test_a_renumbered_bucket_drops_its_own_compaction(store):
    new, after = data_file(store), data_file(store, level=5)
    other, other_after = data_file(store, bucket=1), data_file(store, bucket=1, level=5)
    committer(store).commit([message(store, [data_file(store)])])
    result = committer(store, resequence=renumber(store)).commit(
        [message(store, [new], [new], [after]), message(store, [other], [other], [other_after], bucket=1)]
    )
    assert result.lost_compactions == ((EMPTY, 0),)
    assert (result.snapshot_id, result.compact_snapshot_id) == (2, 3)
    assert other_after.file_name in live_names(store)
    assert not store.file_io.exists(store.physical_files(EMPTY, 0, after)[0])
    check_table(store)


def test_several_tasks_of_one_bucket_are_renumbered_in_their_order(store):
    tasks = [message(store, [data_file(store, seq=(start, start + 9))]) for start in (100, 0)]
    committer(store).commit([message(store, [data_file(store, seq=(0, 4))])])
    committer(store, resequence=renumber(store)).commit(tasks)
    files = sorted(
        (entry.file.min_sequence_number, entry.file.max_sequence_number) for entry in store.live_entries(store.snapshots.latest()).entries()
    )
    assert files == [(0, 4), (5, 14), (15, 24)]


def test_without_resequencing_older_sequences_conflict_and_nothing_is_left(store):
    committer(store).commit([message(store, [data_file(store)])])
    metadata = len(store.file_io.list(store.paths.manifests))
    with pytest.raises(CommitConflict, match="newer rows"):
        committer(store).commit([message(store, [data_file(store)])])
    assert len(store.file_io.list(store.paths.manifests)) == metadata


def test_a_sequence_field_rules_instead(tmp_path):
    store = make_table(tmp_path / "t", options={"sequence.field": "part"})
    for _ in range(2):
        committer(store).commit([message(store, [data_file(store)])])
    assert len(live_names(store)) == 2


def test_append_tables_have_no_sequence_order(tmp_path):
    store = make_table(tmp_path / "t", keys=())
    for _ in range(2):
        committer(store).commit([message(store, [data_file(store)])])
    assert len(live_names(store)) == 2


def test_a_change_computed_from_rows_conflicts_with_newer_rows_of_its_buckets(store):
    committer(store).commit([message(store, [data_file(store, bucket=b)], bucket=b) for b in (0, 1)])
    read = store.snapshots.latest().key
    committer(store).commit([message(store, [data_file(store, bucket=1, seq=(10, 19))], bucket=1)])
    deletes = message(store, [data_file(store, seq=(10, 10), rows=1, deletes=1)])
    assert committer(store).commit([deletes], read=ReadState(read)).snapshot_id == 3
    with pytest.raises(CommitConflict, match="changed since snapshot"):
        committer(store).commit([message(store, [data_file(store, seq=(11, 11))])], read=ReadState(read))


def test_a_change_computed_from_rows_survives_a_compaction(store):
    old = data_file(store)
    committer(store).commit([message(store, [old])])
    read = store.snapshots.latest().key
    committer(store).commit([message(store, (), [old], [data_file(store, level=5)])])
    assert committer(store).commit([message(store, [data_file(store, seq=(10, 10))])], read=ReadState(read)).snapshot_id == 3


def test_overwrite_replaces_the_whole_table(store):
    committer(store).commit([message(store, [data_file(store, bucket=b)], bucket=b) for b in (0, 1)])
    new = data_file(store, seq=(0, 0))
    result = committer(store).overwrite([message(store, [new])])
    snapshot = store.snapshots.get(result.snapshot_id)
    assert (snapshot.commit_kind, snapshot.total_record_count, snapshot.delta_record_count) == (CommitKind.OVERWRITE, 10, -10)
    assert live_names(store) == [new.file_name]


def test_overwritten_files_start_at_the_top_level_if_they_are_disjoint(store):
    disjoint = [data_file(store, keys=(0, 4)), data_file(store, keys=(5, 9))]
    committer(store).overwrite([message(store, disjoint)])
    assert {level for _, _, level, _ in live_model(store)} == {5}
    overlapping = [data_file(store, keys=(0, 5)), data_file(store, keys=(5, 9))]
    committer(store).overwrite([message(store, overlapping)])
    assert {level for _, _, level, _ in live_model(store)} == {0}


def test_overwrite_upgrade_can_be_switched_off(tmp_path):
    store = make_table(tmp_path / "t", options={"overwrite-upgrade": "false"})
    committer(store).overwrite([message(store, [data_file(store)])])
    assert live_model(store)[0][2] == 0


def test_dynamic_overwrite_replaces_the_partitions_of_the_new_files(parts):
    a, b = (parts.partition.encode((text,)) for text in "ab")
    old = {p: data_file(parts, partition=p) for p in (a, b)}
    committer(parts).commit([message(parts, [old[p]], partition=p) for p in (a, b)])
    new = data_file(parts, partition=a)
    committer(parts).overwrite([message(parts, [new], partition=a)], dynamic=True)
    assert live_names(parts) == sorted([new.file_name, old[b].file_name])
    assert committer(parts).overwrite([], dynamic=True).snapshot_id is None
    assert len(live_names(parts)) == 2


def test_static_overwrite_refuses_rows_outside_its_partitions(parts):
    a, b = (parts.partition.encode((text,)) for text in "ab")
    outside = message(parts, [data_file(parts, partition=b)], partition=b)
    with pytest.raises(InvalidArgument, match="'b'"):
        committer(parts).overwrite([outside], partitions=[a])


def test_truncate_empties_partitions_or_everything(parts):
    a, b = (parts.partition.encode((text,)) for text in "ab")
    committer(parts).commit([message(parts, [data_file(parts, partition=p)], partition=p) for p in (a, b)])
    committer(parts).truncate(partitions=[a])
    assert {partition for partition, *_ in live_model(parts)} == {b}
    committer(parts).truncate()
    assert live_model(parts) == []
    assert parts.snapshots.latest().total_record_count == 0
    assert committer(parts).truncate().snapshot_id is None


def test_replace_swaps_files_or_conflicts(store):
    old = data_file(store)
    committer(store).commit([message(store, [old])])
    new = data_file(store, rows=9)
    result = committer(store).replace([message(store, (), [old], [new])], read=ReadState(store.snapshots.get(1).key))
    assert store.snapshots.get(result.snapshot_id).commit_kind is CommitKind.OVERWRITE
    assert live_names(store) == [new.file_name]
    with pytest.raises(CommitConflict, match="removed"):
        committer(store).replace([message(store, (), [old], [data_file(store)])])


def test_statistics_are_inherited_only_under_one_schema(store):
    committer(store).commit([message(store, [data_file(store)])])
    path = store.paths.snapshot_file(1)
    text = json.loads(store.file_io.read(path)) | {"statistics": "stat-1"}
    store.file_io.write(path, json.dumps(text).encode(), overwrite=True)
    committer(store).commit([message(store, [data_file(store, seq=(10, 19))])])
    assert store.snapshots.latest().statistics == "stat-1"
    store.schemas.alter([ChangeOptions(options={"write-only": "true"})])
    committer(store).commit([message(store, [data_file(store, seq=(20, 29))])])
    latest = store.snapshots.latest()
    assert (latest.statistics, latest.schema_id) == (None, 1)


def test_abort_deletes_the_files_of_a_commit_that_did_not_happen(store):
    committer(store).commit([message(store, [data_file(store)])])
    base = store.snapshots.latest_id()
    old = data_file(store, extra=())
    new = data_file(store, name="data-x-0.parquet", extra=["data-x-0.parquet.index"])
    messages = [message(store, [new], [new], [new.upgrade(5), old], base_snapshot_id=base)]
    deleted = committer(store).abort(messages)
    assert sorted(deleted) == sorted([*store.physical_files(EMPTY, 0, new), *store.physical_files(EMPTY, 0, old)])
    check_table(store)


def test_abort_spares_a_committed_write(store):
    new, commit = data_file(store), committer(store)
    messages = [message(store, [new], base_snapshot_id=0)]
    commit.commit(messages)
    assert commit.abort(messages) == []
    check_table(store)


def test_abort_spares_files_that_the_table_uses(store):
    new = data_file(store)
    committer(store, "one").commit([message(store, [new])])
    assert committer(store, "two").abort([message(store, [new], base_snapshot_id=0)]) == []
    check_table(store)


def test_abort_spares_everything_when_history_is_incomplete(store):
    new = data_file(store)
    for number in range(3):
        committer(store).commit([message(store, [data_file(store, seq=(10 * number, 10 * number))])])
    expire_first(store)
    assert committer(store).abort([message(store, [new], base_snapshot_id=1)]) == []
    assert committer(store).abort([message(store, [new])]) == []
    assert committer(store).abort([message(store, [new], base_snapshot_id=2)]) != []


def test_messages_travel_as_json_and_pickle(store):
    import pickle

    sent = message(store, [data_file(store, embedded_index=b"\x00\xff")], base_snapshot_id=3)
    assert type(sent).model_validate_json(sent.model_dump_json()) == sent
    assert pickle.loads(pickle.dumps(sent)) == sent
    assert pickle.loads(pickle.dumps(store)).schema == store.schema
