"""Files that have columns of the same rows (Paimon's data evolution): found by their ranges of row ids, read side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fileindex.base.arrays import Int64s
from fileindex.base.errors import CorruptFile
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta
from manifest.io.errors import UnsupportedTable

BLOB_FORMAT = ".blob"
"""How the names of files end that have the values of one BLOB column; several may share a range."""


def row_ranges(entries: EntryColumns) -> tuple[Int64s, Int64s]:
    """Of every entry the first and the last row id. Raises ``CorruptFile`` for one without."""
    known = entries.present("_FILE._FIRST_ROW_ID")
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise CorruptFile(entries.path_of(row), f"data file {entries.file_name[row]} has no row ids, which data evolution goes by")
    first = entries.numbers("_FILE._FIRST_ROW_ID")
    return first, first + np.maximum(entries.row_count, 1) - 1


def range_groups(files: Sequence[DataFileMeta]) -> list[tuple[DataFileMeta, ...]]:
    """Files with overlapping row ids together, in the order of these ids; in a group the newest first, those of BLOB columns after the others."""
    groups: list[list[DataFileMeta]] = []
    reach = -1
    for file in sorted(files, key=_first):
        if not groups or _first(file) > reach:
            groups.append([])
        groups[-1].append(file)
        reach = max(reach, _first(file) + file.row_count - 1)
    return [tuple(sorted(group, key=_newest_first)) for group in groups]


def check_rows_only(table: str, *, evolves: bool) -> None:
    """Raise ``UnsupportedTable`` for what goes file by file, where a file may have some columns of rows of another."""
    if evolves:
        raise UnsupportedTable(
            f"{table}: option 'data-evolution.enabled': changes between snapshots are not read of such a table, "
            "for its files add columns to rows that are there; read the snapshots"
        )


def _first(file: DataFileMeta) -> int:
    return file.first_row_id or 0


def _newest_first(file: DataFileMeta) -> tuple[bool, int, int]:
    is_blob = file.file_name.endswith(BLOB_FORMAT)
    return is_blob, _first(file) if is_blob else 0, -file.max_sequence_number


__all__ = ["BLOB_FORMAT", "check_rows_only", "range_groups", "row_ranges"]
