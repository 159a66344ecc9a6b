"""Check of a table's metadata. Yields all files to check.

Covers every snapshot, tag and kept changelog of every branch. Memory holds the live files of one state and the names of all files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from manifest.entry.cache import nothing_held
from manifest.expire.orphans import branches_of, list_orphans
from manifest.io.paths import with_branch
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, PaimonError
from pyspark_paimon.plugins.fsck.history import CheckedHistory
from pyspark_paimon.plugins.fsck.states import CheckedStates
from pyspark_paimon.plugins.fsck.unit import Unit
from pyspark_paimon.results.fsck_problem import Findings, Origin, ProblemKind

ORPHANS, ORPHAN_BYTES = "unreferenced files", "bytes of unreferenced files"


def walk(store: FileStore, findings: Findings) -> Iterator[Unit]:
    """Check the metadata of every branch and yield its files.

    Each file is yielded once.
    """
    seen_entries: set[bytes] = set()
    for manager in branches_of(store):
        name = manager.paths.branch
        try:
            branch = branch_store(store, name)
        except PaimonError as error:
            path = error.path if isinstance(error, CorruptFile) else manager.paths.schema_file(0)
            findings.add(
                ProblemKind.SCHEMA,
                path,
                f"branch '{name}' cannot be opened ({error}); delete_branch removes an incomplete branch",
                Origin(branch=name),
            )
            continue
        findings.counts["branches"] += 1
        yield from _of_branch(branch, findings, seen_entries)


def branch_store(store: FileStore, branch: str) -> FileStore:
    """Open a branch of the table by its newest schema."""
    return FileStore.open(with_branch(store.root, branch), store.file_io, cache=nothing_held())


def _of_branch(store: FileStore, findings: Findings, seen_entries: set[bytes]) -> Iterator[Unit]:
    history = CheckedHistory(store, findings)
    history.check_schemas()
    history.check_hints()
    states = CheckedStates(store, findings, seen_entries, history.schema_ids)
    yield from states.chain(history.snapshots())
    for name, tag in history.tags():
        yield from states.check_tag(name, tag)
    for snapshot in history.changelogs():
        yield from states.kept_changelog(snapshot)
    history.check_consumers()


def gone(store: FileStore, origins: Sequence[Origin]) -> list[bool]:
    """Return which of these states no longer exist.

    Expired, deleted or rolled back. Files that they needed may be missing.
    """
    return [not _exists(store, origin) for origin in origins]


def _exists(store: FileStore, origin: Origin) -> bool:
    paths = store.paths.for_branch(origin.branch)
    if origin.snapshot is not None:
        return store.file_io.exists(paths.snapshot_file(origin.snapshot))
    if origin.changelog is not None:
        return store.file_io.exists(paths.changelog_file(origin.changelog))
    return origin.tag is None or store.file_io.exists(paths.tag(origin.tag))


def count_orphans(store: FileStore, before_ms: int, findings: Findings) -> None:
    """Count unreferenced files older than ``before_ms``.

    Information only: they do no harm.
    """
    with suppress(PaimonError, OSError):
        orphans = list_orphans(store, before_ms)
        findings.counts[ORPHANS] = len(orphans)
        findings.counts[ORPHAN_BYTES] = sum(orphan.size for orphan in orphans)
