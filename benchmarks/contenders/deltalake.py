"""Delta Lake from Python (delta-rs): zstd-1, MERGE by key. A plan is asked of a Delta table of 10,000 files of its own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from benchmarks.contenders.worker import Ask, Contender, Filter, Job, Query, Timed, serve


def properties() -> Any:
    from deltalake import WriterProperties

    return WriterProperties(compression="ZSTD", compression_level=1)


def rows_of(path: str) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(path).to_pyarrow_table()


def write(job: Job) -> Timed:
    from deltalake import DeltaTable, write_deltalake

    rows = job.tables()

    def create() -> None:
        for each in rows:
            write_deltalake(job.path, each, mode="append", writer_properties=properties())

    def merge() -> None:
        on = " AND ".join(f"t.{name} = s.{name}" for name in key_of(rows[0]))
        for each in rows:
            merging = DeltaTable(job.path).merge(each, on, source_alias="s", target_alias="t", writer_properties=properties())
            merging.when_matched_update_all().when_not_matched_insert_all().execute()

    return Timed(create if job.create else merge, lambda _: rows_of(job.path))


def key_of(rows: Any) -> list[str]:
    """Delta knows no keys: those columns that are never null."""
    return [field.name for field in rows.schema if not field.nullable]


def read(job: Job) -> Timed:
    return Timed(lambda: rows_of(job.path), lambda found: found)


def lookup(job: Job) -> Ask:
    from deltalake import DeltaTable, QueryBuilder

    def ask(query: Query, conditions: Filter) -> Any:
        import pyarrow as pa

        table = DeltaTable(job.path)
        kinds = {field.name: field.type for field in pa.schema(table.schema().to_arrow())}
        parts = []
        for name, op, value in conditions:
            quoted = f"'{value}'" if isinstance(value, str) else str(value)
            kind = kinds[name]
            exact = f"CAST({quoted} AS DECIMAL({kind.precision}, {kind.scale}))" if pa.types.is_decimal(kind) else quoted
            parts.append(f"{name} {op} {exact}")
        columns = "count(*) AS n" if query.count else ", ".join(query.columns or ["*"])
        found = pa.table(QueryBuilder().register("t", table).execute(f"SELECT {columns} FROM t WHERE {' AND '.join(parts)}").read_all())
        return found["n"][0].as_py() if query.count else found

    return ask


def plan(job: Job) -> Ask:
    """Of a table of its own beside Paimon's, made once: 100 commits of a file in each of 100 partitions."""
    from deltalake import DeltaTable

    path = make_files(Path(job.path).parents[2] / "planned-delta")
    kept = DeltaTable(path)
    kept.file_uris()

    def ask(query: Query, conditions: Filter) -> int:
        table = kept if query.warm else DeltaTable(path)
        return len(table.file_uris([(column, op, str(value)) for column, op, value in conditions] or None))

    return ask


def make_files(folder: Path) -> Path:
    import pyarrow as pa
    from deltalake import write_deltalake

    if not folder.exists():
        making = folder.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        days = list(range(100))
        for commit in range(100):
            rows = pa.table(
                {"day": pa.array(days, pa.int32()), "id": [commit * 100 + day for day in days], "amount": [float(day) for day in days]}
            )
            write_deltalake(making, rows, mode="append", partition_by=["day"])
        making.rename(folder)
    return folder


ALREADY = "rewrites the touched files when it merges"
PARTITIONS = "lists files by partition"
KEYED = [f"{temperature}, {name}" for temperature in ("cold", "warm") for name in ("partition + key", "key")]

CONTENDER = Contender(
    "deltalake",
    {"write": write, "read": read, "lookup": lookup, "plan": plan},
    ("deltalake==1.6.6", "pyarrow==26.0.1", "numpy>=2"),
    {"compact": ALREADY, "commits_compacting": ALREADY, "indexed": "has no such indexes", **dict.fromkeys(KEYED, PARTITIONS)},
    compacted_by="deltalake",
    note="knows no keys: the first write checks and sorts nothing; it plans 10,000 files of a Delta table",
)

if __name__ == "__main__":
    serve(CONTENDER, ["deltalake"])
