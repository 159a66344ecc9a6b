"""What Spark expects of a DataFrame before it runs: bytes and rows, from its plan's statistics; and the cores that it has.

No client has an interface for either. All of them can explain a plan, which takes some milliseconds and no job, and the text names
the statistics of the root first. What cannot be told counts as unknown: estimates decide how work is cut, never what is written.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_STATISTICS = re.compile(r"Statistics\(sizeInBytes=([\d.]+)(E[+-]?\d+)? ([KMGTPE]?)i?B(?:, rowCount=([\d.E+-]+))?")
_SPLITS = re.compile(r"splits=(?:Some\()?(\d+)")
_UNITS = {unit: 1 << 10 * at for at, unit in enumerate(("", "K", "M", "G", "T", "P", "E"))}
_UNKNOWN_BYTES = 1 << 60
"""From here on Spark means that it does not know."""
_ROW_OVERHEAD, _VARIABLE_WIDTH = 8, 20
"""Bytes that Spark counts for a row, and for a text in it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes and rows of a DataFrame; None where Spark cannot tell."""

    size: int | None = None
    rows: int | None = None


def estimate(frame: Any, columns: pa.Schema) -> Estimate:
    """What the optimised plan of ``frame``, which has these columns, promises.

    A table on disk counts with the bytes of its files, a join with the product of its sides: this may be far off.
    """
    return estimate_of(_explained(frame, "cost"), columns)


def estimate_of(text: str, columns: pa.Schema) -> Estimate:
    """The same from what ``EXPLAIN COST`` says.

    >>> estimate_of("Project [id#1L], Statistics(sizeInBytes=15.6 KiB)", pa.schema([("id", pa.int64())]))
    Estimate(size=15974, rows=998)
    >>> estimate_of("Relation [id#1L] paimon, Statistics(sizeInBytes=8.0 EiB)", pa.schema([("id", pa.int64())]))
    Estimate(size=None, rows=None)
    """
    found = _STATISTICS.search(text)
    if found is None:
        return Estimate()
    number, exponent, unit, rows = found.groups()
    size = int(float(number + (exponent or "")) * _UNITS[unit])
    if size >= _UNKNOWN_BYTES:
        return Estimate(rows=None if rows is None else int(float(rows)))
    return Estimate(size, int(float(rows)) if rows is not None else size // _row_bytes(columns))


def cores(spark: Any) -> int:
    """The tasks that ``spark`` runs at a time, as far as it has executors now: into so many parts it cuts a range of its own accord."""
    found = _SPLITS.search(_explained(spark.range(1), "simple"))
    return max(1, int(found.group(1))) if found else 1


def _explained(frame: Any, mode: str) -> str:
    """The plan as text; "" if it cannot be had: what is wrong with the frame shows when it runs."""
    with suppress(Exception):
        if hasattr(frame, "_explain_string"):  # Connect
            return str(frame._explain_string(mode=mode))  # noqa: SLF001  # ``explain`` prints
        return str(frame.sparkSession._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode))  # noqa: SLF001  # as above
    return ""


def _row_bytes(columns: pa.Schema) -> int:
    return _ROW_OVERHEAD + sum(_width(field.type) for field in columns)


def _width(type_: pa.DataType) -> int:
    try:
        return max(1, int(type_.bit_width) // 8)
    except ValueError:
        return _VARIABLE_WIDTH


__all__ = ["Estimate", "cores", "estimate", "estimate_of"]
