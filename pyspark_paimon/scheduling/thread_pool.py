"""Parallel reads in threads, with limited memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from manifest.io.threads import start_some
from paimon_base.thresholds import thresholds

# Threads are sufficient: Arrow releases the GIL.
T = TypeVar("T")

_LOOK_SECONDS = 1.0


class _Stopped(Exception):  # control flow, not an error: the consumer has stopped
    """The consumer needs no more items."""


class _Buffer(Generic[T]):
    """Buffer between several sources and one consumer.

    Sources are numbered, and the consumer reads one after the other. A source waits while the buffer is full, unless the
    consumer waits for it.
    """

    def __init__(self, sources: int, budget: int) -> None:
        self._items: list[deque[tuple[T, int]]] = [deque() for _ in range(sources)]
        self._ended = [False] * sources
        self._error: BaseException | None = None
        self._budget = budget
        self._held = 0
        self._head = 0
        self._stopped = False
        self._consumer = threading.current_thread()
        self._changed = threading.Condition()

    def put(self, source: int, item: T) -> None:
        """Add an item.

        Raises ``_Stopped``.
        """
        size = max(getattr(item, "nbytes", 0), thresholds.ahead_item_bytes)
        with self._changed:
            # An iterator that is neither read nor closed must not keep the program running: check periodically for a live consumer.
            while not self._changed.wait_for(lambda: self._stopped or self._has_room(source), _LOOK_SECONDS):
                self._stopped = not (threading.main_thread().is_alive() or self._consumer.is_alive())
            if self._stopped:
                raise _Stopped
            self._items[source].append((item, size))
            self._held += size
            self._changed.notify_all()

    def _has_room(self, source: int) -> bool:
        return self._held < self._budget or (source == self._head and not self._items[source])

    def end(self, source: int, error: BaseException | None = None) -> None:
        """Mark ``source`` as finished.

        An error is raised to the consumer at once.
        """
        with self._changed:
            self._ended[source] = True
            self._error = self._error or error
            self._changed.notify_all()

    @property
    def stopped(self) -> bool:
        """Whether the sources should stop."""
        return self._stopped

    def stop(self) -> None:
        """Make all sources stop."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def take(self, source: int) -> Iterator[T]:
        """Yield the items of ``source`` as they arrive."""
        items = self._items[source]
        while True:
            with self._changed:
                self._head, self._consumer = source, threading.current_thread()
                self._changed.notify_all()
                self._changed.wait_for(lambda: items or self._ended[source] or self._error is not None)
                if self._error is not None:
                    raise self._error
                if not items:
                    return
                item, size = items.popleft()
                self._held -= size
                self._changed.notify_all()
            yield item


def interleave(sources: Sequence[Callable[[], Iterator[T]]], threads: int, budget: int | None = None) -> Iterator[T]:
    """Yield the items of all sources in order.

    Items of the first source come first. Up to ``threads`` sources run at the same time. Closing the iterator stops them.

    budget: Bytes that all sources may read ahead, by ``nbytes`` of the items. None: the default threshold.

    >>> list(interleave([lambda: iter([1, 2]), lambda: iter([3])], threads=2))
    [1, 2, 3]
    """
    if threads <= 1 or len(sources) <= 1:
        for source in sources:
            yield from source()
        return
    buffer: _Buffer[T] = _Buffer(len(sources), thresholds.ahead_bytes if budget is None else budget)
    waiting = iter(enumerate(sources))
    readers = [threading.Thread(target=_pump_all, args=(waiting, buffer), name="paimon-read") for _ in range(min(threads, len(sources)))]
    started: list[threading.Thread] = []
    try:
        started = start_some(readers)
        if not started:  # no thread can be started: read one source after the other
            for source in sources:
                yield from source()
            return
        for number in range(len(sources)):
            yield from buffer.take(number)
    finally:
        buffer.stop()
        for reader in started:
            reader.join()


def _pump_all(waiting: Iterator[tuple[int, Callable[[], Iterator[T]]]], buffer: _Buffer[T]) -> None:
    """Read sources into the buffer, in one of several threads."""
    # Plain threads, not a pool: the interpreter would join a pool before it exits.
    for number, source in waiting:
        if buffer.stopped or not _pump(number, source, buffer):
            return


def _pump(number: int, source: Callable[[], Iterator[T]], buffer: _Buffer[T]) -> bool:
    """Read one source; return whether to continue with the next."""
    try:
        for item in source():
            buffer.put(number, item)
    except _Stopped:
        return False
    except BaseException as error:  # noqa: BLE001  # raised in the consumer's thread
        buffer.end(number, error)
        return False
    buffer.end(number)
    return True
