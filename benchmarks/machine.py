"""The class of the machine: what figures need to be understood, and no names."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil


def machine_class() -> str:
    """Cores, memory, kind of processor, system and Python."""
    memory = round(psutil.virtual_memory().total / (1 << 30))
    python = platform.python_version()
    return f"{os.cpu_count()} cores, {memory} GiB, {_processor()}, {platform.system()} {platform.machine()}, Python {python}"


def status_megabytes(name: str) -> float:
    """A line of what the system tells of this process's memory; ``VmHWM`` is its peak, where that of getrusage begins with the parent's."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition(f"{name}:")[2].split()[0]) / 1024


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Seconds of the processor, of all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def tree_cpu_seconds() -> float:
    """CPU seconds of this process and of all processes below it, since they began; those that have ended count for their parents."""
    total = 0.0
    for process in [(me := psutil.Process()), *me.children(recursive=True)]:
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def _processor() -> str:
    """As the system calls it, without its model's number."""
    names = Path("/proc/cpuinfo")
    if names.exists():
        for line in names.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                words = [word for word in line.split(":", 1)[1].split() if not any(digit in word for digit in "0123456789@")]
                return " ".join(words[:3])
    return platform.processor() or "unknown processor"


__all__ = ["cpu_seconds", "machine_class", "status_megabytes", "tree_cpu_seconds"]
