"""Whether the snapshots of a table were deleted while its other files stayed.

A table without snapshots is empty. If files prove that it had some, it must not be read as empty, nor written to.
"""

from __future__ import annotations

from contextlib import suppress

from fileindex.base.errors import CorruptFile, PaimonError
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.errors import TableNotFound
from manifest.io.paths import MAIN_BRANCH
from manifest.snapshot.manager import SnapshotManager
from manifest.store import FileStore

_MANIFEST_LIST = "manifest-list-"


def refuse_lost_snapshots(store: FileStore) -> None:
    """Raise if the store's branch has no snapshot and once had one.

    Raises:
        TableNotFound: The table or branch was dropped after it was opened.
        CorruptFile: Its snapshots were deleted.

    Proofs of deleted snapshots are a tag, and a manifest that two manifest lists name: the second list is the base of a later commit. After a single commit
    the remains look like those of a writer that was killed, and nothing is said.
    """
    manager = store.snapshots
    if store.commits is not None or manager.stored_ids():
        return
    # A store without rename drops a table file by file, schemas first: what is left looks like an empty table.
    if not store.file_io.exists(manager.paths.schema_file(store.schema.id)):
        raise TableNotFound(f"{manager.paths.metadata_root}: the table or branch was dropped after it was opened")
    tags = manager.stored_tags()
    proof = f"tag '{min(tags)}' is there" if tags else _named_twice(store)
    if proof is not None and not manager.stored_ids():  # still: the first commits may have come meanwhile
        raise CorruptFile(
            manager.paths.snapshots,
            f"has no snapshot, although the table had some ({proof}); put the directory back from a copy, or roll back to a tag",
        )


def _named_twice(store: FileStore) -> str | None:
    """Describe a manifest that two lists name, if no branch has a snapshot: branches share the manifests."""
    names = sorted(status.name for status in store.file_io.list(store.paths.manifests) if status.name.startswith(_MANIFEST_LIST))
    if len(names) < 3 or any(_has_snapshots(store, branch) for branch in (MAIN_BRANCH, *store.snapshots.branch_names())):
        return None
    seen: set[str] = set()
    for name in names:
        metas: list[ManifestFileMeta] = []
        with suppress(PaimonError, OSError):  # one that is just being written, or was cut off, proves nothing
            metas = store.manifest_lists.read(name)
        if not seen.isdisjoint(meta.file_name for meta in metas):
            return f"manifest list {name} continues another one"
        seen.update(meta.file_name for meta in metas)
    return None


def _has_snapshots(store: FileStore, branch: str) -> bool:
    return bool(SnapshotManager(store.file_io, store.paths.for_branch(branch)).stored_ids())


__all__ = ["refuse_lost_snapshots"]
