"""A module is loaded when one of its names is asked for, and once."""

from __future__ import annotations

import sys

import pytest

from fileindex.base.lazy import LazyModule


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
