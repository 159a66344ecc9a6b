"""Replaces functions of the product by wrong ones."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from unittest.mock import patch

from paimon_base.lazy import LazyModule
from tests.source_tree import ROOMS

Patches = Iterator[Any]
Fault = Callable[[], Patches]


def everywhere(module: Any, name: str, wrong: Callable[..., Any]) -> Patches:
    """Patches of a function in each module that has imported it. ``wrong`` takes the function first."""
    right = getattr(module, name)
    changed = functools.partial(wrong, right)
    for other in _product():
        if vars(other).get(name) is right:
            yield patch.object(other, name, changed)


def forget_lazy_attributes() -> None:
    """Have proxies of modules look again: they keep the functions that they returned once, right or wrong."""
    for module in _product():
        for proxy in vars(module).values():
            if isinstance(proxy, LazyModule):
                for name in vars(proxy).keys() - {"_name"}:
                    delattr(proxy, name)


def restore(patches: list[Any]) -> None:
    """Take wrong functions out of modules that were imported while they stood in others."""
    wrong = {id(one.new) for one in patches}
    for module in _product():
        for name, value in list(vars(module).items()):
            if id(value) in wrong:
                setattr(module, name, value.args[0])
    forget_lazy_attributes()


def _product() -> list[ModuleType]:
    return [module for module in list(sys.modules.values()) if module is not None and module.__name__.split(".")[0] in ROOMS]


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
