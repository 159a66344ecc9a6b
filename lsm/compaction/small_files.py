"""Joins of small append files.

Paimon's ``BucketedAppendCompactManager`` and its counterpart for tables without buckets.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lsm.compaction.rewriter import CompactResult
from lsm.data_files.rolling import discard_files, row_writer
from lsm.data_files.writer import FileTarget
from lsm.deletion_vectors.maintainer import BucketVectors
from lsm.read.full_scan import file_rows
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.schema.table_kind import TableKind


@dataclass(frozen=True, slots=True)
class SmallFilePolicy:
    """Thresholds of joins.

    Files below ``small`` bytes are joined if ``min_files`` of them are adjacent, or if they fill ``target`` bytes.
    """

    target: int
    small: int
    min_files: int

    @classmethod
    def of(cls, kind: TableKind) -> SmallFilePolicy:
        """Return the policy of an append table."""
        target = kind.target_file_size
        return cls(target, int(target * kind.options.compaction_small_file_ratio), kind.options.compaction_min_file_num)

    def pick(
        self, files: Sequence[DataFileMeta], *, ordered: bool, full: bool = False, worn: Container[str] = ()
    ) -> list[list[DataFileMeta]]:
        """Return groups of files to join.

        A group has at least two files, or a ``worn`` file with too many deleted rows. With ``ordered`` rows keep their order over all files
        of the bucket, so only adjacent files are joined. With ``full`` two small files are enough.
        """
        groups: list[list[DataFileMeta]] = []
        current: list[DataFileMeta] = []

        def finish(*, filled: bool) -> None:
            enough = 2 if full or filled else max(2, self.min_files)
            if len(current) >= enough or any(file.file_name in worn for file in current):
                groups.append(list(current))
            current.clear()

        for file in sorted(files, key=_arrival):
            if file.file_size >= self.small and file.file_name not in worn:
                if ordered:
                    finish(filled=False)
                continue
            current.append(file)
            if sum(member.file_size for member in current) >= self.target:
                finish(filled=True)
        finish(filled=False)
        return groups


def _arrival(file: DataFileMeta) -> tuple[int, int, str]:
    return file.min_sequence_number, file.creation_time or 0, file.file_name


def join_files(
    target: FileTarget, partition: bytes, bucket: int, group: Sequence[DataFileMeta], vectors: BucketVectors | None = None
) -> CompactResult:
    """Merge the live rows of a group into few files.

    Holds one batch in memory. Rows keep their order.
    """

    def rows(file: DataFileMeta) -> Iterator[Any]:
        return file_rows(target.store, partition, bucket, file, dead=None if vectors is None else vectors.dead_rows(file.file_name))

    writer = row_writer(target, FileSource.COMPACT, group[0].min_sequence_number)
    new_files = writer.write_all(table for file in group for table in rows(file))
    if vectors is not None:
        vectors.remove(file.file_name for file in group)
    return CompactResult(list(group), new_files)


def join_small_files(
    target: FileTarget,
    partition: bytes,
    bucket: int,
    files: Sequence[DataFileMeta],
    policy: SmallFilePolicy,
    *,
    full: bool = False,
    vectors: BucketVectors | None = None,
) -> CompactResult | None:
    """Join the files that ``policy`` picks.

    None: nothing was picked. On failure all new files are deleted. Also rewrites files with more deleted rows than
    ``compaction.delete-ratio-threshold``, and in a ``full`` compaction files with any deleted row.
    """
    joined = CompactResult()
    limit = 0.0 if full else target.store.options.compaction_delete_ratio_threshold
    worn = set() if vectors is None else {f.file_name for f in files if vectors.dead_count(f.file_name) > limit * f.row_count}
    try:
        for group in policy.pick(files, ordered=target.store.options.bucket > 0, full=full, worn=worn):
            result = join_files(target, partition, bucket, group, vectors)
            joined.before += result.before
            joined.after += result.after
    except BaseException:
        for file in joined.after:
            discard_files(target.store.file_io, target.directory, file)
        raise
    return joined if joined.before else None
