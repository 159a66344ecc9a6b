"""Double quotes make texts in Spark's SQL: what is meant as a column is not compared as a text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyspark_paimon import InvalidFilter, Table
from pyspark_paimon.filter.from_arrow import arrow_condition
from pyspark_paimon.filter.parse import bind_filter
from tests.build import keyed

ROWS = [
    {"id": 1, "city": "Oslo", "ok": True, "attrs": {"city": 1}, "a b": "x"},
    {"id": 2, "city": "Lima", "ok": False, "attrs": None, "a b": None},
]


@pytest.fixture
def table(tmp_path: Any) -> Table:
    made = keyed(tmp_path / "t", "id BIGINT, city STRING, ok BOOLEAN, attrs MAP<STRING, INT>, `a b` STRING")
    made.write(ROWS)
    return made


NAMED = [
    "\"city\" <> 'Oslo'", "'Oslo' = \"city\"", "\"CITY\" <> 'Oslo'", "\"city\" IN ('a', 'b')", "\"city\" NOT IN ('a')", "\"city\" LIKE 'O%'",
    "\"city\" NOT LIKE 'O%'", "NOT (\"city\" = 'Oslo')", "id > 0 AND \"city\" <> 'Oslo'", "id = 9 OR \"city\" BETWEEN 'a' AND 'z'",
    "upper(\"city\") <> 'OSLO'", "\"city\" <=> 'Oslo'", '"id" < 5', '"city" IS NOT NULL', "\"a b\" <> 'x'", 'city = "city"',
    "CASE WHEN \"city\" = 'x' THEN FALSE ELSE TRUE END", '"city" <> city', "\"city\" RLIKE 'x'", 'length("city") > 1',
]  # fmt: skip
UNNAMED = [
    "'town' <> 'Oslo'", "\"town\" <> 'Oslo'", "\"town\" IN ('a')", "\"town\" NOT LIKE 'O%'", "NOT (\"town\" BETWEEN 'a' AND 'b')",
    "upper('town') <> 'Oslo'", "id > 0 OR 'x' = 'x'", "\"town\" <=> 'x'", "coalesce('town', 'x') <> 'Oslo'", "NOT 'town' <=> 'x'", "'1' = 1",
]  # fmt: skip


@pytest.mark.parametrize("condition", NAMED)
def test_a_columns_name_in_double_quotes_is_refused(table: Table, condition: str) -> None:
    for use in (table.delete, table.scan, lambda text: table.update(text, set={"ok": None})):
        with pytest.raises(InvalidFilter, match=r"is a text, .*write `(city|id|a b)` for the column"):
            use(condition)
    assert table.count() == 2


@pytest.mark.parametrize("condition", UNNAMED)
def test_a_text_that_is_compared_with_no_column_is_refused(table: Table, condition: str) -> None:
    for use in (table.delete, table.scan, lambda text: table.update(text, set={"ok": None})):
        with pytest.raises(InvalidFilter, match=r"in backticks|different types"):
            use(condition)
    assert table.count() == 2


@pytest.mark.parametrize(
    ("condition", "params", "ids"),
    [
        ('city = "Oslo"', None, [1]),
        ("`city` <> 'Oslo'", None, [2]),
        ('attrs["city"] = 1', None, [1]),
        ("1 = 1 AND id = 2", None, [2]),
        ("city IN (\"Oslo\", 'it''s \"city\"')", None, [1]),
        ("city <> 'say \"city\"'", None, [1, 2]),
        (":country = 'NO' AND id = 1", {"country": "NO"}, [1]),
        ("TIMESTAMP '2024-01-01' < TIMESTAMP '2024-01-02' AND id = 1", None, [1]),
        ("TRUE", None, [1, 2]),
    ],
)
def test_what_is_meant_is_read(table: Table, condition: str, params: Any, ids: list[int]) -> None:
    assert sorted(table.scan(condition, params=params).to_arrow()["id"].to_pylist()) == ids


def test_merges_refuse_them_too(table: Table) -> None:
    source = pa.table({"id": [1], "city": ["x"]})
    for on in ("t.id = s.id AND \"city\" <> 'Oslo'", "t.id = s.id AND 'x' <> 'y'"):
        with pytest.raises(InvalidFilter, match="write `"):
            table.merge(source, on=on)
    merge = table.merge(source, on="id")
    with pytest.raises(InvalidFilter, match="write `city`"):
        merge.when_matched_delete("\"city\" <> 'Oslo'")
    with pytest.raises(InvalidFilter, match="write `city`"):
        merge.when_matched_update({"city": 'upper("city")'})


def test_columns_of_spark_refuse_them_too(table: Table) -> None:
    functions = pytest.importorskip("pyspark.sql.connect.functions")
    for condition in (
        functions.expr("\"city\" <> 'Oslo'"),
        (functions.col("id") > 0) & functions.expr("\"CITY\" <> 'Oslo'"),
        functions.lit("city") != "Oslo",
    ):
        with pytest.raises(InvalidFilter, match=r"write `city`|has no column"):
            table.delete(condition)
    assert table.count() == 2


def test_two_literals_of_arrow_are_refused(table: Table) -> None:
    expression = pc.not_equal(pc.utf8_upper(pc.field("city")), "OSLO") | pc.not_equal(pc.scalar("city"), pc.scalar("Oslo"))
    with pytest.raises(InvalidFilter, match="has no column"):
        bind_filter(expression, table.table_schema.column_types)
    assert arrow_condition(expression) is not None
