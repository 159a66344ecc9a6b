"""Threads in which requests to stores are under way side by side: each waits for an answer and for nothing else."""

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
LANES = 32


def start(work: Callable[P, Answer], *arguments: P.args, **options: P.kwargs) -> Future[Answer]:
    """Begin ``work``, which must not wait for other work that is begun here."""
    return _threads(os.getpid()).submit(work, *arguments, **options)


def spread(work: Callable[[Item], Answer], items: Iterable[Item], ahead: int = LANES) -> Iterator[Answer]:
    """``work`` of every item, in order; as many as ``ahead`` are under way or wait to be taken.

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


def together(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each job gives; each in a thread of its own but the last, for they may begin work in lanes and wait for it."""
    answers: list[Any] = [None] * len(jobs)
    errors: dict[int, BaseException] = {}

    def run(number: int) -> None:
        try:
            answers[number] = jobs[number]()
        except BaseException as error:  # noqa: BLE001  # raised below, in the thread that waits
            errors[number] = error

    threads = [threading.Thread(target=run, args=(number,), name="paimon-together") for number in range(len(jobs) - 1)]
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
    """Those of this ``process``: a fork leaves its parent's behind."""
    return WorkerPool(LANES, thread_name_prefix=f"paimon-store-{process}")


__all__ = ["LANES", "spread", "start", "together"]
