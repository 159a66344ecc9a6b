"""Idle daemons end, those of other sessions go on, and a session that returns gets new ones."""

from __future__ import annotations

from functools import partial

import psutil
import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.connect.session")

from faults import wait_until

from pyspark_paimon import Table, warm
from pyspark_paimon.spark.client.forks import ForkServer
from pyspark_paimon.spark.client.serve import ConnectServer, ServerSettings
from pyspark_paimon.spark.client.session import spark_session

pytestmark = [pytest.mark.spark, pytest.mark.long]

IDLE_SECONDS = 12


def living(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def daemons(server: ConnectServer) -> list[psutil.Process]:
    """Daemons that the fork server has forked."""
    return [each for each in psutil.Process(server._forks.process.pid).children() if living(each)]


def launchers(server: ConnectServer) -> list[psutil.Process]:
    """Processes that Spark knows as its daemons."""
    return [each for each in psutil.Process(server._process.pid).children(recursive=True) if living(each) and each.name() != "java"]


def test_daemons_end_when_they_are_idle_and_spark_starts_new_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("pyspark_paimon.spark.client.serve.ForkServer", partial(ForkServer, idle_seconds=IDLE_SECONDS))
    lines: list[str] = []
    # Without reuse a worker ends with its task, not a minute later.
    settings = ServerSettings(port=0, master="local[2]", memory="1g", conf={"spark.python.worker.reuse": "false"})
    with ConnectServer(settings, lines.append) as server:
        first, second = (spark_session(server.address, new=True) for _ in range(2))
        table = Table.create(tmp_path / "t", "id BIGINT", primary_keys=["id"], options={"bucket": "1"}, spark=first)
        table.write(pa.table({"id": list(range(10))}))
        warm(second)
        assert len(daemons(server)) >= 3
        second.client.release_session()
        second.client.close()

        def sleep(batches):
            import time

            for batch in batches:
                time.sleep(2 * IDLE_SECONDS)
                yield batch

        slow = table.scan().to_spark().mapInArrow(sleep, "id BIGINT")
        before = {each.pid for each in daemons(server)}
        assert slow.toArrow().num_rows == 10, "its daemon has a worker, and stays"
        assert before - {each.pid for each in daemons(server)}, "those without workers have ended meanwhile"
        wait_until(lambda: not daemons(server) and not launchers(server), "the end of all daemons", seconds=60)
        for _ in range(2):
            table.write(pa.table({"id": [10, 11]}))
            assert table.scan().count() == 12
            assert table.scan().to_spark().count() == 12
            wait_until(lambda: not daemons(server) and not launchers(server), "the end of all daemons", seconds=60)
        first.client.release_session()
        first.client.close()
    assert not [line for line in lines if "daemon" in line.lower()]
