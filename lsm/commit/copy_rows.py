"""Copy of the rows of a split into a write that replaces them."""

from __future__ import annotations

from dataclasses import replace

from lsm.keys.sort import VALUE_KIND
from lsm.read.split import read_split
from lsm.scan.splits import DataSplit
from lsm.write.table_write import TableWrite
from manifest.store import FileStore


def without_defaults(store: FileStore) -> FileStore:
    """Return the store for copies of rows, whose nulls stay."""
    fields = tuple(replace(field, default_value=None) for field in store.schema.fields)
    return store.with_schema(store.schema.model_copy(update={"fields": fields}))


def copy_rows(store: FileStore, split: DataSplit, write: TableWrite) -> None:
    """Write the rows and retained deletes of ``split``."""
    names = store.schema.names
    retains = bool(store.options.delete_time_retained)
    for rows in read_split(store, split, columns=names, kinds=retains):
        write.write(rows.select(names), kinds=rows.column(VALUE_KIND) if retains else None)
