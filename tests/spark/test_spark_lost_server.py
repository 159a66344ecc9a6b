"""Clients whose server is killed or restarted, and errors of sessions that have ended."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import pyarrow as pa
import pytest

from pyspark_paimon import SessionLost, SparkUnavailable, Table, spark_session
from pyspark_paimon.spark.client.serve import ConnectServer, ServerSettings
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.errors import raise_typed_errors

ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]})


@pytest.mark.parametrize(
    "text",
    [
        "[NO_ACTIVE_SESSION] No active Spark session found. Please create a new Spark session before running the code.",
        "[INVALID_HANDLE.SESSION_NOT_FOUND] The handle 1-2 is invalid. Session not found. SQLSTATE: HY000",
        "[INVALID_HANDLE.SESSION_CLOSED] The handle 1-2 is invalid. Session was closed. SQLSTATE: HY000",
        "[INVALID_HANDLE.SESSION_CHANGED] The existing Spark server driver instance has restarted. Please reconnect.",
        "[RETRIES_EXCEEDED] The maximum number of retries has been exceeded.",
        '<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "Connection refused"\n>',
    ],
)
def test_a_session_that_has_ended_is_named(text):
    with pytest.raises(SessionLost, match="make a new session") as failed, raise_typed_errors():
        raise RuntimeError(text)
    assert isinstance(failed.value, SparkUnavailable)
    assert isinstance(failed.value.__cause__, RuntimeError)


@pytest.mark.parametrize("text", ["[TABLE_OR_VIEW_NOT_FOUND] t", "status = StatusCode.INTERNAL", "the session is full", ""])
def test_other_errors_are_none_of_a_session(text):
    with pytest.raises(RuntimeError) as failed, raise_typed_errors():
        raise RuntimeError(text)
    assert not isinstance(failed.value, SessionLost)


def _start(port: int) -> ConnectServer:
    deadline = time.monotonic() + 60
    while True:
        with suppress(SparkUnavailable):  # the port of a killed process is free a little later
            return ConnectServer(ServerSettings(port=port, master="local[2]", memory="1g"), lambda _: None).__enter__()
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.spark
@pytest.mark.small
def test_work_goes_on_in_a_new_session_after_the_server_was_killed(tmp_path, monkeypatch):
    server = _start(0)
    try:
        url = f"sc://127.0.0.1:{server.port}"
        first = spark_session(url)
        table = Table.create(tmp_path / "t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"}, spark=first)
        table.write(ROWS, commit_id="before")
        original = type(table._backend)._ask

        def kill(self, question, spark=None):
            if isinstance(question, rpc.RunSmall):
                os.killpg(server._process.pid, signal.SIGKILL)
                first.client.set_retry_policies([])
            return original(self, question, spark)

        monkeypatch.setattr(type(table._backend), "_ask", kill)
        with pytest.raises(SessionLost) as failed:
            table.write(ROWS, commit_id="during")
        assert "repeat the call with commit_id='during'" in failed.value.__notes__[0]
        monkeypatch.undo()
        server.stop()
        server = _start(server.port)
        for work in (table.scan, table.snapshots, lambda: table.write(ROWS)):
            with pytest.raises(SessionLost):
                work()
        again = Table.open(table.path, spark=spark_session(url))
        assert again.write(ROWS, commit_id="before").replayed
        assert not again.write(ROWS, commit_id="during").replayed
        assert again.write(ROWS, commit_id="during").replayed
        assert again.snapshots().num_rows == 2
        assert again.scan().to_arrow().to_pylist() == ROWS.to_pylist()
    finally:
        server.stop()
