"""Background compaction of a writer (Paimon's asynchronous compaction).

Rounds run one after the other, while the writer accepts rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future

from lsm.commit.post_commit import compact_buckets
from manifest.commit.conflicts import BucketId
from manifest.io.threads import WorkerPool
from manifest.store import FileStore


class BackgroundCompaction:
    """Compaction of buckets in a separate thread.

    Commits as ``user``. Buckets added during a round are compacted in the next one. A bucket that loses a race or fails is logged, and left to the
    next round that includes it: its rows are committed anyway.
    """

    def __init__(self, user: str, *, threads: int = 1) -> None:
        self._user = user
        self._threads = threads
        self._pool = WorkerPool(1, thread_name_prefix="paimon-compact")
        self._lock = threading.Lock()
        self._pending: set[BucketId] = set()
        self._store: FileStore | None = None
        self._round: Future[None] | None = None

    def begin(self, store: FileStore, buckets: Iterable[BucketId]) -> None:
        """Compact ``buckets`` of ``store`` after the earlier rounds."""
        with self._lock:
            self._store = store
            self._pending.update(buckets)
            if self._pending and self._round is None:
                self._round = self._pool.submit(self._work)

    def wait(self) -> None:
        """Wait until all rounds are finished."""
        while (running := self._round) is not None:
            running.result()

    def close(self) -> None:
        """Finish all rounds and end the thread."""
        self.wait()
        self._pool.shutdown(wait=True)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._pending or self._store is None:
                    self._round = None
                    return
                store, buckets, self._pending = self._store, self._pending, set()
            compact_buckets(store, self._user, buckets, threads=self._threads)
