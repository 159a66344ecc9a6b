from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
import json, shutil, sys
import pyarrow as pa, pyspark
from pyspark_paimon import Table, spark_session

spark = spark_session(sys.argv[1])
table = Table.create(sys.argv[2], "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "2"}, spark=spark)
table.write(pa.table({"id": range(1000), "v": ["a"] * 1000}))
table.write(spark.range(500, 1500).selectExpr("id", "'b' AS v"))
compacted = table.compact(full=True)
counts = {row.v: row["count"] for row in table.scan().to_spark().groupBy("v").count().collect()}
print(json.dumps({
    "python": sys.version_info[:2], "java": shutil.which("java"), "jars": hasattr(pyspark, "SparkContext"),
    "counts": counts, "buckets": compacted.buckets, "found": table.scan("id = 700").to_arrow().to_pylist(),
    "executors": len(set(map(str, spark.range(0, 8, 1, 8).selectExpr("current_timestamp()").collect()))),
}))
"""


def test_a_thin_client_of_another_python_writes_compacts_and_reads_on_two_workers(cluster, tmp_path):
    said = json.loads(cluster.client(PROGRAM, str(tmp_path / "t")))
    assert said["counts"] == {"a": 500, "b": 1000}
    assert said["found"] == [{"id": 700, "v": "b"}]
    assert said["buckets"] == 2
    assert said["java"] is None
    assert len(cluster.executors) == 2
    assert len(cluster.workers) == 2
