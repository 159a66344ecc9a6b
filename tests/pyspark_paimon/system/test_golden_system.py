"""System tables are those of the engine: its columns, types and rows, recorded beside the golden tables."""

import json
import time

import pyarrow as pa
import pytest

from manifest.io.paths import SYSTEM_TABLES
from pyspark_paimon import Table
from pyspark_paimon.system.texts import type_text
from tests.golden_rows import GOLDEN, canonical_rows, golden_rows

RECORDED = {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(GOLDEN.glob("*/system.json"))}


@pytest.fixture(autouse=True)
def clock_of_the_engine(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_there_are_those_of_the_engine():
    assert len(RECORDED) == 9
    assert {name for found in RECORDED.values() for name in found} == {*SYSTEM_TABLES} - {"row_tracking"}, "that one is of evolved tables"


def alike(lines):
    """Rows with the options of ``$schemas`` in one order: the engine keeps them in one of its own."""
    rows = [json.loads(line) for line in lines]
    return [{**row, "options": json.loads(row["options"])} if row.get("options") else row for row in rows]


@pytest.mark.parametrize("golden", RECORDED)
def test_columns_and_rows_are_the_engines(golden):
    root = str(GOLDEN / golden / "table")
    for name, expected in RECORDED[golden].items():
        table = Table.open(f"{root}${name}")
        schema = table.table_schema
        assert [(field.name, type_text(field.type)) for field in schema.fields] == [(c["name"], c["type"]) for c in expected["columns"]]
        rows = table.scan().to_arrow()
        assert rows.schema == schema.arrow
        if "file_path" in rows.schema.names:
            short = [path.removeprefix(f"{root}/") for path in rows["file_path"].to_pylist()]
            rows = rows.set_column(rows.schema.get_field_index("file_path"), rows.schema.field("file_path"), pa.array(short))
        assert alike(golden_rows(rows, schema)) == alike(canonical_rows(expected["rows"], schema)), name
        assert table.count() == len(expected["rows"])
