"""Tables on an S3 server over Spark: the server and its workers reach it by their own environment, the client has no credentials."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENT = """
import json, sys
import pyarrow as pa
from pyspark_paimon import Catalog, Table, spark_session
warehouse = sys.argv[1]
spark = spark_session()
told = {}
table = Table.create(f"{warehouse}/default.db/t", "id BIGINT, city STRING", primary_keys=["id"], spark=spark,
                     options={"bucket": "2", "file-index.bloom-filter.columns": "city"})
told["rows"] = table.write(spark.range(1000).selectExpr("id", "concat('c', id % 10) AS city")).rows
told["upserted"] = table.write(pa.table({"id": [1, 2000], "city": ["new", "new"]})).rows
told["deleted"] = table.delete("id < 1").rows
table.compact(full=True)
told["count"] = table.scan().to_spark().count()
told["found"] = [row.id for row in table.scan("city = 'new'").to_spark().orderBy("id").collect()]
catalog = Catalog(warehouse)
told["views"] = catalog.create_views(spark)
told["sql"] = spark.sql("SELECT count(*) AS n FROM t WHERE city = 'c3'").collect()[0].n
told["opened"] = catalog.table("t", spark).scan().count()
told["problems"] = len(table.fsck("deep").problems)
dynamic = Table.create(f"{warehouse}/default.db/d", "id BIGINT, city STRING", primary_keys=["id"], spark=spark, options={"bucket": "-1"})
dynamic.write(spark.range(100).selectExpr("id", "'a' AS city"))
dynamic.write(spark.range(50, 150).selectExpr("id", "'b' AS city"))
told["dynamic"] = dynamic.scan().to_spark().count()
print("told " + json.dumps(told))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_path_of_a_session_works_on_a_store(s3, warehouse):
    environment = os.environ | s3.environment() | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, warehouse()], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("told "))[5:])
    assert told == {
        "rows": 1000,
        "upserted": 2,
        "deleted": 1,
        "count": 1000,
        "found": [1, 2000],
        "views": ["t"],
        "sql": 100,
        "opened": 1000,
        "problems": 0,
        "dynamic": 150,
    }
    assert s3.options()["s3.secret-key"] not in done.stdout + done.stderr
