"""Spark's idle daemons end, those with workers stay, also where Python has no ``os.waitid`` (macOS)."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("pyspark")

DAEMON = """
    import os, select, signal, socket, subprocess, sys, time

    {before}
    from pyspark_paimon.spark.fork_server import _IdlePoll

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as Spark's daemon does
    listener = socket.create_server(("127.0.0.1", 0))
    poll = _IdlePoll("nowhere", 0.1)
    poll.register(listener, select.POLLIN)
    worker = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    time.sleep(0.2)
    assert poll.poll(1) == []
    worker.stdin.close()
    for _ in range(1_000):
        poll.poll(10)
    sys.exit("the daemon goes on")
"""


@pytest.mark.parametrize("before", ["", "del os.waitid"], ids=["Linux", "macOS"])
def test_a_daemon_ends_when_its_last_worker_has_ended(before):
    program = textwrap.dedent(DAEMON).replace("{before}", before if hasattr(os, "waitid") else "")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
