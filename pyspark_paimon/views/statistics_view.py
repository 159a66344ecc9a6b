"""Table statistics as an Arrow table."""

from __future__ import annotations

import pyarrow as pa

from manifest.stats.table_stats import Statistics

STATISTICS = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("schema_id", pa.int64()),
        ("record_count", pa.int64()),
        ("record_size", pa.int64()),
        ("column", pa.string()),
        ("distinct_count", pa.int64()),
        ("min", pa.string()),
        ("max", pa.string()),
        ("null_count", pa.int64()),
        ("avg_len", pa.int64()),
        ("max_len", pa.int64()),
    ]
)


def statistics_table(statistics: Statistics | None) -> pa.Table:
    """Return a row of statistics for each column.

    If only rows were counted, there is one row without a column. The columns are ``STATISTICS``.
    """
    if statistics is None:
        return STATISTICS.empty_table()
    table = {
        "snapshot_id": statistics.snapshot_id,
        "schema_id": statistics.schema_id,
        "record_count": statistics.merged_record_count,
        "record_size": statistics.merged_record_size,
    }
    rows = [{**table, "column": name, **column.model_dump(exclude={"col_id"})} for name, column in statistics.col_stats.items()]
    return pa.Table.from_pylist(rows or [table], STATISTICS)


__all__ = ["STATISTICS", "statistics_table"]
