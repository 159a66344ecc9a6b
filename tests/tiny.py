"""Options of a table that 100 rows in five writes fill: they complete ``Thresholds.tiny``, which holds what is no option."""

from __future__ import annotations

from collections.abc import Mapping


def tiny_options(options: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the options of a tiny table, and ``options``, which count more.

    >>> tiny_options({"target-file-size": "1 gb"})["target-file-size"]
    '1 gb'
    """
    return {
        "write-buffer-size": "900 b",
        "target-file-size": "1500 b",
        "source.split.target-size": "2 kb",
        "source.split.open-file-cost": "1 b",
        "manifest.target-file-size": "12 kb",
        "manifest.merge-min-count": "2",
        "manifest.full-compaction-threshold-size": "20 kb",
        "num-sorted-run.compaction-trigger": "2",
        "deletion-vector.index-file.target-size": "64 b",
        "file-index.in-manifest-threshold": "60 b",
        **(options or {}),
    }


__all__ = ["tiny_options"]
