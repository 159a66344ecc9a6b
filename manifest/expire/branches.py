"""Branches of a table (Paimon's ``BranchManager``).

A branch has its own schemas, snapshots and tags. Data files, manifests and indexes of all branches share the table's directories,
so a deletion of files must check every branch first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from manifest.entry.live import live
from manifest.expire.delete_files import Removed, remove_unreachable
from manifest.expire.history_change import change_history, changing_history, finish_interrupted
from manifest.io.checksum import with_checksum
from manifest.io.errors import BranchExists, SnapshotNotFound, UnsupportedTable
from manifest.io.paths import MAIN_BRANCH, TablePaths, branch_name, with_branch
from manifest.schema.manager import SchemaManager
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.pending_history import PendingHistory
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument, did_you_mean


def create_branch(store: FileStore, name: str, tag: str | None = None) -> None:
    """Create a branch from ``tag``, or an empty branch.

    The branch gets the table's schemas. It appears completely or not at all.
    Raises ``InvalidArgument`` for an invalid name, ``BranchExists`` for an existing one, ``SnapshotNotFound`` for an unknown tag.
    """
    _refuse_on_branch(store)
    finish_interrupted(store, f"the creation of branch '{name}'")
    paths, file_io = store.paths, store.file_io
    branch = paths.for_branch(branch_name(name))
    if name in store.snapshots.branch_names():
        raise BranchExists(f"{store.root}: branch '{name}' exists; choose another name, or delete it first")
    contents: dict[str, bytes] = {}
    if tag is not None:
        tagged = store.snapshots.tag(tag)
        contents[branch.snapshot_file(tagged.id)] = with_checksum(branch.snapshot_file(tagged.id), tagged.state.to_json())
        contents[branch.tag(tag)] = file_io.read(paths.tag(tag))
        contents[branch.latest_hint] = contents[branch.earliest_hint] = str(tagged.id).encode()
    contents |= _schemas(store, branch, None if tag is None else store.snapshots.tag(tag).schema_id)
    if tag is not None:
        store.snapshots.tag(tag)  # raises if the tag was deleted meanwhile
    try:
        file_io.publish_directory(branch.metadata_root, contents)
    except FileExistsError as error:
        raise BranchExists(
            f"{store.root}: branch '{name}' exists, or its creation was interrupted. Call delete_branch to remove it"
        ) from error
    if tag is not None:
        _recheck_tag(store, branch, tag)


def _recheck_tag(store: FileStore, branch: TablePaths, tag: str) -> None:
    """Delete the new branch if its tag was deleted meanwhile."""
    try:
        store.snapshots.tag(tag)
    except SnapshotNotFound:
        _retire(store, branch)  # the deletion of the tag may have missed the branch and deletes its files
        raise


def _retire(store: FileStore, branch: TablePaths) -> None:
    """Delete a branch, schemas first."""
    # A directory without schemas is no branch for any reader.
    schemas = SchemaManager(store.file_io, store.root, branch.branch).ids()
    store.file_io.retire_directory(branch.metadata_root, [branch.schema_file(schema_id) for schema_id in reversed(schemas)])


def delete_branch(store: FileStore, name: str) -> Removed:
    """Delete a branch and its unshared files. Raises ``SnapshotNotFound``."""
    _refuse_on_branch(store)
    if name not in store.snapshots.branch_names() and not store.file_io.is_directory(
        store.paths.for_branch(branch_name(name)).metadata_root
    ):
        raise SnapshotNotFound(
            f"{store.root}: there is no branch '{name}'{did_you_mean(name, store.snapshots.branch_names())}; there are: {', '.join(store.snapshots.branch_names()) or 'none'}"
        )
    branch = SnapshotManager(store.file_io, store.paths.for_branch(name))
    tags, snapshots = branch.stored_tags(), list(branch.all_stored().values())  # with those that an interrupted rollback removes
    _retire(store, branch.paths)
    data, manifests = remove_unreachable(store, [*tags.values(), *snapshots[:1]], [*snapshots, *branch.kept.all()])
    return Removed(len(snapshots), tuple(sorted(tags)), data, manifests)


def rename_branch(store: FileStore, name: str, new_name: str) -> None:
    """Rename a branch. Other processes must not write to it meanwhile.

    Raises ``SnapshotNotFound`` if it does not exist, ``InvalidArgument`` for an invalid new name, ``BranchExists`` for an existing one,
    ``UnsupportedOption`` on an object store, which cannot rename.
    """
    _refuse_on_branch(store)
    _branch(store, name)
    target = branch_name(new_name)
    with changing_history(store, f"the renaming of branch '{name}'"):
        if target in store.snapshots.branch_names():
            raise BranchExists(f"{store.root}: branch '{target}' exists; choose another name")
        store.file_io.rename_directory(store.paths.for_branch(name).metadata_root, store.paths.for_branch(target).metadata_root)


def fast_forward(store: FileStore, name: str) -> Removed:
    """Replace the table's history by the branch's.

    Removes the table's own snapshots, schemas and tags from the branch's oldest snapshot on. Removes older ones too if the branch's oldest
    snapshot is not based on them, as after a rollback before it. Concurrent commits to the table may be removed as well. The branch
    stays. Raises ``SnapshotNotFound`` if the branch does not exist or has no snapshot.
    """
    _refuse_on_branch(store)
    branch = _branch(store, name)
    finish_interrupted(FileStore.open(with_branch(store.root, name), store.file_io), f"the fast-forward to branch '{name}'")
    with changing_history(store, f"the fast-forward to branch '{name}'"):
        pending = _history_of(store, branch, name)
        forgotten = change_history(store, pending)
    removed = forgotten.remove_files(store)
    return replace(removed, snapshots=len(pending.doomed), tags=tuple(sorted(set(forgotten.tags).difference(pending.tags))))


def _history_of(store: FileStore, branch: SnapshotManager, name: str) -> PendingHistory:
    """Return the history change to the branch. Raises ``SnapshotNotFound``."""
    snapshots = {snapshot_id: branch.get(snapshot_id) for snapshot_id in branch.ids()}
    if not snapshots:
        raise SnapshotNotFound(f"{store.root}: branch '{name}' has no snapshot")
    file_io, first = store.file_io, min(snapshots)
    mine = store.snapshots.stored_deltas()
    branch_deltas = {i: snapshot.delta_manifest_list for i, snapshot in snapshots.items()}
    older = max((snapshot_id for snapshot_id in mine if snapshot_id < first), default=None)
    follows = older is None or mine.get(first) == branch_deltas[first] or _is_base(store, store.snapshots.get(older), snapshots[first])
    schemas = SchemaManager(file_io, store.root, name)
    if not file_io.cancels_creates:
        _refuse_other_columns(store, schemas, name)
    return PendingHistory(
        target=snapshots[max(snapshots)],
        doomed={i: delta for i, delta in mine.items() if branch_deltas.get(i) != delta and (i >= first or not follows)},
        restores=True,
        contents={i: file_io.read(branch.paths.snapshot_file(i)).decode() for i in snapshots},
        schemas={i: file_io.read(branch.paths.schema_file(i)).decode() for i in schemas.ids() if i >= snapshots[first].schema_id},
        tags={tag: file_io.read(branch.paths.tag(tag)).decode() for tag in branch.tags()},
        source=name,
    )


def _is_base(store: FileStore, before: Snapshot, after: Snapshot) -> bool:
    """Return whether branch snapshot ``after`` was committed on ``before``'s state.

    The schema of ``before`` must not be newer.
    """
    if before.id + 1 != after.id or before.schema_id > after.schema_id:
        return False
    based_on = live(store.manifests.read_metas(store.manifest_lists.read(after.base_manifest_list, after.base_manifest_list_size)))
    return set(based_on.identities()) == set(store.live_entries(before).identities())


def _refuse_other_columns(store: FileStore, schemas: SchemaManager, name: str) -> None:
    """Raise ``UnsupportedTable`` if one schema id has unlike columns here and in the branch."""
    # Until the new snapshot is there, readers would decode the table's files by the branch's columns.
    for schema_id in sorted(set(schemas.ids()).intersection(store.schemas.ids())):
        mine = {field.id: field for field in store.schemas.get(schema_id).fields}
        if any(mine.get(field.id, field) != field for field in schemas.get(schema_id).fields):
            raise UnsupportedTable(
                f"{store.root}: the table and its branch '{name}' have different columns with one id in schema {schema_id}, and an object store "
                "cannot replace schemas and snapshots in one step; nothing was changed. Overwrite the table with the rows of the branch instead"
            )


def _refuse_on_branch(store: FileStore) -> None:
    if store.branch != MAIN_BRANCH:
        raise InvalidArgument(
            f"{store.root}: branches can only be created, deleted and fast-forwarded on the table itself, not on its branch '{store.branch}'"
        )


def _branch(store: FileStore, name: str) -> SnapshotManager:
    if name not in store.snapshots.branch_names():
        raise SnapshotNotFound(
            f"{store.root}: there is no branch '{name}'{did_you_mean(name, store.snapshots.branch_names())}; there are: {', '.join(store.snapshots.branch_names()) or 'none'}"
        )
    return SnapshotManager(store.file_io, store.paths.for_branch(name))


def _schemas(store: FileStore, branch: TablePaths, newest: int | None) -> Iterator[tuple[str, bytes]]:
    """Yield schema files for a branch, newest first."""
    # The first schema comes last: a branch written file by file is complete with it.
    for schema_id in reversed(store.schemas.ids()):
        if newest is None or schema_id <= newest:
            yield branch.schema_file(schema_id), store.file_io.read(store.paths.schema_file(schema_id))
