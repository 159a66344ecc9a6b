"""The program that the tests of the cluster have a thin client run, and what it finds out there."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from pyspark_paimon import Table

PROGRAM = """
import json, shutil, sys

import pyarrow as pa, pyspark
from pyspark_paimon import Table, Variant, install, spark_session, sql
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.errors import raise_typed_errors

url, folder, outside = sys.argv[1:4]
address, _, token = url.partition("/;token=")
told = {"python": sys.version_info[:2], "java": shutil.which("java"), "jars": hasattr(pyspark, "SparkContext")}


def error_of(work):
    try:
        with raise_typed_errors():
            return ["no error", str(work())]
    except Exception as error:
        return [type(error).__name__, str(error).split("JVM stacktrace")[0][:600]]


# --- who may connect
told["wrong token"] = error_of(lambda: spark_session(address, token="hunter2"))
told["no token"] = error_of(lambda: spark_session(address))
told["nobody there"] = error_of(lambda: spark_session("sc://localhost:9", token="hunter2"))
spark = spark_session(address.replace("localhost", "127.0.0.1"), token=token)
told["again the same"] = spark_session(address, token=token) is spark

# --- a table, from first to last
table = Table.create(f"{folder}/t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "2"}, spark=spark)
table.write(pa.table({"id": range(1000), "v": ["a"] * 1000}))
table.write(spark.range(500, 1500).selectExpr("id", "'b' AS v"))
told["compacted"] = table.compact(full=True).buckets
told["counts"] = {row.v: row["count"] for row in spark.read.format("paimon").load(f"{folder}/t").groupBy("v").count().collect()}
told["unique name"] = spark.read.format("pyspark_paimon").load(f"{folder}/t").count()
told["found"] = table.scan("id = 700").to_arrow().to_pylist()
told["deleted"] = table.delete("id < 10").rows
told["left"] = table.scan().count()
merged = table.merge(spark.range(10, 12).selectExpr("id", "'b' AS v"), on="id").when_matched_update_all().execute()
told["merged"] = [merged.updated, sql(spark, f"SELECT count(*) FROM paimon.`{folder}/t` VERSION AS OF {merged.snapshot_id} WHERE v = 'b'").first()[0]]
told["install"] = install(spark).model_dump()

# --- VARIANT
documents = Table.create(f"{folder}/documents", "id INT, v VARIANT", spark=spark)
documents.write([{"id": 1, "v": None}, {"id": 2, "v": {"a": [1, "x"]}}])
documents.write(spark.range(3, 5).selectExpr("CAST(id AS INT) AS id", "parse_json('{\\"a\\": ' || id || '}') AS v"))
told["variants"] = Variant.json_array(documents.scan().to_arrow().sort_by("id")["v"]).to_pylist()
told["variant paths"] = [row[0] for row in spark.read.format("paimon").load(f"{folder}/documents").selectExpr("try_variant_get(v, '$.a', 'int') AS a").orderBy("id").collect()]

# --- two sessions
other = spark_session(address, token=token, new=True, conf={"spark.sql.shuffle.partitions": "5"})
told["new session"] = other is not spark
told["settings"] = [each.conf.get("spark.sql.shuffle.partitions") for each in (spark, other)]
told["other sees"] = Table.open(f"{folder}/t", spark=other).scan().snapshot_id == table.scan().snapshot_id

# --- what the server allows
told["outside"] = {
    "open": error_of(lambda: Table.open(f"{outside}/t", spark=spark)),
    "create": error_of(lambda: Table.create(f"{outside}/new", "id INT", primary_keys=["id"], spark=spark)),
    "read": error_of(lambda: spark.read.format("paimon").load(f"{outside}/t").count()),
    "write": error_of(lambda: spark.range(1).selectExpr("id", "'x' AS v").write.format("paimon").mode("append").save(f"{outside}/t")),
    "dots": error_of(lambda: spark.read.format("paimon").load(f"{folder}/../../../../../../../../..{outside}/t").schema),
    "link": error_of(lambda: spark.read.format("paimon").load(f"{folder}/link").schema),
    "branch": error_of(lambda: spark.read.format("paimon").option("branch", "dev").load(f"{outside}/t").schema),
    "sql": error_of(lambda: spark.sql(f"CREATE TABLE outer_one USING paimon OPTIONS (path '{outside}/t')")),
}
conf = {"spark.executorEnv.PYSPARK_PAIMON_ROOTS": "/", "spark.driverEnv.PYSPARK_PAIMON_ROOTS": "/", "PYSPARK_PAIMON_ROOTS": "/"}
told["modifiable"] = [key for key in conf if spark.conf.isModifiable(key)]
for key, value in conf.items():
    error_of(lambda: spark.conf.set(key, value))
told["after settings"] = error_of(lambda: spark.read.format("paimon").options(**{"PYSPARK_PAIMON_ROOTS": "/"}).load(f"{outside}/t").schema)
told["task"] = error_of(lambda: spark.read.format("paimon").load(f"{folder}/half").selectExpr("sum(id)").collect())

# --- secrets in options
told["secret"] = error_of(lambda: spark.read.format("paimon").load("s3://AKIA:hunter2@bucket/t").schema)
told["secret option"] = error_of(lambda: spark.read.format("paimon").option("s3.secret-key", "hunter2").load(f"{folder}/t").schema)
told["pickle"] = error_of(lambda: spark.read.format("paimon").option(rpc.QUESTION, "gASVIAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAR0cnVllIWUUpQu").load(f"{folder}/t").schema)
print(json.dumps(told))
"""


def found_out(cluster, tmp_path_factory):
    """Run the program; what it told, and ``outside``, the directory that the server does not allow."""
    import pyarrow as pa

    folder = tmp_path_factory.mktemp("told")
    with tempfile.TemporaryDirectory(prefix="not-allowed-") as outside:
        for where, name in ((outside, "t"), (folder, "half")):
            table = Table.create(f"{where}/{name}", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
            table.write(pa.table({"id": [1, 2], "v": ["a", "b"]}))
        (folder / "link").symlink_to(outside)
        (folder / "half" / "bucket-0").rename(Path(outside) / "bucket-0")  # the driver plans it; the tasks' own files are elsewhere
        (folder / "half" / "bucket-0").symlink_to(Path(outside) / "bucket-0")
        said = cluster.client(PROGRAM, str(folder), outside)
        left = sorted(path.name for path in Path(outside).iterdir())
    return {**json.loads(said.strip().splitlines()[-1]), "place inside": str(folder), "place outside": outside, "left outside": left}
