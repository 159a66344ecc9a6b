"""Filters on parts of columns over Spark: rows, counts, frames and changes are those of a table in this process."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from paimon_base.errors import OutOfRange
from pyspark_paimon import Table
from tests.pyspark_paimon.table.test_nested_filters import FILTERS, KINDS, ROWS, SCHEMA

pytestmark = pytest.mark.spark


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["append", "keyed"])
def test_filters_on_parts_of_columns_hold_over_spark(spark, tmp_path, kind) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    keys, options = KINDS[kind]
    Table.create(f"{tmp_path}/t", SCHEMA, primary_keys=keys, options=options).write(ROWS)
    table = Table.open(f"{tmp_path}/t", spark=spark)
    for text, holds in FILTERS.items():
        wanted = [row["id"] for row in ROWS if holds(row)]
        scan = table.scan(text, columns=["id"])
        assert sorted(row.id for row in scan.to_spark().collect()) == wanted, text
        assert scan.count() == len(wanted), text
    assert table.scan((F.col("s.a") == 13) & F.col("s")["t"].isNotNull() & F.array_contains("ar", 13)).to_arrow()["id"].to_pylist() == [13]
    assert table.scan("s.a = 11").aggregate({"id": "sum"}).to_pylist() == [{"id_sum": 11}]
    gone = sum(row["s"] is not None and row["s"]["t"] == "x2" for row in ROWS)
    assert table.delete("s.t = 'x2'").rows == gone
    assert table.update("size(ar) = 0 AND s.a > 1", set={"m": "NULL", "ar": "NULL"}).rows > 0
    assert table.scan("s.t = 'x2' OR size(ar) = 0 AND s.a > 1").count() == 0


def test_computed_columns_of_frames_are_those_of_arrow(spark, tmp_path) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    Table.create(f"{tmp_path}/t", SCHEMA, primary_keys=["id"], options={"bucket": "2"}).write(ROWS)
    table, local = Table.open(f"{tmp_path}/t", spark=spark), Table.open(f"{tmp_path}/t")
    for columns in (
        ["id", "s.a", "s.n", "m[9]", "get(ar, 0)"],
        {"id": "id", "x": "s.a * 2 + 1", "y": "upper(s.t)", "z": "size(ar)", "w": "m[2]", "b": "s.n.d = 0.0", "one": "1"},
    ):
        wanted = sorted(map(repr, local.scan("id < 90", columns=columns).to_arrow().to_pylist()))
        scan = table.scan("id < 90", columns=columns)
        assert sorted(map(repr, scan.to_arrow().to_pylist())) == wanted
        assert sorted(map(repr, scan.to_spark().toArrow().to_pylist())) == wanted
        assert scan.to_spark().columns == scan.schema.names
    assert table.scan("id = 13", columns={"x": F.col("s.a") + 1}).to_arrow().to_pylist() == [{"x": 14}]


@pytest.mark.slow
def test_groups_over_spark_are_those_in_process(spark, tmp_path) -> None:
    made = Table.create(
        f"{tmp_path}/t",
        "id INT, f FLOAT, d DOUBLE, s STRING, b BOOLEAN, dec DECIMAL(38, 2), small DECIMAL(6, 3), l BIGINT, ts TIMESTAMP(6), z TIMESTAMP_LTZ(6)",
    )
    values = {
        "f": [0.0, -0.0, float("nan"), None, 1.5],
        "d": [float("nan"), None, -0.0, 0.0, float("inf"), 2.5, -7.0],
        "s": ["", None, "a", "é", "\uffff", "\U0001f600"],
        "b": [True, None, False],
        "dec": [Decimal("9" * 35 + ".99"), Decimal("-1.01"), None, Decimal("0.05")],
        "small": [Decimal("1.005"), None, Decimal("-999.999")],
        "l": [2**63 - 1, -(2**63), None, 1],
        "ts": [dt.datetime(2024, 1, 1), None, dt.datetime(1960, 1, 1, microsecond=1)],  # noqa: DTZ001
        "z": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None, dt.datetime(1960, 1, 1, microsecond=1, tzinfo=dt.UTC)],
    }
    made.write([{"id": at, **{name: some[at % len(some)] for name, some in values.items()}} for at in range(500)])
    table = Table.open(f"{tmp_path}/t", spark=spark)
    wanted = {
        "n": "count",
        "small": ["sum", "avg", "min"],
        "id": ["sum", "avg", "max"],
        "d": ["min", "max", "count"],
        "f": ["min", "max"],
        "ts": ["min", "max"],
        "z": "max",
        "s": ["min", "max"],
        "b": "max",
    }
    for by in ("f", "s", ["d", "b"], "dec", "ts", "z", "l", {"odd": "id % 2 = 1", "day": "date(ts)"}):
        ours, theirs = made.scan("id > 7").aggregate(wanted, by=by), table.scan("id > 7").aggregate(wanted, by=by)
        assert theirs.schema == ours.schema
        assert list(map(repr, theirs.to_pylist())) == list(map(repr, ours.to_pylist())), by
    for by in ((), "f", ["d", "b"], {"odd": "id % 2 = 1"}):
        distinct = {"s": "count_distinct", "f": ["count_distinct", "count"], "ts": "count_distinct", "rows": "count"}
        ours, theirs = made.scan("id > 7").aggregate(distinct, by=by), table.scan("id > 7").aggregate(distinct, by=by)
        assert (theirs.schema, list(map(repr, theirs.to_pylist()))) == (ours.schema, list(map(repr, ours.to_pylist()))), by
    assert made.scan("l <> 1").aggregate({"l": "avg"}, by="b").equals(table.scan("l <> 1").aggregate({"l": "avg"}, by="b"))
    for wrong in ("dec", "l"):
        for one in (made, table):
            with pytest.raises(OutOfRange, match=f"column '{wrong}'"):
                one.scan(f"{wrong} > 1").aggregate({wrong: "sum"}, by="b")
