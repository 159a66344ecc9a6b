"""Spark's idle daemons end, those with workers stay. The fork server keeps the ports of the last ones that ended.

Programs of their own: they ignore ends of processes and open many files. macOS may lack ``os.waitid`` and allow 256 open files.
"""

from __future__ import annotations

import os
import textwrap

import pytest

from tests.children import run_python

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
    done = run_python(program, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


PORTS = """
    import errno, resource, socket

    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    from pyspark_paimon.spark.fork_server import _PORT, _ForkServer

    with socket.socket(socket.AF_UNIX) as listener:
        server = _ForkServer(listener, 1.0)
        for _ in range(100):
            ours, theirs = socket.socketpair()
            with ours, theirs, socket.socket() as port:
                port.bind(("127.0.0.1", 0))
                address = port.getsockname()
                socket.send_fds(ours, [_PORT], [port.fileno()])
                server.answer(theirs)
        try:
            socket.create_server(address)
        except OSError as error:
            print(error.errno == errno.EADDRINUSE)
"""


def test_kept_ports_leave_files_for_requests():
    done = run_python(textwrap.dedent(PORTS), timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")
