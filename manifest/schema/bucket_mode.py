"""Assignment of rows to buckets (Paimon's ``BucketMode``)."""

from __future__ import annotations

from enum import Enum


class BucketMode(Enum):
    """Assignment of rows to buckets."""

    HASH_FIXED = "hash-fixed"
    """A fixed number of buckets, selected by the hash of the bucket key."""
    HASH_DYNAMIC = "hash-dynamic"
    """Buckets are added on demand. Hash index files map keys to buckets."""
    KEY_DYNAMIC = "key-dynamic"
    """As ``HASH_DYNAMIC``, but a key does not determine its partition: writers find it in the table."""
    BUCKET_UNAWARE = "bucket-unaware"
    """An append table without buckets."""
    POSTPONE_MODE = "postpone"
    """Rows wait without a bucket until a compaction assigns one."""

    @property
    def assigns_keys(self) -> bool:
        """Whether the first write of a key assigns its bucket."""
        return self in {BucketMode.HASH_DYNAMIC, BucketMode.KEY_DYNAMIC}


__all__ = ["BucketMode"]
