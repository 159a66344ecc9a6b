"""Clients whose server is killed or restarted, and errors of sessions that have ended."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.connect.session")

import grpc
from pyspark.sql.connect.client.retries import Retrying

from paimon_base.errors import InvalidArgument
from pyspark_paimon import SessionLost, SparkUnavailable, Table, spark_session
from pyspark_paimon.spark.client.retries import BoundedRetries
from pyspark_paimon.spark.client.serve import ConnectServer, ServerSettings
from pyspark_paimon.spark.client.session import RETRY_SECONDS, bound_retries
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
        "[RESPONSE_ALREADY_RECEIVED] INVALID_HANDLE.SESSION_NOT_FOUND on the server but responses were already received from it.",
        "Received incorrect server side session identifier for request. Please create a new Spark Session to reconnect. (a != b)",
        '<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "Connection refused"\n>',
    ],
)
def test_a_session_that_has_ended_is_named(text):
    with pytest.raises(SessionLost, match="make a new session") as failed, raise_typed_errors():
        raise RuntimeError(text)
    assert isinstance(failed.value, SparkUnavailable)
    assert isinstance(failed.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    "text", ["[TABLE_OR_VIEW_NOT_FOUND] t", "status = StatusCode.INTERNAL", "the session is full", "/t/NO_ACTIVE_SESSION", ""]
)
def test_other_errors_are_none_of_a_session(text):
    with pytest.raises(RuntimeError) as failed, raise_typed_errors():
        raise RuntimeError(text)
    assert not isinstance(failed.value, SessionLost)


class _Refused(grpc.RpcError):
    def code(self):
        return grpc.StatusCode.UNAVAILABLE

    def trailing_metadata(self):
        return None


def _call(seconds: float, *errors: Exception | None, attempts: list[Exception | None]) -> None:
    """Make a call whose attempts raise the errors, the last one again and again; None succeeds."""
    for attempt in Retrying([BoundedRetries(seconds)]):
        with attempt:
            attempts.append(error := errors[min(len(attempts), len(errors) - 1)])
            if error is not None:
                raise error


@pytest.mark.parametrize("seconds", [0, 0.3])
def test_a_call_is_retried_for_the_seconds_of_its_session(seconds):
    started, attempts = time.monotonic(), []
    with pytest.raises(SessionLost, match=rf"no answer for {seconds} s.*make a new session.*repeated there with its commit_id"):
        _call(seconds, _Refused(), attempts=attempts)
    assert seconds <= time.monotonic() - started < seconds + 2
    assert len(attempts) == 1 if seconds == 0 else len(attempts) > 2


def test_a_server_that_comes_back_in_time_is_answered_and_other_errors_are_not_retried():
    attempts = []
    _call(5, _Refused(), _Refused(), None, attempts=attempts)
    assert len(attempts) == 3
    with pytest.raises(ValueError, match="wrong"):
        _call(5, ValueError("wrong"), attempts=[])


def test_seconds_of_retries_below_zero_are_refused():
    with pytest.raises(InvalidArgument, match="retry_seconds must be a number of seconds, 0 or more, not -1"):
        bound_retries(object(), -1)


def _start(port: int) -> ConnectServer:
    deadline = time.monotonic() + 60
    while True:
        with suppress(SparkUnavailable):  # the port of a killed process is free a little later
            return ConnectServer(ServerSettings(port=port, master="local[2]", memory="1g"), lambda _: None).__enter__()
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.small
def test_work_goes_on_in_a_new_session_after_the_server_was_killed(tmp_path, monkeypatch):
    server = _start(0)
    try:
        url = f"sc://127.0.0.1:{server.port}"
        first = spark_session(url)
        table = Table.create(tmp_path / "t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"}, spark=first)
        table.write(ROWS, commit_id="before")
        original = type(table._engine)._ask

        def kill(self, question, spark=None):
            if isinstance(question, rpc.RunSmall):
                os.killpg(server._process.pid, signal.SIGKILL)
            return original(self, question, spark)

        monkeypatch.setattr(type(table._engine), "_ask", kill)
        started = time.monotonic()
        with pytest.raises(SessionLost) as failed:
            table.write(ROWS, commit_id="during")
        assert time.monotonic() - started < RETRY_SECONDS + 3
        assert "repeat the call with commit_id='during'" in failed.value.__notes__[0]
        monkeypatch.undo()
        bound_retries(first, 0.1)
        with pytest.raises(SessionLost, match=r"no answer for 0.1 s"):  # Spark's own methods, too
            first.range(3).collect()
        with pytest.raises(SparkUnavailable, match="no Spark Connect server answers there"):
            spark_session(url)
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
