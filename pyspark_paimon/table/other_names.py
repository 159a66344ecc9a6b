"""Names of other libraries for what ``Table`` and ``Scan`` call differently."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

_READ = "scan(filter, columns=[...])"
_WRITE = "write(rows)"
_FILE = "to_arrow(), and pyarrow.parquet.write_table(rows, path) or pyarrow.csv.write_csv(rows, path)"
_SORTED = "scan(filter, order_by=...)"
_GROUPS = 'aggregate({"amount": "sum"}, by="city")'
_ALIKE = 0.8
"""Least similarity of a name to a hint, of 1."""
SCAN_CALLS = {
    **dict.fromkeys(("collect", "fetch", "fetchall", "load", "toArrow", "to_pyarrow", "to_pyarrow_table", "to_table"), "to_arrow()"),
    **dict.fromkeys(("iter_rows", "rows", "to_dicts", "to_list", "to_pydict", "to_pylist", "tolist"), "to_arrow().to_pylist()"),
    **dict.fromkeys(("display", "first", "print", "show", "take"), "head(n)"),
    **dict.fromkeys(("df", "toPandas", "to_df"), "to_pandas()"),
    **dict.fromkeys(("filter", "query", "where"), "narrowed(filter)"),
    **dict.fromkeys(("save", "to_csv", "to_parquet", "write_csv", "write_parquet"), _FILE),
    **dict.fromkeys(("agg", "avg", "groupBy", "group_by", "groupby", "max", "mean", "min", "sum"), _GROUPS),
    **dict.fromkeys(("num_rows", "shape", "size"), "count()"),
    **dict.fromkeys(("columns", "dtypes", "names"), "schema"),
    **dict.fromkeys(("distinct", "unique"), 'aggregate({"n": "count"}, by=[...])'),
    "iter_batches": "to_batches()",
    "join": "to_duckdb() or scan_polars()",
    "limit": "limited(n)",
    "select": "projected([...])",
    "sql": "to_duckdb()",
    "toDF": "to_spark()",
    "to_dask": "plan(), whose splits workers read by read(split)",
}
"""The call of ``Scan`` for each name."""
CALLS = {
    **dict.fromkeys(("order", "order_by", "orderBy", "sort", "sort_by"), _SORTED),
    "add": _WRITE,
    "append": _WRITE,
    "cleanup": "expire_snapshots() and remove_orphan_files()",
    "columns": "schema.names",
    "delete_where": "delete(filter)",
    "describe": "schema or statistics()",
    "details": "files() or tree()",
    "dtypes": "schema",
    "expire": "expire_snapshots()",
    "fetch": "scan(filter).to_arrow()",
    "filter": _READ,
    "get": "lookup(keys)",
    "insert": _WRITE,
    "limit": "scan(filter, limit=n)",
    "load": _READ,
    "load_cdf": "changelog(from_snapshot, to_snapshot)",
    "num_rows": "count()",
    "optimize": "compact()",
    "overwrite": 'write(rows, "overwrite")',
    "query": "to_duckdb() or pyspark_paimon.sql(spark, text)",
    "read": _READ,
    "refresh": "scan(): it reads the newest snapshot",
    "remove": "delete(filter)",
    "rewrite_data_files": "compact()",
    "rollback": "rollback_to(snapshot)",
    "select": _READ,
    "show": "head()",
    "to_batches": "to_reader()",
    "to_pyarrow_dataset": "to_dataset()",
    "truncate": 'delete("TRUE")',
    "upsert": _WRITE,
    "vacuum": "expire_snapshots() and remove_orphan_files()",
    "version": "history()",
    "where": _READ,
}
"""The call of ``Table`` for each name that ``Scan`` does not answer."""
_SCAN_METHODS = frozenset(
    ["aggregate", "counters", "explain", "limited", "narrowed", "plan", "projected", "snapshot_id", "to_arrow", "to_pandas", "to_spark"]
)
_TABLE_METHODS = frozenset(
    [
        "changelog",
        "compact",
        "delete",
        "files",
        "history",
        "lookup",
        "maintenance",
        "merge",
        "schemas",
        "snapshots",
        "tree",
        "update",
        "write",
    ]
)


def missing_text(owner: type[Any], name: str) -> str:
    """Return the error text for a name that ``Table`` or ``Scan`` does not have.

    >>> from pyspark_paimon import Table
    >>> missing_text(Table, "optimize"), missing_text(Table, "compakt")
    ("Table has no 'optimize'; use table.compact()", "Table has no 'compakt', did you mean 'compact'")
    """
    if owner.__name__ == "Scan":
        call = f"scan.{SCAN_CALLS[name]}" if name in SCAN_CALLS else None
        if call is None and (name in CALLS or name in _TABLE_METHODS):
            call = f"table.{CALLS.get(name, name)}"
    else:
        scan_call = SCAN_CALLS.get(name) or (name if name in _SCAN_METHODS else None)
        call = CALLS.get(name) or (scan_call and f"scan().{scan_call}")
        call = call and f"table.{call}"
    if call:
        return f"{owner.__name__} has no '{name}'; use {call}"
    similar = get_close_matches(name, [public for public in dir(owner) if public[0] != "_"], 1, _ALIKE)
    return f"{owner.__name__} has no '{name}'" + "".join(f", did you mean '{public}'" for public in similar)
