"""Detection of tables whose snapshots were deleted.

A table without snapshots is empty. If other files prove that it had some, it must not be read as empty, nor written to.
"""

from __future__ import annotations

from contextlib import suppress

from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.errors import TableNotFound
from manifest.io.paths import MAIN_BRANCH
from manifest.snapshot.manager import SnapshotManager
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, PaimonError

_MANIFEST_LIST = "manifest-list-"


def refuse_lost_snapshots(store: FileStore) -> None:
    """Raise if the store's branch lost its snapshots.

    Raises:
        TableNotFound: The table or branch was dropped after it was opened.
        CorruptFile: Its snapshots were deleted.
    """
    manager = store.snapshots
    if store.commits is not None or manager.stored_ids():
        return
    # A store without rename drops a table file by file, schemas first: the remaining files look like an empty table.
    if not store.file_io.exists(manager.paths.schema_file(store.schema.id)):
        raise TableNotFound(f"{manager.paths.metadata_root}: the table or branch was dropped after it was opened")
    tags = manager.stored_tags()
    # Proofs are a tag, or a manifest in two manifest lists: the second list is the base of a later commit.
    # After a single commit the remains look like a killed writer's and prove nothing.
    proof = f"tag '{min(tags)}' exists" if tags else _repeated_manifest(store)
    if proof is not None and not manager.stored_ids():  # again: the first commits may have happened meanwhile
        raise CorruptFile(
            manager.paths.snapshots,
            f"has no snapshot, although the table had some ({proof}); restore the directory from a backup, or roll back to a tag",
        )


def _repeated_manifest(store: FileStore) -> str | None:
    """Describe a manifest that two lists name, or return None.

    None if a branch has snapshots, because branches share the manifests.
    """
    names = sorted(status.name for status in store.file_io.list(store.paths.manifests) if status.name.startswith(_MANIFEST_LIST))
    if len(names) < 3 or any(_has_snapshots(store, branch) for branch in (MAIN_BRANCH, *store.snapshots.branch_names())):
        return None
    manifest_names: set[str] = set()
    for name in names:
        metas: list[ManifestFileMeta] = []
        with suppress(PaimonError, OSError):  # a list that is incomplete proves nothing
            metas = store.manifest_lists.read(name)
        if not manifest_names.isdisjoint(meta.file_name for meta in metas):
            return f"manifest list {name} continues another one"
        manifest_names.update(meta.file_name for meta in metas)
    return None


def _has_snapshots(store: FileStore, branch: str) -> bool:
    return bool(SnapshotManager(store.file_io, store.paths.for_branch(branch)).stored_ids())
