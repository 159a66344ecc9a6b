"""A thin client of another Python version against a standalone cluster of two workers: see ``cluster_client.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pyspark_paimon import __version__
from pyspark_paimon.spark.client.session import package_root

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]  # the first test waits for the cluster and its client

SHIPPED = """
import json, sys
import pyarrow as pa
from pyspark_paimon import SourceMissing, Table, install, spark_session

spark = spark_session(sys.argv[1])
try:
    Table.open(sys.argv[2], spark=spark)
    missing = None
except SourceMissing as error:
    missing = str(error)
first, again = install(spark), install(spark)
table = Table.create(sys.argv[2], "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "2"}, spark=spark)
table.write(pa.table({"id": range(100), "v": ["a"] * 100}))
table.write(spark.range(50, 150).selectExpr("id", "'b' AS v"))
compacted = table.compact(full=True).buckets
counts = {row.v: row["count"] for row in spark.read.format("paimon").load(sys.argv[2]).groupBy("v").count().collect()}
print(json.dumps({"missing": missing, "first": first.model_dump(), "same": first == again, "buckets": compacted, "counts": counts}))
"""

REFUSED = """
import json, sys
from pyspark_paimon import InstallRefused, install, spark_session

try:
    print(json.dumps(install(spark_session(sys.argv[1])).model_dump()))
except InstallRefused as error:
    print(json.dumps(str(error)))
"""


def test_the_client_is_thin_and_of_another_python_where_there_is_one(told, cluster):
    from thin_client import interpreter

    assert told["java"] is None
    assert (tuple(told["python"]) != sys.version_info[:2]) == (interpreter() != sys.executable)
    assert (len(cluster.workers), len(cluster.executors)) == (2, 2)


def test_it_creates_writes_compacts_reads_and_deletes(told):
    assert told["counts"] == {"a": 500, "b": 1000}
    assert told["unique name"] == 1500
    assert told["found"] == [{"id": 700, "v": "b"}]
    assert (told["compacted"], told["left"], told["merged"]) == (2, 1490, [2, 1002])


def test_it_writes_and_reads_variants(told):
    assert told["variants"] == [None, '{"a":[1,"x"]}', '{"a":3}', '{"a":4}']
    assert told["variant paths"] == [None, None, 3, 4]


def test_a_token_is_asked_for_and_never_shown(told):
    for case in ("wrong token", "no token"):
        kind, text = told[case]
        assert kind == "SparkUnavailable"
        assert "asks for a token" in text
        assert "hunter2" not in text


def test_an_address_where_nobody_listens_is_named_at_once(told):
    kind, text = told["nobody there"]
    assert kind == "SparkUnavailable"
    assert "sc://localhost:9: no Spark Connect server answers" in text
    assert "hunter2" not in text


def test_the_same_address_has_one_session_and_another_one_on_request(told):
    assert told["again the same"]
    assert told["new session"]
    assert told["settings"] == ["2", "5"]
    assert told["other sees"]


def test_where_the_package_is_installed_nothing_is_shipped(told):
    assert told["install"]["shipped"] is None


@pytest.mark.long
def test_the_package_is_shipped_to_a_server_that_lacks_it_if_the_client_has_its_python(cluster, tmp_path):
    from thin_client import interpreter

    hidden = tmp_path / "hidden"  # an editable install puts a checkout on every Python's path, perhaps another one: not on this server's
    hidden.mkdir()
    code = "import os, sys; sys.path[:] = [path for path in sys.path if not os.path.isdir(os.path.join(path, 'pyspark_paimon'))]\n"
    (hidden / "sitecustomize.py").write_text(code)
    cluster.start_server({"PYTHONPATH": str(hidden)}, master="local[1]")
    try:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        command = [sys.executable, "-c", SHIPPED, cluster.url, str(tmp_path / "t")]
        environment["PYTHONPATH"] = package_root()
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        refused = json.loads(cluster.client(REFUSED)) if interpreter() != sys.executable else None
    finally:
        cluster.stop_server()
    told = json.loads(done.stdout)
    assert f"pip install pyspark-paimon=={__version__}" in told["missing"]
    assert told["first"]["shipped"].startswith(f"pyspark_paimon-{__version__}-")
    assert "writeStream" in told["first"]["limits"][0]
    assert told["same"]
    assert (told["buckets"], told["counts"]) == (2, {"a": 50, "b": 100})
    if refused is not None:
        assert f"the server runs Python {sys.version_info[0]}.{sys.version_info[1]} and this client 3." in refused
