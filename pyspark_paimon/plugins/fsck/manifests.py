"""Checks of manifest lists and manifests.

Unreadable files, and files that differ from their list, are problems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.stats.column_stats import ColumnBounds
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, PaimonError
from pyspark_paimon.results.fsck_problem import Findings, Origin, ProblemKind
from sparkexpr.values.float_order import spark_order_key

BROKEN = (PaimonError, OSError, ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError, AssertionError)
"""Errors of decoding corrupt bytes."""

T = TypeVar("T")


@dataclass
class CheckedManifests:
    """Manifest lists and manifests of a table, each checked once.

    Args:
        store: The branch. Its cache has the decoded manifests.
        findings: Collects the problems.
    """

    store: FileStore
    findings: Findings
    _listed_sizes: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _broken: dict[str, bool] = field(default_factory=dict)
    _listed_by: dict[str, str] = field(default_factory=dict)

    def read_list(self, name: str, size: int | None, origin: Origin) -> list[ManifestFileMeta] | None:
        """Return the manifests of a list.

        Reports a problem and returns None if the list cannot be read.
        """
        self.findings.counts["manifest lists"] += 1
        path = self.store.paths.manifest(name)
        metas = self.read_or_report(ProblemKind.MANIFEST_LIST, path, origin, lambda: self.store.manifest_lists.read(name, size))
        if metas is None:
            return None
        names = [meta.file_name for meta in metas]
        for manifest in names:
            self._listed_by.setdefault(manifest, name)
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            self.findings.add(ProblemKind.MANIFEST_LIST, path, f"names the manifest {twice} twice", origin)
            return None
        return metas

    def entries(self, metas: Sequence[ManifestFileMeta], origin: Origin) -> EntryColumns | None:
        """Return all entries of listed manifests, in order.

        Returns None if some cannot be read, which is reported.
        """
        parts = [self._entries(meta, origin) for meta in metas]
        readable = [part for part in parts if part is not None]
        return EntryColumns.concat(readable) if len(readable) == len(parts) else None

    def _entries(self, meta: ManifestFileMeta, origin: Origin) -> EntryColumns | None:
        name = meta.file_name
        listed = (meta.file_size, meta.num_added_files, meta.num_deleted_files)
        earlier_sizes = self._listed_sizes.get(name)
        if earlier_sizes is not None and earlier_sizes != listed:
            message = f"is listed with (bytes, added, deleted) {listed}, and by another list with {earlier_sizes}"
            self.findings.add(ProblemKind.MANIFEST, self.store.paths.manifest(name), message, origin, manifest=self._listed_by.get(name))
            return None
        if self._broken.get(name):
            return None
        path = self.store.paths.manifest(name)
        entries = self.read_or_report(ProblemKind.MANIFEST, path, origin, lambda: self.store.manifests.read_meta(meta), name)
        if earlier_sizes is None:
            self._listed_sizes[name] = listed
            self._broken[name] = entries is None
            self.findings.counts["manifests"] += 1
            if entries is not None:
                self._check_ranges(meta, entries, path, origin)
        return entries

    def read_or_report(self, kind: ProblemKind, path: str, origin: Origin, read: Callable[[], T], manifest: str = "") -> T | None:
        """Return the result of ``read``, or report its error.

        Returns None after an error. The problem names the list of ``manifest``.
        """
        try:
            return read()
        except FileNotFoundError:
            message = "is missing"
        except CorruptFile as error:
            path, message = error.path or path, error.reason
        except BROKEN as error:
            message = f"cannot be read ({type(error).__name__}: {error})"
        self.findings.add(kind, path, message, origin, manifest=self._listed_by.get(manifest))
        return None

    def _check_ranges(self, meta: ManifestFileMeta, entries: EntryColumns, path: str, origin: Origin) -> None:
        """Check that ranges in the list cover every entry.

        Otherwise scans skip rows.
        """
        try:
            wrong = [*_number_ranges(meta, entries), *self._partition_ranges(meta, entries, path), *self._column_ranges(meta, entries)]
        except BROKEN as error:
            self.findings.add(ProblemKind.MANIFEST, path, f"has entries that cannot be read ({error})", origin)
            return
        for what in wrong:
            self.findings.add(ProblemKind.MANIFEST_RANGE, path, what, origin, manifest=self._listed_by.get(meta.file_name))

    def _partition_ranges(self, meta: ManifestFileMeta, entries: EntryColumns, path: str) -> list[str]:
        partition = self.store.partition
        stored = partition.bounds(meta.partition_stats, len(entries), path)
        if not stored or not len(entries):
            return []
        actual = partition.bounds(partition.stats(entries.partition), len(entries), path)
        return [
            f"its list has the range {_span(stored[name])} for partition column '{name}', its entries have {_span(actual[name])}"
            for name in stored
            if not covers(stored[name], actual[name])
        ]

    def _column_ranges(self, meta: ManifestFileMeta, entries: EntryColumns) -> list[str]:
        """Check our column ranges against the files' statistics.

        Another check compares these statistics with the rows.
        """
        if meta.column_ranges is None or not len(entries):
            return []
        try:
            fields = self.store.range_policy.fields_of(meta.schema_id)
        except PaimonError:
            return []  # the check of schemas reports it
        names = {field.id: field.name for field in fields}
        stored = meta.column_ranges.bounds(fields)
        recomputed = replace(self.store.range_policy, values=True).ranges(entries)
        actual = {} if recomputed is None else recomputed.bounds(fields)
        wrong = [
            f"its list has the range {_span(bounds)} for column '{names[field_id]}', its entries have {_span(actual[field_id])}"
            for field_id, bounds in stored.items()
            if field_id in actual and not covers(bounds, actual[field_id])
        ]
        rows = int(entries.row_count.sum())
        if stored and meta.column_ranges.row_count != rows:
            wrong.append(f"its list counts {meta.column_ranges.row_count} rows for its column ranges, its entries have {rows}")
        return wrong


def _number_ranges(meta: ManifestFileMeta, entries: EntryColumns) -> list[str]:
    if not len(entries):
        return []
    wrong = []
    for what, low, high, values in (
        ("buckets", meta.min_bucket, meta.max_bucket, entries.bucket),
        ("levels", meta.min_level, meta.max_level, entries.level),
    ):
        least, greatest = int(values.min()), int(values.max())
        if (low is not None and low > least) or (high is not None and high < greatest):
            wrong.append(f"its manifest list records {what} {low} to {high}, but its entries have {least} to {greatest}")
    schemas = int(entries.schema_id.max())
    if meta.schema_id < schemas:
        wrong.append(f"its manifest list records schema {meta.schema_id}, but its entries have schema {schemas}")
    return wrong


def covers(stored: ColumnBounds, actual: ColumnBounds) -> bool:
    """Return whether stored bounds include the ``actual`` ones.

    Unknown bounds include everything.

    >>> covers(ColumnBounds(1, 9, 0, 5), ColumnBounds(2, 9, 0, 5)), covers(ColumnBounds(1, 9, 0, 5), ColumnBounds(2, 10, 0, 5))
    (True, False)
    """
    if stored.null_count is not None and actual.null_count is not None and stored.null_count != actual.null_count:
        return False
    if stored.min is not None and actual.min is not None and spark_order_key(stored.min) > spark_order_key(actual.min):
        return False
    return stored.max is None or actual.max is None or spark_order_key(stored.max) >= spark_order_key(actual.max)


def _span(bounds: ColumnBounds) -> str:
    return f"{bounds.min!r} to {bounds.max!r} with {bounds.null_count} nulls"


def kinds(entries: EntryColumns) -> tuple[list[bool], int]:
    """Return which entries are ADDs, and the row count change."""
    added = entries.kind == FileKind.ADD
    rows = entries.row_count
    return added.tolist(), int(rows[added].sum() - rows[np.logical_not(added)].sum())
