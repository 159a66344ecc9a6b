"""Tables written by Paimon's Java engine keep their rows when we compact them or write to them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from lsm.write.table_write import TableWrite
from manifest.store import FileStore
from tests.golden_rows import GOLDEN, expected_rows, golden_rows
from tests.lsm.write_kit import commit, compact_all, live_files

KEYED = [
    "pk_l0",
    "pk_mixed",
    "pk_seq",
    "pk_composite",
    "pk_thin",
    "pk_parts",
    "pk_map",
    "pk_embedded",
    "all_types_pk",
    "evolved",
    "manifests_merged",
    "pk_dv",
    "pk_dv64",
    "pk_dv_embedded",
]
FOLDED = ["pk_agg", "pk_agg_retract", "pk_partial", "pk_partial_group", "pk_partial_ignore", "pk_partial_remove", "pk_first"]
APPENDED = [
    "append_parts",
    "append_bucketed",
    "append_idx",
    "append_embedded",
    "append_map",
    "all_types",
    "edges",
    "multiset",
    "evolved_append",
    "codecs",
]


def copied(name: str, directory: Path) -> FileStore:
    shutil.copytree(GOLDEN / name / "table", directory / "t")
    return FileStore.open(directory / "t")


def rows(store: FileStore) -> list[str]:
    return golden_rows(table(store), store.schema)


def table(store: FileStore) -> pa.Table:
    plan = ScanPlanner(store).plan(snapshot=store.snapshots.latest())
    batches = [b for split in plan.splits for b in read_split(store, split, columns=store.schema.names)]
    return pa.Table.from_batches(batches, schema=store.schema.arrow)


@pytest.mark.parametrize("name", KEYED + FOLDED)
@pytest.mark.sampled(3)
def test_a_full_compaction_keeps_the_rows_of_a_primary_key_table(name: str, tmp_path: Path) -> None:
    store = copied(name, tmp_path)
    before = {f.level for f in live_files(store)}
    messages = compact_all(store)
    assert messages or before == {store.options.max_level}
    assert {(f.level, f.delete_row_count) for f in live_files(store)} == {(store.options.max_level, 0)}
    assert rows(store) == expected_rows(GOLDEN / name / "expected.jsonl", store.schema)


@pytest.mark.parametrize("name", APPENDED)
def test_joining_files_keeps_the_rows_of_an_append_table(name: str, tmp_path: Path) -> None:
    store = copied(name, tmp_path)
    before = len(live_files(store))
    compact_all(store)
    assert len(live_files(store)) <= before
    assert rows(store) == expected_rows(GOLDEN / name / "expected.jsonl", store.schema)


@pytest.mark.parametrize("name", KEYED)
def test_writing_all_rows_again_changes_nothing(name: str, tmp_path: Path) -> None:
    store = copied(name, tmp_path)
    with TableWrite(store) as job:
        job.write(table(store))
        commit(store, job.prepare_commit())
    assert rows(store) == expected_rows(GOLDEN / name / "expected.jsonl", store.schema)


@pytest.mark.parametrize("name", ["pk_l0", "pk_composite", "pk_parts", "pk_dv", "pk_dv64"])
def test_deleting_all_rows_leaves_none_even_after_compaction(name: str, tmp_path: Path) -> None:
    store = copied(name, tmp_path)
    everything = table(store)
    with TableWrite(store) as job:
        job.write(everything, kinds=pa.array([3] * everything.num_rows, pa.int8()))
        commit(store, job.prepare_commit())
    assert rows(store) == []
    compact_all(store)
    assert live_files(store) == []


@pytest.mark.parametrize("name", ["pk_l0", "pk_seq", "append_bucketed", "all_types_pk"])
def test_rewritten_files_have_the_statistics_that_the_engine_gave_them(name: str, tmp_path: Path) -> None:
    """The extremes over all files of a bucket can only shrink when superseded versions go."""
    store = copied(name, tmp_path)
    compact_all(store)
    listed = json.loads((GOLDEN / name / "files.json").read_text())
    for file in live_files(store):
        assert len(file.value_stats.null_counts) == len(file.value_stats_cols or store.schema.names)
        assert file.row_count <= sum(entry["rowCount"] for entry in listed)
