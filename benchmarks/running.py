"""Runs one job of a contender in a fresh process, and watches its memory and what else the machine does meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil

from benchmarks.contenders.worker import Job
from benchmarks.environments import ROOT

_PAUSE, _FAMILY = 0.01, 0.3
"""Seconds between two looks at the memory, and at which children there are."""
_JUDGED = 0.2
"""A shorter step is over before the system's counters of processor time tell whose it was."""


class Failed(Exception):
    """The worker failed; the text is the end of what it said."""


@dataclass
class Measured:
    """What a worker said and what was seen of it; memory in bytes."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    answer: dict[str, int] | None = None
    queries: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    before: int = 0
    peak: int = 0
    foreign: float = 0.0
    """Cores that other processes kept busy while the clock ran."""


@dataclass
class _Watch:
    """The resident set of a process and its children between two events."""

    process: psutil.Process
    before: int = 0
    peak: int = 0
    foreign: float = 0.0
    _on: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _family: list[psutil.Process] = field(default_factory=list)
    _start: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def start(self) -> None:
        self._look_around()
        self.before = self.peak = self._resident()
        self._start = self._times()
        self._on.set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is None:
            return
        wall, busy, own = (now - then for now, then in zip(self._times(), self._start, strict=True))
        self.foreign = max(0.0, (busy - own) / wall) if wall > _JUDGED else 0.0
        self._on.clear()
        self._thread.join()
        self._thread = None

    def _run(self) -> None:
        looked = time.monotonic()
        while self._on.is_set():
            self.peak = max(self.peak, self._resident())
            if time.monotonic() - looked > _FAMILY:
                self._look_around()
                looked = time.monotonic()
            time.sleep(_PAUSE)

    def _look_around(self) -> None:
        with contextlib.suppress(psutil.Error):
            self._family = [self.process, *self.process.children(recursive=True)]

    def _resident(self) -> int:
        total = 0
        for each in self._family:
            with contextlib.suppress(psutil.Error):
                total += each.memory_info().rss
        return total

    def _times(self) -> tuple[float, float, float]:
        """The clock, seconds that all processors were busy, and seconds of them for the worker and this process."""
        whole, own = psutil.cpu_times(), 0.0
        for each in [*self._family, psutil.Process()]:
            with contextlib.suppress(psutil.Error):
                used = each.cpu_times()
                own += used.user + used.system + (used.children_user + used.children_system if each is self.process else 0.0)
        return time.monotonic(), whole.user + whole.nice + whole.system, own


def run(command: Sequence[str], job: Job, *, timeout: float) -> Measured:
    """One job; raises ``Failed``."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TZ": "UTC", "POLARS_MAX_THREADS": str(job.threads)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # contenders are installed compiled: ours must not be compiled inside the clock
    with tempfile.TemporaryFile("w+") as errors:
        line = [*command, job.to_json()]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=environment, bufsize=1)
        watch = _Watch(psutil.Process(process.pid))
        killer = threading.Timer(timeout, process.kill)
        killer.start()
        try:
            with process:
                result = _listen(process, watch)
            code = process.returncode
        finally:
            killer.cancel()
            process.kill()
            watch.stop()
        if code == 0 and result is not None:
            wanted = ("seconds", "cpu", "answer", "queries", "versions")
            said = {name: result[name] for name in wanted if result.get(name) is not None}
            return Measured(**said, before=watch.before, peak=watch.peak, foreign=watch.foreign)
        errors.seek(0)
        lines = [line for line in errors.read().splitlines() if line.strip()]
    late = f"stopped after {timeout:.0f} s" if code == -9 else f"ended with {code}"
    raise Failed(" | ".join([late, *lines[-2:]])[-600:])


def _listen(process: subprocess.Popen[str], watch: _Watch) -> dict[str, Any] | None:
    result = None
    assert process.stdout is not None
    for line in process.stdout:
        if not line.startswith('{"event"'):
            continue
        said = json.loads(line)
        match said["event"]:
            case "ready":
                watch.start()
            case "done":
                watch.stop()
            case "result":
                result = said
    return result


__all__ = ["Failed", "Measured", "run"]
