"""Merging of small manifests by a commit (Paimon's ``ManifestFileMerger``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind
from manifest.entry.live import merge
from manifest.entry.manifest_file import ManifestFile
from manifest.entry.manifest_list import ManifestFileMeta


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """Thresholds for merging manifests.

    Args:
        target_size: Manifests below this many bytes merge in groups.
        min_count: Least number of manifests in the last group.
        full_threshold: Bytes of small or deleting manifests from which on all of them merge.
    """

    target_size: int
    min_count: int
    full_threshold: int

    def is_due(self, meta: ManifestFileMeta) -> bool:
        """Return whether a full merge rewrites the manifest."""
        return meta.num_deleted_files > 0 or meta.file_size < self.target_size


def merge_manifests(metas: Sequence[ManifestFileMeta], manifests: ManifestFile, policy: MergePolicy) -> list[ManifestFileMeta]:
    """Return manifests of the same live files, fewer if due.

    ``manifests`` writes the new ones.
    """
    full = _merge_fully(metas, manifests, policy)
    return full if full is not None else _merge_groups(metas, manifests, policy)


def _merge_fully(metas: Sequence[ManifestFileMeta], manifests: ManifestFile, policy: MergePolicy) -> list[ManifestFileMeta] | None:
    """Rewrite small and deleting manifests into live ADDs only.

    Returns None if that is not due.
    """
    if sum(meta.file_size for meta in metas if policy.is_due(meta)) < policy.full_threshold:
        return None
    # DELETEs can go, because every manifest that may have their ADD is in scope.
    unchanged, rewritten = _alive(metas, manifests, policy.is_due)
    if len(rewritten) <= 1:
        return None
    return unchanged + manifests.write_clustered(EntryColumns.concat(rewritten))


def forget_deletes(metas: Sequence[ManifestFileMeta], manifests: ManifestFile) -> list[ManifestFileMeta]:
    """Return manifests of the same live files without DELETEs.

    Files deleted before can then be added again.
    """
    # Readers drop every ADD of an identity that some DELETE names, whatever their order.
    unchanged, rewritten = _alive(metas, manifests, lambda meta: meta.num_deleted_files > 0)
    entries = EntryColumns.concat(rewritten)
    return unchanged + manifests.write_clustered(entries) if len(entries) else unchanged


def _alive(
    metas: Sequence[ManifestFileMeta], manifests: ManifestFile, due: Callable[[ManifestFileMeta], bool]
) -> tuple[list[ManifestFileMeta], list[EntryColumns]]:
    """Return manifests to keep, and live ADDs of the others.

    The others are ``due`` (which must include all with DELETEs) or have a dead ADD.
    """
    opened: dict[str, EntryColumns] = {meta.file_name: manifests.read_meta(meta) for meta in metas if meta.num_deleted_files > 0}
    deletes = EntryColumns.concat([entries.select(entries.kind == FileKind.DELETE) for entries in opened.values()])
    gone = set(deletes.identities())
    gone_names = set(deletes.file_name)
    touched = manifests.partition.spanning(set(deletes.partition))

    unchanged: list[ManifestFileMeta] = []
    rewritten: list[EntryColumns] = []
    for meta in metas:
        if not due(meta) and not touched(meta.partition_stats, manifests.paths.manifest(meta.file_name)):
            unchanged.append(meta)
            continue
        entries = opened[meta.file_name] if meta.file_name in opened else manifests.read_meta(meta)
        alive = entries.kind == FileKind.ADD
        if gone:  # compare identities only for entries with a deleted name
            suspects = np.flatnonzero([name in gone_names for name in entries.file_name])
            alive[suspects] &= np.array([identity not in gone for identity in entries.identities(suspects)], np.bool_)
        if not due(meta) and alive.all():
            unchanged.append(meta)
        else:
            rewritten.append(entries.select(alive))
    return unchanged, rewritten


def _merge_groups(metas: Sequence[ManifestFileMeta], manifests: ManifestFile, policy: MergePolicy) -> list[ManifestFileMeta]:
    """Join adjacent manifests up to the target size.

    ADD and DELETE pairs in a group cancel. Other DELETEs stay.
    """
    result: list[ManifestFileMeta] = []
    group: list[ManifestFileMeta] = []
    size = 0
    for meta in metas:
        group.append(meta)
        size += meta.file_size
        if size >= policy.target_size:
            result.extend(_join(group, manifests))
            group, size = [], 0
    result.extend(_join(group, manifests) if len(group) >= policy.min_count else group)
    return result


def _join(group: Sequence[ManifestFileMeta], manifests: ManifestFile) -> list[ManifestFileMeta]:
    if len(group) == 1:
        return list(group)
    return manifests.write_clustered(merge(EntryColumns.concat([manifests.read_meta(meta) for meta in group])).entries)
