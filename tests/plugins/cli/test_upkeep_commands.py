"""Commands that delete: they ask first, run dry, and are told to do it by cron."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
import typer

from pyspark_paimon import Table
from pyspark_paimon.plugins.cli import main
from tests.build import command_line


@pytest.fixture
def path(tmp_path) -> str:
    options = {"bucket": 1, "write-only": True}
    table = Table.create(str(tmp_path / "t"), "id BIGINT, city STRING, PRIMARY KEY (id)", options=options)
    for turn in range(3):
        table.write(pa.table({"id": [turn, 9], "city": [f"c{turn}", "x"]}))
    return table.path


def ids(path):
    return sorted(Table.open(path).scan().to_arrow()["id"].to_pylist())


def test_a_delete_runs_dry_asks_and_is_undone(path, capsys, monkeypatch) -> None:
    assert "3 rows would be deleted" in command_line(capsys, "delete", path, "-f", "city LIKE 'c%'", "--dry-run")
    assert "there is no terminal to ask" in command_line(capsys, "delete", path, "-f", "city LIKE 'c%'", code=1)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda question, **_: "3 rows" not in question)
    assert "no row was deleted" in command_line(capsys, "delete", path, "-f", "city LIKE 'c%'")
    assert ids(path) == [0, 1, 2, 9]
    assert json.loads(command_line(capsys, "delete", path, "-f", "city LIKE 'c%'", "--yes", "--json"))["rows"] == 3
    assert ids(path) == [9]
    assert "restored by snapshot 5" in command_line(capsys, "restore", path, "--snapshot", "3", "--yes")
    assert ids(path) == [0, 1, 2, 9]
    assert "the states are the same" in command_line(capsys, "restore", path, "--snapshot", "5", "--yes")


def test_snapshots_expire_by_command(path, capsys) -> None:
    given = ("expire-snapshots", path, "--retain", "1", "--older-than", "2100-01-01")
    assert "2 snapshots would be deleted" in command_line(capsys, *given, "--dry-run")
    assert Table.open(path).snapshots().num_rows == 3
    assert json.loads(command_line(capsys, *given, "--yes", "--json"))["snapshots"] == 2
    assert "nothing to do" in command_line(capsys, *given)


def test_orphans_are_listed_and_removed(path, capsys, tmp_path) -> None:
    left = tmp_path / "t" / "bucket-0" / "data-left-0.parquet"
    left.write_bytes(b"12345")
    assert json.loads(command_line(capsys, "orphans", path, "--json"))["files"] == []
    given = ("orphans", path, "--older-than", "2100-01-01")
    assert "1 found" in command_line(capsys, *given)
    assert left.exists()
    assert "1 deleted" in command_line(capsys, *given, "--remove", "--yes")
    assert not left.exists()


def test_one_round_of_upkeep(path, capsys) -> None:
    assert "would be deleted" in command_line(capsys, "maintain", path, "--dry-run")
    done = json.loads(command_line(capsys, "maintain", path, "--full", "--yes", "--json"))
    assert (done["compacted"]["files_after"], done["errors"]) == (1, {})
    assert ids(path) == [0, 1, 2, 9]
    for file in Table.open(path).files()["file_name"].to_pylist():
        next(Path(path).rglob(file)).unlink()
    Table.open(path).write(pa.table({"id": [4], "city": ["y"]}))
    assert command_line(capsys, "maintain", path, "--full", "--yes", code=1) == ""


def test_what_can_be_repaired_is_shown_and_repaired(path, capsys) -> None:
    hint = Path(path, "snapshot", "LATEST")
    hint.write_text("77")
    with pytest.raises(SystemExit, match="1"):
        main(("fsck", path, "--repair", "--dry-run"))
    assert "would be repaired" in capsys.readouterr().out
    assert "there is no terminal to ask" in command_line(capsys, "fsck", path, "--repair", code=2)
    assert hint.read_text() == "77"
    told = command_line(capsys, "fsck", path, "--repair", "--yes")
    assert "write-hint" in told
    assert f"copies of the changed files: {path}/_repair/" in told
    assert json.loads(command_line(capsys, "fsck", path, "--repair", "--json"))["repairs"] == []
    assert hint.read_text() == "3"
