"""Counters of evaluated file indexes.

They serve explain, warnings and tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

IndexName: TypeAlias = tuple[str, str]
"""Column (``name`` or ``map[key]``) and index type."""


@dataclass(slots=True)
class IndexUse:
    """Counters of one index, over any number of files.

    Attributes:
        files: Files in which it gave an answer.
        skipped: Files without a matching row, where this index (perhaps with others) showed that.
        rows: Rows selected by the whole condition in the other files in which this index returned rows.
        bytes: Fetched bytes of its payloads.
        unusable: Number of times it could not be used, by reason.
    """

    files: int = 0
    skipped: int = 0
    rows: int = 0
    bytes: int = 0
    unusable: Counter[str] = field(default_factory=Counter)

    def merge(self, other: IndexUse) -> None:
        """Add the counters of another object.

        >>> use = IndexUse(files=1, rows=5)
        >>> use.merge(IndexUse(files=2, unusable=Counter(["broken"])))
        >>> use
        IndexUse(files=3, skipped=0, rows=5, bytes=0, unusable=Counter({'broken': 1}))
        """
        self.files += other.files
        self.skipped += other.skipped
        self.rows += other.rows
        self.bytes += other.bytes
        if other.unusable:
            self.unusable.update(other.unusable)


@dataclass(slots=True)
class IndexMetrics:
    """Counters of the indexes of any number of files.

    Attributes:
        warnings: Number of times an index could not be used, by reason.
        used: Number of times an index was read, by ``column: index type``.
        bytes_read: Fetched bytes of containers, including headers.
        by_index: Counters of each index.
    """

    warnings: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    by_index: dict[IndexName, IndexUse] = field(default_factory=dict)

    def of(self, column: str, index_type: str) -> IndexUse:
        """Return the counters of one index.

        They are created at the first call.

        >>> IndexMetrics().of("m[k]", "bitmap").files
        0
        """
        return self.by_index.setdefault((column, index_type), IndexUse())

    def merge(self, other: IndexMetrics) -> None:
        """Add the counters of another object.

        >>> notes = IndexMetrics(bytes_read=1)
        >>> notes.merge(IndexMetrics(bytes_read=2))
        >>> notes.bytes_read
        3
        """
        if other.warnings:
            self.warnings.update(other.warnings)
        for name, times in other.used.items():
            self.used[name] += times
        self.bytes_read += other.bytes_read
        for (column, index_type), use in other.by_index.items():
            self.of(column, index_type).merge(use)

    def to_json(self) -> dict[str, Any]:
        """Return the counters as a JSON value for ``from_json``."""
        by_index = [
            {
                "column": column,
                "type": index_type,
                "files": use.files,
                "skipped": use.skipped,
                "rows": use.rows,
                "bytes": use.bytes,
                "unusable": dict(use.unusable),
            }
            for (column, index_type), use in self.by_index.items()
        ]
        return {"warnings": dict(self.warnings), "used": dict(self.used), "bytes_read": self.bytes_read, "by_index": by_index}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> IndexMetrics:
        """Return the counters that ``to_json`` encoded.

        >>> notes = IndexMetrics(Counter(["gone"]), Counter(["a: bsi"]), 7, {("a", "bsi"): IndexUse(1, 1, 0, 7, Counter(["gone"]))})
        >>> IndexMetrics.from_json(notes.to_json()) == notes
        True
        """
        by_index = {
            (use["column"], use["type"]): IndexUse(use["files"], use["skipped"], use["rows"], use["bytes"], Counter(use["unusable"]))
            for use in value["by_index"]
        }
        return cls(Counter(value["warnings"]), Counter(value["used"]), value["bytes_read"], by_index)
