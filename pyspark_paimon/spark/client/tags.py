"""Names for the jobs of an operation: tags, which Spark shows with each job and by which ``spark.interruptTag`` ends them.

A Connect client can give a job no description; a tag is all of its own that reaches the server's pages and events.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any


def tag_of(stage: str, path: str, share: str = "") -> str:
    """What an operation on the table at ``path`` is called; ``share`` says how much it is. Spark allows no comma.

    >>> tag_of("compact", "/warehouse/flights", "12 buckets")
    'paimon compact flights (12 buckets)'
    """
    name = f"paimon {stage} {PurePosixPath(path).name}" + (f" ({share})" if share else "")
    return name.replace(",", ";")


@contextmanager
def named_jobs(spark: Any, tag: str) -> Iterator[None]:
    """Tag the jobs that this thread starts in the block, beside what tags it has."""
    if not hasattr(spark, "addTag") or tag in spark.getTags():
        yield
        return
    spark.addTag(tag)
    try:
        yield
    finally:
        spark.removeTag(tag)


__all__ = ["named_jobs", "tag_of"]
