"""Files with columns of the same rows (Paimon's data evolution).

They are found by ranges of row ids, and read in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fileindex.base.arrays import Int64s
from fileindex.base.errors import CorruptFile
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta
from manifest.io.errors import UnsupportedTable

BLOB_FORMAT = ".blob"
"""File name suffix of files with one BLOB column. Several may cover one row range."""


def row_ranges(entries: EntryColumns) -> tuple[Int64s, Int64s]:
    """Return the first and last row id of each entry.

    Raises:
        CorruptFile: An entry has no row ids.
    """
    known = entries.present("_FILE._FIRST_ROW_ID")
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise CorruptFile(entries.path_of(row), f"data file {entries.file_name[row]} has no row ids, which data evolution requires")
    first = entries.numbers("_FILE._FIRST_ROW_ID")
    return first, first + np.maximum(entries.row_count, 1) - 1


def range_groups(files: Sequence[DataFileMeta]) -> list[tuple[DataFileMeta, ...]]:
    """Group files with overlapping row ids, in row order.

    Within a group the newest file comes first. Files of BLOB columns come last.
    """
    groups: list[list[DataFileMeta]] = []
    reach = -1
    for file in sorted(files, key=_first):
        if not groups or _first(file) > reach:
            groups.append([])
        groups[-1].append(file)
        reach = max(reach, _first(file) + file.row_count - 1)
    return [tuple(sorted(group, key=_newest_first)) for group in groups]


def check_rows_only(table: str, *, evolves: bool) -> None:
    """Raise ``UnsupportedTable`` for reads of single files.

    With data evolution, a file may hold only some columns of rows of another file.
    """
    if evolves:
        raise UnsupportedTable(
            f"{table}: option 'data-evolution.enabled': changes between snapshots cannot be read, "
            "because new files may add columns to existing rows. Read the snapshots instead"
        )


def _first(file: DataFileMeta) -> int:
    return file.first_row_id or 0


def _newest_first(file: DataFileMeta) -> tuple[bool, int, int]:
    is_blob = file.file_name.endswith(BLOB_FORMAT)
    return is_blob, _first(file) if is_blob else 0, -file.max_sequence_number


__all__ = ["BLOB_FORMAT", "check_rows_only", "range_groups", "row_ranges"]
