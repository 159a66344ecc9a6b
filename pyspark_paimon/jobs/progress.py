"""Display of progress: a terminal bar, and Spark Connect tasks."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from pyspark_paimon.request.backend import Progress
from pyspark_paimon.request.results import ProgressEvent

_WIDTH = 30
_PATIENCE = 0.2
"""Seconds before the progress of a job is shown."""


@dataclass
class ProgressBar:
    """A terminal line that shows the newest event.

    It counts bytes where they are known. It ends when all work is done or another stage starts.
    ``patience``: seconds before a stage is shown.

    >>> import io
    >>> bar = ProgressBar(io.StringIO())
    >>> bar(ProgressEvent(stage="compact", done=1, total=3, unit="buckets"))
    >>> bar.output.getvalue().strip()
    'compact [##########....................] 1 of 3 buckets'
    """

    output: TextIO = field(default_factory=lambda: sys.stderr)
    patience: float = 0.0
    _since: float = 0.0
    _stage: str = ""
    _length: int = 0

    def __call__(self, event: ProgressEvent) -> None:
        """Show ``event``."""
        if event.stage != self._stage:
            self._end()
            self._stage, self._since = event.stage, time.monotonic()
        if self._length or time.monotonic() - self._since >= self.patience:
            line = f"{event.stage} {_bar(event)}"
            self.output.write(f"\r{line}{' ' * (self._length - len(line))}")
            self._length = len(line)
        if event.done == event.total:
            self._end()
        self.output.flush()

    def _end(self) -> None:
        if self._length:
            self.output.write("\n")
        self._stage, self._length = "", 0


def _bar(event: ProgressEvent) -> str:
    size = f", {_size(event.bytes_done)}" if event.bytes_done else ""
    if not event.total:
        return f"{event.done:,} {event.unit}{size}"
    done, total = (event.bytes_done, event.total_bytes) if event.total_bytes and event.done < event.total else (event.done, event.total)
    filled = _WIDTH * min(done, total) // total
    of = f" of {_size(event.total_bytes)}" if event.total_bytes else ""
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {event.done:,} of {event.total:,} {event.unit}{size}{of if size else ''}"


def _size(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def chosen(progress: Progress | bool | None) -> Progress | None:
    """Return the progress callback.

    True: a bar on standard error, or no callback if that is not a terminal.
    """
    if progress is True:
        return ProgressBar(patience=_PATIENCE) if sys.stderr.isatty() else None
    return progress or None


@contextmanager
def reporting_tasks(spark: Any, progress: Progress | None, stage: str) -> Iterator[None]:
    """Report Spark Connect tasks of this thread to ``progress``.

    Covers jobs that run in the block. A classic session reports nothing.
    The server reports at ``spark.connect.progress.reportInterval``, with the tasks of the stages known at that time.
    So completion is reported at the end of the block, and not if the job failed.
    A job that ends before the first report counts as one task.
    """
    if progress is None or not type(spark).__module__.startswith("pyspark.sql.connect"):
        yield
        return
    thread, last, read = threading.get_ident(), (0, 0, 0), 0

    def handler(stages: Any, **_: Any) -> None:
        nonlocal last, read
        if threading.get_ident() != thread or not stages:
            return
        counts = (sum(stage.num_completed_tasks for stage in stages), sum(stage.num_tasks for stage in stages))
        read = max(read, sum(getattr(stage, "num_bytes_read", 0) for stage in stages))
        told = (*counts, read)
        if told != last and counts[0] < counts[1]:
            progress(ProgressEvent(stage=stage, done=counts[0], total=counts[1], unit="tasks", bytes_done=read))
        last = told

    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)
    tasks = max(last[1], 1)
    progress(ProgressEvent(stage=stage, done=tasks, total=tasks, unit="tasks", bytes_done=read))


__all__ = ["ProgressBar", "chosen", "reporting_tasks"]
