"""Telling people how far a job of many pieces has come."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pyspark_paimon.request.backend import Progress
from pyspark_paimon.request.results import ProgressEvent


@dataclass
class Steps:
    """Tells ``progress`` of finished pieces, which end in several threads: each call has one more done than the last.

    >>> steps = Steps(print, "compact", 2, total_bytes=70)
    >>> steps.finish(30)
    stage='compact' done=1 total=2 unit='buckets' bytes_done=30 total_bytes=70
    """

    progress: Progress | None
    stage: str
    total: int
    unit: str = "buckets"
    total_bytes: int | None = None
    _done: int = 0
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def finish(self, size: int = 0) -> None:
        """One more is done, of so many bytes."""
        if self.progress is None:
            return
        with self._lock:
            self._done += 1
            self._bytes += size
            event = ProgressEvent(
                stage=self.stage, done=self._done, total=self.total, unit=self.unit, bytes_done=self._bytes, total_bytes=self.total_bytes
            )
            self.progress(event)


__all__ = ["Steps"]
