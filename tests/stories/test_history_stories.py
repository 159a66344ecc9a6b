"""What happens to snapshots, tags, branches and their files, step by step."""

from __future__ import annotations

from pathlib import Path

from pyspark_paimon import Table
from tests.build import assert_tree, cities, data_files, events, ids, keyed, tuples


def names(table: Table) -> tuple[list[int], list[str], list[str]]:
    """Return the snapshots, the tags and the branches."""
    return (
        table.snapshots()["snapshot_id"].to_pylist(),
        table.tags()["tag_name"].to_pylist(),
        table.branches()["branch_name"].to_pylist(),
    )


def test_expire_deletes_files_that_no_snapshot_or_tag_uses(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write(cities([1, 2]))
    table.create_tag("first")
    table.write(cities([3]))
    table.compact(full=True)
    assert (names(table), data_files(table)) == (([1, 2, 3], ["first"], []), 3)

    table.expire_snapshots(retain_min=1, retain_max=1)
    assert (names(table), data_files(table)) == (([3], ["first"], []), 2)
    assert ids(table.scan(tag="first")) == [1, 2]
    assert_tree(
        table,
        """
        snapshot 3: compact
        L5 1..3: 3 rows
        """,
    )

    table.delete_tag("first")
    assert (names(table), data_files(table)) == (([3], [], []), 1)


def test_rollback_forgets_what_came_later_and_restore_writes_it_again(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write(cities([1, 2]))
    table.create_tag("good")
    table.delete("id = 1")
    table.write(cities([3]))

    table.restore(tag="good")
    assert (names(table)[0], ids(table)) == ([1, 2, 3, 4], [1, 2])
    assert_tree(
        table,
        """
        snapshot 4: restore
        L5 1..2: 2 rows
        """,
    )

    table.rollback_to(2)
    assert (names(table), ids(table)) == (([1, 2], ["good"], []), [2])
    assert_tree(
        table,
        """
        snapshot 2: delete
        L0 1..1: 1 row, 1 delete
        L0 1..2: 2 rows
        """,
    )
    assert data_files(table) == 2, "those of later snapshots are deleted"

    table.rollback_to(tag="good")
    assert (names(table), ids(table)) == (([1], ["good"], []), [1, 2])


def test_a_branch_is_written_apart_and_fast_forwarded(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write(cities([1]))
    table.create_tag("start")
    table.create_branch("trial", "start")

    trial = Table.open(table.path, branch="trial")
    trial.write(cities([2]))
    assert (ids(table), ids(trial)) == ([1], [1, 2])

    table.fast_forward("trial")
    assert_tree(
        table,
        """
        snapshot 2: upsert
        L0 2..2: 1 row
        L0 1..1: 1 row
        """,
    )
    assert names(table) == ([1, 2], ["start"], ["trial"])


def test_follow_reads_each_change_once_from_where_it_stopped(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "id BIGINT, city STRING, n INT", {"changelog-producer": "input"})
    table.write(events(("+I", 1, 10), ("+I", 2, 20)))

    (first,) = table.follow()
    assert tuples(first.rows) == [(1, "x", 10, "+I"), (2, "x", 20, "+I")]
    assert list(table.follow(first.offset)) == []

    table.write(events(("+U", 1, 11), ("-D", 2, 20)))
    table.compact(full=True)
    (second,) = table.follow(first.offset)
    assert tuples(second.rows) == [(1, "x", 11, "+U"), (2, "x", 20, "-D")]
    assert tuples(table) == [(1, "x", 11)]


def test_the_changelog_of_lookup_has_the_rows_before_and_after(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "id BIGINT, n INT", {"changelog-producer": "lookup", "write-only": "true"})
    table.write([{"id": 1, "n": 10}, {"id": 2, "n": 20}])
    assert tuples(table.changelog(0)) == [], "the compaction writes it"
    table.compact()
    assert tuples(table.changelog(0)) == [(1, 10, "+I"), (2, 20, "+I")]

    table.write([{"id": 1, "n": 11}])
    table.delete("id = 2")
    assert_tree(
        table,
        """
        snapshot 4: delete
        L0 2..2: 1 row, 1 delete
        L0 1..1: 1 row
        L5 1..2: 2 rows
        """,
    )

    table.compact()
    assert_tree(
        table,
        """
        snapshot 5: compact
        L5 1..1: 1 row
        """,
    )
    assert tuples(table.changelog(2)) == [(1, 10, "-U"), (1, 11, "+U"), (2, 20, "-D")]
