"""Thresholds of the Parquet writer, in one place, so that tests can cross them with few rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ParquetLimits:
    """Sizes at which the Parquet writer changes its behaviour.

    Attributes:
        group_rows: Rows at which a row group ends.
        group_bytes: In-memory bytes at which a row group ends.
        page_rows: Most rows of a page.
        page_bytes: Bytes at which a page ends.
        sample_rows: Rows sampled to decide whether values repeat.
        sample_window: First rows of a file from which samples are drawn.
        repeats: Mean number of equal values for which a dictionary pays.
        most_distinct: Largest number of values of a dictionary. More do not fit the cache.
        fewest_rows: Rows of a file below which no encoding is tried.
        trial_rows: Rows of each of the two places that are encoded in a trial.
        kept_rows: Rows for which a choice holds. Then trials cost a few percent of the encoding.
        bulky: Bytes of a value beyond which the encoder drops dictionaries and bounds. To find that out it copies the value five times.
    """

    group_rows: int = 1 << 19
    group_bytes: int = 64 << 20
    page_rows: int = 10_000
    # Half of the encoder's default: a lookup decodes half as much, and a file grows by a sixth of a percent.
    page_bytes: int = 1 << 20
    sample_rows: int = 1024
    sample_window: int = 1 << 16
    repeats: int = 4
    most_distinct: int = 1 << 15
    fewest_rows: int = 4096
    trial_rows: int = 4096
    kept_rows: int = 1 << 18
    bulky: int = 1 << 20


PARQUET_LIMITS = ParquetLimits()
"""The thresholds of this process. Read at each use, so that a test can replace them."""

__all__ = ["PARQUET_LIMITS", "ParquetLimits"]
