"""Merge engines over Spark: tasks fold as a table opened in process does, and kinds of rows travel with them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from pyspark_paimon import InvalidArgument, Table, UnmergeableRows, UnsupportedTable
from tests.build import tuples

pytestmark = pytest.mark.spark


def test_tasks_aggregate_and_take_back(spark, tmp_path):
    options = {"bucket": "2", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.a.aggregate-function": "collect"}
    table = Table.create(tmp_path / "t", "id BIGINT, n INT, a ARRAY<INT>", primary_keys=["id"], options=options, spark=spark)
    table.write(spark.sql("SELECT id, int(id) AS n, array(int(id)) AS a FROM range(4)"))
    table.write(spark.sql("SELECT id, 10 AS n, array(7) AS a, if(id = 3, '-U', '+U') AS _row_kind FROM range(2, 4)"))
    expected = [(0, 0, [0]), (1, 1, [1]), (2, 12, [2, 7]), (3, -7, [3])]
    served = Table.open(table.path)
    assert tuples(table) == tuples(served) == expected
    table.compact(full=True)
    assert tuples(table) == tuples(served) == expected
    for opened in (table, served):
        with pytest.raises(UnsupportedTable, match="aggregation"):
            opened.delete("id = 1")


@pytest.mark.slow
def test_columns_are_set_whatever_folds_them(spark, tmp_path, set_thresholds):
    set_thresholds(fetched_merge_rows=-1)
    options = {"bucket": "1", "merge-engine": "partial-update", "fields.at.sequence-group": "n,c", "fields.n.aggregate-function": "sum"}
    table = Table.create(tmp_path / "t", "id BIGINT, n INT, c STRING, at INT, o STRING", primary_keys=["id"], options=options, spark=spark)
    table.write([{"id": 1, "n": 5, "c": "a", "at": 1, "o": "x"}, {"id": 2, "n": 5, "c": "b", "at": 1, "o": "y"}])
    table.update("id = 1", set={"n": sf.col("n") * 2, "c": None})
    assert tuples(table) == [(1, 10, None, 1, "x"), (2, 5, "b", 1, "y")]
    source = spark.sql("SELECT id, 7 AS n FROM range(1, 3)")
    table.merge(source, "id").when_matched_update({"n": "s.n"}, "s.id = 1").when_matched_update({"o": "'z'"}).execute()
    assert tuples(table) == tuples(Table.open(table.path)) == [(1, 7, None, 1, "x"), (2, 5, "b", 1, "z")]
    with pytest.raises(InvalidArgument, match="'o' cannot be set to null"):
        table.merge(source, "id").when_matched_update({"o": "nullif('a', 'a')"}).execute()
    with pytest.raises(InvalidArgument, match="'at' orders the versions of a row"):
        table.update("TRUE", set={"at": sf.col("at") - 1})
    table.write([{"id": 3, "n": 5, "c": "c", "o": "w"}], missing="null")
    with pytest.raises(InvalidArgument, match=r"'n, c' has values where 'at'.* is null: the next version loses them"):
        table.update("id = 3", values={"o": "v"})
    table.update("id = 3", values={"at": 1, "o": "v"})
    assert tuples(table) == [(1, 7, None, 1, "x"), (2, 5, "b", 1, "z"), (3, 5, "c", 1, "v")]


def test_kinds_in_a_column_of_the_table_delete_rows(spark, tmp_path):
    options = {"bucket": "2", "merge-engine": "partial-update", "rowkind.field": "op", "partial-update.remove-record-on-delete": "true"}
    table = Table.create(tmp_path / "t", "id BIGINT, a INT, b INT, op STRING", primary_keys=["id"], options=options, spark=spark)
    table.write(spark.sql("SELECT id, 1 AS a, int(NULL) AS b, '+I' AS op FROM range(3)"))
    table.write(spark.sql("SELECT id, 2 AS b, if(id = 0, '-D', '+U') AS op FROM range(2)"))
    assert tuples(table) == tuples(Table.open(table.path)) == [(1, 1, 2, "+U"), (2, 1, None, "+I")]


def test_rows_that_cannot_be_folded_are_refused_by_the_task(spark, tmp_path):
    options = {"bucket": "1", "merge-engine": "first-row"}
    table = Table.create(tmp_path / "t", "id BIGINT", primary_keys=["id"], options=options, spark=spark)
    with pytest.raises(UnmergeableRows, match="'-U'"):
        table.write(pa.table({"id": [1], "_row_kind": ["-U"]}))
    assert table.snapshots().num_rows == 0
