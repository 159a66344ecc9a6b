"""Commands that show, drop and branch tables, and show changes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pyspark_paimon import Catalog, Table
from pyspark_paimon.plugins.cli import main
from tests.build import command_line


@pytest.fixture
def warehouse(tmp_path) -> Path:
    catalog = Catalog(tmp_path)
    for database in ("a", "b"):
        catalog.create_database(database)
        for name in ("t", "u"):
            table = catalog.create_table(f"{database}.{name}", "id INT, s STRUCT<a INT>", ["id"], options={"bucket": "1"})
            table.write([{"id": 1, "s": {"a": 1}}, {"id": 2, "s": None}])
    return tmp_path


def test_the_tables_of_a_warehouse_are_listed(warehouse, capsys) -> None:
    every = [{"database": database, "table": name} for database in ("a", "b") for name in ("t", "u")]
    assert [one for one in json.loads(command_line(capsys, "list", warehouse, "--json")) if one["database"] in {"a", "b"}] == every
    assert json.loads(command_line(capsys, "list", "b", "--warehouse", warehouse, "--json")) == every[2:]
    assert "│ b" in command_line(capsys, "list", warehouse)
    assert "give the directory of a warehouse" in command_line(capsys, "list", code=1)


def test_a_table_is_dropped_when_that_is_confirmed(warehouse, capsys) -> None:
    told = command_line(capsys, "drop", "a.t", "--warehouse", warehouse, "--dry-run")
    assert "a.t would be deleted" in told
    assert Catalog(warehouse).list_tables("a") == ["t", "u"]
    assert "a.t is deleted" in command_line(capsys, "drop", "a.t", "--warehouse", warehouse, "--yes")
    assert "b.u is deleted" in command_line(capsys, "drop", warehouse / "b.db" / "u", "--yes")
    assert (Catalog(warehouse).list_tables("a"), Catalog(warehouse).list_tables("b")) == (["u"], ["t"])
    assert not (warehouse / "b.db" / "u").exists()
    elsewhere = Table.create(warehouse / "alone", "id INT")
    assert "does not end with DATABASE.db/TABLE" in command_line(capsys, "drop", elsewhere.path, "--yes", code=1)
    assert "TableNotFound" in command_line(capsys, "drop", warehouse / "a.db" / "none", "--yes", code=1)
    (warehouse / "a.db" / "mine").mkdir()
    (warehouse / "a.db" / "mine" / "notes.txt").write_text("x")
    command_line(capsys, "drop", warehouse / "a.db" / "mine", "--yes", code=1)
    assert (warehouse / "a.db" / "mine" / "notes.txt").exists()


def test_changes_are_shown_and_written(warehouse, capsys, tmp_path) -> None:
    path = warehouse / "a.db" / "t"
    table = Table.open(path)
    table.delete("id = 1")
    table.write([{"id": 3, "s": {"a": 3}}])
    table.create_tag("end")
    wanted = table.changelog(1).to_arrow().to_pylist()
    lines = command_line(capsys, "changelog", path, "1", "--json").splitlines()
    assert [json.loads(line) for line in lines] == wanted
    assert "2 rows of snapshot" in command_line(capsys, "changelog", path, 1, "end")
    assert [json.loads(line)["id"] for line in command_line(capsys, "changelog", path, 1, "-f", "s.a = 3", "--json").splitlines()] == [3]
    file = tmp_path / "changes.parquet"
    assert f"2 rows of snapshot 3 in {file}" in command_line(capsys, "changelog", path, 1, "-o", file, "-c", "id")
    assert pq.read_table(file).column_names == ["id", "_row_kind"]
    assert "1 row of snapshot" in command_line(capsys, "changelog", path, 1, "-n", "1")
    assert "SnapshotNotFound" in command_line(capsys, "changelog", path, "nowhere", code=1)


def test_rows_of_lookups_and_histories_are_written_to_files(warehouse, capsys, tmp_path) -> None:
    path, file = warehouse / "a.db" / "t", tmp_path / "found.jsonl"
    command_line(capsys, "lookup", path, "2", "1", "-o", file)
    assert [json.loads(line)["id"] for line in file.read_text().splitlines()] == [2, 1]
    command_line(capsys, "history", path, "snapshots", "-o", tmp_path / "history.parquet")
    assert pq.read_table(tmp_path / "history.parquet")["snapshot_id"].to_pylist() == [1]
    assert json.loads(command_line(capsys, "scan", path, "-c", "id,s.a", "-f", "s.a = 1", "--json")) == {"id": 1, "s.a": 1}
    assert "not a known format" in command_line(capsys, "lookup", path, "1", "-o", tmp_path / "x.doc", code=1)


def test_a_branch_starts_with_the_newest_rows_unless_told_otherwise(warehouse, capsys) -> None:
    path = warehouse / "a.db" / "t"
    table = Table.open(path)
    assert "trial would be created from snapshot 1" in command_line(capsys, "branch", path, "trial", "--dry-run")
    assert "branch trial is created from snapshot 1" in command_line(capsys, "branch", path, "trial")
    assert "branch bare is created empty" in command_line(capsys, "branch", path, "bare", "--empty")
    trial = Table.open(path, branch="trial")
    assert (trial.count(), Table.open(path, branch="bare").count()) == (2, 0)
    assert (table.tags().num_rows, trial.tags().num_rows) == (0, 0)
    table.write([{"id": at, "s": None} for at in range(9)])
    table.compact(full=True)
    table.expire_snapshots(retain_max=1, retain_min=1, older_than="2100-01-01")
    assert trial.scan(order_by="id").to_arrow()["id"].to_pylist() == [1, 2], "its files outlive the snapshots of the table"
    assert trial.fsck().problems == ()
    empty = Table.create(warehouse / "a.db" / "e", "id INT")
    assert "is created empty" in command_line(capsys, "branch", empty.path, "b")
    assert "--empty and --tag" in command_line(capsys, "branch", path, "c", "--empty", "--tag", "x", code=1)


def test_the_table_stands_before_what_is_altered(warehouse, capsys) -> None:
    path = warehouse / "a.db" / "t"
    assert "n INT" in command_line(capsys, "alter", path, "add", "n", "INT")
    with pytest.raises(SystemExit):
        main(["alter", str(path), "add", "--help"])
    told = capsys.readouterr().out
    assert "alter TABLE add" in told
    assert "alter TABLE add [OPTIONS] {COLUMN} {TYPE}" in " ".join(told.split())
    for words in (["alter", "--help"], ["alter", str(path)], ["alter", str(path), "--help"]):
        with pytest.raises(SystemExit):
            main(words)
        assert "rename" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["alter", "add", str(path), "n", "INT"])
    assert "No such command" in capsys.readouterr().err
