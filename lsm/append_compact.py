"""Small files of append tables, joined in their order (Paimon's ``BucketedAppendCompactManager`` and its unaware sibling)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsm.compact_task import CompactResult
from lsm.data_file_writer import FileTarget
from lsm.file_rows import file_rows
from lsm.rolling_writer import delete_files, row_writer
from manifest.data_file import DataFileMeta, FileSource
from manifest.options import CoreOptions


@dataclass(frozen=True, slots=True)
class SmallFilePolicy:
    """When files are joined: those below ``small`` bytes, once ``min_files`` of them are neighbours or they fill ``target`` bytes."""

    target: int
    small: int
    min_files: int

    @classmethod
    def of(cls, options: CoreOptions) -> SmallFilePolicy:
        """The policy of an append table."""
        target = options.target_size(has_primary_key=False)
        return cls(target, int(target * options.compaction_small_file_ratio), options.compaction_min_file_num)

    def pick(self, files: Sequence[DataFileMeta], *, ordered: bool, full: bool = False) -> list[list[DataFileMeta]]:
        """Groups of files to join, each of at least two.

        ``ordered``: rows keep their order over all files of the bucket, so that only neighbours are joined. ``full``: two small
        files are enough.
        """
        groups: list[list[DataFileMeta]] = []
        current: list[DataFileMeta] = []

        def finish(*, filled: bool) -> None:
            if len(current) >= (2 if full or filled else max(2, self.min_files)):
                groups.append(list(current))
            current.clear()

        for file in sorted(files, key=_arrival):
            if file.file_size >= self.small:
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


def join_files(target: FileTarget, partition: bytes, bucket: int, group: Sequence[DataFileMeta]) -> CompactResult:
    """Rewrite a group into as few files as the target size allows, a batch in memory at a time."""
    writer = row_writer(target, FileSource.COMPACT, group[0].min_sequence_number)
    rows = (table for file in group for table in file_rows(target.store, partition, bucket, file))
    return CompactResult(list(group), writer.write_all(rows))


def join_small_files(
    target: FileTarget, partition: bytes, bucket: int, files: Sequence[DataFileMeta], policy: SmallFilePolicy, *, full: bool = False
) -> CompactResult | None:
    """Join what ``policy`` picks; None if it picks nothing. On failure nothing that was made remains."""
    joined = CompactResult()
    try:
        for group in policy.pick(files, ordered=target.store.options.bucket > 0, full=full):
            result = join_files(target, partition, bucket, group)
            joined.before += result.before
            joined.after += result.after
    except BaseException:
        for file in joined.after:
            delete_files(target.store.file_io, target.directory, file)
        raise
    return joined if joined.before else None


__all__ = ["SmallFilePolicy", "join_files", "join_small_files"]
