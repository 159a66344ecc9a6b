"""Start of one of Spark's Python daemons or stream workers, by a fork of the fork server.

Spark runs this file instead of Python (``client/forks.py``), so it imports only small modules of the standard library. It asks the
fork server for a process with its arguments, environment and standard streams, and ends with that process. Every other command, and
a process that the fork server refuses, is run by Python itself.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path

DAEMONS = frozenset({"pyspark.daemon", "pyspark_paimon.spark.daemon"})
STREAM_WORKERS = frozenset(
    {
        "pyspark.sql.connect.streaming.worker.foreach_batch_worker",
        "pyspark.sql.connect.streaming.worker.listener_worker",
        "pyspark.sql.streaming.python_streaming_source_runner",
    }
)
"""Modules that Spark runs once for each query, without a daemon. It waits ten seconds for them."""
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105  # the name of the variable with the server's secret
_LENGTH, _STREAMS = 8, 3


def launch(arguments: list[str]) -> int:
    """Have a process forked and wait until it ends; return 0.

    Does not return if Python must run the command. ``arguments``: the fork server's socket, Python, and Python's arguments.
    """
    path, python, *command = arguments
    environment = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}  # code of clients runs there
    match command:
        case ["-m", module, *others] if len(others) < 2 and module in (DAEMONS if others else STREAM_WORKERS):  # a daemon's worker
            answer = _ask(path, command, environment)
        case _:
            answer = None
    if answer is None:
        os.execve(python, [python, *command], environment)  # noqa: S606  # Spark's own command
    connection, pid = answer
    with connection:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
        connection.recv(1)  # the forked process holds the other end
    return 0


def _ask(path: str, command: list[str], environment: dict[str, str]) -> tuple[socket.socket, int] | None:
    """Have a process forked; return the connection to it and its process id. None: Python has to start it."""
    request = json.dumps({"arguments": command[1:], "environment": environment, "directory": str(Path.cwd())}).encode()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        socket.send_fds(connection, [len(request).to_bytes(_LENGTH, "big")], list(range(_STREAMS)))
        connection.sendall(request)
        pid = int(connection.recv(_LENGTH).decode() or "0")
    except OSError:
        pid = 0
    if not pid:
        connection.close()
        return None
    return connection, pid


if __name__ == "__main__":
    sys.exit(launch(sys.argv[1:]))
