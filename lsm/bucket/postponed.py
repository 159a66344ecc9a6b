"""Postponed buckets (``bucket`` = -2): how many buckets a partition has is its own affair; what came without one waits for a compaction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fileindex.base.arrays import Int32s
from fileindex.base.column_type import Plain
from manifest.io.paths import POSTPONE_BUCKET
from manifest.options.core_options import CoreOptions

TotalBuckets = Callable[[tuple[Plain, ...]], int]
"""How many buckets a partition has, or will have if it is new."""


def new_partition_buckets(options: CoreOptions) -> int:
    """Buckets of a partition without files.

    >>> new_partition_buckets(CoreOptions.of({"bucket": "-2", "postpone.default-bucket-num": "4"}))
    4
    """
    return options.postpone_default_bucket_num if options.bucket == POSTPONE_BUCKET else options.bucket


def bucket_in_partition(total_of: TotalBuckets) -> Callable[[tuple[Plain, ...], Int32s], Int32s]:
    """The buckets of keys by their hashes, as a table with that many fixed buckets has them; for ``route``.

    >>> bucket_in_partition(lambda partition: 3)((), np.array([-7, 8], np.int32)).tolist()
    [1, 2]
    """

    def assign(partition: tuple[Plain, ...], hashes: Int32s) -> Int32s:
        found: Int32s = np.abs(np.fmod(hashes, np.int32(total_of(partition))))
        return found

    return assign


__all__ = ["TotalBuckets", "bucket_in_partition", "new_partition_buckets"]
