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

    Commits as ``user``. Other buckets added during a round are compacted in the next one. A bucket that loses a race or fails is logged, and left
    to the next round that includes it: its rows are committed anyway.
    """

    def __init__(self, user: str, *, threads: int = 1) -> None:
        self._user = user
        self._threads = threads
        self._pool = WorkerPool(1, thread_name_prefix="paimon-compact")
        self._lock = threading.Lock()
        self._pending: set[BucketId] = set()
        self._running: frozenset[BucketId] = frozenset()
        self._recent: frozenset[BucketId] = frozenset()
        """Buckets of rounds since the last ``begin``."""
        self._deferred: frozenset[BucketId] = frozenset()
        self._store: FileStore | None = None
        self._round: Future[None] | None = None

    def begin(self, store: FileStore, buckets: Iterable[BucketId]) -> None:
        """Compact ``buckets`` of ``store`` after the earlier rounds."""
        with self._lock:
            self._store = store
            # The commit saw their files as they were before. If a bucket is still due, the next commit says so.
            self._deferred = self._recent.intersection(buckets)
            self._pending.update(set(buckets) - self._deferred)
            self._recent = self._running
            self._start()

    def wait(self) -> None:
        """Wait until all rounds are finished."""
        while (running := self._round) is not None:
            running.result()

    def close(self) -> None:
        """Finish all rounds, compact what was left to a next commit, and end the thread."""
        with self._lock:
            self._pending.update(self._deferred)
            self._start()
        self.wait()
        self._pool.shutdown(wait=True)

    def _start(self) -> None:
        if self._pending and self._round is None:
            self._round = self._pool.submit(self._work)

    def _work(self) -> None:
        while True:
            with self._lock:
                self._running = frozenset(self._pending)
                if not self._running or self._store is None:
                    self._round = None
                    return
                store, self._pending, self._recent = self._store, set(), self._recent | self._running
            compact_buckets(store, self._user, self._running, threads=self._threads)
