"""Pauses of the garbage collector end with the last thread; variables of the environment come back."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
from types import SimpleNamespace

import pytest

from paimon_base.process import environment, gc_paused, is_spark_worker
from tests.children import run_python


@pytest.fixture(autouse=True)
def _collector():
    assert gc.isenabled()
    yield
    gc.enable()


def test_the_last_of_several_threads_puts_it_on_again():
    entered, leave = threading.Event(), threading.Event()

    def longer():
        with gc_paused():
            entered.set()
            leave.wait(10)

    with gc_paused():
        other = threading.Thread(target=longer)
        other.start()
        entered.wait(10)
    assert not gc.isenabled(), "the other thread still makes objects"
    leave.set()
    other.join()
    assert gc.isenabled()


def test_where_it_is_off_it_stays_off():
    gc.disable()
    with gc_paused(), gc_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_an_error_puts_it_on_again():
    with pytest.raises(KeyboardInterrupt), gc_paused():
        raise KeyboardInterrupt
    assert gc.isenabled()


def _child(answers):
    before = gc.isenabled()
    with gc_paused():
        during = gc.isenabled()
    answers.put((before, during, gc.isenabled()))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_amid_a_pause_has_its_collector():
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with gc_paused():
        child = context.Process(target=_child, args=(answers,))
        child.start()
        child.join()
    assert answers.get() == (True, False, True)
    assert gc.isenabled()


def test_an_environment_comes_back_after_an_error(monkeypatch):
    monkeypatch.setenv("PAIMON_TEST_SET", "before")
    monkeypatch.delenv("PAIMON_TEST_UNSET", raising=False)
    during = []

    def failing():
        with environment({"PAIMON_TEST_SET": "1", "PAIMON_TEST_UNSET": "2"}):
            during.extend([os.environ["PAIMON_TEST_SET"], os.environ["PAIMON_TEST_UNSET"]])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        failing()
    assert during == ["1", "2"]
    assert os.environ["PAIMON_TEST_SET"] == "before"
    assert "PAIMON_TEST_UNSET" not in os.environ


_WORKER = """
import gc, sys, types
{start}
gc.collect()  # what was loaded
first = gc.get_freeze_count()
few = [[] for _ in range(1000)]
gc.collect()
second = gc.get_freeze_count()
many = [[] for _ in range(10_000)]
gc.collect()
print(first > 0, second > first, gc.get_freeze_count() >= second + 11_000, len(gc.get_objects()) < 5_000)
"""
_NAMED = "sys.modules['__main__'].__spec__ = types.SimpleNamespace(name={!r})\nimport pyspark_paimon.spark.source"


@pytest.mark.slow("from pyspark_paimon.spark.daemon import preload\\npreload()-True False True True")
@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (_NAMED.format("pyspark.daemon"), "True False True True"),
        (_NAMED.format("pyspark_paimon.spark.daemon"), "True False True True"),
        ("from pyspark_paimon.spark.daemon import preload\npreload()", "True False True True"),  # the fork server, before it forks
        ("import pyspark_paimon.spark.source", "False False False False"),
    ],
)
def test_only_spark_workers_freeze_what_collections_leave(start, expected):
    pytest.importorskip("pyspark")
    # The data source of the test process must not be affected.
    done = run_python(_WORKER.format(start=start))
    assert done.stdout.split() == expected.split()


@pytest.mark.parametrize(
    ("name", "expected"), [("pyspark.daemon", True), ("pyspark_paimon.spark.daemon", True), ("pyspark.worker", True), ("pytest", False)]
)
def test_workers_of_spark_are_known_by_their_main_module(monkeypatch, name, expected):
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", SimpleNamespace(name=name), raising=False)
    assert is_spark_worker() == expected
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    assert not is_spark_worker()


_THREADS = """
import os
from pyspark_paimon.spark.{module} import {function}
{function}()
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists threads here")
@pytest.mark.parametrize(("module", "function"), [("daemon", "preload"), ("fork_server", "load_modules")])
def test_no_thread_runs_in_a_process_that_spark_forks(module, function):
    pytest.importorskip("pyspark")
    done = run_python(_THREADS.format(module=module, function=function))
    assert done.stdout.split() == ["1"]


_CYCLES = """
import gc, weakref
from paimon_base.process import _Freezer
gc.collect()
gc.callbacks.append(_Freezer(min_objects=100, max_objects={most}))
class Ring:
    def __init__(self):
        self.own = self
rings = [Ring() for _ in range(1000)]
alive = [weakref.ref(ring) for ring in rings]
gc.collect()  # freezes the rings and all modules
del rings
gc.collect()
before = sum(each() is not None for each in alive)
kept = []
for _ in range(2 * {most} // 10_000):
    kept += [[] for _ in range(10_000)]
    gc.collect()
print(before, sum(each() is not None for each in alive))
"""


def test_frozen_garbage_goes_when_as_much_again_is_frozen():
    done = run_python(_CYCLES.format(most=100_000))
    assert done.stdout.split() == ["1000", "0"]
