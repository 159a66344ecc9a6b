"""Clients and a stream of a server whose workers and whose whole process are killed: every row is there once in the end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest

pytest.importorskip("pyspark.sql.connect.session")
pytest.importorskip("psutil", reason="the server's workers are found by psutil")

import psutil
from faults import wait_until

from pyspark_paimon import SessionLost, SparkUnavailable, Table, spark_session
from pyspark_paimon.spark.client.serve import ConnectServer, ServerSettings
from pyspark_paimon.spark.client.session import RETRY_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

CLIENTS, BATCHES, ROWS = 4, 6, 20


def started(port: int) -> ConnectServer:
    deadline = time.monotonic() + 60
    while True:
        with suppress(SparkUnavailable):  # the port of a killed process is free a little later
            return ConnectServer(ServerSettings(port=port, master="local[2]", memory="1g"), lambda _: None).__enter__()
        assert time.monotonic() < deadline
        time.sleep(0.5)


class Clients:
    """Threads that write batches under ids of their own, and repeat each until it is acknowledged."""

    def __init__(self, url: str, path: str) -> None:
        self.url, self.path = url, path
        self.acknowledged: Counter[int] = Counter()
        self.lost: list[float] = []
        self.repeated: list[str] = []
        self.wrong: list[str] = []
        self.threads = [threading.Thread(target=self._client, args=(number,)) for number in range(CLIENTS)]

    def session(self):
        def connected():
            with suppress(SparkUnavailable):
                return spark_session(self.url, new=True)

        return wait_until(connected, "a server", seconds=120, pause=0.5)

    def _client(self, number: int) -> None:
        try:
            table, batch = None, 0
            while batch < BATCHES:
                try:
                    table = table or Table.open(self.path, spark=self.session())
                    rows = {"client": [number] * ROWS, "batch": [batch] * ROWS, "k": list(range(ROWS))}
                    table.write(rows, commit_id=f"client-{number}-{batch}")
                except SessionLost:
                    self.lost.append(time.monotonic())
                    table = None
                except Exception as error:  # the killed worker, of which the note says what to do
                    if not any(f"commit_id='client-{number}-{batch}'" in note for note in getattr(error, "__notes__", ())):
                        raise
                    self.repeated.append(str(error))
                else:
                    batch += 1
                    self.acknowledged[number] = batch
        except BaseException as error:  # noqa: BLE001  # told by the test, whatever it is
            self.wrong.append(f"client {number}: {type(error).__name__}: {error}")

    def wait_for(self, batches: int) -> None:
        """Wait until the clients have that many batches acknowledged, together."""
        wait_until(lambda: self.wrong or self.acknowledged.total() >= batches, f"{batches} batches", seconds=300)
        assert self.wrong == []


def copying(session, table: Table, copy: Table):
    rows = session.readStream.format("paimon").option("read.stream.maxFilesPerTrigger", "3").load(table.path)
    return rows.writeStream.format("paimon").option("checkpointLocation", f"{copy.path}-checkpoint").start(copy.path)


def workers(server: ConnectServer) -> list[psutil.Process]:
    """Python processes that run tasks: the children of Spark's daemons, which the fork server forked."""
    return [worker for daemon in psutil.Process(server._forks.process.pid).children() for worker in daemon.children()]


def test_clients_and_a_stream_go_on_after_a_worker_and_the_server_were_killed(tmp_path):
    table, copy = (Table.create(tmp_path / name, "client INT, batch INT, k INT", options={"bucket": "-1"}) for name in ("t", "copy"))
    server = started(0)
    clients = Clients(f"sc://127.0.0.1:{server.port}", table.path)
    try:
        streaming = clients.session()
        query = copying(streaming, table, copy)
        for thread in clients.threads:
            thread.start()
        clients.wait_for(3)
        killed = wait_until(lambda: workers(server), "a worker")
        for worker in killed:
            with suppress(psutil.NoSuchProcess):
                worker.kill()
        clients.wait_for(clients.acknowledged.total() + 3)
        begun = time.monotonic()
        os.killpg(server._process.pid, signal.SIGKILL)
        with pytest.raises(SessionLost, match="make a new session"):
            query.awaitTermination()
        assert time.monotonic() - begun < RETRY_SECONDS + 3
        server.stop()
        server = started(server.port)
        for thread in clients.threads:
            thread.join(600)
        assert clients.wrong == []
        lost = [round(moment - begun, 1) for moment in clients.lost]
        assert lost
        assert max(lost) < 2 * RETRY_SECONDS + 5, lost  # a session that is being made fails and is made again
        again = clients.session()
        query = copying(again, table, copy)
        query.processAllAvailable()
        query.stop()
        for client, batch in ((0, 0), (CLIENTS - 1, BATCHES - 1)):
            rows = {"client": [client], "batch": [batch], "k": [0]}
            assert Table.open(table.path, spark=again).write(rows, commit_id=f"client-{client}-{batch}").replayed
    finally:
        server.stop()
    expected = Counter((client, batch, k) for client in range(CLIENTS) for batch in range(BATCHES) for k in range(ROWS))
    for each in (table, copy):
        assert Counter((row["client"], row["batch"], row["k"]) for row in each.scan().to_arrow().to_pylist()) == expected
    assert table.fsck().problems == ()
    print(f"lost after {sorted(lost)} s; repeated {len(clients.repeated)}")  # noqa: T201  # figures of a long run
