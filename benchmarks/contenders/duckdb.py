"""DuckDB with a native database file: PRIMARY KEY, INSERT OR REPLACE, a checkpoint in each commit. Its connection stays open for lookups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.contenders.worker import Ask, Contender, Filter, Job, Query, Timed, serve


def connected(job: Job) -> Any:
    import duckdb

    Path(job.path).mkdir(parents=True, exist_ok=True)
    found = duckdb.connect(str(Path(job.path) / "data.duckdb"))
    found.execute(f"SET threads = {job.threads}")
    return found


def arrow(connection: Any, sql: str) -> Any:
    return connection.execute(sql).to_arrow_table()


def rows_of(connection: Any) -> Callable[[Any], Any]:
    return lambda _: arrow(connection, "SELECT * FROM t")


def write(job: Job) -> Timed:
    connection, rows = connected(job), job.tables()
    if job.create:
        connection.register("batch", rows[0].slice(0, 0))
        connection.execute("CREATE TABLE t AS SELECT * FROM batch")
        if job.primary_key:
            connection.execute(f"ALTER TABLE t ADD PRIMARY KEY ({', '.join(job.primary_key)})")

    def work() -> None:
        for each in rows:
            connection.register("batch", each)
            connection.execute("INSERT OR REPLACE INTO t SELECT * FROM batch")
            connection.execute("CHECKPOINT")

    return Timed(work, rows_of(connection))


def read(job: Job) -> Timed:
    connection = connected(job)
    return Timed(lambda: rows_of(connection)(None), lambda found: found)


def lookup(job: Job) -> Ask:
    connection = connected(job)

    def ask(query: Query, conditions: Filter) -> Any:
        columns = "count(*)" if query.count else ", ".join(query.columns or ["*"])
        where = " AND ".join(f"{name} {op} " + (f"'{value}'" if isinstance(value, str) else str(value)) for name, op, value in conditions)
        sql = f"SELECT {columns} FROM t WHERE {where}"
        return connection.execute(sql).fetchone()[0] if query.count else arrow(connection, sql)

    return ask


ALREADY = "replaces rows when it writes"

CONTENDER = Contender(
    "duckdb",
    {"write": write, "read": read, "lookup": lookup},
    ("duckdb==2.0.0", "pyarrow==26.0.1", "numpy>=2"),
    {"compact": ALREADY, "commits_compacting": ALREADY, "indexed": "has no such indexes", "plan": "has one file"},
    compacted_by="duckdb",
)

if __name__ == "__main__":
    serve(CONTENDER, ["duckdb"])
