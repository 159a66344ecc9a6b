"""Counts, extremes and sums through ``Table``: names, groups, types, mistakes, and data files that nobody opens."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import InvalidArgument, InvalidFilter, OutOfRange, Table, UnknownColumn

DDL = "day STRING, hour INT, id BIGINT, amount DECIMAL(10, 2), n INT, at TIMESTAMP(3), city STRING, tags ARRAY<STRING>"
ROWS = [
    {
        "day": day,
        "hour": hour,
        "id": number,
        "amount": Decimal(number),
        "n": None if number % 3 else -number,
        "at": datetime(2026, 1, 1 + number),  # noqa: DTZ001  # TIMESTAMP has no zone
        "city": "é" * number,
    }
    for number, (day, hour) in enumerate([("mo", 1), ("mo", 2), ("tu", 1), ("tu", 1), (None, 1)])
]


@pytest.fixture
def table(create):
    made = create(DDL, primary_keys=(), partition_keys=["day", "hour"], options={"file-index.bsi.columns": "n"})
    made.write([{**row, "tags": None} for row in ROWS])
    return made


def test_one_row_in_the_order_asked_for(table):
    found = table.scan().aggregate({"rows": "count", "amount": ["sum", "max"], "n": ["count", "sum"], "Day": "MAX", "tags": "count"})
    assert found.to_pylist() == [
        {"rows": 5, "amount_sum": 10, "amount_max": 4, "n_count": 2, "n_sum": -3, "day_max": "tu", "tags_count": 0}
    ]
    assert found.schema.field("amount_sum").type == pa.decimal128(20, 2)


def test_a_row_for_each_partition_in_order_where_there_are_rows(table):
    found = table.scan("id <> 1").aggregate({"rows": "count", "id": "sum"}, by=["hour", "day"])
    assert found.to_pylist() == [
        {"hour": 1, "day": None, "rows": 1, "id_sum": 4},
        {"hour": 1, "day": "mo", "rows": 1, "id_sum": 0},
        {"hour": 1, "day": "tu", "rows": 2, "id_sum": 5},
    ]
    assert table.scan().aggregate({"rows": "count"}, by="hour").to_pylist() == [{"hour": 1, "rows": 4}, {"hour": 2, "rows": 1}]
    assert table.scan("id > 99").aggregate({"rows": "count"}, by="day").num_rows == 0
    assert table.scan("id > 99").aggregate({"rows": "count", "id": ["min", "sum"]}).to_pylist() == [
        {"rows": 0, "id_min": None, "id_sum": None}
    ]


def test_no_data_file_is_opened_where_metadata_and_indexes_tell(table):
    for file in Path(table.path).rglob("data-*"):
        if file.suffix != ".index":
            file.unlink()
    wanted = {"rows": "count", "amount": ["min", "max"], "at": ["max", "count"], "n": ["sum", "min"], "day": ["min"], "city": "count"}
    found = table.scan("hour = 1").aggregate(wanted).to_pylist()[0]
    assert (found["rows"], found["amount_max"], found["n_sum"], found["n_min"], found["day_min"], found["city_count"]) == (
        4,
        4,
        -3,
        -3,
        "mo",
        4,
    )
    assert table.scan("n < 0").aggregate({"n": ["sum"]}).to_pylist() == [{"n_sum": -3}]


def test_changes_are_aggregated_too(create):
    table = create("id BIGINT, n INT")
    table.write([{"id": 1, "n": 5}, {"id": 2, "n": 6}])
    table.write([{"id": 2, "n": 60}])
    assert table.scan(incremental=(1, 2)).aggregate({"rows": "count", "n": "sum"}).to_pylist() == [{"rows": 1, "n_sum": 60}]
    assert table.scan().aggregate({"rows": "count", "n": ["sum", "max"]}).to_pylist() == [{"rows": 2, "n_sum": 65, "n_max": 60}]


def test_averages_are_of_the_values_that_are_known(create, tmp_path):
    table = create("id BIGINT, p STRING, n INT, d DOUBLE, m DECIMAL(10, 2), w DECIMAL(38, 10)", primary_keys=(), partition_keys=["p"])
    money = [Decimal("0.01"), Decimal("0.02"), Decimal("-9.99"), None]
    table.write(
        {
            "id": [1, 2, 3, 4],
            "p": ["a", "a", "b", "c"],
            "n": [1, 2, None, None],
            "d": [0.5, 1.0, float("inf"), None],
            "m": money,
            "w": [Decimal("9" * 28), Decimal("9" * 28), Decimal("-0.0000000001"), None],
        }
    )
    found = table.scan().aggregate({"n": "avg", "m": ["avg", "sum"], "d": ["AVG"]})
    assert found.to_pylist() == [{"n_avg": 1.5, "m_avg": Decimal("-3.320000"), "m_sum": Decimal("-9.96"), "d_avg": float("inf")}]
    assert table.scan().aggregate({"n": "mean", "m": ["average", "total"], "d": ["Mean"]}).equals(found)
    assert table.scan().aggregate({"n": ["minimum", "maximum"]}).to_pylist() == [{"n_min": 1, "n_max": 2}]
    assert found.schema.field("m_avg").type == pa.decimal128(14, 6)
    by = table.scan().aggregate({"m": "avg", "n": "avg", "w": "avg"}, by="p")
    assert by["m_avg"].to_pylist() == [Decimal("0.015000"), Decimal("-9.990000"), None]
    assert by["n_avg"].to_pylist() == [1.5, None, None]
    assert by["w_avg"].to_pylist() == [Decimal("9" * 28), Decimal("-0.0000000001"), None]
    third = table.scan("id <> 2").aggregate({"m": "avg"})["m_avg"].to_pylist()
    assert third == [Decimal("-4.990000")]
    thirds = Table.create(tmp_path / "thirds", "m DECIMAL(3, 0)")
    thirds.write({"m": [Decimal(-1), Decimal(-1), Decimal(0)]})
    assert thirds.scan().aggregate({"m": "avg"})["m_avg"].to_pylist() == [Decimal("-0.6667")]


def test_a_sum_that_does_not_fit_is_an_error(create):
    table = create("id BIGINT, d DECIMAL(38, 0)")
    table.write([{"id": 2**63 - 1, "d": Decimal(10**38 - 1)}, {"id": 1, "d": Decimal(1)}])
    for column, text in (("id", "9223372036854775808, too large for BIGINT"), ("d", "1" + "0" * 38 + r", too large for DECIMAL\(38, 0\)")):
        with pytest.raises(OutOfRange, match=f"the sum of column '{column}' is {text}"):
            table.scan().aggregate({column: "sum"})


@pytest.mark.parametrize(
    ("wanted", "by", "error", "said"),
    [
        ({}, (), InvalidArgument, "must be a dict like"),
        ("count", (), InvalidArgument, "must be a dict like"),
        ({"amount": "median"}, (), InvalidArgument, "'median' of 'amount' is unknown; use one of count, min, max, sum, avg"),
        ({"city": "avg"}, (), InvalidArgument, "column 'city' of type STRING has no avg"),
        ({"amount": []}, (), InvalidArgument, "must be one of count, min, max, sum"),
        ({"city": "sum"}, (), InvalidArgument, "column 'city' of type STRING has no sum"),
        ({"tags": ["min"]}, (), InvalidArgument, "column 'tags' of type ARRAY<STRING> has no min"),
        ({"amuont": "max"}, (), UnknownColumn, "did you mean 'amount'"),
        ({"n": "count"}, "tags", InvalidArgument, "'tags' of type ARRAY cannot be grouped"),
        ({"n": "count"}, {"n": "sum(n)"}, InvalidFilter, "by 'n'"),
        ({"n": "count", "amount": "min"}, {"amount_min": "city"}, InvalidArgument, "two result columns have the name 'amount_min'"),
        ({"n": "count"}, "dya", UnknownColumn, "did you mean 'day'"),
        ({"n": "count"}, 7, InvalidArgument, "by is"),
        (
            {"day": "count", "n": "count", "day_count": "count"},
            (),
            InvalidArgument,
            "two result columns have the name 'day_count'",
        ),
    ],
)
def test_mistakes_are_named(table, wanted, by, error, said):
    with pytest.raises(error, match=said):
        table.scan().aggregate(wanted, by=by)


def test_a_limit_leaves_no_certain_rows(table):
    with pytest.raises(InvalidArgument, match="a scan with a limit"):
        table.scan(limit=1).aggregate({"n": "count"})


@pytest.mark.parametrize(
    ("old", "values", "new", "extremes"),
    [
        ("STRING", ["9", "10", None], "INT", (9, 10)),
        ("INT", [9, 10, None], "STRING", ("10", "9")),
        ("DOUBLE", [2.5, -1.5, None], "INT", (-1, 2)),
        ("INT", [9, 10, None], "BIGINT", (9, 10)),
    ],
)
def test_extremes_of_a_column_that_got_another_type_are_those_of_its_values_now(tmp_path, old, values, new, extremes):
    table = Table.create(tmp_path / "t", f"id INT, n {old}")
    table.write([{"id": at, "n": value} for at, value in enumerate(values)])
    found = table.change_type("n", new, force=True).scan().aggregate({"n": ["min", "max", "count"]}).to_pylist()
    assert found == [{"n_min": extremes[0], "n_max": extremes[1], "n_count": 2}]
