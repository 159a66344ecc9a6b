"""pypaimon, as it is installed: tables are opened by path through a catalog of their folder."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

from benchmarks.contenders.worker import Ask, Contender, Filter, Job, Query, Timed, serve

COMPARISONS = {"=": "equal", ">=": "greater_or_equal", "<=": "less_or_equal"}
LITERALS: dict[str, Callable[[Any], Any]] = {"DATE": dt.date.fromisoformat, "DECIMAL": Decimal}


class Steps:
    """The operations, with options that every opened table gets."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def catalog(self, job: Job) -> tuple[Any, str]:
        from pypaimon import CatalogFactory

        table = Path(job.path)
        return CatalogFactory.create({"warehouse": str(table.parents[1])}), f"{table.parent.name.removesuffix('.db')}.{table.name}"

    def table(self, job: Job) -> Any:
        catalog, name = self.catalog(job)
        table = catalog.get_table(name)
        return table.copy(self.options) if self.options else table

    def created(self, job: Job) -> Any:
        import pyarrow.parquet as pq
        from pypaimon import Schema

        catalog, name = self.catalog(job)
        if job.create:
            os.makedirs(job.path, exist_ok=True)  # noqa: PTH103  # as the catalog's own tables
            os.rmdir(job.path)  # noqa: PTH106
            catalog.create_database(name.split(".")[0], ignore_if_exists=True)
            columns = pq.read_schema(job.inputs[0])
            schema = Schema.from_pyarrow_schema(columns, primary_keys=job.primary_key or None, options=job.options)
            catalog.create_table(name, schema, ignore_if_exists=False)
        elif job.options:
            from pypaimon.schema.schema_change import SchemaChange

            catalog.alter_table(name, [SchemaChange.set_option(key, value) for key, value in job.options.items()])
        return self.table(job)

    def write(self, job: Job) -> Timed:
        from pypaimon.schema.data_types import PyarrowFieldParser

        table = self.created(job)
        wanted = PyarrowFieldParser.from_paimon_schema(table.table_schema.fields)
        rows = [each.cast(wanted) for each in job.tables()]

        def work() -> None:
            for each in rows:
                builder = table.new_batch_write_builder()
                writer, commit = builder.new_write(), builder.new_commit()
                writer.write_arrow(each)
                commit.commit(writer.prepare_commit())
                writer.close()
                commit.close()

        return Timed(work)

    def read(self, job: Job) -> Timed:
        table = self.table(job)
        return Timed(lambda: self.found(table, [], None), lambda found: found)

    def found(self, table: Any, conditions: Filter, columns: list[str] | None) -> Any:
        builder = self.filtered(table, conditions)
        if columns:
            builder = builder.with_projection(columns)
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    def filtered(self, table: Any, conditions: Filter) -> Any:
        builder = table.new_read_builder()
        if not conditions:
            return builder
        make = builder.new_predicate_builder()
        kinds = {field.name: str(field.type) for field in table.fields}
        parts = []
        for column, op, literal in conditions:
            convert = next((found for kind, found in LITERALS.items() if kinds[column].startswith(kind)), lambda value: value)
            parts.append(getattr(make, COMPARISONS[op])(column, convert(literal)))
        return builder.with_filter(reduce(lambda left, right: make.and_predicates([left, right]), parts))

    def lookup(self, job: Job) -> Ask:
        def ask(query: Query, conditions: Filter) -> Any:
            columns = [conditions[0][0]] if query.count else query.columns
            found = self.found(self.table(job), conditions, columns)
            return found.num_rows if query.count else found

        return ask

    def plan(self, job: Job) -> Ask:
        kept = self.table(job)

        def ask(query: Query, conditions: Filter) -> int:
            builder = self.filtered(kept if query.warm else self.table(job), conditions)
            return sum(len(split.files) for split in builder.new_scan().plan().splits())

        return ask


def contender(title: str, pins: tuple[str, ...], options: dict[str, str], **more: Any) -> Contender:
    steps = Steps(options)
    made = {"write": steps.write, "read": steps.read, "lookup": steps.lookup, "plan": steps.plan}
    nothing = "cannot compact a table with a primary key"
    lacks = {"compact": nothing, "commits_compacting": nothing, **more.pop("lacks", {})}
    return Contender(title, made, pins, lacks, paimon=True, compacted_by="ours", **more)


CONTENDER = contender(
    "pypaimon",
    ("pypaimon==2.1.0",),
    {},
    lacks={"write_indexed": "ignores file indexes", "append_indexed": "ignores file indexes"},
    share=1 / 6,
    note="on a sixth of the rows; times of writes and reads are shown for all rows (times 6)",
)

if __name__ == "__main__":
    serve(CONTENDER, ["pypaimon"])
