"""Command ``lookup``."""

from __future__ import annotations

import csv
from typing import Annotated

import pyarrow as pa
import typer

from fileindex.base.errors import InvalidArgument
from fileindex.base.texts import count_text
from pyspark_paimon.cli.output import print_grid, print_json, print_line
from pyspark_paimon.cli.scan import AtSnapshot, AtTag, AtTime, Columns, column_names
from pyspark_paimon.cli.target import TableOption, on_table
from pyspark_paimon.request.cast_rows import CastRows
from pyspark_paimon.table.table import Table


@on_table
def find_rows(
    target: TableOption,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help='Primary keys; values of several columns as in CSV: "1,Oslo".')],
    *,
    columns: Columns = None,
    snapshot: AtSnapshot = None,
    tag: AtTag = None,
    timestamp: AtTime = None,
) -> None:
    """Show the rows with the given primary keys."""
    table = target.open()
    wanted = _keys(table, keys)
    rows = table.lookup(wanted, column_names(columns), snapshot=snapshot, tag=tag, timestamp=timestamp)
    found = rows.to_pylist(maps_as_pydicts="lossy")
    if target.as_json:
        print_json(found)
        return
    print_grid(None, rows.column_names, [tuple(row.values()) for row in found])
    missing = f", {count_text(wanted.num_rows - len(found), 'key')} not found" if len(found) < wanted.num_rows else ""
    print_line(f"{count_text(len(found), 'row')}{missing}")


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
    given = pa.table([pa.array([row[at] for row in rows], pa.string()) for at in range(len(names))], names=names)
    return CastRows(schema, rounds=False, errors="raise").reader(given.to_reader()).read_all()


__all__ = ["find_rows"]
