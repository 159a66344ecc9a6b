"""What each verb that changes rows leaves in the tree of files, step by step."""

from __future__ import annotations

from pathlib import Path

import pytest

from paimon_base.errors import PaimonError
from pyspark_paimon import Table
from tests.build import COLUMNS, assert_tree, cities, keyed, tuples


def test_write_and_upsert_add_runs_that_a_compaction_merges(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", options={"file-index.bitmap.columns": "city"})
    assert_tree(table, "no snapshot")

    table.write(cities([1, 2, 3, 4], "Oslo"))
    assert_tree(
        table,
        """
        snapshot 1: upsert
        L0 1..4: 4 rows, bitmap(city)
        """,
    )

    table.write(cities([2, 5], "Rome"))
    assert_tree(
        table,
        """
        snapshot 2: upsert
        L0 2..5: 2 rows, bitmap(city)
        L0 1..4: 4 rows, bitmap(city)
        """,
    )
    rows = [(1, "Oslo-1"), (2, "Rome-2"), (3, "Oslo-3"), (4, "Oslo-4"), (5, "Rome-5")]
    assert tuples(table) == rows, "the newest version of key 2"

    table.compact(full=True)
    assert_tree(
        table,
        """
        snapshot 3: compact
        L5 1..5: 5 rows, bitmap(city)
        """,
    )
    assert tuples(table) == rows


def test_delete_writes_deletes_that_a_full_compaction_drops(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write(cities([1, 2, 3, 4]))
    table.compact(full=True)

    table.delete("id IN (2, 3)")
    assert_tree(
        table,
        """
        snapshot 3: delete
        L0 2..3: 2 rows, 2 deletes
        L5 1..4: 4 rows
        """,
    )
    assert tuples(table) == [(1, "Oslo-1"), (4, "Oslo-4")]

    table.compact(full=True)
    assert_tree(
        table,
        """
        snapshot 4: compact
        L5 1..4: 2 rows
        """,
    )


def test_deletion_vectors_mark_older_versions_when_level_0_is_compacted(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", options={"deletion-vectors.enabled": "true", "write-only": "true"})
    table.write(cities([1, 2, 3, 4]))
    table.compact(full=True)
    table.write(cities([2], "Rome"))
    assert_tree(
        table,
        """
        snapshot 3: upsert
        L0 2..2: 1 row
        L5 1..4: 4 rows
        """,
    )

    table.compact()
    assert_tree(
        table,
        """
        snapshot 4: compact
        L4 2..2: 1 row
        L5 1..4: 4 rows, 1 marked
        """,
    )
    assert tuples(table) == [(1, "Oslo-1"), (2, "Rome-2"), (3, "Oslo-3"), (4, "Oslo-4")]


def test_an_append_table_rewrites_the_files_that_a_delete_touches(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", COLUMNS)
    table.write(cities([1, 2, 3]))
    table.write(cities([4, 5]))
    table.delete("id = 2")
    assert_tree(
        table,
        """
        snapshot 3: delete
        file: 2 rows
        file: 2 rows
        """,
    )
    table.delete("id >= 4")
    assert_tree(
        table,
        """
        snapshot 4: delete
        file: 2 rows
        """,
    )
    assert tuples(table) == [(1, "Oslo-1"), (3, "Oslo-3")]


def test_an_append_table_with_vectors_marks_rows_and_appends_their_new_versions(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", COLUMNS, options={"deletion-vectors.enabled": "true"})
    table.write(cities([1, 2, 3]))
    table.write(cities([4, 5]))
    table.delete("id = 2")
    assert_tree(
        table,
        """
        snapshot 3: delete
        file: 3 rows, 1 marked
        file: 2 rows
        """,
    )
    table.update("id = 5", values={"city": "Lima"})
    assert_tree(
        table,
        """
        snapshot 4: update
        file: 3 rows, 1 marked
        file: 2 rows, 1 marked
        file: 1 row
        """,
    )
    table.compact(full=True)
    assert_tree(
        table,
        """
        snapshot 5: compact
        file: 4 rows
        """,
    )
    assert tuples(table) == [(1, "Oslo-1"), (3, "Oslo-3"), (4, "Oslo-4"), (5, "Lima")]


def test_update_and_merge_write_only_the_rows_that_change(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write(cities([1, 2, 3]))

    table.update("id = 1", values={"city": "Lima"})
    assert_tree(
        table,
        """
        snapshot 2: update
        L0 1..1: 1 row
        L0 1..3: 3 rows
        """,
    )

    merge = table.merge(cities([1, 2, 7], "Bonn"), ["id"]).when_matched_delete("t.city = 'Lima'")
    merge.when_matched_update({"city": "s.city"}).when_not_matched_insert_all().execute()
    assert_tree(
        table,
        """
        snapshot 3: merge
        L0 1..7: 3 rows, 1 delete
        L0 1..1: 1 row
        L0 1..3: 3 rows
        """,
    )
    assert tuples(table) == [(2, "Bonn-2"), (3, "Oslo-3"), (7, "Bonn-7")]


def test_overwrite_replaces_partitions_and_drop_empties_them(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "day STRING, id BIGINT, n INT", ["day", "id"], ["day"], options={"bucket": "2"})
    table.write([{"day": day, "id": key, "n": key} for day in "ab" for key in range(4)])
    assert_tree(
        table,
        """
        snapshot 1: upsert
        day=a bucket 0
        L0 1..2: 2 rows
        day=a bucket 1
        L0 0..3: 2 rows
        day=b bucket 0
        L0 1..2: 2 rows
        day=b bucket 1
        L0 0..3: 2 rows
        """,
    )

    table.write([{"day": "b", "id": 7, "n": 7}], mode="overwrite")
    assert_tree(
        table,
        """
        snapshot 2: overwrite
        day=a bucket 0
        L0 1..2: 2 rows
        day=a bucket 1
        L0 0..3: 2 rows
        day=b bucket 1
        L5 7..7: 1 row
        """,
    )

    table.drop_partitions([{"day": "a"}])
    assert_tree(
        table,
        """
        snapshot 3: drop-partitions
        day=b bucket 1
        L5 7..7: 1 row
        """,
    )


def test_purge_leaves_no_file_that_ever_held_the_rows(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write(cities([1, 2], "Oslo"))
    table.write(cities([1, 3], "Rome"))
    before = set((tmp_path / "t/bucket-0").iterdir())

    table.purge("id = 1")
    assert_tree(
        table,
        """
        snapshot 5: purge
        L5 2..3: 2 rows
        """,
    )
    assert tuples(table) == [(2, "Oslo-2"), (3, "Rome-3")]
    assert not before & set((tmp_path / "t/bucket-0").iterdir()), "the files with key 1 are deleted"
    assert table.snapshots()["snapshot_id"].to_pylist() == [5]


def test_a_refused_write_leaves_the_tree_as_it_was(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write(cities([1]))
    with pytest.raises(PaimonError):
        table.write([{"id": None, "city": "Oslo"}])
    assert_tree(
        table,
        """
        snapshot 1: upsert
        L0 1..1: 1 row
        """,
    )
    assert len(list((tmp_path / "t/bucket-0").iterdir())) == 1
