"""What is asked of lineitem tables, with literals from the rows themselves, and of a table of many files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.contenders.worker import Filter, Query

KEYS, HITS, PLANS = 9, 5, 3
NARROW = ["l_orderkey", "l_linenumber", "l_extendedprice"]
PLAN_FILTERS: dict[str, tuple[Filter, int]] = {
    "none": ([], 10_000),
    "partition": ([["day", "=", 5]], 100),
    "partition + key": ([["day", "=", 5], ["id", "=", -5]], 0),
    "key": ([["id", "=", -5]], 0),
}
"""Filters on the table of 10,000 files, and the files that each keeps."""


def lookups(rows: pa.Table) -> list[Query]:
    """Of the rows that a table holds after the upsert."""
    chosen = rows.take(pa.array(np.linspace(0, len(rows) - 1, KEYS).astype(np.int64)))
    keys = list(zip(chosen["l_orderkey"].to_pylist(), chosen["l_linenumber"].to_pylist(), strict=True))
    comments = chosen["l_comment"].to_pylist()[:HITS]
    prices = np.quantile(rows["l_extendedprice"].slice(0, 100_000).cast(pa.float64()).to_numpy(), [0.3, 0.5, 0.7]).round()
    both: list[Filter] = [[["l_shipmode", "=", mode], ["l_returnflag", "=", "R"]] for mode in ("AIR", "RAIL", "SHIP")]
    ranges: list[Filter] = [
        [["l_extendedprice", ">=", f"{price:.2f}"], ["l_extendedprice", "<=", f"{price + 70:.2f}"]] for price in prices.tolist()
    ]
    return [
        Query("key hit", [[["l_orderkey", "=", order], ["l_linenumber", "=", line]] for order, line in keys]),
        Query("key miss", [[["l_orderkey", "=", order], ["l_linenumber", "=", 99]] for order, _ in keys]),
        Query("string miss", [[["l_comment", "=", f"no such comment {at}"]] for at in range(KEYS)]),
        Query("string hit", [[["l_comment", "=", comment]] for comment in comments]),
        Query("two strings", both),
        Query("two strings, 3 columns", both, NARROW),
        Query("range", ranges),
        Query("range, 3 columns", ranges, NARROW),
        Query("count of two strings", both, count=True),
    ]


def plans() -> list[Query]:
    """Cold, then warm."""
    return [
        Query(f"{temperature}, {name}", [conditions] * PLANS, warm=temperature == "warm")
        for temperature in ("cold", "warm")
        for name, (conditions, _) in PLAN_FILTERS.items()
    ]


def matching(rows: pa.Table, query: Query, conditions: Filter) -> pa.Table:
    """What pyarrow says: the truth of a query."""
    mask: Any = None
    compare = {"=": pc.equal, ">=": pc.greater_equal, "<=": pc.less_equal}
    for column, op, literal in conditions:
        one = compare[op](rows[column], literal_of(rows.schema.field(column).type, literal))
        mask = one if mask is None else pc.and_(mask, one)
    found = rows.filter(mask)
    return found.select(query.columns) if query.columns else found


def literal_of(kind: pa.DataType, literal: Any) -> pa.Scalar:
    """A literal in a column's type."""
    return pa.scalar(literal).cast(kind) if isinstance(literal, str) else pa.scalar(literal, kind)


__all__ = ["NARROW", "PLAN_FILTERS", "literal_of", "lookups", "matching", "plans"]
