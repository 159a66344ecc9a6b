"""Streams of batches from several threads, in order, with bounded memory: Arrow releases the GIL, so threads are enough."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 4
_POLL_SECONDS = 0.05


@dataclass
class _Lane(Generic[T]):
    """One source's way to the consumer: at most ``_AHEAD`` items wait; None ends it, an exception is raised there."""

    items: queue.Queue[T | BaseException | None] = field(default_factory=lambda: queue.Queue(_AHEAD))


def interleaved(sources: Sequence[Callable[[], Iterator[T]]], threads: int) -> Iterator[T]:
    """All items of all sources, those of the first source first; up to ``threads`` sources run at once.

    A source runs ahead of the consumer by a few items only. Closing the iterator stops the sources.

    >>> list(interleaved([lambda: iter([1, 2]), lambda: iter([3])], threads=2))
    [1, 2, 3]
    """
    if threads <= 1 or len(sources) <= 1:
        for source in sources:
            yield from source()
        return
    stopped = threading.Event()
    lanes: list[_Lane[T]] = [_Lane() for _ in sources]
    with ThreadPoolExecutor(min(threads, len(sources)), "paimon-read") as pool:
        try:
            for source, lane in zip(sources, lanes, strict=True):
                pool.submit(_pump, source, lane, stopped)
            for lane in lanes:
                while (item := lane.items.get()) is not None:
                    if isinstance(item, BaseException):
                        raise item
                    yield item
        finally:
            stopped.set()


def _pump(source: Callable[[], Iterator[T]], lane: _Lane[T], stopped: threading.Event) -> None:
    last: BaseException | None = None
    try:
        for item in source() if not stopped.is_set() else ():
            if not _put(lane, item, stopped):
                return
    except BaseException as error:  # noqa: BLE001  # it is raised in the consumer's thread
        last = error
    if last is not None:
        _put(lane, last, stopped)
    _put(lane, None, stopped)


def _put(lane: _Lane[T], item: T | BaseException | None, stopped: threading.Event) -> bool:
    while not stopped.is_set():
        try:
            lane.items.put(item, timeout=_POLL_SECONDS)
        except queue.Full:
            continue
        return True
    return False


def each(work: Callable[[Any], R], items: Sequence[Any], threads: int) -> list[R]:
    """``work`` of every item, in order; the first error is raised after the running ones have ended and the rest are cancelled."""
    if threads <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(threads, len(items)), "paimon-work") as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


__all__ = ["each", "interleaved"]
