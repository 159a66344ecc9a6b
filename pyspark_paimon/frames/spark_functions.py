"""Spark functions for classic and Connect DataFrames, quoted identifiers and text literals.

A process may have both kinds of sessions. Their columns cannot be mixed.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def functions_of(frame: DataFrame | SparkSession) -> ModuleType:
    """Return the functions module for a DataFrame or session."""
    # pyspark.sql.functions chooses by the process's first session, which may be of the other kind.
    connect = type(frame).__module__.startswith("pyspark.sql.connect.")
    return import_module("pyspark.sql.connect.functions" if connect else "pyspark.sql.functions")


def quote_name(name: str) -> str:
    """Return ``name`` as an identifier of Spark SQL.

    >>> quote_name("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def text_sql(text: str) -> str:
    """Return a text literal of Spark SQL that needs no escape characters.

    >>> text_sql("it's")
    "CAST(X'69742773' AS STRING)"
    """
    return f"CAST(X'{text.encode().hex()}' AS STRING)"
