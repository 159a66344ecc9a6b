"""Spark's functions for a DataFrame: one process may have classic and Connect sessions, whose columns do not mix."""

from __future__ import annotations

from typing import Any


def functions_of(frame: Any) -> Any:
    """The module of functions whose columns go with ``frame``, a DataFrame or a session.

    ``pyspark.sql.functions`` guesses by the way in which the process made its first session.
    """
    if type(frame).__module__.startswith("pyspark.sql.connect."):
        from pyspark.sql.connect import functions  # noqa: PLC0415  # a frame is at hand, so pyspark is
    else:
        from pyspark.sql import functions  # noqa: PLC0415  # as above
    return functions


__all__ = ["functions_of"]
