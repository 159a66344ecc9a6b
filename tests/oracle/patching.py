"""Replaces functions of the product by wrong ones."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

ROOMS = ("fileindex", "manifest", "lsm", "pyspark_paimon")
Patches = Iterator[Any]
Fault = Callable[[], Patches]


def everywhere(module: Any, name: str, wrong: Callable[..., Any]) -> Patches:
    """Patches of a function in each module that has imported it. ``wrong`` takes the function first."""
    right = getattr(module, name)
    changed = functools.partial(wrong, right)
    for other in list(sys.modules.values()):
        if other is not None and other.__name__.split(".")[0] in ROOMS and vars(other).get(name) is right:
            yield patch.object(other, name, changed)


def method(owner: type, name: str, wrong: Callable[..., Any]) -> Patches:
    """A patch of a method. ``wrong`` takes the method first."""
    right = getattr(owner, name)
    yield patch.object(owner, name, lambda *given, **options: wrong(right, *given, **options))


def class_method(owner: type, name: str, wrong: Callable[..., Any]) -> Patches:
    """A patch of a class method. ``wrong`` takes the bound method first."""
    right = getattr(owner, name)
    yield patch.object(owner, name, functools.partial(wrong, right))


def value_of(owner: type, name: str, wrong: Callable[..., Any]) -> Patches:
    """A patch of a property, cached or not. ``wrong`` takes its function first."""
    right = vars(owner)[name]
    yield patch.object(owner, name, property(functools.partial(wrong, right.fget if isinstance(right, property) else right.func)))
