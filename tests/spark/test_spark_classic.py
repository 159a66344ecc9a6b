from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from fileindex.predicate.json import to_json
from pyspark_paimon.filter.parse import parse_filter
from pyspark_paimon.spark.client.session import java_version, package_root
from tests.pyspark_paimon.filter.test_filter_column import REFUSED, SAME, TYPES

pytestmark = pytest.mark.spark

PROGRAM = """
import json, sys
import pyarrow as pa
from pyspark.sql import SparkSession
import pyspark_paimon.pandas as pp
from pyspark_paimon import CommitConflict, SchemaMismatch, Table

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
spark = builder.config("spark.sql.session.timeZone", "America/St_Johns").getOrCreate()
table = Table.create(sys.argv[1], "id BIGINT, at TIMESTAMP(6) WITH LOCAL TIME ZONE", primary_keys=["id"], options={"bucket": "2"}, spark=spark)
table.write(spark.sql("SELECT id, timestamp_seconds(id * 1000) AS at FROM range(100)"))
table.write(pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us", tz="UTC"))}))
compacted = table.compact(full=True)
try:
    table.write(spark.range(1).selectExpr("current_timestamp() AS at"))
    refused = None
except SchemaMismatch as error:
    refused = str(error)
frame = spark.read.format("paimon").load(sys.argv[1])
instants = {row.id: int(row.at.timestamp()) for row in frame.where("id < 3").collect()}
psdf = pp.read_paimon(sys.argv[1], index_col="id", filter="id < 2")
rewritten = pp.to_paimon(psdf.assign(at=psdf["at"]), sys.argv[1]).rows
again = {row.id: int(row.at.timestamp()) for row in spark.read.format("paimon").load(sys.argv[1]).where("id < 3").collect()}
print(json.dumps([type(spark).__module__, table.scan().count(), compacted.buckets, refused, instants, table.scan("id = 2").to_arrow().num_rows, rewritten, again]))
"""


@pytest.mark.long
def test_a_classic_session_in_another_time_zone_works_like_a_connect_one(tmp_path):
    if (java_version() or 0) < 17:
        pytest.skip("Spark tests need Java 17 or newer")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
    environment |= {"PYTHONPATH": package_root(), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    module, count, buckets, refused, instants, found, rewritten, again = json.loads(done.stdout.strip().splitlines()[-1])
    assert module == "pyspark.sql.session"
    assert (count, buckets, found, rewritten) == (100, 2, 1, 2)
    assert again == instants
    assert "missing" in refused
    assert instants == {"0": 0, "1": 0, "2": 2000}


COLUMNS = f"""
import sys, json, datetime as dt
from decimal import Decimal
from pyspark.sql import SparkSession, functions as sf
sys.path.insert(0, {str(package_root())!r})
from tests.pyspark_paimon.filter.test_filter_column import SAME, REFUSED, TYPES, json_of
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC").getOrCreate()
print(json.dumps({{text: json_of(eval(text)) for text in [*SAME, *REFUSED]}}))
"""


CATALOG = """
import sys
from pyspark.sql import SparkSession
import pyspark_paimon
from pyspark_paimon import Catalog, InvalidArgument, Table

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
catalog = Catalog(sys.argv[1])
pyspark_paimon.sql(spark, "CREATE TABLE t (a INT, b STRING)", catalog=catalog)
pyspark_paimon.sql(spark, "INSERT INTO t VALUES (1, 'x'), (2, 'y')", catalog=catalog)
assert [tuple(row) for row in pyspark_paimon.sql(spark, "SELECT count(*), max(a) FROM t", catalog=catalog).collect()] == [(2, 2)]
assert catalog.table("t", spark).scan("a = 2").count() == 1
assert Catalog(sys.argv[1], {"table-default.bucket": "-1"}).table("t", spark).scan().count() == 2
try:
    Table.open("s3://bucket/t", spark, storage_options={"s3.access-key": "x", "s3.secret-key": "y"})
except InvalidArgument as error:
    assert "classic session" in str(error), error
else:
    raise AssertionError
"""


@pytest.mark.long
def test_a_catalog_serves_a_classic_session(tmp_path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
    environment |= {"PYTHONPATH": package_root(), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-W", "ignore", "-c", CATALOG, str(tmp_path / "warehouse")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.long
def test_a_classic_column_says_what_sql_says() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", COLUMNS], cwd=package_root(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {text: found[text] for text in SAME} == {text: to_json(parse_filter(SAME[text], TYPES)) for text in SAME}
    assert all(found[text].startswith("refused: ") for text in REFUSED)
