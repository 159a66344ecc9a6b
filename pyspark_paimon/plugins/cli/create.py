"""Command ``create``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from manifest.io.errors import TableExists
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from paimon_base.texts import count_text
from pyspark_paimon.plugins.cli.target import TableOption, on_table, options_of
from pyspark_paimon.plugins.cli.write import InputFormat

if TYPE_CHECKING:
    from pyspark_paimon.plugins.cli import rows_of_files as inputs
else:  # help does not need it
    inputs = LazyModule("pyspark_paimon.plugins.cli.rows_of_files")

Ddl = Annotated[
    str | None,
    typer.Argument(
        metavar="[DDL]", help='"id BIGINT, day STRING, PRIMARY KEY (id, day)" PARTITIONED BY (day); - reads it from standard input.'
    ),
]


@on_table
def make_table(
    target: TableOption,
    ddl: Ddl = None,
    *,
    source: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="Take the columns from a Parquet, CSV or JSON file, and write its rows.")
    ] = None,
    form: InputFormat = None,
    keys: Annotated[
        list[str] | None, typer.Option("--primary-key", "-k", metavar="COLUMN", help="Column of the primary key; repeatable.")
    ] = None,
    partitions: Annotated[list[str] | None, typer.Option("--partition", metavar="COLUMN", help="Partition column; repeatable.")] = None,
    option: Annotated[list[str] | None, typer.Option("--option", "-O", metavar="KEY=VALUE", help="A table option; repeatable.")] = None,
    table_comment: Annotated[str | None, typer.Option("--comment", help="Comment of the table.")] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Keep an existing table as it is.")] = False,
) -> None:
    """Create a table from DDL, or from a file and with its rows."""
    if (ddl is None) == (source is None):
        raise InvalidArgument('give the columns as DDL, such as "id BIGINT, name STRING, PRIMARY KEY (id)", or a file by --from')
    rows = None if source is None else inputs.typed_rows(source, form)
    text = (sys.stdin.read() if ddl == "-" else ddl) or ""
    if rows is None and not text.strip():
        raise InvalidArgument('the DDL is empty; write columns as in "id BIGINT, name STRING, PRIMARY KEY (id)"')
    try:
        options = options_of(option, "--option")
        table = target.create(text if rows is None else rows.schema, options, table_comment, keys=keys or (), partitions=partitions or ())
        is_new = True
    except TableExists:
        if not if_not_exists:
            raise
        table, is_new = target.open(), False
    written = table.write(rows).rows if is_new and rows is not None else 0
    columns = [f"{field.name} {field.type}" for field in table.table_schema.fields]
    result = {
        "path": table.path,
        "created": is_new,
        "rows": written,
        "columns": columns,
        "primary_keys": list(table.primary_keys),
        "partition_keys": list(table.partition_keys),
        "options": table.options,
        "retention": table.table_schema.core.retention_text,
    }
    shown = f"{table!r}, {count_text(written, 'row')}" if rows is not None else repr(table)
    shown = f"{shown}\n{result['retention']}"
    target.report(result, shown if is_new else f"{table.path} exists already: {table!r}")
