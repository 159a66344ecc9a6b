"""Spark's own Parquet reader on an S3 server, of a Spark that has Hadoop's file system for it and an environment that says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.java_project import JavaUnavailable
from tests.stores.hadoop_jars import hadoop_jars
from tests.stores.s3_server import SECRET

ROOT = Path(__file__).parents[2]
CLIENT = """
import json, sys
from pyspark_paimon import Table, spark_session
path, endpoint, jars = sys.argv[1:4]
conf = {"spark.jars": jars, "spark.hadoop.fs.s3a.endpoint": endpoint, "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1"}
spark = spark_session(master="local[2]", conf=conf)
told = {}
table = Table.create(path, "id BIGINT, city STRING, day STRING", primary_keys=["id", "day"], partition_keys=["day"],
                     options={"bucket": "2"}, spark=spark)
rows = spark.range(1000).selectExpr("id", "concat('c', id % 10) AS city", "concat('day ', id % 3) AS day")
table.write(rows)
table.compact(full=True)
native, ours = table.scan().to_spark(), table.scan().to_spark(native=False)
told["native"] = ["FileScan parquet" in frame._explain_string(True) for frame in (native, ours)]
told["equal"] = sorted(map(tuple, native.collect())) == sorted(map(tuple, ours.collect())) == sorted(map(tuple, rows.collect()))
told["plan"] = native._explain_string(True)
table.write(rows.where("id < 10").selectExpr("id", "'new' AS city", "day"))
table.delete("id = 999")
told["changed"] = table.scan().to_spark().groupBy("city").count().where("city = 'new'").collect()[0]["count"]
told["rows"] = table.scan().to_spark().count()
print("told " + json.dumps(told))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(1500)
def test_spark_s_own_reader_reads_files_of_a_store_that_need_no_merging(s3, warehouse):
    try:
        jars = hadoop_jars()
    except JavaUnavailable as error:
        pytest.skip(str(error))
    environment = os.environ | s3.environment() | {"PYTHONPATH": str(ROOT), "PYSPARK_PAIMON_SPARK_STORES": "s3a"}
    command = [sys.executable, "-c", CLIENT, f"{warehouse()}/default.db/t", f"http://127.0.0.1:{s3.port}", ",".join(map(str, jars))]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("told "))[5:])
    assert "s3a://" in told.pop("plan")
    assert told == {"native": [True, False], "equal": True, "changed": 10, "rows": 999}
    assert SECRET not in done.stdout + done.stderr
