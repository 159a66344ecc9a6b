"""A check of a table names every damage to its metadata: snapshots, hints, schemas, lists, manifests, and what is said in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.entry.data_file import FileKind
from manifest.row.binary_row import encode_row
from manifest.stats.column_stats import SimpleStats
from pyspark_paimon.results.fsck_problem import ProblemKind as K
from tests.build import keyed
from tests.damaged_tables import Case, Damage, Surgeon, check, cut, flip, gone


def _text(*parts: str, text: str) -> Damage:
    def damage(surgeon: Surgeon) -> Path:
        path = surgeon.file(*parts)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return damage


def _tag_names_nothing(surgeon: Surgeon) -> Path:
    path = surgeon.file("tag", "tag-kept")
    listed = surgeon.store.snapshots.tag("kept").base_manifest_list
    path.write_text(json.dumps(json.loads(path.read_text().replace(listed, "manifest-list-none"))))
    return surgeon.name("manifest-list-none")


def _list_size(surgeon: Surgeon) -> Path:
    surgeon.publish(base_manifest_list_size=(surgeon.snapshot.base_manifest_list_size or 0) - 1)
    return surgeon.name(surgeon.snapshot.base_manifest_list)


def _delta_manifest(surgeon: Surgeon) -> Path:
    return surgeon.name(surgeon.metas()[0].file_name)


def _meta(**fields: Any) -> Damage:
    def damage(surgeon: Surgeon) -> Path:
        (meta,) = surgeon.metas()
        surgeon.relist([meta.model_copy(update=fields)])
        return surgeon.name(meta.file_name)

    return damage


def _counts_in_list(surgeon: Surgeon) -> Path:
    (meta,) = surgeon.metas()
    return _meta(num_added_files=meta.num_added_files + 1)(surgeon)


def _partition_range(surgeon: Surgeon) -> Path:
    low = surgeon.store.partition.encode(("b",))
    return _meta(partition_stats=SimpleStats(low, low, (0,)))(surgeon)


def _column_range(surgeon: Surgeon) -> Path:
    (meta,) = surgeon.metas()
    ranges = meta.column_ranges
    assert ranges is not None
    assert ranges.field_ids == (0,)
    types = surgeon.store.schema.types_of(["id"])
    narrow = SimpleStats(encode_row((50,), types), encode_row((55,), types), (0,))
    return _meta(column_ranges=type(ranges)(ranges.field_ids, ranges.row_count, narrow))(surgeon)


def _manifest_twice(surgeon: Surgeon) -> Path:
    return surgeon.relist([*surgeon.metas(), *surgeon.metas()])


def _total(surgeon: Surgeon) -> Path:
    return surgeon.publish(total_record_count=surgeon.snapshot.total_record_count + 1)


def _delta_count(surgeon: Surgeon) -> Path:
    return surgeon.publish(delta_record_count=surgeon.snapshot.delta_record_count + 1)


def _changelog_count(surgeon: Surgeon) -> Path:
    surgeon.publish(changelog_record_count=1)
    return surgeon.name(surgeon.snapshot.changelog_manifest_list or "")


def _base_lacks_a_file(surgeon: Surgeon) -> Path:
    entries = surgeon.entries("base")
    live = {entry.identity for entry in surgeon.live()}
    lost = next(entry for entry in entries if entry.kind == FileKind.ADD and entry.identity in live)
    surgeon.reentry([entry for entry in entries if entry is not lost], "base")
    return surgeon.name(surgeon.snapshot.base_manifest_list)


def _added_again(surgeon: Surgeon) -> Path:
    before = surgeon.snapshot.total_record_count
    path = surgeon.reentry([*surgeon.entries(), surgeon.live()[0]])
    surgeon.publish(total_record_count=before)
    return path


def _added_after_its_deletion(surgeon: Surgeon) -> Path:
    deleted = next(entry for entry in surgeon.entries("base") if entry.kind == FileKind.DELETE)
    before = surgeon.snapshot.total_record_count
    path = surgeon.reentry([*surgeon.entries(), deleted.model_copy(update={"kind": FileKind.ADD})])
    surgeon.publish(total_record_count=before)
    return path


def _absent_deleted(surgeon: Surgeon) -> Path:
    entry = surgeon.live()[0]
    stranger = entry.model_copy(update={"file": entry.file.model_copy(update={"file_name": "data-none-0.parquet"})}).deleted()
    before = surgeon.snapshot.total_record_count
    path = surgeon.reentry([*surgeon.entries(), stranger])
    surgeon.publish(total_record_count=before)
    return path


def _entry(**fields: Any) -> Damage:
    def damage(surgeon: Surgeon) -> Path:
        surgeon.change(lambda entry: entry.bucket == 1, **fields)
        return _delta_manifest(surgeon)

    return damage


def _overlap(surgeon: Surgeon) -> Path:
    deep = {(entry.partition, entry.bucket): entry.file.level for entry in surgeon.live() if entry.file.level}
    entry = next(entry for entry in surgeon.entries() if (entry.partition, entry.bucket) in deep)
    return surgeon.change(lambda other: other.file == entry.file, level=deep[entry.partition, entry.bucket])


def _changelog_file(surgeon: Surgeon) -> Path:
    metas = surgeon.store.manifest_lists.read(surgeon.snapshot.changelog_manifest_list or "")
    return surgeon.path_of(surgeon.store.manifests.read_meta(metas[0]).entries()[0])


def _newest(surgeon: Surgeon) -> Path:
    return surgeon.file("snapshot", f"snapshot-{surgeon.snapshot.id}")


def _statistics(surgeon: Surgeon) -> Path:
    return surgeon.file("statistics", surgeon.snapshot.statistics or "")


DAMAGES: dict[str, Case] = {
    "a snapshot is missing": Case(K.SNAPSHOT_GAP, "keyed", "quick", lambda s: gone(s.file("snapshot", "snapshot-3"))),
    "a snapshot is cut short": Case(K.SNAPSHOT, "keyed", "quick", lambda s: cut(s.file("snapshot", "snapshot-3"))),
    "a snapshot is another": Case(
        K.SNAPSHOT, "keyed", "quick", lambda s: _copied(s.file("snapshot", "snapshot-2"), s.file("snapshot", "snapshot-3"))
    ),
    "the newest snapshot is missing": Case(K.HINT, "written", "quick", lambda s: gone(_newest(s)).with_name("LATEST")),
    "a hint names nothing": Case(K.HINT, "keyed", "quick", _text("snapshot", "LATEST", text="99")),
    "a hint is no number": Case(K.HINT, "keyed", "quick", _text("snapshot", "LATEST", text="3x")),
    "a hint hides snapshots": Case(K.HINT, "keyed", "quick", _text("snapshot", "EARLIEST", text="3")),
    "a tag is no snapshot": Case(K.TAG, "keyed", "quick", _text("tag", "tag-kept", text="{}")),
    "a tag names a list that is missing": Case(K.MANIFEST_LIST, "keyed", "quick", _tag_names_nothing),
    "a consumer reads what is not there": Case(K.CONSUMER, "keyed", "quick", _text("consumer", "consumer-me", text='{"nextSnapshot": 99}')),
    "a consumer is none": Case(K.CONSUMER, "keyed", "quick", _text("consumer", "consumer-me", text="[]")),
    "a consumer is another one": Case(
        K.CONSUMER, "keyed", "quick", _text("consumer", "consumer-me", text='{"nextSnapshot": 1,\n\t"crc32": "00000000"\n}')
    ),
    "a kept changelog is none": Case(K.CHANGELOG, "keyed", "quick", _text("changelog", "changelog-1", text="{}")),
    "an old schema is cut short": Case(K.SCHEMA, "keyed", "quick", lambda s: cut(s.file("schema", "schema-0"))),
    "a schema counts its fields wrongly": Case(K.SCHEMA, "keyed", "quick", lambda s: s.schema(1, highestFieldId=2)),
    "statistics are missing": Case(K.STATISTICS_FILE, "keyed", "quick", lambda s: gone(_statistics(s))),
    "statistics are cut short": Case(K.STATISTICS_FILE, "keyed", "quick", lambda s: cut(_statistics(s))),
    "a list is missing": Case(K.MANIFEST_LIST, "keyed", "quick", lambda s: gone(s.name(s.snapshot.delta_manifest_list))),
    "a list has another size": Case(K.MANIFEST_LIST, "keyed", "quick", _list_size),
    "a list is damaged": Case(K.MANIFEST_LIST, "keyed", "quick", lambda s: flip(s.name(s.snapshot.base_manifest_list), -20)),
    "a list names a manifest twice": Case(K.MANIFEST_LIST, "vectored", "quick", _manifest_twice),
    "a manifest is missing": Case(K.MANIFEST, "vectored", "quick", lambda s: gone(_delta_manifest(s))),
    "a manifest is cut short": Case(K.MANIFEST, "vectored", "quick", lambda s: cut(_delta_manifest(s))),
    "a manifest is damaged": Case(K.MANIFEST, "vectored", "quick", lambda s: flip(_delta_manifest(s), -20)),
    "a list counts entries wrongly": Case(K.MANIFEST, "vectored", "quick", _counts_in_list),
    "a list hides buckets": Case(K.MANIFEST_RANGE, "vectored", "quick", _meta(max_bucket=0)),
    "a list hides levels": Case(K.MANIFEST_RANGE, "vectored", "quick", _meta(max_level=0)),
    "a list hides partitions": Case(K.MANIFEST_RANGE, "written", "quick", _partition_range),
    "a list hides values": Case(K.MANIFEST_RANGE, "written", "quick", _column_range),
    "the rows are counted wrongly": Case(K.RECORD_COUNT, "vectored", "quick", _total),
    "the new rows are counted wrongly": Case(K.RECORD_COUNT, "vectored", "quick", _delta_count),
    "the changelog is counted wrongly": Case(K.RECORD_COUNT, "written", "quick", _changelog_count),
    "a merged manifest lost a file": Case(K.BASE_STATE, "written", "quick", _base_lacks_a_file),
    "a file is added twice": Case(K.DOUBLE_ADD, "vectored", "quick", _added_again),
    "a file is added after its deletion": Case(K.DOUBLE_ADD, "written", "quick", _added_after_its_deletion),
    "a file is deleted that is not there": Case(K.DELETE_OF_ABSENT, "vectored", "quick", _absent_deleted),
    "the bucket count lacks the bucket": Case(K.ENTRY, "written", "quick", _entry(total_buckets=1)),
    "a schema that there is not": Case(K.ENTRY, "written", "quick", _entry(schema_id=7)),
    "sequence numbers end before they begin": Case(K.ENTRY, "written", "quick", _entry(min_sequence_number=10**9)),
    "more rows are deleted than there are": Case(K.ENTRY, "written", "quick", _entry(delete_row_count=10**9)),
    "files of a level overlap": Case(K.LEVEL_OVERLAP, "written", "quick", _overlap),
    "a data file is missing": Case(K.MISSING_FILE, "keyed", "quick", lambda s: gone(s.path_of(s.live()[0]))),
    "a data file has another size": Case(K.FILE_SIZE, "keyed", "quick", lambda s: cut(s.path_of(s.live()[0]))),
    "a file that only old snapshots have is missing": Case(
        K.MISSING_FILE, "keyed", "quick", lambda s: gone(s.path_of(Surgeon(str(s.root), 1).live()[0]))
    ),
    "a changelog file is missing": Case(K.MISSING_FILE, "written", "quick", lambda s: gone(_changelog_file(s))),
    "a deletion-vector file is missing": Case(K.MISSING_FILE, "vectored", "quick", lambda s: gone(s.index_path(s.index_entries()[0]))),
    "an index manifest is cut short": Case(K.INDEX_MANIFEST, "vectored", "quick", lambda s: cut(s.name(s.snapshot.index_manifest or ""))),
}


def _copied(source: Path, target: Path) -> Path:
    target.write_bytes(source.read_bytes())
    return target


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_metadata_are_named(copies, tmp_path, name) -> None:
    check(copies, tmp_path, DAMAGES[name])


@pytest.mark.parametrize("name", ["snapshot/ROLLBACK", "schema/schema-0"])
def test_a_file_without_which_no_table_opens_is_a_problem_not_an_error(tmp_path: Path, name: str) -> None:
    table = keyed(tmp_path / "t", "id BIGINT")
    table.write(pa.table({"id": [1]}))
    (tmp_path / "t" / name).write_text("{broken")
    result = table.fsck()
    assert [problem.path for problem in result.problems] == [str(tmp_path / "t" / name)]
    assert not result.clean
