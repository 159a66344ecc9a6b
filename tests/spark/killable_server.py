"""The command ``serve``, killed and started again at one port, and all processes that it starts."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from faults import wait_until

from pyspark_paimon import spark_session
from tests.children import ROOT, child_environment

PATIENCE_SECONDS = 240
MARK = "PAIMON_TEST_SERVER"
MODES = ("every process", "workers go on", "workers wait")
"""What happens to the workers of Python, when their server and its JVM are killed."""


class KillableServer:
    """The command ``serve`` at one port, started again after each kill. Its processes bear a mark in their environment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark, self.starts = folder, str(uuid.uuid4()), 0
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None
        self.frozen: list[Any] = []

    def start(self) -> Any:
        """Start the server; a session of it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.starts += 1
            log = self.folder / f"server-{self.starts}.log"
            command = [sys.executable, "-m", "pyspark_paimon", "serve", "--master", "local[2]", "--memory", "1g", "--port", str(self.port)]
            variables = {"PYTHONPATH": str(ROOT), "TMPDIR": str(self.folder), "SPARK_LOCAL_DIRS": str(self.folder), MARK: self.mark}
            with log.open("wb") as output:
                self.process = subprocess.Popen(
                    command, env=child_environment(**variables), stderr=output, cwd=self.folder, start_new_session=True
                )
            ready = partial(self._is_ready, log)
            if wait_until(ready, "a server", PATIENCE_SECONDS, 0.1) == "ready":
                return spark_session(f"sc://127.0.0.1:{self.port}", new=True)
            text = log.read_text(errors="replace")
            assert "choose another port" in text or "Address already in use" in text, text[-3000:]  # the port is free a little later
            assert time.monotonic() < deadline, text[-3000:]
            time.sleep(0.5)

    def _is_ready(self, log: Path) -> str | None:
        assert self.process is not None
        if "ready at " in log.read_text(errors="replace"):
            return "ready"
        return None if self.process.poll() is None else "ended"

    def processes(self) -> list[Any]:
        """All processes of all starts that run now, the workers of Spark's Python too."""
        running = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    running.append(process)
        return running

    def kill(self, mode: str) -> int:
        """Kill the server and its JVM at once. The number of killed processes.

        mode: With "every process" the workers of Python die, too. Else they may commit what they have: with "workers go on" now, with
        "workers wait" after ``thaw``, when another server has written their batches.
        """
        assert self.process is not None
        running = self.processes()
        victims = [each for each in running if each.pid == self.process.pid or "java" in _name(each)]
        workers = [each for each in running if each not in victims and "python" in _name(each)]
        if mode == "workers wait":
            for worker in workers:
                with suppress(psutil.NoSuchProcess):
                    worker.suspend()
            self.frozen += workers
        for victim in (*victims, *(self.processes() if mode == "every process" else ())):
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        self.process.wait()
        return len(victims) + (len(workers) if mode == "every process" else 0)

    def thaw(self) -> int:
        """Let frozen workers go on, and a little later their daemons, which end them. The number of workers."""
        workers = [worker for worker in self.frozen if not _children(worker)]
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.resume()
        time.sleep(1 if workers else 0)
        for daemon in self.frozen:
            with suppress(psutil.NoSuchProcess):
                daemon.resume()
        self.frozen.clear()
        return len(workers)

    def stop(self) -> None:
        """End the server as its users do, and expect that no process is left of any start."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(60)
        wait_until(lambda: not self.processes(), f"the end of {self.processes()}", 60)


def _name(process: Any) -> str:
    with suppress(psutil.Error):
        return str(process.name())
    return ""


def _children(process: Any) -> list[Any]:
    with suppress(psutil.Error):
        return list(process.children())
    return []


@contextmanager
def server_in(folder: Path) -> Iterator[KillableServer]:
    server = KillableServer(folder)
    try:
        yield server
        server.stop()
    finally:
        for process in server.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
