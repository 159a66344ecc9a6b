"""The state of the last compaction, and how changes of small files are packed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lsm.incremental.planner import IncrementalMode, IncrementalPlanner
from lsm.scan.planner import compacted_snapshot
from tests.lsm.write_kit import make, write
from tests.manifest.commit_kit import committer, data_file, make_table, message


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, 5),
        ({"full-compaction.delta-commits": "2"}, 4),
        ({"full-compaction.delta-commits": "3", "changelog-producer": "full-compaction"}, 3),
        ({"changelog-producer": "full-compaction"}, 5),
        ({"full-compaction.delta-commits": "7"}, 6),
    ],
    ids=str,
)
def test_the_newest_full_compaction_is_found_by_its_number(tmp_path, options, wanted):
    store = make_table(tmp_path / "t", options=options)
    old = data_file(store)
    committer(store).commit([message(store, [old])], 0)
    for number in range(1, 6):
        new = data_file(store, level=5)
        committer(store).commit([message(store, (), [old], [new])], number)
        old = new
    found = compacted_snapshot(store)
    assert (found.commit_identifier, found.id) == ((wanted, wanted + 1) if wanted < 6 else (5, 6))


def test_small_files_of_an_append_table_are_changes_of_one_split(tmp_path):
    for name, size, splits in (("one", "1 mb", 1), ("each", "1 b", 3)):
        store = make(tmp_path / name, "id INT", source__split__target_size=size, source__split__open_file_cost="1 b")
        for number in range(3):
            write(store, pa.table({"id": pa.array([number], pa.int32())}))
        assert len(IncrementalPlanner(store, 0, 3).plan(IncrementalMode.DELTA).splits) == splits
