"""What can be done to a table's schema and history, as requests that travel; all run once, on the driver or in process."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field

from fileindex.base.errors import InvalidArgument, UnsupportedOption
from manifest.fsck.problem import Problem
from manifest.io.errors import SnapshotNotFound
from manifest.io.paths import with_branch
from manifest.options.core_options import CoreOptions
from manifest.options.durations import parse_duration_millis
from manifest.options.support import check_writable
from manifest.schema.change import ChangeOptions, SchemaChange
from pyspark_paimon.request.message import CommitId, Message
from pyspark_paimon.request.partition_spec import display_partition, predicate_of
from pyspark_paimon.request.results import Removal
from pyspark_paimon.request.state_results import TableChangeResult

if TYPE_CHECKING:
    from manifest.expire.removal import Removed
    from manifest.expire.would_go import Losses
    from manifest.snapshot.snapshot import Snapshot
    from manifest.store import FileStore

_DEFAULT_RETAINED = "tag.default-time-retained"


class Destruction(Message):
    """What takes something away; ``dry_run``: tell what would go, and change nothing."""

    dry_run: bool = False


class Alter(Message):
    """A new version of the schema, all changes or none."""

    do: Literal["alter"] = "alter"
    changes: tuple[SchemaChange, ...]


class CreateTag(Message):
    """Name a snapshot (None: the newest)."""

    do: Literal["create-tag"] = "create-tag"
    name: str
    snapshot_id: int | None = None
    retained_ms: int | None = None


class DeleteTag(Destruction):
    """Forget a tag."""

    do: Literal["delete-tag"] = "delete-tag"
    name: str


class ExpireTags(Destruction):
    """Forget the tags whose time is over."""

    do: Literal["expire-tags"] = "expire-tags"


class ResetConsumer(Message):
    """Have a consumer read snapshot ``following`` next, or forget it (None)."""

    do: Literal["reset-consumer"] = "reset-consumer"
    name: str
    following: int | None


class Rollback(Destruction):
    """Back to a snapshot or a tag; one of the two is set."""

    do: Literal["rollback"] = "rollback"
    snapshot_id: int | None = None
    tag: str | None = None


class Restore(Destruction):
    """A new snapshot with the state of a snapshot, of a tag, or of the newest snapshot at a time; one of the three is set."""

    do: Literal["restore"] = "restore"
    commit_id: CommitId
    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_millis: int | None = None


class ReplaceTag(Destruction):
    """Have a tag name another snapshot (None: the newest)."""

    do: Literal["replace-tag"] = "replace-tag"
    name: str
    snapshot_id: int | None = None
    retained_ms: int | None = None


class RenameTag(Message):
    """Give a tag another name."""

    do: Literal["rename-tag"] = "rename-tag"
    name: str
    new_name: str


class CreateBranch(Message):
    """A branch from a tag, or an empty one."""

    do: Literal["create-branch"] = "create-branch"
    name: str
    tag: str | None = None


class DeleteBranch(Destruction):
    """Forget a branch."""

    do: Literal["delete-branch"] = "delete-branch"
    name: str


class FastForward(Destruction):
    """Make a branch's history the table's."""

    do: Literal["fast-forward"] = "fast-forward"
    name: str


class DropPartitions(Destruction):
    """Remove all rows of partitions."""

    do: Literal["drop-partitions"] = "drop-partitions"
    commit_id: CommitId
    partitions: tuple[dict[str, str | None], ...]


class ExpirePartitions(Destruction):
    """Remove the partitions that are too old; ``older_than`` is by the local wall clock."""

    do: Literal["expire-partitions"] = "expire-partitions"
    commit_id: CommitId
    older_than: datetime | None = None


class RepairTable(Destruction):
    """Repair what can be without loss: ``problems`` as a check has told them, index files that nothing names, last changed before a time."""

    do: Literal["repair"] = "repair"
    commit_id: CommitId
    problems: tuple[Problem, ...]
    older_than_ms: int


TableChange: TypeAlias = Annotated[
    Alter
    | CreateTag
    | DeleteTag
    | ExpireTags
    | ResetConsumer
    | Rollback
    | Restore
    | ReplaceTag
    | RenameTag
    | CreateBranch
    | DeleteBranch
    | FastForward
    | DropPartitions
    | ExpirePartitions
    | RepairTable,
    Field(discriminator="do"),
]


def change_table(store: FileStore, change: TableChange) -> TableChangeResult:
    """Do it. Raises the typed errors of what is done."""
    from manifest.entry.live import EntryFilter  # noqa: PLC0415  # who only asks for a change loads nothing that makes it
    from manifest.expire.branches import create_branch, delete_branch, fast_forward  # noqa: PLC0415  # as above
    from manifest.expire.partitions import expired_partitions  # noqa: PLC0415  # as above
    from manifest.expire.rollback import rollback_to  # noqa: PLC0415  # as above
    from manifest.expire.tags import delete_tag, expire_tags, rename_tag, replace_tag  # noqa: PLC0415  # as above

    match change:
        case DeleteTag() | ExpireTags() | ReplaceTag() | DeleteBranch() | FastForward() | Rollback() if change.dry_run:
            return _tried(store, change)
        case Alter():
            check_rescale(store, change.changes)
            store.schemas.alter(change.changes)
            return TableChangeResult()
        case CreateTag():
            return _create_tag(store, change)
        case DeleteTag(name=name):
            return _removed(delete_tag(store, name))
        case ExpireTags():
            return _removed(expire_tags(store))
        case ResetConsumer(name=name, following=following):
            return _reset_consumer(store, name, following)
        case Rollback(snapshot_id=snapshot_id, tag=tag):
            target = store.snapshots.travel(snapshot_id=snapshot_id, tag=tag)
            if target is None:
                raise InvalidArgument("a rollback goes to a snapshot or a tag: name one")
            return _removed(rollback_to(store, target)).model_copy(update={"snapshot_id": target.id})
        case Restore():
            return _restored(store, change)
        case ReplaceTag(name=name):
            snapshot, retained = tagged(store, change)
            return _removed(replace_tag(store, name, snapshot, retained)).model_copy(update={"snapshot_id": snapshot.id, "tags": (name,)})
        case RenameTag(name=name, new_name=new_name):
            return TableChangeResult(snapshot_id=rename_tag(store, name, new_name).id, tags=(new_name,))
        case CreateBranch(name=name, tag=tag):
            create_branch(store, name, tag)
            return TableChangeResult()
        case DeleteBranch(name=name):
            return _removed(delete_branch(store, name))
        case FastForward(name=name):
            return _removed(fast_forward(store, name))
        case DropPartitions():
            wanted = EntryFilter(predicate=predicate_of(change.partitions, store.schema))
            _, partitions = store.live_entries(store.snapshots.latest(), wanted).partition_codes
            return _without(store, change, list(partitions))
        case ExpirePartitions():
            return _without(store, change, expired_partitions(store, store.snapshots.latest(), change.older_than))
        case RepairTable():
            return _repaired(store, change)


def check_rescale(store: FileStore, changes: Sequence[SchemaChange]) -> None:
    """Raise ``UnsupportedOption`` for a number of buckets that no later write could keep to, as rows lie in another one.

    A table with partitions may change it: each partition keeps its own until it is overwritten, and new ones have the new number.
    """
    changed = {key: value for change in changes if isinstance(change, ChangeOptions) for key, value in change.options.items()}
    if store.schema.partition_keys or changed.get("bucket") is None:
        return
    wanted = CoreOptions.of({"bucket": str(changed["bucket"])}).bucket
    if wanted < 1 or store.options.bucket < 1:
        return
    others = set(store.live_entries(store.snapshots.latest()).total_buckets.tolist()) - {wanted}
    if others:
        raise UnsupportedOption(
            "bucket",
            f"the rows of {store.root} lie in {others.pop()} buckets, and without partitions every later write would be refused; "
            "to rescale, make another table and copy: Table.create(path, table.schema, table.primary_keys, "
            f"options={{**table.options, 'bucket': '{wanted}'}}).write(table.scan().to_arrow())",
        )


def tagged(store: FileStore, change: CreateTag | ReplaceTag) -> tuple[Snapshot, int | None]:
    """The snapshot to tag, and for how long in milliseconds. Raises ``SnapshotNotFound``."""
    snapshot = store.snapshots.travel(snapshot_id=change.snapshot_id)
    if snapshot is None:
        raise SnapshotNotFound(f"{store.root}: the table has no snapshot to tag")
    retained = change.retained_ms
    if retained is None and (text := store.options.raw.get(_DEFAULT_RETAINED)) is not None:
        retained = parse_duration_millis(text, _DEFAULT_RETAINED)
    return snapshot, retained


def _restored(store: FileStore, change: Restore) -> TableChangeResult:
    """A tag, of ours if need be, holds the target back from expiry until its rows are those of a new snapshot."""
    from lsm.commit.restore import differing_partitions, restore_state  # noqa: PLC0415  # as in change_table
    from manifest.expire.tags import delete_tag  # noqa: PLC0415  # as above

    target = store.snapshots.travel(snapshot_id=change.snapshot_id, tag=change.tag, timestamp_millis=change.timestamp_millis)
    if target is None:
        raise InvalidArgument("restore goes to a snapshot, a tag or a time: name one")
    if change.dry_run:
        return _would_empty(store, differing_partitions(store, target, store.snapshots.latest()))
    if change.tag is not None:
        return TableChangeResult(snapshot_id=restore_state(store, target, change.commit_id).snapshot_id)
    pin = f"restore-{change.commit_id}"
    if pin not in store.snapshots.tags():
        store.snapshots.create_tag(pin, target)
    try:
        return TableChangeResult(snapshot_id=restore_state(store, target, change.commit_id).snapshot_id)
    finally:
        with suppress(SnapshotNotFound):  # a rollback deletes it, too
            delete_tag(store, pin)


def _repaired(store: FileStore, change: RepairTable) -> TableChangeResult:
    from lsm.commit.repair_rows import repair_rows  # noqa: PLC0415  # as in change_table
    from manifest.fsck.repair import Repairs, repair_metadata  # noqa: PLC0415  # as above

    repairs = Repairs(store, change.dry_run)
    repair_metadata(repairs, change.problems, change.older_than_ms)
    repair_rows(repairs, change.problems, change.commit_id)
    return TableChangeResult(repairs=tuple(repairs.done))


def _create_tag(store: FileStore, change: CreateTag) -> TableChangeResult:
    snapshot, retained = tagged(store, change)
    store.snapshots.create_tag(change.name, snapshot, retained)
    return TableChangeResult(snapshot_id=snapshot.id, tags=(change.name,))


def _without(store: FileStore, change: DropPartitions | ExpirePartitions, partitions: list[bytes]) -> TableChangeResult:
    """An overwrite without new files."""
    from manifest.commit.file_store_commit import FileStoreCommit  # noqa: PLC0415  # as in change_table
    from manifest.commit.runs import committed_before  # noqa: PLC0415  # as above

    commit_id = change.commit_id
    schema = store.schema
    check_writable(store.options, has_primary_key=schema.is_primary_key_table, table=store.root)
    if not partitions:
        return TableChangeResult()
    names = _names(store, partitions)
    if change.dry_run:
        return _would_empty(store, partitions)
    earlier = committed_before(store, commit_id)
    if earlier is not None:
        return TableChangeResult(snapshot_id=earlier.snapshot_id)
    done = FileStoreCommit(store, commit_id).truncate(partitions=partitions)
    return TableChangeResult(snapshot_id=done.snapshot_id, partitions=names)


def _reset_consumer(store: FileStore, name: str, following: int | None) -> TableChangeResult:
    if following is None:
        if not store.snapshots.delete_consumer(name):
            raise InvalidArgument(f"{store.root}: there is no consumer '{name}'")
    elif following < 1:
        raise InvalidArgument(f"a consumer reads a snapshot next, and {following} is none")
    else:
        store.snapshots.record_consumer(name, following)
    return TableChangeResult(snapshot_id=following)


def _tried(store: FileStore, change: DeleteTag | ExpireTags | ReplaceTag | DeleteBranch | FastForward | Rollback) -> TableChangeResult:
    """What the change would do, with what would go."""
    from manifest.expire.would_go import tried  # noqa: PLC0415  # as in change_table
    from manifest.store import FileStore as Store  # noqa: PLC0415  # as above

    there = isinstance(change, DeleteBranch) and change.name in store.snapshots.branch_names()
    before = Store.open(with_branch(store.root, change.name), store.file_io) if there and isinstance(change, DeleteBranch) else None
    meant = change.model_copy(update={"dry_run": False})
    done, losses = tried(store, lambda seen: change_table(seen, meant), before)
    tags = () if isinstance(change, ReplaceTag) else done.tags
    return done.model_copy(update={"removal": removal_of(losses, snapshots=done.snapshots, tags=tags, manifests=done.manifests)})


def _would_empty(store: FileStore, partitions: Collection[bytes]) -> TableChangeResult:
    """What the newest state would lose with these partitions."""
    from manifest.expire.would_go import partition_losses  # noqa: PLC0415  # as in change_table

    names = _names(store, partitions)
    return TableChangeResult(partitions=names, removal=removal_of(partition_losses(store, partitions), partitions=names))


def _names(store: FileStore, partitions: Collection[bytes]) -> tuple[str, ...]:
    return tuple(sorted(display_partition(store.partition.decode(partition), store.schema) for partition in partitions))


def removal_of(losses: Losses, **others: Any) -> Removal:
    """Losses, and what else would go, for people."""
    return Removal(data_files=losses.data_files, files=losses.files, rows=losses.rows, bytes=losses.bytes, **others)


def _removed(removed: Removed) -> TableChangeResult:
    return TableChangeResult(snapshots=removed.snapshots, tags=removed.tags, data_files=removed.data_files, manifests=removed.manifests)


__all__ = [
    "Alter",
    "CreateBranch",
    "CreateTag",
    "DeleteBranch",
    "DeleteTag",
    "Destruction",
    "DropPartitions",
    "ExpirePartitions",
    "ExpireTags",
    "FastForward",
    "RenameTag",
    "RepairTable",
    "ReplaceTag",
    "ResetConsumer",
    "Restore",
    "Rollback",
    "TableChange",
    "change_table",
    "check_rescale",
    "removal_of",
    "tagged",
]
