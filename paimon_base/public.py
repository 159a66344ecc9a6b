"""Decorator of the classes and functions that ``pyspark_paimon`` exports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T", bound=Callable[..., Any])
PACKAGE = "pyspark_paimon"


def public(item: _T) -> _T:
    """Show a class or function as a member of ``pyspark_paimon``.

    Tracebacks, help and pickles then name the path that users import. The package must export the item under its own name.
    """
    if item.__module__ == PACKAGE:
        return item
    # doctest skips what belongs to another module, unless __test__ lists it.
    vars(sys.modules[item.__module__]).setdefault("__test__", {})[item.__name__] = item
    item.__module__ = PACKAGE
    return item
