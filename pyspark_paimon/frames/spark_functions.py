"""Spark's functions for a DataFrame: one process may have classic and Connect sessions, whose columns do not mix."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def functions_of(frame: DataFrame | SparkSession) -> ModuleType:
    """The module of functions whose columns go with ``frame``, a DataFrame or a session.

    ``pyspark.sql.functions`` guesses by the way in which the process made its first session.
    """
    connect = type(frame).__module__.startswith("pyspark.sql.connect.")
    return import_module("pyspark.sql.connect.functions" if connect else "pyspark.sql.functions")


__all__ = ["functions_of"]
