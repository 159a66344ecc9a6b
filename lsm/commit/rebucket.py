"""New rows in other buckets: what a write to dynamic buckets does when another one has assigned keys meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from lsm.keys.sort import VALUE_KIND
from lsm.read.full_scan import file_rows
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.index_update import compaction_paths, row_paths
from manifest.commit.message import CommitMessage, CommitResult
from manifest.io.errors import CommitConflict
from manifest.store import FileStore

_ASSIGNMENTS = 20


def commit_with_rebucket(
    commit: FileStoreCommit,
    messages: Sequence[CommitMessage],
    publish: Callable[[Sequence[CommitMessage]], CommitResult],
    *,
    threads: int = 2,
    overwrite: bool = False,
    again: bool = True,
) -> tuple[CommitResult, Sequence[CommitMessage]]:
    """``publish`` new rows with ``commit``; where dynamic buckets were assigned by another writer meanwhile, assign and try again.

    Not if ``again`` is false: then a conflict is one that no other bucket helps against, as when what the rows were computed from has
    changed. Returns the messages that were published, too. On any error the files of the rows are deleted if they surely are not visible.
    """
    store = commit.store
    try:
        for _ in range(_ASSIGNMENTS if again and store.schema.has_dynamic_buckets else 0):
            with suppress(CommitConflict):
                return publish(messages), messages
            messages = rebucket(store, messages, commit.user, threads=threads, overwrite=overwrite)
        return publish(messages), messages
    except BaseException:
        commit.abort(messages)
        raise


def rebucket(
    store: FileStore, messages: Sequence[CommitMessage], commit_id: str, *, threads: int = 2, overwrite: bool = False
) -> list[CommitMessage]:
    """The rows of ``messages`` written again, in the buckets that the newest snapshot gives their keys.

    The rows are read back from the files that were made for nothing; those are deleted once the new ones are there. On
    failure no new file remains.
    """
    oldest_first = sorted(messages, key=lambda message: min((file.min_sequence_number for file in message.new_files), default=0))
    with TableWrite(store, commit_user=commit_id, commit_id=commit_id, threads=threads, ignore_existing=overwrite) as write:
        for message in oldest_first:
            for file in message.new_files:
                for rows in file_rows(store, message.partition, message.bucket, file):
                    write.write(rows.select(store.schema.names), kinds=rows.column(VALUE_KIND))
        made = write.prepare_commit()
    for message in messages:
        for path in (*row_paths(store, message), *compaction_paths(store, message)):
            with suppress(OSError):  # an orphan at worst
                store.file_io.delete(path)
    return made


__all__ = ["commit_with_rebucket", "rebucket"]
