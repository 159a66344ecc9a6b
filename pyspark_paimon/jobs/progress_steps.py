"""Telling people how far a job of many pieces has come."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pyspark_paimon.request.backend import Progress
from pyspark_paimon.request.results import ProgressEvent


@dataclass
class Steps:
    """Tells ``progress`` of finished pieces, which end in several threads: each call has one more done than the last.

    >>> steps = Steps(print, "compact", 2)
    >>> steps.finish()
    stage='compact' done=1 total=2 unit='buckets'
    """

    progress: Progress | None
    stage: str
    total: int
    unit: str = "buckets"
    _done: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def finish(self) -> None:
        """One more is done."""
        if self.progress is None:
            return
        with self._lock:
            self._done += 1
            self.progress(ProgressEvent(stage=self.stage, done=self._done, total=self.total, unit=self.unit))


__all__ = ["Steps"]
