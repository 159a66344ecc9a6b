"""History of a tree: changes and amplification by snapshot."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from fileindex.base.errors import CorruptFile
from manifest.entry.columns import EntryColumns
from manifest.entry.manifest_entry import FileKind
from manifest.io.errors import SnapshotExpired
from manifest.snapshot.snapshot import CommitKind, Snapshot
from manifest.store import FileStore
from pyspark_paimon.request.tree_report import TreeSnapshot
from pyspark_paimon.scheduling.thread_pool import each
from pyspark_paimon.tree.buckets import writer_prefix

MOST_SNAPSHOTS = 120
"""Largest number of snapshots in the history. The delta manifests of each are read."""

_File: TypeAlias = tuple[bytes, int, str]
_ROWS = (CommitKind.APPEND, CommitKind.OVERWRITE)


@dataclass(slots=True)
class _State:
    """Live files and written bytes at a snapshot."""

    has_keys: bool
    files: dict[_File, tuple[int, int]] = field(default_factory=dict)
    runs: defaultdict[tuple[bytes, int], Counter[int | str]] = field(default_factory=lambda: defaultdict(Counter))
    size: int = 0
    largest: int = 0
    written: int = 0
    user_written: int = 0

    def add(self, file: _File, level: int, size: int) -> None:
        self.files[file] = level, size
        self._grow(file, level, size)

    def remove(self, file: _File) -> int:
        level, size = self.files.pop(file, (0, 0))
        self._grow(file, level, -size)
        return size

    def _grow(self, file: _File, level: int, size: int) -> None:
        runs, run = self.runs[file[:2]], level or writer_prefix(file[2])
        before = max(runs.values(), default=0)
        runs[run] += size
        if not runs[run]:
            del runs[run]
        self.size += size
        self.largest += max(runs.values(), default=0) - before


def tree_history(store: FileStore, snapshots: Sequence[Snapshot], threads: int) -> tuple[TreeSnapshot, ...]:
    """Return the changes of consecutive snapshots, oldest first.

    If a snapshot expires meanwhile, the history starts after it.
    """
    state = _State(store.schema.is_primary_key_table)
    found: list[TreeSnapshot] = []
    deltas = each(partial(_delta, store), snapshots, threads)
    for snapshot, delta in zip(snapshots, deltas, strict=True):
        if delta is None:
            state, found = _State(state.has_keys), []
            continue
        if not found and snapshot.id > 1:
            _restore_start(state, store, snapshot, delta)
        found.append(_step(state, snapshot, delta))
    return tuple(found)


def _delta(store: FileStore, snapshot: Snapshot) -> EntryColumns | None:
    with suppress(SnapshotExpired, CorruptFile):
        return store.delta_entries(snapshot)
    return None


def _restore_start(state: _State, store: FileStore, snapshot: Snapshot, delta: EntryColumns) -> None:
    """Restore the state before the first snapshot.

    It is the state at ``snapshot`` without the files that the snapshot added, and with those that it removed.
    """
    with suppress(SnapshotExpired, CorruptFile):
        before = store.live_entries(snapshot)
        own = {file for file, kind, _, _ in _rows(delta) if kind == FileKind.ADD}
        for file, _, level, size in _rows(before):
            if file not in own:
                state.add(file, level, size)
        for file, kind, level, size in _rows(delta):
            if kind == FileKind.DELETE and file not in own:
                state.add(file, level, size)


def _step(state: _State, snapshot: Snapshot, delta: EntryColumns) -> TreeSnapshot:
    rows = _rows(delta)
    gone = {file for file, kind, _, _ in rows if kind == FileKind.DELETE}
    new = {file: (level, size) for file, kind, level, size in rows if kind == FileKind.ADD}
    removed = sum(state.remove(file) for file in gone)
    for file, (level, size) in new.items():
        state.add(file, level, size)
    written = sum(size for file, (_, size) in new.items() if file not in gone)
    state.written += written
    state.user_written += written if snapshot.commit_kind in _ROWS else 0
    moved = sum(size for file, (_, size) in new.items() if file in gone)
    return TreeSnapshot(
        id=snapshot.id,
        kind=snapshot.commit_kind.value,
        user=snapshot.commit_user,
        time_millis=snapshot.time_millis,
        rows=snapshot.total_record_count,
        delta_rows=snapshot.delta_record_count,
        added_files=len(new.keys() - gone),
        removed_files=len(gone - new.keys()),
        written=written,
        removed=removed - moved,
        files=len(state.files),
        size=state.size,
        write_amplification=state.written / state.user_written if state.user_written else None,
        space_amplification=state.size / state.largest if state.has_keys and state.largest else None,
    )


def _rows(entries: EntryColumns) -> list[tuple[_File, int, int, int]]:
    """Return file, kind, level and bytes of each entry."""
    files = zip(entries.partition, entries.bucket.tolist(), entries.file_name, strict=True)
    return list(zip(files, entries.kind.tolist(), entries.level.tolist(), entries.file_size.tolist(), strict=True))


__all__ = ["MOST_SNAPSHOTS", "tree_history"]
