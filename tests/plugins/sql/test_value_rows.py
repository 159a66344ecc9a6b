"""Which VALUES need no Spark, and the values that they become."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from manifest.schema.validation import build_schema
from pyspark_paimon.plugins.sql.value_rows import value_rows

SCHEMA = build_schema(
    "flag BOOLEAN, small TINYINT, n INT, big BIGINT, f FLOAT, d DOUBLE, price DECIMAL(6, 2), wide DECIMAL(38, 18), s STRING, c CHAR(3), day DATE, "
    "at TIMESTAMP, b BYTES, list ARRAY<INT>"
)


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("flag", "TRUE", True),
        ("flag", "false", False),
        ("small", "-128", -128),
        ("n", "007", 7),
        ("big", "-5000000000", -5_000_000_000),
        ("d", "0.1", 0.1),
        ("d", "-3", -3.0),
        ("price", "-0.5", Decimal("-0.50")),
        ("price", "7", Decimal("7.00")),
        ("wide", "-123456789012345678.123456789012345678", Decimal("-123456789012345678.123456789012345678")),
        ("wide", "0.000000000000000001", Decimal("0.000000000000000001")),
        ("s", "''", ""),
        ("s", "'NULL'", "NULL"),
        ("c", "'ab'", "ab"),
        ("day", "DATE '2024-02-29'", date(2024, 2, 29)),
        ("at", "NULL", None),
        ("b", "null", None),
        ("list", "NULL", None),
    ],
)
def test_a_literal_of_the_kind_of_its_column_is_its_value(column: str, text: str, value: object) -> None:
    rows = value_rows(f"VALUES ({text}), (NULL)", [column], SCHEMA)
    assert rows is not None
    assert rows.schema.field(column).type == SCHEMA.field(column).type.arrow
    assert rows.column(0).to_pylist() == [value, None]


def test_a_double_has_no_negative_zero() -> None:
    rows: Any = value_rows("VALUES (-0.0), (-0)", ["d"], SCHEMA)
    assert [math.copysign(1, value) for value in rows.column(0).to_pylist()] == [1, 1]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("flag", "1"),
        ("small", "128"),
        ("n", "2.5"),
        ("n", "TRUE"),
        ("n", "'1'"),
        ("n", "1L"),
        ("n", "1e3"),
        ("n", "1 + 1"),
        ("n", "- -1"),
        ("n", "+1"),
        ("n", "rand()"),
        ("n", "missing"),
        ("n", "`NULL`"),
        ("n", "r'NULL'"),
        ("flag", "r'true'"),
        ("n", "(SELECT 1)"),
        ("n", "1) AS v(n"),
        ("f", "0.1"),
        ("d", "9007199254740993"),
        ("d", "0.1234567890123456789"),
        ("price", "0.005"),
        ("price", "12345"),
        ("s", "1"),
        ("s", "'a' 'b'"),
        ("s", '"a"'),
        ("s", "r'a'"),
        ("s", "'it''s'"),
        ("s", "'${spark.app.name}'"),
        ("s", "'a\\n'"),
        ("s", "X'61'"),
        ("s", "upper('a')"),
        ("day", "'2024-02-29'"),
        ("day", "DATE '2023-02-29'"),
        ("day", "DATE '2024-2-9'"),
        ("day", "DATE - '2024-02-29'"),
        ("at", "TIMESTAMP '2024-02-29 00:00:00'"),
        ("b", "'a'"),
    ],
)
def test_spark_computes_other_values(column: str, text: str) -> None:
    assert value_rows(f"VALUES ({text})", [column], SCHEMA) is None


@pytest.mark.parametrize(
    "query",
    [
        "VALUES 1, 2",
        "VALUES",
        "VALUES (1)",
        "VALUES (1, 2, 3)",
        "VALUES (1, 2), (3)",
        "VALUES (1, 2),",
        "VALUES (1, 2) ORDER BY 1",
        "VALUES (1, 2) AS v(a, b)",
        "VALUES (1, 2), SELECT 1",
        "VALUES ()",
        "VALUES (1, ",
        "VALUES (1, -",
        "VALUES (1, DATE",
        "SELECT 1, 2",
        "TABLE t",
    ],
)
def test_spark_runs_queries_that_are_no_list_of_rows(query: str) -> None:
    assert value_rows(query, ["n", "big"], SCHEMA) is None


def test_a_column_that_is_named_twice_is_left_to_the_check_of_columns() -> None:
    assert value_rows("VALUES (1, 2)", ["n", "n"], SCHEMA) is None
