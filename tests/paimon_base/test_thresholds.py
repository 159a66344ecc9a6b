"""Thresholds: one object, exchanged for a while, that the documentation lists whole."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from threading import Thread

import pytest

from paimon_base.thresholds import Thresholds, thresholds, use_thresholds
from scripts import thresholds_page
from tests.without_plugins import IS_CORE_ALONE

NAMES = [one.name for one in fields(Thresholds)]


def test_a_change_ends_with_its_block() -> None:
    before = replace(thresholds)
    with use_thresholds(group_rows=7):
        with use_thresholds(Thresholds.tiny(), group_bytes=3) as inner:
            assert thresholds is inner
            assert (inner.group_rows, inner.group_bytes) == (Thresholds.tiny().group_rows, 3)
        assert (thresholds.group_rows, thresholds.group_bytes) == (7, before.group_bytes)
    assert thresholds == before
    with pytest.raises(KeyError), use_thresholds(group_rows=7):
        raise KeyError
    assert thresholds == before


def test_an_unknown_threshold_is_an_error() -> None:
    with pytest.raises(TypeError, match="rows_of_a_moon"), use_thresholds(rows_of_a_moon=7):
        pass


def test_threads_and_forked_processes_see_a_change() -> None:
    seen: list[int] = []
    with use_thresholds(group_rows=7):
        thread = Thread(target=lambda: seen.append(thresholds.group_rows))
        thread.start()
        thread.join()
        child = os.fork()
        if child == 0:
            os._exit(thresholds.group_rows)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert seen == [7]


@pytest.mark.parametrize("name", NAMES)
def test_a_tiny_threshold_is_smaller_and_somebody_reads_it(name: str) -> None:
    usual, tiny = getattr(Thresholds(), name), getattr(Thresholds.tiny(), name)
    assert 0 < tiny <= usual
    assert thresholds_page.readers()[name]


@pytest.mark.skipif(IS_CORE_ALONE, reason="the page names modules of plugins")
def test_the_documentation_lists_all_thresholds() -> None:
    text = thresholds_page.PAGE.read_text()
    assert thresholds_page.page(text) == text, "run python scripts/thresholds_page.py"
    assert [name for name in NAMES if f"| `{name}` |" not in text] == []
