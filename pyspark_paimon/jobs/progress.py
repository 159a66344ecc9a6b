"""Display of progress: a terminal bar, and Spark Connect tasks.

Pieces of a job may end in any thread. Bytes and rows are counted within pieces, too.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from manifest.io.progress import ProgressListener
from pyspark_paimon.request.requests import Progress
from pyspark_paimon.results.results import ProgressEvent

if TYPE_CHECKING:
    from lsm.scan.plan import ScanPlan
    from manifest.store import FileStore


_WIDTH = 30
_PATIENCE = 0.2
"""Seconds before the progress of a job is shown."""
_START_PATIENCE = 0.5
"""Seconds before the start of a session's processes is reported. Warm sessions answer sooner."""
_START = "start"
_LINES = {_START: "starting Python on the server, first use of this session"}
"""Lines of stages that have no pieces to count."""
_USED_SESSIONS: weakref.WeakSet[Any] = weakref.WeakSet()
"""Spark sessions that have answered this process."""


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
        if self._length or event.stage in _LINES or time.monotonic() - self._since >= self.patience:
            line = _LINES.get(event.stage) or f"{event.stage} {_bar(event)}"
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
    progress, total = (event.bytes_done, event.total_bytes) if event.total_bytes and event.done < event.total else (event.done, event.total)
    filled = _WIDTH * min(progress, total) // total
    of = f" of {_size(event.total_bytes)}" if event.total_bytes else ""
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {event.done:,} of {event.total:,} {event.unit}{size}{of if size else ''}"


def _size(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def chosen(progress: Progress | bool | None) -> Progress | None:
    """Return the progress callback.

    True: a bar on standard error, or no callback if that is no terminal and no notebook.
    """
    if progress is True:
        return ProgressBar(patience=_PATIENCE) if sys.stderr.isatty() or _in_notebook() else None
    return progress or None


def _in_notebook() -> bool:
    """Return whether IPython runs this process, in whichever front end."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


@contextmanager
def reporting_start(spark: Any, progress: Progress | None) -> Iterator[None]:
    """Report to ``progress`` that the session's Python processes start.

    Covers the first request of a session, which waits for them. Quick answers report nothing, and failures no completion.
    """
    if progress is None or spark in _USED_SESSIONS:
        yield
        _USED_SESSIONS.add(spark)
        return
    reported = threading.Event()

    def report() -> None:
        reported.set()
        progress(ProgressEvent(stage=_START, done=0, total=1, unit="sessions"))

    timer = threading.Timer(_START_PATIENCE, report)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
    _USED_SESSIONS.add(spark)
    if reported.is_set():
        progress(ProgressEvent(stage=_START, done=1, total=1, unit="sessions"))


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
        state = (*counts, read)
        if state != last and counts[0] < counts[1]:
            progress(ProgressEvent(stage=stage, done=counts[0], total=counts[1], unit="tasks", bytes_done=read))
        last = state

    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)
    tasks = max(last[1], 1)
    progress(ProgressEvent(stage=stage, done=tasks, total=tasks, unit="tasks", bytes_done=read))


@dataclass
class Steps:
    """Thread-safe counter that reports pieces and bytes to ``progress``.

    It reports one event at a time, and numbers never decrease.
    The last ``finish`` or ``end`` reports completion once.
    ``total`` and ``total_bytes``: None where unknown.

    >>> steps = Steps(print, "compact", 2, total_bytes=70)
    >>> steps.advance(10)
    stage='compact' done=0 total=2 unit='buckets' bytes_done=10 total_bytes=70
    >>> steps.finish(30)
    stage='compact' done=1 total=2 unit='buckets' bytes_done=40 total_bytes=70
    """

    progress: Progress | None
    stage: str
    total: int | None
    unit: str = "buckets"
    total_bytes: int | None = None
    _done: int = 0
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def finish(self, size: int = 0) -> None:
        """Count a finished piece.

        ``size``: bytes not yet counted by ``moved``.
        """
        self._tell(1, size, self.total)

    def advance(self, size: int, finished: int = 0) -> None:
        """Count processed bytes and finished pieces.

        The last piece is counted by ``finish`` or ``end`` only.
        """
        if size or finished:
            self._tell(finished, size, None if self.total is None else self.total - 1)

    def end(self) -> None:
        """Report completion, including skipped pieces."""
        self.total = self._done if self.total is None else self.total
        self.total_bytes = self._bytes if self.total_bytes is None else self.total_bytes
        self._tell(self.total, self.total_bytes, self.total)

    def _tell(self, finished: int, size: int, limit: int | None) -> None:
        if self.progress is None:
            return
        with self._lock:
            self._done = self._done + finished if limit is None else max(self._done, min(self._done + finished, limit))
            self._bytes = self._bytes + size if self.total_bytes is None else min(self._bytes + size, self.total_bytes)
            event = ProgressEvent(
                stage=self.stage, done=self._done, total=self.total, unit=self.unit, bytes_done=self._bytes, total_bytes=self.total_bytes
            )
            self.progress(event)


class PieceProgress(ProgressListener):
    """Byte counter of one or more pieces of ``steps``.

    ``size``: total bytes of the pieces. Bytes read from their files advance ``steps``.
    """

    def __init__(self, steps: Steps, size: int) -> None:
        self._steps, self._left, self._lock = steps, size, threading.Lock()

    def read(self, size: int, *, files: int = 0) -> None:  # noqa: ARG002  # pieces are counted, not their files
        """See ``ProgressListener``.

        Counts at most the piece's size: a file may be read twice or with other files.
        """
        with self._lock:
            step = min(size, self._left)
            self._left -= step
        self._steps.advance(step)

    def finish(self, pieces: int = 1) -> None:
        """Count the pieces as finished, including bytes not read."""
        self._steps.advance(0, pieces - 1)
        self._steps.finish(self._left)


class FilesProgress(ProgressListener):
    """Progress of a job whose pieces are files to read."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def read(self, size: int, *, files: int = 0) -> None:
        """See ``ProgressListener``."""
        self._steps.advance(size, files)


class FlushProgress(ProgressListener):
    """Progress of writing buffered rows to files.

    Reports from ``begin`` on, when the number of rows is known. Rows of replaced versions are not written.
    Bytes are those that compactions inside the write process.
    """

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._steps: Steps | None = None
        self._rows = 0

    def wrote(self, rows: int) -> None:
        """See ``ProgressListener``."""
        if self._steps is None:
            self._rows += rows
        else:
            self._steps.advance(0, rows)

    def read(self, size: int, *, files: int = 0) -> None:  # noqa: ARG002  # rows are counted
        """See ``ProgressListener``."""
        if self._steps is not None:
            self._steps.advance(size)

    @contextmanager
    def begin(self, rows: int) -> Iterator[None]:
        """Report the flush in the block.

        ``rows``: number of rows added. Those not yet in files are the total.
        """
        waiting = rows - self._rows
        if waiting > 0:
            self._steps = Steps(self._progress, "flush", waiting, "rows")
        yield
        if self._steps is not None:
            self._steps.end()


@contextmanager
def reading(store: FileStore, plan: ScanPlan, progress: Progress | None, stage: str) -> Iterator[FileStore]:
    """Report a plan's reads of the returned table to ``progress``.

    A reader that stops early counts as complete.
    """
    if progress is None:
        yield store
        return
    steps = Steps(progress, stage, plan.file_count, "files", plan.file_size)
    try:
        yield store.with_listener(FilesProgress(steps))
    except GeneratorExit:
        steps.end()
        raise
    steps.end()
