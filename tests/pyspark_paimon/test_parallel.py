"""Several sources at once: order, bounded look-ahead, errors, and a consumer who leaves."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from pyspark_paimon.parallel import each, interleaved


@dataclass
class Item:
    source: int
    number: int
    nbytes: int = 1 << 20


def test_items_come_in_the_order_of_their_sources() -> None:
    sources = [lambda at=at: (Item(at, n) for n in range(50)) for at in range(7)]
    for threads in (1, 2, 8):
        found = [(item.source, item.number) for item in interleaved(sources, threads)]
        assert found == [(at, n) for at in range(7) for n in range(50)]


def test_sources_run_ahead_by_the_budget_only() -> None:
    produced = []

    def source(at):
        for n in range(100):
            produced.append((at, n))
            yield Item(at, n)

    stream = interleaved([lambda: source(0), lambda: source(1)], 2, budget=5 << 20)
    next(stream)
    threading.Event().wait(0.2)
    assert len(produced) <= 1 + 5 + 2 + 1
    stream.close()


def test_a_full_buffer_never_blocks_the_source_that_is_wanted() -> None:
    first_may_go = threading.Event()

    def slow():
        first_may_go.wait(10)
        yield from (Item(0, n) for n in range(10))

    def fast():
        for n in range(10):
            if n == 2:
                first_may_go.set()
            yield Item(1, n)

    assert len(list(interleaved([slow, fast], 2, budget=2 << 20))) == 20


def test_an_error_of_a_source_reaches_the_consumer() -> None:
    def broken():
        yield Item(1, 0)
        raise ValueError("bad file")

    with pytest.raises(ValueError, match="bad file"):
        list(interleaved([lambda: iter([Item(0, 0)]), broken, lambda: iter([])], 2))


def test_closing_the_stream_stops_the_sources() -> None:

    def endless(at):
        while True:
            yield Item(at, 0)

    before = threading.active_count()
    stream = interleaved([lambda: endless(0), lambda: endless(1)], 2, budget=3 << 20)
    next(stream)
    stream.close()
    assert threading.active_count() == before


def test_each_keeps_order_and_raises_the_first_error() -> None:
    assert each(lambda n: n * n, range(20), 4) == [n * n for n in range(20)]
    with pytest.raises(ZeroDivisionError):
        each(lambda n: 1 / (n - 3), range(20), 4)
