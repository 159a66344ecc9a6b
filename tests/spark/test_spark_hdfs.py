"""Tables on HDFS over Spark: driver and workers open the same paths."""

from __future__ import annotations

import uuid

import pytest

pytest.importorskip("pyspark.sql.connect.session")

from once_kit import session_at, url_of

from pyspark_paimon import Table
from pyspark_paimon.spark.wire.session_storage import send_storage_options

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_rows_are_written_changed_compacted_and_read(spark, hdfs):
    session = session_at(url_of(spark))
    path = f"{hdfs.uri()}/{uuid.uuid4()}/t"
    table = Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "2"}, spark=session)
    assert table.write(session.range(1000).selectExpr("id", "concat('c', id % 10) AS city")).rows == 1000
    assert table.delete("id < 1").rows == 1
    assert table.compact(full=True).files_after == 2
    found = session.read.format("paimon").load(path).where("id < 3").orderBy("id").collect()
    assert [tuple(row) for row in found] == [(1, "c1"), (2, "c2")]
    assert Table.open(path).count() == 999
    assert table.fsck("deep").problems == ()
    session.client.release_session()


def test_options_of_a_session_reach_its_workers(spark, hdfs):
    session = session_at(url_of(spark))
    nameservice = {
        "dfs.ha.namenodes.lake": "a,b",
        "dfs.namenode.rpc-address.lake.a": "127.0.0.1:1",
        "dfs.namenode.rpc-address.lake.b": f"127.0.0.1:{hdfs.port}",
    }
    path = f"hdfs://lake/{uuid.uuid4()}/t"
    send_storage_options(session, nameservice)
    table = Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "2"}, spark=session)
    assert table.write(session.range(100).selectExpr("id", "'x' AS city")).rows == 100
    assert Table.open(path, storage_options=nameservice).count() == 100
    session.client.release_session()
