"""Modules that are loaded when something in them is first used, for names that only some calls of a class need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module until one of its names is asked for; under ``TYPE_CHECKING`` the name is the module itself.

    What is found is kept, so that a second look costs no more than an attribute. Raises what the import raises.

    >>> json = LazyModule("json")
    >>> json.dumps([1])
    '[1]'
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._name), name)
        self.__dict__[name] = found
        return found


__all__ = ["LazyModule"]
