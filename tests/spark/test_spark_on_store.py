"""Tables on an S3 server over Spark: every path of a session, by options that a client gives to an embedded server."""

from __future__ import annotations

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.connect.session")

from once_kit import session_at, url_of

from pyspark_paimon import Catalog, Table
from pyspark_paimon.spark.wire.session_storage import send_storage_options

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark, s3):
    """A session of the embedded server, whose own environment reaches no store."""
    made = session_at(url_of(spark))
    send_storage_options(made, s3.options())
    yield made
    made.client.release_session()  # to stop it would stop the embedded server


@pytest.mark.slow
def test_rows_are_written_changed_compacted_and_read(session, warehouse):
    path = f"{warehouse()}/t"
    table = Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "2"}, spark=session)
    assert table.write(session.range(1000).selectExpr("id", "concat('c', id % 10) AS city")).rows == 1000
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW on_store USING paimon OPTIONS (path '{path}')")
    session.sql("INSERT INTO on_store VALUES (3000, 'sql'), (1, 'sql')")
    assert table.delete("id < 1").rows == 1
    assert table.compact(full=True).files_after == 2
    found = session.read.format("paimon").load(path).where("city = 'sql' OR id < 3").orderBy("id").collect()
    assert [tuple(row) for row in found] == [(1, "sql"), (2, "c2"), (3000, "sql")]


@pytest.mark.long
def test_frames_in_every_form_are_upserts(session, warehouse):
    path = f"{warehouse()}/t"
    options = {"bucket": "2", "file-index.bloom-filter.columns": "city", "file-index.in-manifest-threshold": "1 b"}
    table = Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options=options, spark=session)
    assert table.write(session.range(1000).selectExpr("id", "'old' AS city")).rows == 1000
    assert table.write(pa.table({"id": [1, 2000], "city": ["arrow", "arrow"]})).rows == 2
    session.createDataFrame([(3001, "df"), (2, "df")], "id BIGINT, city STRING").write.format("paimon").mode("append").save(path)
    assert table.update("id = 2000", values={"city": "changed"}).rows == 1
    found = table.scan("city <> 'old'").to_spark().orderBy("id").collect()
    assert [tuple(row) for row in found] == [(1, "arrow"), (2, "df"), (2000, "changed"), (3001, "df")]
    assert session.read.format("paimon").load(path).count() == table.scan().count() == 1002
    assert table.fsck("deep").problems == ()


@pytest.mark.long
def test_a_catalog_s_options_go_to_the_session_that_its_tables_are_opened_in(spark, s3, warehouse, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    catalog = Catalog(warehouse(), s3.options())
    catalog.create_table("default.t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
    session = session_at(url_of(spark))
    table = catalog.table("default.t", spark=session)
    table.write(session.range(10).selectExpr("id", "'a' AS v"))
    table.create_branch("dev")
    assert catalog.table("default.t$branch_dev", spark=session).scan().to_spark().count() == 0
    assert catalog.create_views(session) == ["t"]
    assert session.sql("SELECT count(*) AS n FROM t").collect()[0].n == 10
    session.client.release_session()


@pytest.mark.long
def test_dynamic_buckets_are_assigned_once(session, warehouse):
    table = Table.create(f"{warehouse()}/d", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "-1"}, spark=session)
    table.write(session.range(100).selectExpr("id", "'a' AS v"))
    table.write(session.range(50, 150).selectExpr("id", "'b' AS v"))
    counts = table.scan().to_spark().groupBy("v").count().collect()
    assert sorted((row.v, row["count"]) for row in counts) == [("a", 50), ("b", 100)]
    assert table.fsck("deep").problems == ()
