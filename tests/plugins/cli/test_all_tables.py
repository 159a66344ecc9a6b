"""``--all``: one command for every table of a warehouse, whose lines mail of cron shows whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paimon_base.plugins import plugin
from pyspark_paimon import Catalog, InvalidArgument, TableOutcome

pytestmark = pytest.mark.local_files


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Two databases; shop.broken has lost its newest snapshot file, and shop.worn a data file."""
    catalog = Catalog(tmp_path / "w")
    for database in ("shop", "web"):
        catalog.create_database(database)
    for name in ("shop.orders", "shop.broken", "shop.worn", "web.clicks"):
        table = catalog.create_table(name, "id BIGINT", options={"write-only": "true"})
        for key in range(3):
            table.write([{"id": key}])
    (tmp_path / "w" / "shop.db" / "broken" / "schema" / "schema-0").write_text("{")
    next((tmp_path / "w" / "shop.db" / "worn").rglob("data-*.parquet")).unlink()
    return tmp_path / "w"


def run(capsys: Any, *arguments: str, code: int = 0) -> str:
    """Run a command and return what it prints, whatever its exit code."""
    with pytest.raises(SystemExit) as ended:
        plugin("command", "pyspark-paimon")(list(arguments))
    printed = capsys.readouterr()
    assert ended.value.code == code, printed.err
    return str(printed.out)


def test_one_broken_table_stops_no_other(warehouse: Path) -> None:
    seen: list[TableOutcome] = []
    result = Catalog(warehouse).fsck(threads=3, on_outcome=seen.append)
    assert tuple(seen) == result.tables
    assert [(outcome.table, outcome.status) for outcome in result.tables] == [
        ("shop.broken", "failed"),
        ("shop.orders", "ok"),
        ("shop.worn", "problems"),
        ("web.clicks", "ok"),
    ]
    assert not result.clean
    assert result.to_arrow().num_rows == 4


@pytest.mark.parametrize("threads", [1, 4])
def test_maintenance_cares_for_the_others(warehouse: Path, threads: int) -> None:
    catalog = Catalog(warehouse)
    result = catalog.maintenance(full=True, threads=threads)
    status = {outcome.table: outcome.status for outcome in result.tables}
    assert status["shop.broken"] == "failed"
    assert status["shop.orders"] == status["web.clicks"] == "ok"
    assert catalog.table("web.clicks").files().num_rows == 1
    assert {outcome.table: outcome.figures.get("compacted_files") for outcome in result.tables}["web.clicks"] == 3


def test_one_database_is_cared_for_alone(warehouse: Path) -> None:
    catalog = Catalog(warehouse)
    expired = catalog.expire_snapshots("web", retain=1)
    assert [(outcome.table, outcome.figures["expired_snapshots"]) for outcome in expired.tables] == [("web.clicks", 2)]
    assert catalog.table("shop.orders").snapshots().num_rows == 3
    with pytest.raises(InvalidArgument, match="threads"):
        catalog.inspect(threads=0)


def test_lines_fit_mail_and_the_exit_code_says_what_happened(warehouse: Path, capsys: Any) -> None:
    lines = run(capsys, "fsck", str(warehouse), "--all", "--quick", code=2).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith("fsck of 4 tables in ")
    assert "1 failed" in lines[-1]
    assert run(capsys, "fsck", f"{warehouse}/web.db", "--all").startswith("ok       web.clicks ")
    assert run(capsys, "inspect", "web", "--all", "--warehouse", str(warehouse)).startswith("ok       web.clicks ")


def test_json_is_a_line_for_each_table_and_a_summary(warehouse: Path, capsys: Any) -> None:
    *tables, summary = map(json.loads, run(capsys, "inspect", "*", "--all", "--warehouse", str(warehouse), "--json", code=2).splitlines())
    assert [table["table"] for table in tables] == ["shop.broken", "shop.orders", "shop.worn", "web.clicks"]
    assert tables[1]["figures"] | {"bytes": 0, "snapshot_age_seconds": 0} == {
        "rows": 3,
        "files": 3,
        "bytes": 0,
        "level_0_files": 3,
        "snapshots": 3,
        "snapshot_age_seconds": 0,
    }
    assert (summary["operation"], summary["tables"], summary["clean"]) == ("inspect", 4, False)


def test_alerts_have_a_file_of_figures(warehouse: Path, capsys: Any, tmp_path: Path) -> None:
    target = tmp_path / "paimon.prom"
    run(capsys, "fsck", str(warehouse), "--all", "--quick", "--prometheus", str(target), code=2)
    lines = target.read_text().splitlines()
    assert 'paimon_table_ok{operation="fsck",table="shop.orders"} 1' in lines
    assert 'paimon_table_ok{operation="fsck",table="shop.worn"} 0' in lines
    assert 'paimon_table_problems{operation="fsck",table="shop.worn"} 1' in lines
    assert lines.count("# TYPE paimon_table_ok gauge") == 1
    assert any(line.startswith('paimon_run_timestamp_seconds{operation="fsck"} ') for line in lines)


def test_nothing_changes_without_yes_or_in_a_dry_run(warehouse: Path, capsys: Any) -> None:
    run(capsys, "maintain", f"{warehouse}/web.db", "--all", code=1)
    run(capsys, "expire-snapshots", f"{warehouse}/web.db", "--all", "--retain", "1", "--dry-run")
    assert Catalog(warehouse).table("web.clicks").snapshots().num_rows == 3
    run(capsys, "expire-snapshots", f"{warehouse}/web.db", "--all", "--retain", "1", "--yes")
    assert Catalog(warehouse).table("web.clicks").snapshots().num_rows == 1
