"""What follows a commit of rows that nobody's task owned the buckets of: showing them, and the compaction that is due.

Tasks that share buckets write level 0 only, for none of them can tell what the others add. So the one who commits compacts
after them, as a writer that owns its buckets does before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from lsm.visibility import compacted_once, made_visible
from manifest.commit_message import CommitMessage, CommitResult
from manifest.conflicts import BucketId
from manifest.errors import PaimonError
from manifest.snapshot import BATCH_IDENTIFIER
from manifest.store import FileStore

_LOG = logging.getLogger(__name__)
_TOGETHER = 64
"""Buckets whose compactions are committed together: more than these are not lost if the process ends."""


def follow_up(
    store: FileStore,
    user: str,
    result: CommitResult,
    messages: Iterable[CommitMessage],
    *,
    threads: int = 1,
) -> CommitResult:
    """``result`` of the commit of ``messages`` after what follows it, with the newest snapshot of a compaction.

    Rows that wait for a compaction to be seen are shown (``made_visible``). Else the buckets with new files are compacted where
    the table's strategy picks something; an append table without buckets is left to ``Table.compact``. The work is done here,
    ``threads`` buckets at a time: a merge streams and holds a batch for each of its runs, so memory does not grow with the
    table, but the time may be that of rewriting a bucket. ``write-only``, as the table's option or the call's, leaves it to others.

    Nothing of it can fail the commit: a race lost is told by ``lost_compactions``, an error is logged, and the next write or
    compaction finds the same work to do.
    """
    touched = list(messages)
    if store.hides_level_0:
        return made_visible(store, user, result, touched, threads=threads)
    if result.snapshot_id is None or result.replayed or store.options.write_only or store.options.bucket < 1:
        return result
    compacted = {message.bucket_id for message in touched if message.has_compaction} - set(result.lost_compactions)
    left = sorted({message.bucket_id for message in touched if message.new_files} - compacted)
    lost = [bucket for bucket in result.lost_compactions if bucket not in left]
    newest = result.compact_snapshot_id
    try:
        for buckets in _chunks(left):
            done = compacted_once(store, user, buckets, identifier=BATCH_IDENTIFIER, threads=threads)
            newest = done.compact_snapshot_id or newest
            lost += done.lost_compactions
    except (PaimonError, OSError):
        _LOG.warning("%s: the rows are committed, but the compaction after them failed", store.root, exc_info=True)
    return replace(result, compact_snapshot_id=newest, lost_compactions=tuple(sorted(lost)))


def _chunks(buckets: Sequence[BucketId]) -> Iterator[list[BucketId]]:
    rest = iter(buckets)
    while chunk := list(islice(rest, _TOGETHER)):
        yield chunk


__all__ = ["follow_up"]
