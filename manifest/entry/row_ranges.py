"""Files of the same rows, by row ids."""

from __future__ import annotations

from collections.abc import Sequence

from manifest.entry.data_file import DataFileMeta


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


def blob_files(files: Sequence[DataFileMeta], rows: DataFileMeta) -> tuple[list[DataFileMeta], bool]:
    """Return the files of a BLOB column to read, in row order, and whether they have all rows of ``rows``.

    ``files``: in the order of ``range_groups``. Of files with the same first row the newest is used. Each file continues where the previous
    one ends.
    """
    column_files: list[DataFileMeta] = []
    following = _first(rows)
    for file in files:
        if _first(file) > following:
            break
        if _first(file) == following:
            following += file.row_count
            column_files.append(file)
    return column_files, following == _first(rows) + rows.row_count


def _first(file: DataFileMeta) -> int:
    return file.first_row_id or 0


def _newest_first(file: DataFileMeta) -> tuple[bool, int, int]:
    return file.is_blob, _first(file) if file.is_blob else 0, -file.max_sequence_number
