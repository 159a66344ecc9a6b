"""Counts requests to stores, and how many of them follow on one another: a clock that only requests advance, one for each thread.

A thread begins where the one that started it stood, or where it was itself, whichever is later; who waits for it stands afterwards where it
ended. So the count does not depend on how fast a machine is. ``seconds`` is added to each request, for tables of measured times.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from manifest.storage.bucket import Bucket

_MANY = 16
"""Threads of a pool that are never all at work in these tests."""


@dataclass
class Rounds:
    """``requests`` are (round, what, key)."""

    seconds: float = 0.0
    requests: list[tuple[int, str, str]] = field(default_factory=list)
    _local: threading.local = field(default_factory=threading.local, repr=False)

    @property
    def now(self) -> int:
        return getattr(self._local, "now", 0)

    def reach(self, moment: int) -> None:
        self._local.now = max(self.now, moment)

    @property
    def count(self) -> int:
        """Requests in turn, of what has been waited for."""
        return self.now

    def again(self) -> None:
        self.requests.clear()
        self._local = threading.local()

    def told(self) -> str:
        return "\n".join(f"{number:3} {what} {key}" for number, what, key in sorted(self.requests))


@contextmanager
def counted(monkeypatch: Any, seconds: float = 0.0) -> Iterator[Rounds]:
    """Count from here on; threads that are started meanwhile are followed."""
    rounds = Rounds(seconds)
    call, submit, result, start, join = Bucket.call, ThreadPoolExecutor.submit, Future.result, threading.Thread.start, threading.Thread.join

    def one_call(self: Bucket, what: str, key: str, request: Callable[[], Any]) -> Any:
        began = rounds.now
        time.sleep(rounds.seconds)
        try:
            return call(self, what, key, request)
        finally:
            rounds.reach(began + 1)
            rounds.requests.append((began + 1, what, key))

    def follow(work: Callable[..., Any], ended: Callable[[int], None], *, free: bool) -> Callable[..., Any]:
        """``free``: a thread is there for the work at once; else it may have been at work when this was begun."""
        began = rounds.now

        def followed(*arguments: Any, **options: Any) -> Any:
            rounds._local.now = began if free else max(began, rounds.now)
            try:
                return work(*arguments, **options)
            finally:
                ended(rounds.now)

        return followed

    def one_submit(self: ThreadPoolExecutor, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        box: list[int] = []
        # The first pieces have a thread each, also where a busy machine lets one thread do two of them.
        self.submitted = getattr(self, "submitted", 0) + 1
        free = self._max_workers >= min(_MANY, self.submitted)
        future = submit(self, follow(work, box.append, free=free), *arguments, **options)
        future.ended_in = box
        return future

    def one_result(self: Future[Any], timeout: float | None = None) -> Any:
        try:
            return result(self, timeout)
        finally:
            for moment in getattr(self, "ended_in", ()):
                rounds.reach(moment)

    def one_start(self: threading.Thread) -> None:
        self.ended_in = []
        self.run = follow(self.run, self.ended_in.append, free=True)
        start(self)

    def one_join(self: threading.Thread, timeout: float | None = None) -> None:
        join(self, timeout)
        for moment in getattr(self, "ended_in", ()):
            rounds.reach(moment)

    with monkeypatch.context() as patched:
        patched.setattr(Bucket, "call", one_call)
        patched.setattr(ThreadPoolExecutor, "submit", one_submit)
        patched.setattr(Future, "result", one_result)
        patched.setattr(threading.Thread, "start", one_start)
        patched.setattr(threading.Thread, "join", one_join)
        yield rounds
