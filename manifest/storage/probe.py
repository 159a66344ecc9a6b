"""Whether a store keeps the promise that every commit rests on: of two creates of one name, the second is refused."""

from __future__ import annotations

import threading
import uuid
from contextlib import suppress

from manifest.io.errors import StorageError, UnsafeFileIO
from manifest.storage.bucket import Bucket
from manifest.storage.lanes import start

PROBE = ".paimon-probe-"
_beginning = threading.Lock()


def probe(bucket: Bucket, directory: str) -> None:
    """Try it once in this process, in an object of its own below the key ``directory``, or wait for what ``begin_probe`` tries.

    Raises ``UnsafeFileIO`` for a store that takes the condition and ignores it, ``StorageError`` for one that does not answer.
    """
    under_way, bucket.probing = bucket.probing, None
    if under_way is not None:
        with suppress(StorageError):  # tried again
            under_way.result()
    if not bucket.probed:
        _try(bucket, directory)


def begin_probe(bucket: Bucket, directory: str) -> None:
    """Try it while a commit is made ready, so that the first one of a process need not wait for it."""
    with _beginning:
        if not bucket.probed and bucket.probing is None:
            bucket.probing = start(_try, bucket, directory)


def _try(bucket: Bucket, directory: str) -> None:
    key = f"{directory}/{PROBE}{uuid.uuid4()}".lstrip("/")
    kept = False
    try:
        kept = bucket.create(key, b"first") and bucket.refuses(key, b"second")
        bucket.probed = kept
    finally:
        if kept:
            start(_remove, bucket, key)  # nobody waits for that
        else:
            _remove(bucket, key)
    if not kept:
        raise UnsafeFileIO(
            f"{bucket.path(directory)}: this store ignores the condition of a conditional put (If-None-Match), so commits could replace each "
            "other; nothing was committed. Use a store that honours it, or one family of engines through a REST catalog"
        )


def probe_replace(bucket: Bucket, directory: str) -> None:
    """As ``probe``, whether a put that names a version is refused once another is there (If-Match). Raises ``UnsafeFileIO``, ``StorageError``."""
    if bucket.compares is None:
        key = f"{directory}/{PROBE}{uuid.uuid4()}".lstrip("/")
        try:
            bucket.put(key, b"first")
            _, version = bucket.get_version(key)
            bucket.compares = bool(version) and bucket.put_over(key, b"second", version) and not bucket.put_over(key, b"third", version)
        except UnsafeFileIO:
            bucket.compares = False
        finally:
            start(_remove, bucket, key)
    if not bucket.compares:
        raise UnsafeFileIO(
            f"{bucket.path(directory)}: this store does not compare before it replaces (If-Match), so of two who replace a file one would not "
            "learn that it was undone; nothing was changed. Delete the file's name and create it again, or use a store that compares"
        )


def _remove(bucket: Bucket, key: str) -> None:
    with suppress(StorageError):
        bucket.delete([key])


__all__ = ["PROBE", "begin_probe", "probe", "probe_replace"]
