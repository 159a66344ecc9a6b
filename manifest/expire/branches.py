"""Branches: histories of their own over the table's files (Paimon's ``BranchManager``).

A branch has its own schemas, snapshots and tags; data files, manifests and indexes of all branches share the table's directories,
so whatever deletes a file asks every branch first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from fileindex.base.errors import InvalidArgument, did_you_mean
from manifest.expire.rollback import Removed, remove_unreachable, told_unfinished
from manifest.io.errors import SnapshotNotFound
from manifest.io.paths import MAIN_BRANCH, TablePaths, branch_name
from manifest.io.seal import sealed
from manifest.schema.manager import SchemaManager
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.snapshot import Snapshot
from manifest.snapshot.tag import Tag
from manifest.store import FileStore


def create_branch(store: FileStore, name: str, tag: str | None = None) -> None:
    """A branch that starts with the state of ``tag``, or without one empty, with the table's schemas.

    It appears whole or not at all. Raises ``InvalidArgument`` for a name that is taken or none, ``SnapshotNotFound`` for the tag.
    """
    _refuse_on_branch(store)
    paths, file_io = store.paths, store.file_io
    branch = paths.for_branch(branch_name(name))
    if name in store.snapshots.branch_names():
        raise InvalidArgument(f"{store.root}: branch '{name}' exists")
    contents: dict[str, bytes] = {}
    if tag is not None:
        tagged = store.snapshots.tag(tag)
        contents[branch.snapshot_file(tagged.id)] = sealed(branch.snapshot_file(tagged.id), tagged.state.to_json())
        contents[branch.tag(tag)] = file_io.read(paths.tag(tag))
        contents[branch.latest_hint] = contents[branch.earliest_hint] = str(tagged.id).encode()
    contents |= _schemas(store, branch, None if tag is None else store.snapshots.tag(tag).schema_id)
    if tag is not None:
        store.snapshots.tag(tag)  # still there, so its files are
    try:
        file_io.publish_directory(branch.metadata_root, contents)
    except FileExistsError as error:
        raise InvalidArgument(f"{store.root}: branch '{name}' exists, or its making was cut off, which delete_branch clears up") from error
    if tag is not None:
        _still_there(store, branch, tag)


def _still_there(store: FileStore, branch: TablePaths, tag: str) -> None:
    """Take the new branch back if its tag went meanwhile: whoever deleted that may not have seen the branch, and deletes its files."""
    try:
        store.snapshots.tag(tag)
    except SnapshotNotFound:
        _retire(store, branch)
        raise


def _retire(store: FileStore, branch: TablePaths) -> None:
    """Take a branch away, for everybody: without schemas it is none."""
    schemas = SchemaManager(store.file_io, store.root, branch.branch).ids()
    store.file_io.retire_directory(branch.metadata_root, [branch.schema_file(schema_id) for schema_id in reversed(schemas)])


def delete_branch(store: FileStore, name: str) -> Removed:
    """Forget a branch and delete the files that only it used. Raises ``SnapshotNotFound``."""
    _refuse_on_branch(store)
    if name not in store.snapshots.branch_names() and not store.file_io.is_directory(
        store.paths.for_branch(branch_name(name)).metadata_root
    ):
        raise SnapshotNotFound(
            f"{store.root}: there is no branch '{name}'{did_you_mean(name, store.snapshots.branch_names())}; there are: {', '.join(store.snapshots.branch_names()) or 'none'}"
        )
    branch = SnapshotManager(store.file_io, store.paths.for_branch(name))
    tags = branch.tags()
    snapshots = [branch.get(snapshot_id) for snapshot_id in branch.ids()]
    _retire(store, branch.paths)
    data, manifests = remove_unreachable(store, [*tags.values(), *snapshots[:1]], [*snapshots, *branch.kept.all()])
    return Removed(len(snapshots), tuple(sorted(tags)), data, manifests)


def fast_forward(store: FileStore, name: str) -> Removed:
    """Make the branch's history main's: from the branch's oldest snapshot on, main's own snapshots, schemas and tags give way.

    Older ones give way too if main was rolled back so far that the branch's do not follow them. The branch stays. Raises
    ``SnapshotNotFound`` if it does not exist or has no snapshot. Commits that others make to main meanwhile may give way as well.
    """
    _refuse_on_branch(store)
    branch, main = _branch(store, name), store.snapshots
    ids = branch.ids()
    if not ids:
        raise SnapshotNotFound(f"{store.root}: branch '{name}' has no snapshot")
    with told_unfinished(store, f"the move to branch '{name}'"):
        with store.file_io.turn(store.paths.snapshots):  # no commit of ours comes between
            mine = [main.get(snapshot_id) for snapshot_id in main.ids()]
            older = [snapshot for snapshot in mine if snapshot.id < ids[0]]
            replaced = mine if older and older[-1].id + 1 < ids[0] else mine[len(older) :]
            kept = {branch.get(snapshot_id).delta_manifest_list for snapshot_id in ids}
            theirs = branch.tags()
            tags = _delete_tags(main, ids[0], kept, theirs)  # before the ids that they name are given again
            _replace_history(store, branch, ids, replaced)
        tags |= _delete_tags(main, ids[0], kept, theirs)  # made meanwhile
        for tag_name in theirs:
            store.file_io.write(store.paths.tag(tag_name), store.file_io.read(branch.paths.tag(tag_name)), overwrite=True)
    data, manifests = remove_unreachable(store, [*tags.values(), *replaced[:1]], replaced)
    gone = {old.delta_manifest_list for old in replaced}.difference(kept)
    return Removed(len(gone), tuple(sorted(set(tags).difference(theirs))), data, manifests)


def _delete_tags(main: SnapshotManager, first: int, kept: Collection[str], theirs: Collection[str]) -> dict[str, Tag]:
    """Delete main's tags of snapshots from ``first`` on that are not the branch's too, by delta list; ``theirs`` will be written over."""
    given_up = {name: tag for name, tag in main.tags().items() if tag.id >= first and tag.delta_manifest_list not in kept}
    for name in given_up:
        if name not in theirs:
            main.delete_tag(name)
    return given_up


def _replace_history(store: FileStore, branch: SnapshotManager, ids: Sequence[int], gone: Sequence[Snapshot]) -> None:
    """Write the branch's schemas and snapshots over main's, then delete those of main that have ``gone`` without being written over."""
    file_io, main = store.file_io, store.snapshots
    snapshots = [branch.get(snapshot_id) for snapshot_id in ids]
    _replace_schemas(store, branch.paths, snapshots[0].schema_id)
    for snapshot in snapshots:
        file_io.write(store.paths.snapshot_file(snapshot.id), file_io.read(branch.paths.snapshot_file(snapshot.id)), overwrite=True)
    with suppress(OSError):
        main.write_latest_hint(ids[-1])
    for old in reversed(gone):
        if not ids[0] <= old.id <= ids[-1]:
            file_io.delete(store.paths.snapshot_file(old.id))
    with suppress(OSError):
        main.write_earliest_hint(min(main.ids()))


def _refuse_on_branch(store: FileStore) -> None:
    if store.branch != MAIN_BRANCH:
        raise InvalidArgument(
            f"{store.root}: branches are made, deleted and forwarded on the table itself, not on its branch '{store.branch}'"
        )


def _branch(store: FileStore, name: str) -> SnapshotManager:
    if name not in store.snapshots.branch_names():
        raise SnapshotNotFound(
            f"{store.root}: there is no branch '{name}'{did_you_mean(name, store.snapshots.branch_names())}; there are: {', '.join(store.snapshots.branch_names()) or 'none'}"
        )
    return SnapshotManager(store.file_io, store.paths.for_branch(name))


def _schemas(store: FileStore, branch: TablePaths, newest: int | None) -> Iterator[tuple[str, bytes]]:
    """The newest first and the first one last: where files come one after the other, the branch is whole with it."""
    for schema_id in reversed(store.schemas.ids()):
        if newest is None or schema_id <= newest:
            yield branch.schema_file(schema_id), store.file_io.read(store.paths.schema_file(schema_id))


def _replace_schemas(store: FileStore, branch: TablePaths, first: int) -> None:
    """Give main the branch's schemas from ``first`` on."""
    theirs = SchemaManager(store.file_io, store.root, branch.branch).ids()
    for schema_id in theirs:
        if schema_id >= first:
            content = store.file_io.read(branch.schema_file(schema_id))
            store.file_io.write(store.paths.schema_file(schema_id), content, overwrite=True)
    for schema_id in reversed(store.schemas.ids()):
        if schema_id > theirs[-1]:
            store.file_io.delete(store.paths.schema_file(schema_id))


__all__ = ["create_branch", "delete_branch", "fast_forward"]
