"""Threads for parallel store requests, which only wait for answers."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar

from manifest.io.threads import WorkerPool, start_some

P = ParamSpec("P")
Item = TypeVar("Item")
Answer = TypeVar("Answer")
MAX_CONCURRENCY = 32


def start(work: Callable[P, Answer], *arguments: P.args, **options: P.kwargs) -> Future[Answer]:
    """Start ``work`` in a thread.

    It must not wait for other work started here.
    """
    return _threads(os.getpid()).submit(work, *arguments, **options)


def spread(work: Callable[[Item], Answer], items: Iterable[Item], ahead: int = MAX_CONCURRENCY) -> Iterator[Answer]:
    """Yield ``work`` of every item, in order.

    At most ``ahead`` items are running or waiting to be consumed.

    >>> list(spread(len, ["a", "bb", "ccc"], ahead=2))
    [1, 2, 3]
    """
    under_way: deque[Future[Answer]] = deque()
    try:
        for item in items:
            under_way.append(start(work, item))
            if len(under_way) >= ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        for future in under_way:
            future.cancel()


def run_parallel(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run jobs in parallel and return their results."""
    # Not in the shared threads: jobs may start work there and wait for it. The last job runs in this thread.
    answers: list[Any] = [None] * len(jobs)
    errors: dict[int, BaseException] = {}

    def run(number: int) -> None:
        try:
            answers[number] = jobs[number]()
        except BaseException as error:  # noqa: BLE001  # raised below, in the calling thread
            errors[number] = error

    threads = [threading.Thread(target=run, args=(number,), name="paimon-parallel") for number in range(len(jobs) - 1)]
    started = start_some(threads)
    for number in range(len(started), len(jobs)):
        run(number)
    for thread in started:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return answers


@lru_cache(maxsize=1)
def _threads(process: int) -> WorkerPool:
    """Return the threads of this ``process``."""
    # By process id: a fork does not have its parent's threads.
    return WorkerPool(MAX_CONCURRENCY, thread_name_prefix=f"paimon-store-{process}")
