from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lsm.scan.planned_splits import PlannedSplits
from lsm.scan.splits import DataSplit
from manifest.entry import columns
from manifest.io.file_cache import SHARED
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Table

KEYED = "day INT, id BIGINT, v STRING"
SMALL = {"source.split.target-size": "1 kb", "source.split.open-file-cost": "400 b"}
KINDS = {
    "level 0": {"bucket": "2", "write-only": "true"},
    "compacted": {"bucket": "3"},
    "vectors": {"bucket": "2", "deletion-vectors.enabled": "true"},
    "hidden level 0": {"bucket": "2", "deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "false", "write-only": "true"},
    "postponed": {"bucket": "-2"},
    "append": {"deletion-vectors.enabled": "true"},
}


def filled(path, kind: str) -> Table:
    keys = {} if kind == "append" else {"primary_keys": ["day", "id"]}
    table = Table.create(path, KEYED, partition_keys=["day"], options={**SMALL, **KINDS[kind]}, **keys)
    for first in range(0, 60, 12):
        ids = np.arange(first, first + 20)
        table.write(pa.table({"day": pa.array(ids % 3, pa.int32()), "id": ids, "v": [f"text {i}" for i in ids]}))
        if kind in {"postponed", "hidden level 0"} and first == 24:
            table.compact()
    if "vectors" in kind or kind == "append":
        table.delete("id = 13 OR id = 47")
    return table


@pytest.fixture
def lazily(set_thresholds):
    set_thresholds(plan_files=0)
    set_thresholds(plan_files_at_once=3)


def both(table: Table, *where, **scan) -> tuple[tuple, PlannedSplits]:
    """The splits of a scan as objects, and as they are planned where there are many."""
    with use_thresholds(plan_files=10**9):
        eager = table.scan(*where, **scan).plan()
    SHARED.clear()  # a question that is asked again is not planned again
    late = table.scan(*where, **scan).plan()
    assert (late.file_count, late.row_count, late.file_size, late.merging_count) == (
        sum(len(split.files) for split in eager.splits),
        sum(split.row_count for split in eager.splits),
        sum(split.file_size for split in eager.splits),
        sum(not split.raw_convertible for split in eager.splits),
    )
    stages = [
        [(one.name, one.kept, one.dropped, one.bytes_kept, one.bytes_dropped, one.note) for one in plan.report] for plan in (eager, late)
    ]
    assert stages[0] == stages[1]
    assert type(eager.splits) is tuple
    return eager.splits, late.splits


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("lazily")
def test_splits_made_late_are_those_made_at_once(tmp_path, kind):
    table = filled(tmp_path / "t", kind)
    some = 0
    for condition in (None, "day = 1", "id = 13", "id > 40 AND day < 2", "v = 'text 5'"):
        eager, late = both(table, *([condition] if condition else []))
        some += len(eager)
        assert len(late) == len(eager)
        assert list(late) == list(eager)
        assert [late[at] for at in reversed(range(len(late)))] == list(reversed(eager))
        assert late == eager
        assert eager == late
        if eager:
            assert isinstance(late, PlannedSplits)
            assert late[-1] == eager[-1]
            assert eager[0] in late
            assert hash(late) == hash(eager)
    assert some > 3
    assert any(split.deletion_files for split in table.scan().plan().splits) == (kind in {"vectors", "append"})


@pytest.mark.usefixtures("lazily")
def test_slices_copies_and_pickles_are_splits_too(tmp_path):
    eager, late = both(filled(tmp_path / "t", "append"))
    assert len(eager) > 5
    for part in (slice(2, 5), slice(None, None, -1), slice(4, None, 2), slice(-3, -1), slice(3, 3)):
        assert late[part] == eager[part]
        assert late[part][1:] == eager[part][1:]
    for same in (pickle.loads(pickle.dumps(late)), copy.deepcopy(late), pickle.loads(pickle.dumps(late[1:4]))):
        assert type(same) is PlannedSplits
        assert same == eager[1:4] if len(same) == 3 else same == eager
    assert late != eager[1:]
    assert late[1:] != eager[:-1]
    for beyond in (len(eager), -len(eager) - 1):
        with pytest.raises(IndexError):
            late[beyond]


@pytest.mark.usefixtures("lazily")
def test_rows_of_late_splits_and_limits_are_those_of_the_table(tmp_path):
    table = filled(tmp_path / "t", "append")
    whole = sorted(table.scan().to_arrow()["id"].to_pylist())
    splits = table.scan().plan().splits
    scan = table.scan()
    assert sorted(i for split in splits for batch in scan.read(split) for i in batch["id"].to_pylist()) == whole
    eager, late = both(table, limit=5)
    assert 0 < len(late) < len(splits)
    assert late == eager


@pytest.mark.usefixtures("lazily")
def test_an_entry_that_is_not_valid_is_told_with_its_manifest(tmp_path):
    table = filled(tmp_path / "t", "append")
    SHARED.clear()  # what was committed knows of no manifest
    late = table.scan().plan().splits
    name = late[0].files[0].file_name.encode()
    broken = replace(late, entries=replace(late.entries, payload=late.entries.payload.replace(name, b"/" * len(name))))
    with pytest.raises(CorruptFile, match=r"manifest-.*is not a file name"):
        list(broken[0].files)
    assert broken[len(late) - 1] == late[len(late) - 1]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kind", ["level 0", "append"])
def test_a_plan_creates_no_file_until_one_is_accessed(tmp_path, monkeypatch, set_thresholds, kind, late):
    table = filled(tmp_path / "t", kind)
    set_thresholds(plan_files_at_once=3)
    if late:
        set_thresholds(plan_files=0)
    SHARED.clear()
    files_created = []
    create = columns.build_files

    def counting(*arguments):
        files = create(*arguments)
        files_created.extend(files)
        return files

    monkeypatch.setattr(columns, "build_files", counting)
    plan = table.scan().plan()
    splits = list(plan.splits)
    count = sum(len(split.files) for split in splits)
    assert count == plan.file_count > 9
    assert plan.row_count == sum(split.row_count for split in splits)
    assert plan.file_size == sum(split.file_size for split in splits)
    assert repr(splits)
    assert not files_created
    assert [file.row_count for file in splits[0].files] == [file.row_count for file in files_created[: len(splits[0].files)]]
    assert len(files_created) < count, "files of distant splits are not created"
    assert all(split.files[0] in split.files for split in splits)
    assert sorted(file.file_name for split in splits for file in split.files) == sorted(file.file_name for file in files_created)


def test_files_of_a_plan_are_equal_to_a_tuple(tmp_path):
    split = filled(tmp_path / "t", "level 0").scan().plan().splits[0]
    files = tuple(split.files)
    assert len(files) > 1
    assert not isinstance(split.files, tuple)
    for same in (split, split.model_copy(update={"files": files}), pickle.loads(pickle.dumps(split)), DataSplit.from_json(split.to_json())):
        assert same == split
        assert hash(same) == hash(split)
        assert same.to_json() == split.to_json()
        assert (same.row_count, same.file_size, same.merged_row_count) == (split.row_count, split.file_size, split.merged_row_count)
    for other in (files[1:], files[::-1], (), (*files, files[0])):
        assert split.files != other
        assert split.model_copy(update={"files": other}) != split
    assert (split.files[-1], split.files[1:], repr(split.files)) == (files[-1], files[1:], repr(files))
