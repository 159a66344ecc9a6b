"""Names of other libraries for what ``Table`` calls differently."""

from __future__ import annotations

_READ = "scan(filter, columns=[...])"
_WRITE = "write(rows)"
CALLS = {
    "add": _WRITE,
    "append": _WRITE,
    "cleanup": "expire_snapshots() and remove_orphan_files()",
    "collect": "scan().to_arrow()",
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
    "load": _READ,
    "load_cdf": "changelog(from_snapshot, to_snapshot)",
    "num_rows": "count()",
    "optimize": "compact()",
    "overwrite": 'write(rows, "overwrite")',
    "query": "to_duckdb() or pyspark_paimon.sql(text)",
    "read": _READ,
    "refresh": "scan(): it reads the newest snapshot",
    "remove": "delete(filter)",
    "rewrite_data_files": "compact()",
    "rollback": "rollback_to(snapshot)",
    "select": _READ,
    "show": "head()",
    "toDF": "scan().to_spark()",
    "toPandas": "scan().to_pandas()",
    "to_arrow": "scan().to_arrow()",
    "to_batches": "to_reader()",
    "to_df": "scan().to_pandas()",
    "to_pandas": "scan().to_pandas()",
    "to_pyarrow_dataset": "to_dataset()",
    "to_pyarrow_table": "scan().to_arrow()",
    "to_spark": "scan().to_spark()",
    "to_table": "scan().to_arrow()",
    "truncate": 'delete("TRUE")',
    "upsert": _WRITE,
    "vacuum": "expire_snapshots() and remove_orphan_files()",
    "version": "history()",
    "where": _READ,
}
"""The call of ``Table`` for each name."""


def missing_text(name: str) -> str:
    """Return the error text for a name that ``Table`` does not have.

    >>> missing_text("optimize")
    "Table has no 'optimize'; use table.compact()"
    """
    call = CALLS.get(name)
    return f"Table has no '{name}'" + (f"; use table.{call}" if call else "")
