"""Compaction beside a writer: one round after the other, while the next rows are taken in (Paimon's asynchronous compaction)."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future

from lsm.commit.post_commit import compact_buckets
from manifest.commit.conflicts import BucketId
from manifest.io.threads import WorkerPool
from manifest.store import FileStore


class BackgroundCompaction:
    """Compacts the buckets that it is told of in a thread of its own, and commits that under the name ``user``.

    Buckets that come while a round runs are done in the next. What loses a race, or meets an error, which is logged, is left to the
    next round that is asked for it: the rows are committed anyway.
    """

    def __init__(self, user: str, *, threads: int = 1) -> None:
        self._user = user
        self._threads = threads
        self._pool = WorkerPool(1, thread_name_prefix="paimon-compact")
        self._lock = threading.Lock()
        self._waiting: set[BucketId] = set()
        self._store: FileStore | None = None
        self._round: Future[None] | None = None

    def begin(self, store: FileStore, buckets: Iterable[BucketId]) -> None:
        """Compact ``buckets`` of ``store`` as soon as the rounds before are done."""
        with self._lock:
            self._store = store
            self._waiting.update(buckets)
            if self._waiting and self._round is None:
                self._round = self._pool.submit(self._work)

    def wait(self) -> None:
        """Until nothing is under way."""
        while (running := self._round) is not None:
            running.result()

    def close(self) -> None:
        """Finish what was begun, and end the thread."""
        self.wait()
        self._pool.shutdown(wait=True)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or self._store is None:
                    self._round = None
                    return
                store, buckets, self._waiting = self._store, self._waiting, set()
            compact_buckets(store, self._user, buckets, threads=self._threads)


__all__ = ["BackgroundCompaction"]
