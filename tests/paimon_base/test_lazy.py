"""A module is loaded when one of its names is asked for, and once."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from paimon_base.lazy import LazyModule, cached_property


def test_nothing_is_loaded_before_a_name_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    module = LazyModule("colorsys")
    assert "colorsys" not in sys.modules
    assert module.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    assert "colorsys" in sys.modules
    assert module.rgb_to_hsv is sys.modules["colorsys"].rgb_to_hsv


def test_what_is_not_there_is_told_as_the_module_tells_it() -> None:
    with pytest.raises(AttributeError, match="'json' has no attribute 'no_name'"):
        LazyModule("json").no_name  # noqa: B018  # the look is the test
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        LazyModule("no_such_module").name  # noqa: B018  # as above


class _Doubled:
    def __init__(self, number: int, made: list[int]) -> None:
        self._number, self._made = number, made

    @cached_property
    def value(self) -> int:
        self._made.append(self._number)
        if self._number == 1:  # while this one is made, another thread makes another instance's
            with ThreadPoolExecutor(1) as threads:
                assert threads.submit(lambda: _Doubled(2, self._made).value).result(timeout=30) == 4
        return 2 * self._number


def test_a_value_is_made_once_and_while_other_instances_make_theirs() -> None:
    made: list[int] = []
    doubled = _Doubled(1, made)
    assert (doubled.value, doubled.value, made) == (2, 2, [1, 2])


def test_a_value_that_fails_is_made_again() -> None:
    class Late:
        tries = 0

        @cached_property
        def value(self) -> int:
            self.tries += 1
            if self.tries == 1:
                raise OSError("not yet")
            return self.tries

    late = Late()
    with pytest.raises(OSError, match="not yet"):
        late.value  # noqa: B018  # the look is the test
    assert late.value == 2
