"""Compaction of one bucket of a primary-key table.

The writer creates it on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsm.compaction.changelog import ChangelogWriter, CompactionChangelog
from lsm.compaction.compactor import CompactIncrement, MergeTreeCompactManager
from lsm.compaction.delete_retention import DeleteRetention
from lsm.compaction.policy import CompactionPolicy
from lsm.compaction.record_expiry import RecordExpiry
from lsm.compaction.rewriter import MergeTreeRewriter, Rewriter
from lsm.keys.sort import SortKey
from lsm.levels.sorted_runs import key_decoder
from lsm.merge.function import MergeFunction
from lsm.write.bucket_writer import BucketContext
from manifest.entry.data_file import DataFileMeta
from paimon_base.lazy import LazyModule

if TYPE_CHECKING:
    from lsm.compaction import full_changelog_rewriter, lookup_rewriter
else:
    full_changelog_rewriter = LazyModule("lsm.compaction.full_changelog_rewriter")
    lookup_rewriter = LazyModule("lsm.compaction.lookup_rewriter")


@dataclass(frozen=True)
class BucketCompaction:
    """Compaction state of one bucket.

    Args:
        manager: Levels and compaction strategy.
        increment: Files added and removed, for the commit.
        plain: Rewriter that copies a file without a changelog.
    """

    manager: MergeTreeCompactManager
    increment: CompactIncrement
    plain: MergeTreeRewriter

    @classmethod
    def of(
        cls, context: BucketContext, key: SortKey, fold: MergeFunction, log: ChangelogWriter, new_files: Sequence[DataFileMeta]
    ) -> BucketCompaction:
        """Return the compaction of a bucket.

        ``new_files`` were flushed before. The changelog is written to ``log``.
        """
        store = context.store
        schema, options = store.schema, store.options
        expiry, retention = RecordExpiry.of(store), DeleteRetention.of(options)
        plain = MergeTreeRewriter(context.target, context.partition, context.bucket, key, fold, context.vectors, expiry, retention)
        key_of, policy = key_decoder(schema.key_types), CompactionPolicy.of(schema.kind)
        max_level = max([policy.number_of_levels - 1, *(file.level for file in context.existing)])
        changes = CompactionChangelog.of(schema, log, key, max_level) if context.writes_changelog else None
        rewriter: Rewriter = plain
        if options.needs_lookup:
            observe = None if changes is None else changes.observe
            rewriter = lookup_rewriter.LookupRewriter(plain, key_of, lambda: manager.levels.files, observe, context.looked_up)
        elif changes is not None:
            rewriter = full_changelog_rewriter.FullChangelogRewriter(plain, changes, max_level)
        manager = MergeTreeCompactManager(
            key_of,
            list(context.existing),
            policy,
            rewriter,
            vectors=context.vectors,
            expiry=expiry,
            retention=retention,
            name=f"{store.root}: bucket {context.bucket}",
        )
        manager.add(list(new_files))
        return cls(manager, CompactIncrement(rewriter.discard), plain)
