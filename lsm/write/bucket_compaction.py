"""Compactor of one bucket, by the kind of table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from lsm.compaction.changelog import ChangelogWriter, CompactionChangelog
from lsm.compaction.compactor import BucketCompactor, CompactionContext
from lsm.compaction.delete_retention import DeleteRetention
from lsm.compaction.policy import CompactionPolicy
from lsm.compaction.record_expiry import RecordExpiry
from lsm.compaction.rewriter import MergeTreeRewriter, Rewriter
from lsm.keys.sort import SortKey
from lsm.levels.sorted_runs import Levels, key_decoder
from lsm.merge.function import merge_function_for
from lsm.write.bucket_writer import BucketContext
from manifest.entry.data_file import DataFileMeta
from manifest.schema.secondary_index import secondary_indexes
from paimon_base.lazy import LazyModule

if TYPE_CHECKING:
    from lsm.compaction import full_changelog_rewriter, lookup_rewriter
    from lsm.read import data_file
    from lsm.secondary_index import payloads
else:
    full_changelog_rewriter = LazyModule("lsm.compaction.full_changelog_rewriter")
    lookup_rewriter = LazyModule("lsm.compaction.lookup_rewriter")
    data_file = LazyModule("lsm.read.data_file")
    payloads = LazyModule("lsm.secondary_index.payloads")


class Compactor(Protocol):
    """Compaction of one bucket. Collects the file changes of a commit."""

    def compact(self, *, full: bool) -> object:
        """Compact all files or a selection."""

    def rewrite(self, names: Collection[str]) -> None:
        """Rewrite files one by one, with the same rows.

        Recomputes the metadata of each file.
        """

    def drain(self) -> tuple[list[DataFileMeta], list[DataFileMeta], list[DataFileMeta]]:
        """Return removed, added and changelog files, and reset."""

    def undo(self) -> None:
        """Delete the files created since the last ``drain``."""


def merge_tree_compactor(context: BucketContext, new_files: Sequence[DataFileMeta] = ()) -> BucketCompactor:
    """Return the compactor of a bucket of a primary-key table.

    ``new_files`` are level-0 files of the same write, in addition to the existing ones.
    """
    store = context.store
    schema, options = store.schema, store.options
    key, fold = SortKey.of(schema), merge_function_for(schema)
    expiry, retention = RecordExpiry.of(store), DeleteRetention.of(options)
    plain = MergeTreeRewriter(context.target, context.partition, context.bucket, key, fold, context.vectors, expiry, retention)
    key_of, policy = key_decoder(schema.key_types), CompactionPolicy.of(schema.kind)
    levels = Levels(key_of, [*context.existing, *new_files], policy.number_of_levels)
    log = ChangelogWriter(context.target)
    changes = CompactionChangelog.of(schema, log, key, levels.max_level) if context.writes_changelog else None
    rewriter: Rewriter = plain
    if options.needs_lookup:
        observe = None if changes is None else changes.observe
        rewriter = lookup_rewriter.LookupRewriter(plain, key_of, lambda: levels.files, observe, context.looked_up)
    elif changes is not None:
        rewriter = full_changelog_rewriter.FullChangelogRewriter(plain, changes, levels.max_level)
    compaction = CompactionContext(
        policy=policy,
        rewriter=rewriter,
        rewrite_file=plain.rewrite_file,
        changelog=None if changes is None else log,
        vectors=context.vectors,
        expiry=expiry,
        retention=retention,
        knows_all_columns=context.knows_all_columns,
        has_no_deletes=partial(_has_no_deletes, context) if secondary_indexes(schema) else None,
        is_unindexed=partial(payloads.is_unindexed, store) if secondary_indexes(schema) else None,
        name=f"{store.root}: bucket {context.bucket}",
    )
    return BucketCompactor(compaction, levels)


def _has_no_deletes(context: BucketContext, file: DataFileMeta) -> bool:
    """Return whether the metadata or the footer of a file prove that it has no deletes."""
    read = data_file.DataFileRead(context.store, context.partition, context.bucket, file, (), drop_retracts=True, use_index=False)
    return read.certain(footer=True) is not None
