"""Filters on fields of structs, elements and entries: every method, every kind of table and every format of files."""

from __future__ import annotations

import math

import polars as pl
import pyarrow.compute as pc
import pytest

from paimon_base.errors import FilterFailed, UnknownColumn
from pyspark_paimon import Table
from tests.build import ids

SCHEMA = "id BIGINT, s STRUCT<a BIGINT, t STRING, n STRUCT<b BOOLEAN, d DOUBLE>>, ar ARRAY<BIGINT>, m MAP<INT, STRING>"
ROWS = [
    {
        "id": at,
        "s": None
        if at % 7 == 0
        else {
            "a": None if at % 5 == 0 else at,
            "t": f"x{at % 3}",
            "n": None if at % 4 == 0 else {"b": at % 2 == 1, "d": math.nan if at % 3 else -0.0},
        },
        "ar": None if at % 11 == 0 else [at, None] if at % 3 else [],
        "m": [(at % 4, f"v{at}"), (9, None)],
    }
    for at in range(300)
]
KINDS = {
    "append": ((), {}),
    "keyed": (("id",), {"bucket": "2", "write-only": "true"}),
    "vectors": (("id",), {"bucket": "2", "deletion-vectors.enabled": "true"}),
    "append vectors": ((), {"deletion-vectors.enabled": "true"}),
    "orc": (("id",), {"bucket": "1", "file.format": "orc"}),
    "avro": ((), {"file.format": "avro"}),
}


def field(row, *names):
    for name in names:
        row = None if row is None else row[name]
    return row


FILTERS = {
    "s.a = 11": lambda row: field(row, "s", "a") == 11,
    "s.A > 150.5 AND id < 200": lambda row: (field(row, "s", "a") or 0) > 150.5 and row["id"] < 200,
    "s.n.b AND s.t = 'x1'": lambda row: bool(field(row, "s", "n", "b")) and row["s"]["t"] == "x1",
    "NOT s.n.b": lambda row: field(row, "s", "n", "b") is False,
    "s.n.d = 0.0": lambda row: field(row, "s", "n", "d") == 0,
    "isnan(s.n.d)": lambda row: field(row, "s", "n", "d") is not None and math.isnan(row["s"]["n"]["d"]),
    "s.a IS NULL": lambda row: field(row, "s", "a") is None,
    "s.n IS NOT NULL": lambda row: field(row, "s", "n") is not None,
    "size(ar) = 0": lambda row: row["ar"] == [],
    "array_contains(ar, 11) OR array_contains(ar, s.a) AND id < 9": lambda row: row["id"] in {1, 2, 4, 8},
    "size(ar) > 0 AND ar[0] BETWEEN 20 AND 25": lambda row: row["id"] in {20, 23, 25},
    "m[2] RLIKE '^v1.$'": lambda row: row["id"] in {10, 14, 18},
}


@pytest.fixture
def table(create, request) -> Table:
    keys, options = KINDS[request.param]
    made = create(SCHEMA, primary_keys=keys, options=options)
    made.write(ROWS[:200])
    made.write(ROWS[200:])
    if keys:
        made.write(ROWS[:10])
    return made


@pytest.mark.parametrize("table", KINDS, indirect=True)
def test_every_read_applies_conditions_on_parts_of_columns(table: Table) -> None:
    for text, holds in FILTERS.items():
        wanted = [row["id"] for row in ROWS if holds(row)]
        assert wanted, text
        scan = table.scan(text, columns=["id"])
        assert ids(scan) == wanted, text
        assert scan.count() == len(wanted), text
        assert scan.aggregate({"id": ["sum", "count"]}).to_pylist() == [{"id_sum": sum(wanted), "id_count": len(wanted)}], text
        assert table.scan(text, order_by="id", limit=3, columns=["id"]).to_arrow()["id"].to_pylist() == wanted[:3], text
    assert table.scan(pc.field("s", "n", "b") & (pc.field("s", "a") < 9), columns=["id"], order_by="id").to_arrow()["id"].to_pylist() == [
        1,
        3,
    ]
    assert table.scan(pl.col("s").struct.field("a") == 11).count() == 1


@pytest.mark.parametrize("table", KINDS, indirect=True)
def test_every_change_applies_conditions_on_parts_of_columns(table: Table) -> None:
    gone = [row["id"] for row in ROWS if field(row, "s", "t") == "x2"]
    changed = [row["id"] for row in ROWS if row["ar"] == [] and row["id"] not in gone]
    assert table.delete("s.t = 'x2'").rows == len(gone)
    assert table.update("size(ar) = 0", set={"m": "NULL"}).rows == len(changed)
    assert table.count() == len(ROWS) - len(gone)
    assert table.scan("s.t = 'x2'").count() == 0
    assert ids(table.scan("m IS NULL", columns=["id"])) == changed


def test_fields_of_older_files_are_those_of_the_table(create) -> None:
    table = create("id BIGINT, s STRUCT<a INT, old STRING>", primary_keys=())
    table.write([{"id": 1, "s": {"a": 1, "old": "x"}}, {"id": 2, "s": None}])
    table.rename_column(["s", "old"], "name").add_column(["s", "later"], "INT").change_type(["s", "a"], "BIGINT")
    table.write([{"id": 3, "s": {"a": 2**40, "name": "x", "later": 7}}])
    for text, wanted in (("s.name = 'x'", [1, 3]), ("s.later IS NULL", [1, 2]), ("s.a > 0", [1, 3]), ("s.a > 1", [3])):
        assert ids(table.scan(text)) == wanted
    assert table.scan("s.old = 'x'", snapshot=1).count() == 1
    with pytest.raises(UnknownColumn, match=r"s\.old"):
        table.scan("s.old = 'x'")


def test_an_element_that_is_not_there_is_an_error_and_get_gives_null(create) -> None:
    table = create(SCHEMA, primary_keys=())
    table.write(ROWS[:10])
    with pytest.raises(FilterFailed, match=r"get\(array, index\)"):
        table.scan("ar[0] = 1").to_arrow()
    assert table.scan("get(ar, 0) = 1").count() == 1
    with pytest.raises(UnknownColumn, match=r"s\.z"):
        table.scan("s.z = 1")
