"""The command line: tables for people, JSON for programs, one line for an error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from pyspark_paimon.plugins.cli import main
from tests.build import command_line

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(create) -> str:
    table = create(
        "id BIGINT, city STRING, attrs MAP<STRING, INT>",
        options={"file-index.bloom-filter.columns": "city", "file-index.bloom-filter.city.items": "99"},
    )
    attrs = pa.array([[("clicks", 3)], None], pa.map_(pa.string(), pa.int32()))
    table.write(pa.table({"id": [1, 2], "city": ["Oslo", "[bold]"], "attrs": attrs}))
    table.write(pa.table({"id": [2], "city": ["Lima"], "attrs": attrs.slice(0, 1)}))
    return table.path


def test_inspect(path, capsys) -> None:
    shown = command_line(capsys, "inspect", path)
    assert "BIGINT NOT NULL" in shown
    assert "file-index.bloom-filter.columns" in shown
    known = json.loads(command_line(capsys, "inspect", path, "--json"))
    assert known["primary_keys"] == ["id"]
    assert known["levels"][0]["files"] == 2
    assert [snapshot["snapshot_id"] for snapshot in known["snapshots"]] == [1, 2]


def test_scan(path, capsys) -> None:
    shown = command_line(capsys, "scan", path, "--filter", "attrs['clicks'] = 3", "--columns", "id,city")
    assert "Lima" in shown
    assert "2 rows of snapshot 2" in shown
    lines = command_line(capsys, "scan", path, "--json", "--snapshot", "1", "-f", "id = 2").splitlines()
    assert [json.loads(line) for line in lines] == [{"id": 2, "city": "[bold]", "attrs": None}]
    assert "[bold]" in command_line(capsys, "scan", path, "--snapshot", "1")
    assert "limit reached" in command_line(capsys, "scan", path, "-n", "1")
    first = command_line(capsys, "scan", path, "--json", "-n", "1", "--order-by", "id DESC").splitlines()
    assert [json.loads(line)["id"] for line in first] == [
        max(json.loads(line)["id"] for line in command_line(capsys, "scan", path, "--json").splitlines())
    ]


def test_explain(path, capsys) -> None:
    assert "file index" in command_line(capsys, "explain", path, "-f", "city = 'Rome'")
    explained = json.loads(command_line(capsys, "explain", path, "-f", "city = 'Rome'", "--json"))
    assert {"name", "kept", "dropped"} <= set(explained["stages"][0])


def test_compact(path, capsys) -> None:
    assert "2 files became 1" in command_line(capsys, "compact", path, "--full")
    assert "nothing to compact" in command_line(capsys, "compact", path)
    assert json.loads(command_line(capsys, "compact", path, "--json"))["snapshot_id"] is None


def test_analyze(path, capsys) -> None:
    shown = command_line(capsys, "analyze", path, "--columns", "id,city")
    assert "distinct_count" in shown
    assert "attrs" not in shown
    known = json.loads(command_line(capsys, "analyze", path, "--json"))
    assert (known["rows"], known["columns"], known["snapshot_id"]) == (2, 3, 4)
    assert {row["column"]: row["max"] for row in known["statistics"]}["id"] == "2"


def test_indexes(path, capsys) -> None:
    assert "bloom-filter" in command_line(capsys, "indexes", path)
    known = json.loads(command_line(capsys, "indexes", path, "--json"))
    assert known == {
        "indexes": [{"column": "city", "type": "bloom-filter", "options": {"items": "99"}}],
        "files": {"embedded": 2},
        "built": [{"column_name": "city", "index_type": "bloom-filter", "storage_type": "EMBEDDED", "files": 2, "bytes": 11}],
    }


def test_advice_on_indexes(path, capsys) -> None:
    shown = command_line(capsys, "index-advice", path, "city = 'Oslo'", "id % 2 = 0")
    assert "bitmap" in shown
    assert "no index serves it" in shown
    known = json.loads(command_line(capsys, "index-advice", path, "city = 'Oslo'", "--json"))
    assert {row["index_type"] for row in known["advice"]} >= {"bitmap", "bloom-filter"}


def test_indexes_and_their_health(path, capsys) -> None:
    assert "5.96%" in command_line(capsys, "indexes", path, "--health")
    known = json.loads(command_line(capsys, "indexes", path, "--health", "--json"))
    assert [(row["note"], row["files"], row["rows"]) for row in known["built"]] == [("", 2, 3)]
    assert len(known["health"]) == 2


def test_rewrite_index(path, capsys) -> None:
    assert "no index of 2 files changed" in command_line(capsys, "rewrite-index", path)
    Table.open(path).alter_options({"file-index.bitmap.columns": "id"})
    assert "2 of 2 files" in command_line(capsys, "rewrite-index", path)
    assert json.loads(command_line(capsys, "rewrite-index", path, "--json"))["rewritten"] == 0
    with pytest.raises(SystemExit) as refused:
        main(["rewrite-index", path, "--partition", "day=2024-01-31"])
    assert refused.value.code == 1
    assert "no partitions" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["inspect", "/no/such/table"], "TableNotFound: /no/such/table"),
        (["scan", "{path}", "-f", "citi = 'x'"], "UnknownColumn: unknown column 'citi', did you mean 'city'"),
        (["explain", "{path}", "-f", "city = = 'x'"], "InvalidFilter: the filter cannot be read at line 1, column 8"),
        (["scan", "{path}", "--snapshot", "7"], "SnapshotNotFound"),
    ],
)
def test_a_typed_error_is_one_line_and_exit_code_1(path, arguments, says) -> None:
    command = [sys.executable, "-m", "pyspark_paimon.plugins.cli", *(argument.format(path=path) for argument in arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(says)
    assert len(done.stderr.splitlines()) == 1


def test_a_table_is_altered_tagged_branched_and_rolled_back(path, capsys) -> None:
    for arguments in (
        (path, "add", "visits", "DECIMAL(5, 1)", "--after", "id", "--default", "0", "--comment", "how often"),
        (path, "rename", "city", "town"),
        (path, "type", "attrs.value", "BIGINT"),
        (path, "move", "town", "--first"),
        (path, "set", "target-file-size=1 mb", "write-only=true"),
        (path, "set", "write-only="),
    ):
        command_line(capsys, "alter", *arguments)
    table = Table.open(path)
    assert [f"{field.name} {field.type}" for field in table.table_schema.fields] == [
        "town STRING",
        "id BIGINT NOT NULL",
        "visits DECIMAL(5, 1)",
        "attrs MAP<STRING NOT NULL, BIGINT>",
    ]
    assert "write-only" not in table.options
    before = table.table_schema.id
    columns = "town STRING, id BIGINT NOT NULL, visits DECIMAL(5, 1), attrs MAP<STRING NOT NULL, BIGINT>"
    assert command_line(capsys, "alter", path, "set", "target-file-size=2 mb").strip() == f"schema {before + 1}: {columns}"
    answer = json.loads(command_line(capsys, "alter", path, "set", "target-file-size=3 mb", "--json"))
    assert (answer["schema_id"], answer["options"]["target-file-size"]) == (before + 2, "3 mb")
    assert [column["name"] for column in answer["columns"]] == ["town", "id", "visits", "attrs"]
    assert "tags one" in command_line(capsys, "tag", path, "one", "--snapshot", "1")
    command_line(capsys, "branch", path, "dev", "--tag", "one")
    command_line(capsys, "alter", f"{path}$branch_dev", "drop", "attrs", "--yes")
    assert json.loads(command_line(capsys, "history", path, "branches", "--json"))[0]["branch_name"] == "dev"
    assert "one" in command_line(capsys, "history", path, "tags")
    assert json.loads(command_line(capsys, "history", path, "snapshots", "--json"))[0]["snapshot_id"] == 1
    assert "1 snapshot with 1 data file" in command_line(capsys, "rollback", path, "--tag", "one", "--yes")
    assert "snapshot 1" in command_line(capsys, "scan", path)
    command_line(capsys, "branch", path, "dev", "--delete", "--yes")
    assert "nothing to do" not in command_line(capsys, "tag", path, "one", "--delete", "--yes")
    with pytest.raises(SystemExit):
        main(["history", path, "rows"])
    assert "InvalidArgument: unknown view 'rows'" in capsys.readouterr().err


def test_partitions_are_dropped_by_name(tmp_path, capsys) -> None:
    table = Table.create(tmp_path / "p", "id INT, day STRING", partition_keys=["day"])
    table.write(pa.table({"id": pa.array([1, 2], pa.int32()), "day": ["mon", "tue"]}))
    assert "day=mon" in command_line(capsys, "drop-partitions", table.path, "day=mon", "--yes")
    table.alter_options({"partition.expiration-time": "1 d"})
    assert "nothing to do" in command_line(capsys, "expire-partitions", table.path)
    assert table.scan().count() == 1
