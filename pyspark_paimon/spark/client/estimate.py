"""Spark's size estimates of a DataFrame, and its core count.

Both come from the text of an explained plan, which takes milliseconds and no job. No client has an interface for them.
The text lists the statistics of the root first. Text without statistics counts as unknown.
Estimates decide how work is split, never what is written.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyspark_paimon.frames.fetched_rows import fetch_rows
from pyspark_paimon.request.requests import SparkRows

_STATISTICS = re.compile(r"Statistics\(sizeInBytes=([\d.]+)(E[+-]?\d+)? ([KMGTPE]?)i?B(?:, rowCount=([\d.E+-]+))?")
_SPLITS = re.compile(r"splits=(?:Some\()?(\d+)")
_UNITS = {unit: 1 << 10 * at for at, unit in enumerate(("", "K", "M", "G", "T", "P", "E"))}
_UNKNOWN_BYTES = 1 << 60
"""Smallest size that means that Spark has no estimate."""
_ROW_OVERHEAD, _VARIABLE_WIDTH = 8, 20
"""Bytes that Spark counts per row, and per text value."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes and rows of a DataFrame; None if unknown."""

    size: int | None = None
    rows: int | None = None


def estimate(frame: Any, columns: pa.Schema) -> Estimate:
    """Return the estimate of the optimised plan of ``frame``.

    ``columns`` is the schema of ``frame``. Spark counts file bytes for a table, and the product of both sides for a join.
    The estimate may be far off.
    """
    return estimate_of(_explain(frame, "cost"), columns)


def estimate_of(text: str, columns: pa.Schema) -> Estimate:
    """Return the estimate in a text of ``EXPLAIN COST``.

    >>> estimate_of("Project [id#1L], Statistics(sizeInBytes=15.6 KiB)", pa.schema([("id", pa.int64())]))
    Estimate(size=15974, rows=998)
    >>> estimate_of("Relation [id#1L] paimon, Statistics(sizeInBytes=8.0 EiB)", pa.schema([("id", pa.int64())]))
    Estimate(size=None, rows=None)
    """
    match = _STATISTICS.search(text)
    if match is None:
        return Estimate()
    number, exponent, unit, rows = match.groups()
    size = int(float(number + (exponent or "")) * _UNITS[unit])
    if size >= _UNKNOWN_BYTES:
        return Estimate(rows=None if rows is None else int(float(rows)))
    return Estimate(size, int(float(rows)) if rows is not None else size // row_bytes(columns))


def fetch_if_small(rows: SparkRows, *, max_rows: int, max_bytes: int) -> pa.Table | None:
    """Fetch the rows of a small DataFrame.

    None: Spark estimates more rows or bytes, or has no estimate, or there are more rows.
    """
    expected = estimate(rows.frame, rows.schema)
    if expected.size is None or expected.rows is None or expected.rows > max_rows or expected.size > max_bytes:
        return None
    fetched = fetch_rows(rows.frame.limit(max_rows + 1))
    return fetched if fetched.num_rows <= max_rows else None


def cores(spark: Any) -> int:
    """Return the number of tasks ``spark`` runs in parallel.

    Counts the current executors only: Spark splits a range into this number of parts by default.
    """
    match = _SPLITS.search(_explain(spark.range(1), "simple"))
    return max(1, int(match.group(1))) if match else 1


def _explain(frame: Any, mode: str) -> str:
    """Return the plan as text; empty after an error."""
    # An invalid frame raises its error when it runs.
    with suppress(Exception):
        if hasattr(frame, "_explain_string"):  # Connect
            return str(frame._explain_string(mode=mode))  # noqa: SLF001  # ``explain`` prints
        return str(frame.sparkSession._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode))  # noqa: SLF001  # as above
    return ""


def row_bytes(columns: pa.Schema) -> int:
    """Return the bytes that Spark counts for a row."""
    return _ROW_OVERHEAD + sum(_width(field.type) for field in columns)


def _width(type_: pa.DataType) -> int:
    try:
        return max(1, int(type_.bit_width) // 8)
    except ValueError:
        return _VARIABLE_WIDTH
