"""Whether a store keeps the promise that every commit rests on: of two creates of one name, the second is refused."""

from __future__ import annotations

import uuid
from contextlib import suppress

from manifest.io.errors import StorageError, UnsafeFileIO
from manifest.storage.bucket import Bucket

PROBE = ".paimon-probe-"


def probe(bucket: Bucket, directory: str) -> None:
    """Try it once in this process, in an object of its own below the key ``directory``.

    Raises ``UnsafeFileIO`` for a store that takes the condition and ignores it, ``StorageError`` for one that does not answer.
    """
    if bucket.probed:
        return
    key = f"{directory}/{PROBE}{uuid.uuid4()}".lstrip("/")
    try:
        first, second = bucket.create(key, b"first"), bucket.create(key, b"second")
        held = bucket.get(key)
    finally:
        with suppress(StorageError):
            bucket.delete([key])
    if not first or second or held != b"first":
        raise UnsafeFileIO(
            f"{bucket.path(directory)}: this store ignores the condition of a conditional put (If-None-Match), so commits could replace each "
            "other; nothing was committed. Use a store that honours it, or one family of engines through a REST catalog"
        )
    bucket.probed = True


__all__ = ["PROBE", "probe"]
