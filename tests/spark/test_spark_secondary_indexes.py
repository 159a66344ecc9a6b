"""Secondary indexes over Spark: built by compactions in tasks, used by plans of the server, read by tasks."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark.sql.datasource")

from pyspark_paimon import Table

pytestmark = [pytest.mark.spark, pytest.mark.slow]
OFF = {"global-index.enabled": "false"}
OPTIONS = {
    "bucket": "2",
    "deletion-vectors.enabled": "true",
    "pk-btree.index.columns": "city,n",
    "pk-bitmap.index.columns": "kind",
    "num-sorted-run.compaction-trigger": "3",
}
FILTERS = ("city = 'c7'", "city LIKE 'c1%' AND kind = 'a'", "n BETWEEN 20 AND 30 OR kind IS NULL", "NOT city IN ('c1', 'c2')")


@pytest.fixture
def tables(spark, tmp_path) -> tuple[Table, Table]:
    """The same table over Spark and in process."""
    path = str(tmp_path / "t")
    made = Table.create(path, "id BIGINT, city STRING, n INT, kind STRING", primary_keys=["id"], options=OPTIONS)
    return Table.open(path, spark=spark), made


def write(table: Table, spark, first: int, last: int) -> None:
    kind = "CASE id % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' END"
    table.write(spark.range(first, last).selectExpr("id", "concat('c', id % 50) AS city", "CAST(id % 40 AS INT) AS n", f"{kind} AS kind"))


def test_tasks_build_indexes_and_every_engine_answers_from_them(spark, tables) -> None:
    table, in_process = tables
    write(table, spark, 0, 600)
    write(table, spark, 300, 900)
    table.delete("city = 'c3'")
    table.compact(full=True)
    notes = [stage.note for stage in in_process.scan("city = 'c7'").explain().stages if stage.name == "secondary index"]
    assert notes[0].endswith("18 rows selected")
    for filter_ in FILTERS:
        wanted = sorted(row["id"] for row in in_process.scan(filter_, options=OFF).to_arrow().to_pylist())
        assert sorted(row["id"] for row in table.scan(filter_).to_arrow().to_pylist()) == wanted
        assert sorted(row["id"] for row in table.scan(filter_).to_spark().collect()) == wanted
        assert table.scan(filter_).count() == in_process.scan(filter_).count() == len(wanted)
    assert [note for note in (stage.note for stage in table.scan("city = 'c7'").explain().stages) if "rows selected" in note]
    assert table.scan(order_by="n DESC", limit=3).to_arrow()["n"].to_pylist() == [39, 39, 39]
    assert table.fsck("deep").problems == ()
