"""Process that forks Spark's Python daemons and stream workers with all modules loaded.

Spark starts a daemon for each kind of work of each session: for schemas, planning, tasks and commits. A stream has a process for its
source, and one for ``foreachBatch``. Each would import PySpark and this package. Forked from one process they import nothing, and share
its memory. ``launcher`` asks for a fork, ``client/forks.py`` starts this process and ends it.

Spark never ends a daemon, not even after its session. So a daemon without workers ends after a while, and Spark asks for another one when
it cannot connect. A port that is free again could become that of another daemon, which refuses Spark's secret: this process keeps it bound.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from runpy import run_module
from types import SimpleNamespace
from typing import Any

from paimon_base.process import freeze_heap, ignore_pandas_notice, replace_environment, run_after_fork
from pyspark_paimon.spark.daemon import preload

_LENGTH, _STREAMS = 8, 3
_PORT = bytes(_LENGTH)
"""Length of a request that only hands over a port."""
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
_STREAM_MODULES = ("pyspark.sql.connect.session", "pyspark_paimon.spark.read.stream_reader", "pyspark_paimon.spark.write.stream_writer")
_OF_SPARK = ("SPARK_", "PYSPARK_", "_PYSPARK_", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHON_")
_MOST_PORTS = 400
"""Most ports of ended daemons that stay bound, each a file descriptor."""
_OF_SHELLS = frozenset({"_", "OLDPWD", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PWD", "SHLVL"})


def serve(path: str, idle_seconds: float) -> None:
    """Fork a daemon for each request at the socket ``path``, until standard input ends.

    A daemon ends when it has had no worker for ``idle_seconds``.
    """
    load_modules()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        server = _ForkServer(listener, idle_seconds)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system forgets daemons that have ended
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server's process decides when this one ends
        while True:
            ready, _, _ = select.select([0, listener.fileno()], [], [])
            if 0 in ready:  # the server's process has ended
                return
            connection, _ = listener.accept()
            # A launcher may end while it asks, or have no answer: then Python starts the daemon.
            with connection, suppress(OSError, ValueError):
                server.answer(connection)


def load_modules() -> None:
    """Import the modules of all daemons, without a second thread."""
    ignore_pandas_notice()
    preload()
    # Imported later: it loads NumPy and Arrow, which start threads unless ``preload`` forbids it.
    from pyspark_paimon.spark.warm import PLANS, QUESTIONS  # noqa: PLC0415

    _load((*_MODULES, *QUESTIONS, *PLANS))


def _load(modules: tuple[str, ...]) -> None:
    from pyspark_paimon.spark.warm import load  # noqa: PLC0415  # as above

    load(modules)
    freeze_heap()


class _ForkServer:
    """Answers of the fork server to launchers and to ending daemons."""

    def __init__(self, listener: socket.socket, idle_seconds: float) -> None:
        self._listener, self._idle_seconds = listener, idle_seconds
        self._environment = dict(os.environ)
        self._ports = deque[socket.socket](maxlen=_port_count())

    def answer(self, connection: socket.socket) -> None:
        """Fork a daemon, or keep the port of one.

        Sends the process id of the daemon. 0: Python has to start it.
        """
        length, files, _, _ = socket.recv_fds(connection, _LENGTH, _STREAMS)
        if length == _PORT:
            self._ports.extend(socket.socket(fileno=file) for file in files)
            return
        try:
            with connection.makefile("rb") as file:
                request = json.loads(file.read(int.from_bytes(length, "big")))
            if not _fits(self._environment, request["environment"]):
                connection.sendall(b"0")
                return
            module, *others = request["arguments"]
            if not others:  # a stream worker: only servers with streams pay for its modules, and they pay once
                _load((module, *_STREAM_MODULES))
            if os.fork():
                return
            path = self._listener.getsockname()
            for each in (self._listener, *self._ports):
                each.close()
            run = partial(_run_daemon, lambda: _IdlePoll(path, self._idle_seconds)) if others else partial(_run_module, module)
            _become(connection, request, files, run)
        finally:
            for stream in files:
                os.close(stream)


def _port_count() -> int:
    # Requests need descriptors, too: macOS allows 256.
    file_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_PORTS if file_limit == resource.RLIM_INFINITY else min(_MOST_PORTS, file_limit // 2)


def _fits(ours: dict[str, str], requested: dict[str, str]) -> bool:
    """Return whether a process with the environment ``ours`` can take on the one that is wanted.

    Variables of Spark are read when they are used. Others may have been read by libraries that are loaded.

    >>> _fits({"A": "1"}, {"A": "1", "SPARK_X": "2"}), _fits({"A": "1"}, {"A": "1", "MALLOC_ARENA_MAX": "2"})
    (True, False)
    """
    changed = {name for name in {*ours, *requested} if ours.get(name) != requested.get(name)}
    return all(name.startswith(_OF_SPARK) or name in _OF_SHELLS for name in changed)


class _IdlePoll:
    """``select.poll`` of Spark's daemon, which ends the daemon when it has had no worker for ``idle_seconds``.

    ``path``: socket of the fork server, which keeps the daemon's port.
    """

    def __init__(self, path: str, idle_seconds: float) -> None:
        self._poll = select.poll()
        self._path, self._idle_seconds = path, idle_seconds
        self._listener: socket.socket | None = None
        self._busy = time.monotonic()

    def register(self, file: int | socket.socket, events: int) -> None:
        if isinstance(file, socket.socket) and file.family != socket.AF_UNIX:
            self._listener = file
        self._poll.register(file, events)

    def unregister(self, file: int | socket.socket) -> None:
        with suppress(KeyError, ValueError):  # closed
            self._poll.unregister(file)

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        """Wait for events. Raises ``SystemExit`` if the daemon is idle."""
        events = self._poll.poll(timeout)
        if events or _has_children():
            self._busy = time.monotonic()
        elif self._listener is not None and time.monotonic() - self._busy >= self._idle_seconds:
            _keep_port(self._listener, self._path)
            raise SystemExit(0)
        return events


def _has_children() -> bool:
    # Spark's daemon ignores SIGCHLD, so there is no status to take away. Python 3.12 has no waitid on macOS.
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _keep_port(listener: socket.socket, path: str) -> None:
    """Close the socket, and give its port to the fork server at ``path``, which does not listen."""
    address, family = listener.getsockname(), listener.family
    listener.close()
    with socket.socket(family) as port, socket.socket(socket.AF_UNIX) as connection, suppress(OSError):  # the fork server may be gone
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # its connections may not be over
        port.bind(address)
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        connection.connect(path)
        socket.send_fds(connection, [_PORT], [port.fileno()])


def _become(connection: socket.socket, request: dict[str, Any], streams: list[int], run: Callable[[], None]) -> None:
    """Take on the arguments, environment and streams that Spark asked for, run the process's work, and end it."""
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
        run_after_fork(connection.close)  # the launcher ends with this process, not with its workers
        run()
        code = 0
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 1
    except BaseException:  # noqa: BLE001  # the process ends, and Python would print it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run_daemon(make_poll: Callable[[], _IdlePoll]) -> None:
    daemon: Any = sys.modules["pyspark.daemon"]
    if hasattr(daemon, "worker_main"):  # Spark 4.1 takes its worker from the arguments at import, which was before they were known
        daemon.worker_main = import_module(sys.argv[1]).main
    daemon.select = SimpleNamespace(**{**vars(select), "poll": make_poll})
    daemon.manager()


def _run_module(module: str) -> None:
    sys.modules.pop(module, None)  # it runs as the main module, as Python would run it
    run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve(sys.argv[1], float(sys.argv[2]))
