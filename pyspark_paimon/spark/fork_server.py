"""Process that forks Spark's Python daemons with all modules loaded.

Spark starts a daemon for each kind of work of each session: for schemas, planning, tasks and commits. Each would import PySpark and
this package. Forked from one process they import nothing, and share its memory. ``launcher`` asks for a fork, ``client/forks.py``
starts this process and ends it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress
from typing import Any

from fileindex.base.process import freeze_heap, replace_environment, run_after_fork
from pyspark_paimon.spark.daemon import preload

_LENGTH, _STREAMS = 8, 3
_MODULES = (
    "pyspark.daemon",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark_paimon.spark.server",
    "pyspark_paimon.spark.source",
)
_OF_SPARK = ("SPARK_", "PYSPARK_", "_PYSPARK_", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHON_")
_OF_SHELLS = frozenset({"_", "OLDPWD", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PWD", "SHLVL"})


def serve(path: str) -> None:
    """Fork a daemon for each request at the socket ``path``, until standard input ends."""
    from pyspark_paimon.spark.warm import PLANS, QUESTIONS, load  # noqa: PLC0415  # after Spark's own modules

    preload()
    load((*_MODULES, *QUESTIONS, *PLANS))
    freeze_heap()
    environment = dict(os.environ)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system forgets daemons that have ended
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server's process decides when this one ends
        while True:
            ready, _, _ = select.select([0, listener.fileno()], [], [])
            if 0 in ready:  # the server's process has ended
                return
            connection, _ = listener.accept()
            # A launcher may end while it asks, or have no answer: then Python starts the daemon.
            with connection, suppress(OSError, ValueError):
                _answer(connection, listener, environment)


def _answer(connection: socket.socket, listener: socket.socket, environment: dict[str, str]) -> None:
    """Fork a daemon and tell its process id; tell 0 if Python has to start it."""
    length, streams, _, _ = socket.recv_fds(connection, _LENGTH, _STREAMS)
    try:
        with connection.makefile("rb") as file:
            request = json.loads(file.read(int.from_bytes(length, "big")))
        if not _fits(environment, request["environment"]):
            connection.sendall(b"0")
            return
        if os.fork():
            return
        listener.close()
        _become_daemon(connection, request, streams)
    finally:
        for stream in streams:
            os.close(stream)


def _fits(ours: dict[str, str], wanted: dict[str, str]) -> bool:
    """Return whether a process with the environment ``ours`` can take on the one that is wanted.

    Variables of Spark are read when they are used. Others may have been read by libraries that are loaded.

    >>> _fits({"A": "1"}, {"A": "1", "SPARK_X": "2"}), _fits({"A": "1"}, {"A": "1", "MALLOC_ARENA_MAX": "2"})
    (True, False)
    """
    changed = {name for name in {*ours, *wanted} if ours.get(name) != wanted.get(name)}
    return all(name.startswith(_OF_SPARK) or name in _OF_SHELLS for name in changed)


def _become_daemon(connection: socket.socket, request: dict[str, Any], streams: list[int]) -> None:
    """Run Spark's daemon in this process, and end it."""
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for kind in (signal.SIGCHLD, signal.SIGINT):
            signal.signal(kind, signal.SIG_DFL)
        replace_environment(request["environment"])
        os.chdir(request["directory"])
        sys.argv = request["arguments"]
        paths = [path for path in request["environment"].get("PYTHONPATH", "").split(os.pathsep) if path]
        sys.path[:] = [*dict.fromkeys([request["directory"], *paths, *sys.path])]
        connection.sendall(str(os.getpid()).encode())
        run_after_fork(connection.close)  # the launcher ends with the daemon, not with its workers
        sys.modules["pyspark.daemon"].manager()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 1
    except BaseException:  # noqa: BLE001  # the process ends, and Python would print it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])

__all__ = ["serve"]
