"""How a table assigns rows to buckets, as Paimon's ``BucketMode``."""

from __future__ import annotations

from enum import Enum


class BucketMode(Enum):
    """How a table assigns rows to buckets."""

    HASH_FIXED = "hash-fixed"
    """A fixed number of buckets, by the hash of the bucket key."""
    HASH_DYNAMIC = "hash-dynamic"
    """Buckets are added as keys come. Hash index files map keys to buckets."""
    KEY_DYNAMIC = "key-dynamic"
    """As ``HASH_DYNAMIC``, but a key does not determine its partition: writers find it in the table."""
    BUCKET_UNAWARE = "bucket-unaware"
    """An append table without buckets."""
    POSTPONE_MODE = "postpone"
    """Rows wait without a bucket until a compaction assigns one."""

    @property
    def assigns_keys(self) -> bool:
        """Whether each key is assigned to a bucket when it is first written."""
        return self in {BucketMode.HASH_DYNAMIC, BucketMode.KEY_DYNAMIC}


__all__ = ["BucketMode"]
