"""Names of outputs over Spark mean what they mean in this process, and in Spark's own ORDER BY."""

from __future__ import annotations

import pytest

from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Table
from pyspark_paimon.frames.spark_functions import quote_name
from tests.output_names import DDL, OUTPUTS, Question, groups, ordered, rows, summary

pytestmark = pytest.mark.spark
NAMES = ("V", "`W`", "r.x", "`A.B`", "m['k']")
QUESTIONS = [question for outputs in OUTPUTS for name in NAMES if (question := Question(outputs, name)).meaning is not None]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    table = Table.create(tmp_path_factory.mktemp("names") / "t", DDL)
    stored = rows()
    table.write(stored[:5])
    table.write(stored[5:])
    return table.path


def top(question: Question) -> list[tuple]:
    return [plain(question.shown(row)) for row in ordered(question, rows(), descending=True)[:4]]


def plain(row) -> tuple:
    return tuple(value for value in row.values() if not isinstance(value, list | dict))


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_scans_over_spark_agree_with_the_model(spark, path, question) -> None:
    table = Table.open(path, spark=spark)
    scan = table.scan(columns=question.columns, order_by=[f"{question.name} DESC", "id DESC"], limit=4)
    assert [plain(row.asDict(recursive=True)) for row in scan.to_spark().collect()] == top(question)
    with use_thresholds(driver_bytes=0 if question.name == "V" else 1 << 20):
        assert [plain(row) for row in scan.to_arrow().to_pylist()] == top(question)
        unsorted = table.scan(columns=question.columns)
        by = unsorted.aggregate({"rows": "count"}, by=question.name).to_pylist()
        assert [dict(zip(("key", "n"), row.values(), strict=True)) for row in by] == groups(question, rows())
        totals = unsorted.aggregate({question.name: ["count", "min", "max", "sum", "count_distinct"]}).to_pylist()
        assert list(totals[0].values()) == summary(question, rows())


@pytest.mark.slow
def test_the_model_is_the_order_by_of_spark(spark, path) -> None:
    spark.createDataFrame(Table.open(path).scan().to_arrow()).createOrReplaceTempView("stored_rows")
    for question in QUESTIONS:
        if question.name in (question.outputs or {}):  # Spark reads r.x as a field
            continue
        columns = {name: name for name in ("id", "v", "w")} if question.columns is None else question.columns
        shown = ", ".join(f"{sql} AS {quote_name(name)}" for name, sql in columns.items())
        found = spark.sql(f"SELECT {shown} FROM stored_rows ORDER BY {question.name} DESC, id DESC LIMIT 4").collect()
        expected = [tuple(question.shown(row)[name] for name in columns) for row in ordered(question, rows(), descending=True)[:4]]
        assert [tuple(row) for row in found] == expected, (question.columns, question.name)
