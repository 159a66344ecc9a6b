"""Telling people how far a job of many pieces has come: pieces that end in any thread, and the bytes and rows that move inside them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from manifest.io.meter import Meter
from pyspark_paimon.request.backend import Progress
from pyspark_paimon.request.results import ProgressEvent

if TYPE_CHECKING:
    from lsm.scan.plan import ScanPlan
    from manifest.store import FileStore


@dataclass
class Steps:
    """Tells ``progress`` of pieces that ended and bytes that were done with, one event at a time, never fewer than before.

    That all is done is said once, by the last ``finish`` or by ``end``. ``total`` and ``total_bytes`` are None where nobody knows them.

    >>> steps = Steps(print, "compact", 2, total_bytes=70)
    >>> steps.moved(10)
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
        """One more is done, of so many bytes that were not told of before."""
        self._tell(1, size, self.total)

    def moved(self, size: int, done: int = 0) -> None:
        """So many bytes are done with, and so many pieces; the last one is left to ``finish`` or ``end``."""
        if size or done:
            self._tell(done, size, None if self.total is None else self.total - 1)

    def end(self) -> None:
        """All is done, whatever could be left out."""
        self.total = self._done if self.total is None else self.total
        self.total_bytes = self._bytes if self.total_bytes is None else self.total_bytes
        self._tell(self.total, self.total_bytes, self.total)

    def _tell(self, done: int, size: int, most: int | None) -> None:
        if self.progress is None:
            return
        with self._lock:
            self._done = self._done + done if most is None else max(self._done, min(self._done + done, most))
            self._bytes = self._bytes + size if self.total_bytes is None else min(self._bytes + size, self.total_bytes)
            event = ProgressEvent(
                stage=self.stage, done=self._done, total=self.total, unit=self.unit, bytes_done=self._bytes, total_bytes=self.total_bytes
            )
            self.progress(event)


class PieceMeter(Meter):
    """A piece of ``steps``, or several, of ``size`` bytes: what is read of their files moves the whole, until they are finished."""

    def __init__(self, steps: Steps, size: int) -> None:
        self._steps, self._left, self._lock = steps, size, threading.Lock()

    def read(self, size: int, *, files: int = 0) -> None:  # noqa: ARG002  # pieces are counted, not their files
        """See ``Meter``; a file may be read twice, or some other along with it, but the piece is no larger for that."""
        with self._lock:
            taken = min(size, self._left)
            self._left -= taken
        self._steps.moved(taken)

    def finish(self, pieces: int = 1) -> None:
        """The pieces are done, whatever of their files was left out."""
        self._steps.moved(0, pieces - 1)
        self._steps.finish(self._left)


class FilesMeter(Meter):
    """A job whose pieces are the files that it reads."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def read(self, size: int, *, files: int = 0) -> None:
        """See ``Meter``."""
        self._steps.moved(size, files)


class FlushMeter(Meter):
    """Rows that were taken in and go into files: told of from ``begin`` on, when it is known how many there are.

    Fewer may arrive, for newer versions of a key replace older ones; bytes are those that compactions inside the write go through.
    """

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._steps: Steps | None = None
        self._rows = 0

    def wrote(self, rows: int) -> None:
        """See ``Meter``."""
        if self._steps is None:
            self._rows += rows
        else:
            self._steps.moved(0, rows)

    def read(self, size: int, *, files: int = 0) -> None:  # noqa: ARG002  # rows are counted
        """See ``Meter``."""
        if self._steps is not None:
            self._steps.moved(size)

    @contextmanager
    def begin(self, rows: int) -> Iterator[None]:
        """So many rows were taken in; what is not in files yet goes there in the block."""
        waiting = rows - self._rows
        if waiting > 0:
            self._steps = Steps(self._progress, "flush", waiting, "rows")
        yield
        if self._steps is not None:
            self._steps.end()


@contextmanager
def reading(store: FileStore, plan: ScanPlan, progress: Progress | None, stage: str) -> Iterator[FileStore]:
    """The table to read a plan through, so that ``progress`` hears of its files; a reader that leaves early has come to its end too."""
    if progress is None:
        yield store
        return
    steps = Steps(progress, stage, plan.file_count, "files", plan.file_size)
    try:
        yield store.metered(FilesMeter(steps))
    except GeneratorExit:
        steps.end()
        raise
    steps.end()


__all__ = ["FilesMeter", "FlushMeter", "PieceMeter", "Steps", "reading"]
