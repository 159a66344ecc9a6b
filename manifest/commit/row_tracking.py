"""Row ids (Paimon's row tracking): a commit gives the rows of its new files the numbers that follow those of all rows before."""

from __future__ import annotations

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileSource
from manifest.entry.manifest_entry import FileKind, ManifestEntry


def with_row_ids(entries: EntryColumns, first: int, snapshot_id: int) -> tuple[EntryColumns, int]:
    """The entries of snapshot ``snapshot_id``, new files numbered from ``first`` in their order, and the number after the last.

    The sequence number of a row is the snapshot that brought it. Files that a compaction made keep what they have.
    """
    made: list[ManifestEntry] = []
    following = first
    for entry in entries.entries():
        file = entry.file
        if entry.kind is FileKind.ADD and file.file_source == FileSource.APPEND and file.first_row_id is None:
            numbers = {"first_row_id": following, "min_sequence_number": snapshot_id, "max_sequence_number": snapshot_id}
            following += file.row_count
            made.append(entry.model_copy(update={"file": file.model_copy(update=numbers)}))
        else:
            made.append(entry)
    return EntryColumns.of(made), following


__all__ = ["with_row_ids"]
