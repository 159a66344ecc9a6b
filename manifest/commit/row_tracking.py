"""Row ids (Paimon's row tracking): a commit gives the rows of its new files the numbers that follow those of all rows before."""

from __future__ import annotations

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileSource
from manifest.entry.manifest_entry import FileKind, ManifestEntry
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore


def first_row_id(store: FileStore, latest: Snapshot | None) -> int:
    """Return the first row id that no file has.

    Some engines leave out ``nextRowId``, or keep it at 0, beside files that have row ids. Rows with ids of other rows would replace these.
    """
    if latest is None:
        return 0
    metas, following = store.manifest_metas(latest), latest.next_row_id or 0
    following = max([following, *(meta.max_row_id + 1 for meta in metas if meta.max_row_id is not None)])
    unknown = [meta for meta in metas if meta.max_row_id is None]
    if unknown and not latest.next_row_id:
        with store.reading(latest):
            entries = store.manifests.read_metas(unknown)
        ends = (entries.numbers("_FILE._FIRST_ROW_ID") + entries.row_count)[entries.present("_FILE._FIRST_ROW_ID")]
        following = max(following, int(ends.max(initial=0)))
    return following


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


__all__ = ["first_row_id", "with_row_ids"]
