"""Types of values and columns in INSERT, UPDATE and MERGE: what Spark's ANSI store assignment refuses is refused, and the rest works."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pyspark_paimon import Catalog, InvalidFilter, SchemaMismatch, Table, sql
from pyspark_paimon.filter.columns import StatementText
from pyspark_paimon.plugins.sql.insert import _align_columns

pytestmark = [pytest.mark.spark, pytest.mark.slow]
VALUES = {
    "BOOLEAN": "true",
    "TINYINT": "1Y",
    "INT": "1",
    "BIGINT": "1L",
    "FLOAT": "1F",
    "DOUBLE": "1D",
    "DECIMAL(10,2)": "1.00BD",
    "STRING": "'1'",
    "BINARY": "X'31'",
    "DATE": "DATE'2020-01-01'",
    "TIMESTAMP": "TIMESTAMP_LTZ'2020-01-01 00:00:00'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ'2020-01-01 00:00:00'",
    "ARRAY<INT>": "array(1)",
    "ARRAY<STRING>": "array('1')",
    "MAP<STRING,INT>": "map('a', 1)",
    "STRUCT<a:INT>": "named_struct('a', 1)",
    "STRUCT<a:STRING>": "named_struct('a', '1')",
}
STRICTER = {
    *(
        (statement, source, "STRING")
        for statement in ("UPDATE", "MERGE")
        for source in ("FLOAT", "DOUBLE", "DECIMAL(10,2)", "BINARY", "TIMESTAMP", "TIMESTAMP_NTZ")
    ),
    ("INSERT", "BINARY", "STRING"),
    ("UPDATE", "TIMESTAMP", "DATE"),
    ("MERGE", "TIMESTAMP", "DATE"),
    ("MERGE", "ARRAY<INT>", "ARRAY<STRING>"),
    ("MERGE", "STRUCT<a:INT>", "STRUCT<a:STRING>"),
}
"""What we refuse, with a text that says how to cast, and Spark would store."""


def stores(call: Any) -> bool:
    try:
        call()
    except (SchemaMismatch, InvalidFilter):
        return False
    return True


@pytest.mark.long
@pytest.mark.timeout(900)
def test_what_spark_refuses_to_store_is_refused(spark, tmp_path):
    columns = {f"c{number}": type_ for number, type_ in enumerate(VALUES)}
    schema = spark.sql("SELECT 1L AS k, " + ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in columns.items())).schema
    table = Table.create(tmp_path / "t", schema, ["k"], options={"bucket": "1"})
    table.write([{"k": 1}], missing="null")
    wrong = []
    for name, target in columns.items():
        spark.sql(f"CREATE TABLE assigned_{name} (c {target}) USING parquet LOCATION '{tmp_path / name}'")
        for source, literal in VALUES.items():
            value = f"CAST({literal} AS {source})"
            explained = spark.sql(f"EXPLAIN INSERT INTO assigned_{name} SELECT {value} AS c").collect()
            plan = " ".join(row[0] for row in explained)  # an error has a row for each line
            rows = spark.sql(f"SELECT 1L AS k, {value} AS v")

            def insert(rows: Any = rows, name: str = name) -> None:
                frame = _align_columns(rows, ["k", name], table.table_schema, {}, by_name=False)
                table.write(frame.toArrow(), missing="null")

            def merge(rows: Any = rows, name: str = name) -> None:
                table.merge(rows.toArrow(), "k").when_matched_update({name: StatementText("s.v")}).execute()

            statements = {"INSERT": insert, "MERGE": merge}
            if "<" not in source:  # an expression has no nested literals
                statements["UPDATE"] = partial(table.update, "k = 1", set={name: StatementText(value)})
            for statement, call in statements.items():
                expected = "INCOMPATIBLE_DATA_FOR_TABLE" not in plan and (statement, source, target) not in STRICTER
                if stores(call) != expected:
                    wrong.append((statement, source, target, expected))
        spark.sql(f"DROP TABLE assigned_{name}")
    assert wrong == []


@pytest.mark.parametrize("value", ["array('1')", "map('a', 1)", "named_struct('a', 'x')"])
def test_an_insert_casts_no_nested_value_to_text_and_no_text_to_a_number_within_one(spark, tmp_path, value):
    catalog = Catalog(tmp_path)
    catalog.create_table("default.t", "id BIGINT, s STRING, a ARRAY<INT>, r ROW<a INT>", ["id"])
    for column in ("s", "a", "r"):
        with pytest.raises(SchemaMismatch, match=rf"column '{column}'.*does not store there"):
            sql(spark, f"INSERT INTO t (id, {column}) SELECT 1L, {value}", catalog=catalog)
    assert catalog.table("default.t").count() == 0
