"""What a lookup and a scan read of the tree, step by step."""

from __future__ import annotations

from pathlib import Path

from pyspark_paimon import Table
from tests.build import COLUMNS, assert_tree, cities, ids, keyed


def stages(table: Table, condition: str) -> str:
    """Show the stages of a scan that drop files or rows: what they keep, of how many."""
    explained = table.scan(condition).explain()
    return "; ".join(f"{stage.name} {stage.kept} of {stage.kept + stage.dropped}" for stage in explained.stages if stage.dropped)


def test_a_lookup_takes_the_newest_version_of_each_key(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write(cities([1, 2, 3], "Oslo"))
    table.compact(full=True)
    table.write(cities([2], "Rome"))
    table.delete("id = 3")
    assert_tree(
        table,
        """
        snapshot 4: delete
        L0 3..3: 1 row, 1 delete
        L0 2..2: 1 row
        L5 1..3: 3 rows
        """,
    )
    assert table.lookup([1, 2, 3, 4]).to_pylist() == [{"id": 1, "city": "Oslo-1"}, {"id": 2, "city": "Rome-2"}]
    assert table.lookup([2], snapshot=2).to_pylist() == [{"id": 2, "city": "Oslo-2"}]


def test_a_scan_drops_files_by_statistics_and_indexes_before_their_rows(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", COLUMNS, options={"file-index.bitmap.columns": "city"})
    table.write(cities([1, 2, 9], "Oslo"))
    table.write(cities([3, 4, 8], "Oslo"))
    table.write(cities([4, 5, 6], "Rome"))
    assert_tree(
        table,
        """
        snapshot 3: append
        file: 3 rows, bitmap(city)
        file: 3 rows, bitmap(city)
        file: 3 rows, bitmap(city)
        """,
    )
    assert ids(table.scan("id = 4")) == [4, 4]
    assert stages(table, "id = 4") == "rows 2 of 9", "all files may have it"
    assert stages(table, "id = 7") == "manifest ranges 2 of 3; rows 0 of 6"
    assert stages(table, "city = 'Oslo-4'") == "manifest ranges 2 of 3; embedded index 1 of 2; rows 1 of 3"
    assert stages(table, "city = 'Oslo-4' AND id = 7") == "manifest ranges 2 of 3; embedded index 1 of 2; rows 0 of 3"


def test_an_index_that_comes_later_is_built_by_rewriting_it_alone(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", COLUMNS)
    table.write(cities([1, 2, 9]))
    table.write(cities([3, 4, 8]))
    data = sorted((tmp_path / "t/bucket-0").glob("data-*.parquet"))
    assert stages(table, "city = 'Oslo-4'") == "rows 1 of 6"

    table = table.alter_options({"file-index.bitmap.columns": "city"})
    table.rewrite_file_index()
    assert_tree(
        table,
        """
        snapshot 3: rewrite-file-index
        file: 3 rows, bitmap(city)
        file: 3 rows, bitmap(city)
        """,
    )
    assert sorted((tmp_path / "t/bucket-0").glob("data-*.parquet")) == data, "no row is written again"
    assert stages(table, "city = 'Oslo-4'") == "embedded index 1 of 2; rows 1 of 3"


def test_keys_choose_runs_and_metadata_counts_what_has_no_versions(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.write(cities(range(10)))
    table.compact(full=True)
    table.write(cities([20, 21]))
    assert_tree(
        table,
        """
        snapshot 3: upsert
        L0 20..21: 2 rows
        L5 0..9: 10 rows
        """,
    )
    assert stages(table, "id = 21") == "manifest ranges 1 of 3; rows 1 of 2"
    assert table.count() == 12
    assert table.scan(order_by="id DESC", limit=2).to_arrow()["id"].to_pylist() == [21, 20]
