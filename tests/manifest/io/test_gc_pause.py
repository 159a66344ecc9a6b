"""The collector is off as long as anybody makes objects without cycles, and then as it was."""

from __future__ import annotations

import gc
import multiprocessing
import threading

import pytest

from manifest.io.gc_pause import gc_paused


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
