"""Command ``lookup``."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Annotated

import typer

from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from paimon_base.texts import count_text
from pyspark_paimon.plugins.cli.output import print_grid, print_json, print_line, rows_to_file
from pyspark_paimon.plugins.cli.scan import AtSnapshot, AtTag, AtTime, Columns, Form, Output, column_names, format_of
from pyspark_paimon.plugins.cli.target import TableOption, on_table

if TYPE_CHECKING:
    import pyarrow as pa

    from lsm.rows_in import requested_cast
    from pyspark_paimon.table.table import Table
else:  # help needs neither
    pa = LazyModule("pyarrow")
    requested_cast = LazyModule("lsm.rows_in.requested_cast")


@on_table
def find_rows(
    target: TableOption,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help='Primary keys; values of several columns as in CSV: "1,Oslo".')],
    *,
    columns: Columns = None,
    snapshot: AtSnapshot = None,
    tag: AtTag = None,
    timestamp: AtTime = None,
    form: Form = None,
    output: Output = None,
) -> None:
    """Show the rows with the given primary keys."""
    file_format = format_of(form, output, as_json=False)
    table = target.open()
    key_rows = _keys(table, keys)
    rows = table.lookup(key_rows, column_names(columns), snapshot=snapshot, tag=tag, timestamp=timestamp)
    row_dicts = rows.to_pylist(maps_as_pydicts="lossy")
    if target.as_json:
        print_json(row_dicts)
        return
    if file_format != "table":
        rows_to_file(rows, file_format, output)
        return
    print_grid(None, rows.column_names, [tuple(row.values()) for row in row_dicts])
    missing = f", {count_text(key_rows.num_rows - len(row_dicts), 'key')} not found" if len(row_dicts) < key_rows.num_rows else ""
    print_line(f"{count_text(len(row_dicts), 'row')}{missing}")


def _keys(table: Table, texts: list[str]) -> pa.Table:
    """Return the keys of the texts in the types of the table."""
    schema = table.table_schema
    names = list(schema.primary_keys)
    rows = [[text] for text in texts] if len(names) == 1 else list(csv.reader(texts))
    for text, row in zip(texts, rows, strict=True):
        if len(row) != len(names):
            raise InvalidArgument(
                f"key '{text}' has {count_text(len(row), 'value')}; the primary key is ({', '.join(names)}), write \"a,b\""
            )
    key_texts = pa.table([pa.array([row[position] for row in rows], pa.string()) for position in range(len(names))], names=names)
    return requested_cast.cast_texts(key_texts, schema)
