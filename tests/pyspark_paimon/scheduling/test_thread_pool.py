"""Several sources at once: order, bounded look-ahead, errors, and a consumer who leaves."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from manifest.io.threads import map_in_threads
from pyspark_paimon.scheduling.thread_pool import interleave
from tests.children import run_python


@dataclass
class Item:
    source: int
    number: int
    nbytes: int = 1 << 20


def test_items_come_in_the_order_of_their_sources() -> None:
    sources = [lambda at=at: (Item(at, n) for n in range(50)) for at in range(7)]
    for threads in (1, 2, 8):
        found = [(item.source, item.number) for item in interleave(sources, threads)]
        assert found == [(at, n) for at in range(7) for n in range(50)]


def test_sources_run_ahead_by_the_budget_only() -> None:
    produced = []

    def source(at):
        for n in range(100):
            produced.append((at, n))
            yield Item(at, n)

    stream = interleave([lambda: source(0), lambda: source(1)], 2, budget=5 << 20)
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

    assert len(list(interleave([slow, fast], 2, budget=2 << 20))) == 20


def test_an_error_of_a_source_reaches_the_consumer() -> None:
    def broken():
        yield Item(1, 0)
        raise ValueError("bad file")

    with pytest.raises(ValueError, match="bad file"):
        list(interleave([lambda: iter([Item(0, 0)]), broken, lambda: iter([])], 2))


def test_closing_the_stream_stops_the_sources() -> None:

    def endless(at):
        while True:
            yield Item(at, 0)

    before = threading.active_count()
    stream = interleave([lambda: endless(0), lambda: endless(1)], 2, budget=3 << 20)
    next(stream)
    stream.close()
    assert threading.active_count() == before


def test_a_stream_that_nobody_reads_on_does_not_keep_the_program_from_ending() -> None:
    program = "from pyspark_paimon.scheduling.thread_pool import interleave; stream = interleave([lambda: iter(range(10**6))] * 4, 2, 1); print(next(stream))"
    done = run_python(program, timeout=60)
    assert done.stdout == "0\n"


def test_a_stream_is_read_on_by_a_thread_that_outlives_the_main_one() -> None:
    program = """
import threading, time
from pyspark_paimon.scheduling.thread_pool import interleave

def read():
    threading.main_thread().join()
    time.sleep(1.5)
    print(sum(interleave([lambda: iter(range(1000))] * 4, 2, 1)))

threading.Thread(target=read).start()
"""
    done = run_python(program, timeout=60)
    assert done.stdout == "1998000\n"


def test_sources_that_give_nothing_are_not_read_after_the_consumer_has_left() -> None:
    read = []

    def source(at):
        read.append(at)
        if at < 2:
            yield Item(at, 0)
            yield Item(at, 1)

    stream = interleave([lambda at=at: source(at) for at in range(50)], 2, budget=1)
    next(stream)
    stream.close()
    assert len(read) <= 3


def test_each_keeps_order_and_raises_the_first_error() -> None:
    assert map_in_threads(lambda n: n * n, range(20), 4) == [n * n for n in range(20)]
    with pytest.raises(ZeroDivisionError):
        map_in_threads(lambda n: 1 / (n - 3), range(20), 4)
