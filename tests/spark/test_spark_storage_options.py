"""Credentials that a client gives: they reach driver and tasks of its session, and nothing that is shown, logged or kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.catalogs.server import TOKEN, CatalogServer
from tests.stores.local_server import free_port
from tests.stores.s3_server import IDENTITY, SECRET

ROOT = Path(__file__).parents[2]
CLIENT = """
import json, os, sys, traceback, urllib.request
from pyspark_paimon import Catalog, Table, spark_session, sql
told = json.load(sys.stdin)
path, options, seen, results = told["path"], told["options"], [], {}
ui = {"spark.ui.enabled": "true", "spark.ui.port": str(told["ui"]), "spark.eventLog.enabled": "true", "spark.eventLog.dir": told["events"],
      "spark.log.level": "INFO", "spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false", "spark.sql.shuffle.partitions": "2"}
spark = spark_session(master="local[2]", conf=ui)

def fails(call):
    try:
        call()
    except Exception as error:
        seen.append(traceback.format_exc() + repr(error))
        return type(error).__name__
    return "nothing"

def explained(frame):
    import contextlib, io
    with contextlib.redirect_stdout(io.StringIO()) as text:
        frame.explain("extended")
    seen.append(text.getvalue())

results["without"] = fails(lambda: Table.open(path, spark))
table = Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "2"}, spark=spark, storage_options=options)
results["rows"] = table.write(spark.range(1000).selectExpr("id", "concat('c', id % 10) AS city")).rows
results["count"] = table.scan().to_spark().count()
explained(table.scan("city = 'new'").to_spark())
other = spark_session(new=True, storage_options=options)
plain = other.read.format("paimon").load(path)
explained(plain)
results["plain"] = plain.count()
third = spark_session(new=True)
results["stranger"] = fails(lambda: third.read.format("paimon").load(path).count())
results["wrong"] = fails(lambda: Table.open(path, third, storage_options=options | {"s3.secret-key": "b" * 20}).scan().count())
results["renewed"] = Table.open(path, third, storage_options=options).scan().count()
results["in a plan"] = fails(lambda: third.read.format("paimon").option("s3.endpoint", options["s3.endpoint"]).load(path).count())
results["lent"] = fails(lambda: Table.open(path, third, storage_options={"s3.endpoint": "http://127.0.0.1:9"}))
rest = Catalog.create(told["rest"])
rest.create_table("r", "id BIGINT", primary_keys=["id"], options={"bucket": "1"})
named = rest.table("r", spark)
named.write(spark.range(100))
explained(named.scan("id < 5").to_spark())
results["rest"] = spark.read.format("paimon").load(named.path).count()
results["sql"] = sql(spark, "SELECT count(*) FROM r WHERE id >= 50", catalog=rest).first()[0]
results["rest stranger"] = fails(lambda: Table.open(named.path, third))
forged = dict(told["rest"], token="c" * 20)
results["forged"] = fails(lambda: Catalog.create(forged))
base = f"http://127.0.0.1:{told['ui']}"
pages = ["/jobs/", "/stages/", "/environment/", "/SQL/", "/connect/", "/executors/"]
listed = json.loads(urllib.request.urlopen(base + "/api/v1/applications").read())
rest = f"/api/v1/applications/{listed[0]['id']}"
queries = json.loads(urllib.request.urlopen(base + rest + "/sql?length=1000").read())
pages += [rest + "/environment", rest + "/jobs", rest + "/stages", rest + "/sql?length=1000&details=true"]
pages += [f"/SQL/execution/?id={query['id']}" for query in queries]
for page in pages:
    seen.append(urllib.request.urlopen(base + page).read().decode())
results["pages"] = len(pages)
results["queries"] = len(queries)
with open(told["seen"], "w") as file:
    file.write("\\n".join(seen))
print("told " + json.dumps(results), flush=True)
os._exit(0)  # Spark's client waits at its end for threads of closed sessions
"""


def ran(s3, warehouse, tmp_path, **settings):
    """The ended client, and all that anybody could see of it."""
    with CatalogServer(tmp_path / "rest") as server:
        return ran_beside(server, s3, warehouse, tmp_path, settings)


def ran_beside(server, s3, warehouse, tmp_path, settings):
    events = tmp_path / "events"
    events.mkdir()
    told = {"path": f"{warehouse()}/t", "options": s3.options(), "ui": free_port(), "events": str(events), "seen": str(tmp_path / "seen")}
    told["rest"] = server.options()
    strangers = {"AWS_ACCESS_KEY_ID": "NOBODY", "AWS_SECRET_ACCESS_KEY": "of the server"}
    environment = os.environ | s3.environment() | strangers | {"PYTHONPATH": str(ROOT)} | settings
    done = subprocess.run(
        [sys.executable, "-c", CLIENT],
        input=json.dumps(told),
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    shown = done.stdout + done.stderr + "".join(file.read_text() for file in [*events.rglob("*"), tmp_path / "seen"] if file.is_file())
    return done, shown


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(900)
def test_what_a_client_gives_reaches_the_tasks_of_its_session_and_no_eye(s3, warehouse, tmp_path):
    done, shown = ran(s3, warehouse, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("told "))[5:])
    assert told.pop("pages") >= 13
    assert told.pop("queries") >= 3
    assert told.pop("without") == told.pop("wrong") == "CredentialsRefused"
    assert told.pop("stranger") == told.pop("in a plan") == "AnalysisException", "of plain Spark, which does not know our types"
    assert "UnsupportedOption: option 's3.endpoint'" in shown
    assert told == {
        "rows": 1000,
        "count": 1000,
        "plain": 1000,
        "renewed": 1000,
        "lent": "InvalidArgument",
        "rest": 100,
        "sql": 50,
        "rest stranger": "InvalidArgument",
        "forged": "NotAuthorized",
    }
    assert "paimon-session-storage-" in shown, "what was looked at tells of the file"
    for secret in (SECRET, IDENTITY, "b" * 20, TOKEN, "c" * 20):
        assert secret not in shown, shown[max(0, shown.index(secret) - 300) :][:600]


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_server_may_take_none(s3, warehouse, tmp_path):
    done, shown = ran(s3, warehouse, tmp_path, PYSPARK_PAIMON_CLIENT_STORAGE="refused")
    assert done.returncode != 0
    assert "refuses credentials of clients" in done.stderr
    assert SECRET not in shown
    assert TOKEN not in shown
