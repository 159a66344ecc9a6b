"""This project, in process."""

from __future__ import annotations

from typing import Any

from benchmarks.contenders.worker import Ask, Contender, Filter, Job, Query, Timed, serve


def sql(conditions: Filter) -> str:
    """A filter's text; literals that are texts are quoted, which DECIMAL and DATE columns take too."""
    return " AND ".join(f"{column} {op} " + (f"'{value}'" if isinstance(value, str) else str(value)) for column, op, value in conditions)


def opened(job: Job) -> Any:
    """The table, made or altered first where the job says so."""
    import pyarrow.parquet as pq

    from pyspark_paimon import Table

    if job.create:
        return Table.create(job.path, pq.read_schema(job.inputs[0]), primary_keys=job.primary_key, options=job.options)
    table = Table.open(job.path)
    return table.alter_options(job.options) if job.options else table


def write(job: Job) -> Timed:
    table, rows = opened(job), job.tables()

    def work() -> Any:
        for each in rows:
            table.write(each)
        return None

    return Timed(work, lambda _: table.scan().to_arrow())


def compact(job: Job) -> Timed:
    table = opened(job)
    return Timed(lambda: table.compact(full=True), lambda _: table.scan().to_arrow())


def read(job: Job) -> Timed:
    table = opened(job)
    return Timed(lambda: table.scan().to_arrow(), lambda found: found)


def lookup(job: Job) -> Ask:
    from pyspark_paimon import Table

    def ask(query: Query, conditions: Filter) -> Any:
        scan = Table.open(job.path).scan(sql(conditions), columns=query.columns)
        return scan.count() if query.count else scan.to_arrow()

    return ask


def plan(job: Job) -> Ask:
    from manifest.io.file_cache import SHARED
    from pyspark_paimon import Table

    kept = Table.open(job.path)

    def files(table: Any, conditions: Filter) -> int:
        return sum(len(split.files) for split in table.scan(sql(conditions) or None).plan().splits)

    def afresh() -> Any:
        SHARED.clear()  # what this process holds of files would make a second cold plan a warm one
        return Table.open(job.path)

    return lambda query, conditions: files(kept if query.warm else afresh(), conditions)


CONTENDER = Contender(
    "ours",
    {"write": write, "compact": compact, "read": read, "lookup": lookup, "plan": plan},
    paimon=True,
    note="a process holds manifests and footers that it has read; cold plans forget them first, lookups do not",
)

if __name__ == "__main__":
    serve(CONTENDER, ["pyspark-paimon"])
