"""Every program that starts a session or a server ends, and takes along what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("pyspark.sql.connect.session")
psutil = pytest.importorskip("psutil")

from faults import wait_until  # noqa: E402  # needs pyspark

from tests.children import ROOT, child_environment, run_python  # noqa: E402  # as above

PATIENCE_SECONDS = 120
REFUSING = """
import sys
from concurrent.futures import ThreadPoolExecutor
import grpc
from pyspark.sql import SparkSession
from pyspark_paimon import SparkUnavailable, spark_session

class Refusing(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda _, context: context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token"))

server = grpc.server(ThreadPoolExecutor(2), (Refusing(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
try:
    spark_session(f"sc://127.0.0.1:{port}", retry_seconds=1)
except SparkUnavailable as error:
    assert "asks for a token" in str(error), error
assert SparkSession.getActiveSession() is None
server.stop(None)
"""
EMBEDDED = """
from pyspark_paimon import spark_session
spark = spark_session(master="local[1]")
assert spark.range(3).count() == 3
"""
PROGRAMS = {
    "a refused session": REFUSING,
    "an embedded server": EMBEDDED,
    "a new session beside an embedded one": EMBEDDED
    + "other = spark_session(new=True); assert other.range(3).count() == 3; assert spark_session() is spark is not other",
    "three sessions, one of them stopped": EMBEDDED + "spark_session(new=True).client.close(); spark_session(new=True).range(3).count()",
    "an embedded server after a refused session": REFUSING + EMBEDDED,
    "a program that fails": EMBEDDED + "raise SystemExit(0 if spark_session(new=True) else 1)",
    "a classic session": "from pyspark.sql import SparkSession; s = SparkSession.builder.master('local[1]').getOrCreate()\n"
    "from pyspark_paimon import spark_session; assert spark_session(new=True).range(3).count() == 3",
}
SHORT = {"a refused session", "a new session beside an embedded one"}
"""Programs of the tier for merges: each of the others starts a JVM, too, and ends as these do."""


def processes_of(parent: psutil.Process) -> list[psutil.Process]:
    """The processes that ``parent`` started, and those that these started."""
    return parent.children(recursive=True)


def all_end(processes: list[psutil.Process]) -> bool:
    return bool(wait_until(lambda: not psutil.wait_procs(processes, 0)[1], f"the end of {processes}"))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", [each if each in SHORT else pytest.param(each, marks=pytest.mark.long) for each in PROGRAMS])
def test_a_program_ends(name: str) -> None:
    run_python(PROGRAMS[name], timeout=PATIENCE_SECONDS)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("waits_for", "number"),
    [
        ("java", signal.SIGTERM),
        ("java", signal.SIGKILL),
        *(
            pytest.param(waits_for, number, marks=pytest.mark.long)
            for waits_for in ("java", "sleep 3", "ready")
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
            if (waits_for, number) not in {("java", signal.SIGTERM), ("java", signal.SIGKILL)}
        ),
    ],
)
def test_a_server_that_is_stopped_leaves_no_process(waits_for: str, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "pyspark_paimon", "serve", "--port", "0", "--master", "local[1]", "--memory", "1g"]
    environment = child_environment(PYTHONPATH=str(ROOT))
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True) as server:
        known = psutil.Process(server.pid)
        wait_until(lambda: any("java" in each.name() for each in processes_of(known)), "Spark's JVM")
        if waits_for == "sleep 3":
            time.sleep(3)
        elif waits_for == "ready":
            assert server.stderr is not None
            next(line for line in server.stderr if line.startswith("ready at "))
        started = processes_of(known)
        os.kill(server.pid, number)
        try:
            server.wait(PATIENCE_SECONDS)
        finally:
            server.kill()
        assert all_end(started)
