"""Format ``paimon`` under its short name: Spark's discovery takes one data source of each module called ``pyspark_*``.

The source itself, and its unique name, are in ``pyspark_paimon``; see ``pyspark_paimon.spark.wire.names``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_paimon.spark.source import ShortNamedSource as DefaultSource


def __getattr__(name: str) -> object:
    """The source, imported when Spark asks for it."""
    if name != "DefaultSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("pyspark_paimon.spark.source").ShortNamedSource


__all__ = ["DefaultSource"]
