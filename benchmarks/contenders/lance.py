"""Lance: merge_insert by key, compact_files, scalar indexes (BTREE, BITMAP) instead of file indexes."""

from __future__ import annotations

import datetime as dt
from typing import Any

from benchmarks.contenders.worker import Ask, Contender, Filter, Job, Query, Timed, serve

KINDS = {"bloom-filter": "BTREE", "bitmap": "BITMAP", "range-bitmap": "BTREE"}


def add_indexes(data: Any, job: Job) -> None:
    for kind, columns in job.indexes.items():
        for column in columns:
            data.create_scalar_index(column, KINDS[kind], replace=True)


def write(job: Job) -> Timed:
    import lance

    rows = job.tables()

    def work() -> None:
        if job.create:
            add_indexes(lance.write_dataset(rows[0], job.path), job)
            return
        data = lance.dataset(job.path)
        for each in rows:
            key = [field.name for field in each.schema if not field.nullable]
            data.merge_insert(key).when_matched_update_all().when_not_matched_insert_all().execute(each)

    return Timed(work, lambda _: lance.dataset(job.path).to_table())


def compact(job: Job) -> Timed:
    import lance

    def work() -> None:
        data = lance.dataset(job.path)
        data.optimize.compact_files(num_threads=job.threads)
        add_indexes(data, job)

    return Timed(work, lambda _: lance.dataset(job.path).to_table())


def read(job: Job) -> Timed:
    import lance

    data = lance.dataset(job.path)
    return Timed(data.to_table, lambda found: found)


def lookup(job: Job) -> Ask:
    import lance
    import pyarrow as pa

    def literal(kind: Any, value: Any) -> str:
        if not isinstance(value, str):
            return str(value)
        if pa.types.is_decimal(kind):
            return f"CAST('{value}' AS DECIMAL({kind.precision}, {kind.scale}))"
        return f"date '{dt.date.fromisoformat(value)}'" if pa.types.is_date(kind) else "'" + value + "'"

    def ask(query: Query, conditions: Filter) -> Any:
        data = lance.dataset(job.path)
        where = " AND ".join(f"{name} {op} {literal(data.schema.field(name).type, value)}" for name, op, value in conditions)
        return data.count_rows(filter=where) if query.count else data.to_table(columns=query.columns, filter=where)

    return ask


CONTENDER = Contender(
    "lance",
    {"write": write, "compact": compact, "read": read, "lookup": lookup},
    ("pylance==14.0.2", "pyarrow==26.0.1", "numpy>=2"),
    {"commits_compacting": "compacts when told to", "plan": "its tables are not Paimon's"},
    note="knows no keys: the first write checks and sorts nothing; its indexes are made after the write, in the same time",
)

if __name__ == "__main__":
    serve(CONTENDER, ["pylance"])
