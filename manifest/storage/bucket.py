"""One bucket or container: requests with retries, safe creates.

Put-if-absent is the commit. If the answer to a successful create is lost, the retry gets "already exists". So every create writes a unique
name to the object's metadata. An existing object with that name is ours, or one with our exact bytes on a store that drops such metadata.
"""

from __future__ import annotations

import errno
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, TypeVar

from manifest.io.errors import FileMissing, StorageError, UnsafeFileIO
from manifest.storage.faults import Retries, unfit_reason
from manifest.storage.schemes import ObjectPlace, StoreFamily
from manifest.storage.storage_options import StorageOptions
from paimon_base.errors import InvalidArgument, UnsupportedOption
from paimon_base.thresholds import thresholds

T = TypeVar("T")
WRITER = "paimonwriter"
"""Metadata key with the creator's name. Letters only, because Azure accepts nothing else."""
PART_BYTES = 5 << 20
"""Bytes of a part of a large upload: S3's minimum."""
_PARTS_AT_ONCE = 2
_MISSING = "'{scheme}:' needs the client library of object stores: pip install 'pyspark-paimon[objectstore]'"

_memory: dict[str, Any] = {}
_open: dict[tuple[int, ...], Bucket] = {}
_opening = threading.Lock()


class Bucket:
    """An open bucket. Thread-safe.

    Keys have no slash at either end. Every method raises ``StorageError`` and its subclasses, with the whole path.
    """

    def __init__(self, location: ObjectPlace, options: StorageOptions) -> None:
        self.root = location.root
        self.fingerprint = options.fingerprint(location)
        self.probed = False
        self.probing: Future[None] | None = None
        """Running probe, if ``begin_probe`` started one."""
        self.compares: bool | None = None
        """Whether the store supports a conditional replacement (If-Match). None: unknown."""
        self._ends = location.family is not StoreFamily.AZURE
        """Whether the store supports suffix ranges."""
        self._retries = Retries(options.max_retries, options.secrets)
        self._once = Retries(0, options.secrets)  # its client retries each part itself
        self._store = _connect(location, options, retries=0)
        self._steady = _connect(location, options, retries=options.max_retries)

    def path(self, key: str) -> str:
        """Return the whole path of a key."""
        return f"{self.root}/{key}" if key else self.root

    def call(self, what: str, key: str, request: Callable[[], T]) -> T:
        """Run one request, with retries if useful."""
        return self._retries.call(what, self.path(key), request)

    def get(self, key: str) -> bytes:
        """Return a whole object."""

        def request() -> bytes:
            response = self._store.get(key)
            return self._whole(key, bytes(response.bytes()), int(response.meta["size"]))

        return self.call("GET", key, request)

    def get_part(self, key: str, start: int, length: int) -> tuple[bytes, int]:
        """Return a part of an object, and the object's size.

        At most ``length`` bytes from ``start``. Negative ``start``: the last ``length`` bytes.
        """
        if start < 0 and not self._ends:
            start = self._before_end(key, length)
        byte_range: Any = {"suffix": length} if start < 0 else (start, start + length)

        def request() -> tuple[bytes, int]:
            response = self._store.get(key, options={"range": byte_range})
            first, end = response.range
            return self._whole(key, bytes(response.bytes()), end - first), int(response.meta["size"])

        return self.call("GET part", key, request)

    def _before_end(self, key: str, length: int) -> int:
        """Return the offset of the last ``length`` bytes."""
        metadata = self.head(key)
        if metadata is None:
            raise FileMissing(errno.ENOENT, "there is no such object", self.path(key))
        return max(0, int(metadata["size"]) - length)

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return (offset, length) ranges, read in parallel.

        Adjacent ranges are read together. A range beyond the object's end is shorter.
        """
        starts, lengths = [offset for offset, _ in ranges], [length for _, length in ranges]
        parts = self.call(
            "GET ranges", key, lambda: self._store.get_ranges(key, starts=starts, lengths=lengths, coalesce=thresholds.joined_gap_bytes)
        )
        return [bytes(part) for part in parts]

    def head(self, key: str) -> dict[str, Any] | None:
        """Return an object's metadata, None if it does not exist."""

        def request() -> dict[str, Any]:
            metadata: dict[str, Any] = self._store.head(key)
            return metadata

        try:
            return self.call("HEAD", key, request)
        except FileNotFoundError as error:
            if "bucket" in str(error.strerror):
                raise
            return None

    def put(self, key: str, data: bytes) -> None:
        """Write or replace an object."""
        self.call("PUT", key, lambda: self._store.put(key, data, use_multipart=False))

    def create(self, key: str, data: bytes) -> bool:
        """Put if absent. Return False if another writer's object exists.

        Raises ``UnsafeFileIO``. Any other error may concern an existing object. Small objects only: a store may refuse a large one by closing
        the connection.
        """
        writer = str(uuid.uuid4())
        return self._put_new(key, data, writer) or self._is_ours(key, data, writer)

    def refuses(self, key: str, data: bytes) -> bool:
        """Return whether a put-if-absent reports an existing object.

        Regardless of its creator. Raises ``UnsafeFileIO``, ``StorageError``.
        """
        return not self._put_new(key, data, str(uuid.uuid4()))

    def _put_new(self, key: str, data: bytes, writer: str) -> bool:
        """Put if absent. Return False if an object exists."""
        try:
            self.call("PUT new", key, lambda: self._store.put(key, data, mode="create", attributes={WRITER: writer}, use_multipart=False))
        except Exception as error:
            match type(error).__name__:
                case "AlreadyExistsError" | "PreconditionError":
                    return False
                case "NotSupportedError":
                    raise UnsafeFileIO(f"{self.path(key)}: this store has no put-if-absent, so a commit could be lost") from None
            raise
        return True

    def get_version(self, key: str) -> tuple[bytes, dict[str, str]]:
        """Return a whole object and its version for ``put_over``.

        The version is {} if the store has none.
        """

        def request() -> tuple[bytes, dict[str, str]]:
            response = self._store.get(key)
            tags = {name: response.meta.get(name) for name in ("e_tag", "version")}
            return self._whole(key, bytes(response.bytes()), int(response.meta["size"])), {name: tag for name, tag in tags.items() if tag}

        return self.call("GET", key, request)

    def put_over(self, key: str, data: bytes, version: Mapping[str, str]) -> bool:
        """Replace a version of an object.

        Returns False if another version or no object exists. Raises ``UnsafeFileIO``, otherwise as ``create``.
        """
        writer, attempts = str(uuid.uuid4()), 0

        def request() -> None:
            nonlocal attempts
            attempts += 1
            self._store.put(key, data, mode=dict(version), attributes={WRITER: writer}, use_multipart=False)

        try:
            self.call("PUT over", key, request)
        except FileNotFoundError:
            return False
        except Exception as error:
            if type(error).__name__ in {"AlreadyExistsError", "PreconditionError"}:
                return attempts > 1 and self._is_ours(key, data, writer)
            if type(error).__name__ == "NotSupportedError" or getattr(error, "errno", None) == errno.ENOSYS:
                raise UnsafeFileIO(f"{self.path(key)}: this store cannot compare before it replaces (If-Match)") from None
            raise
        return True

    def _is_ours(self, key: str, data: bytes, writer: str) -> bool:
        """Return whether this call created the object at ``key``.

        An attempt whose answer was lost may have done so.
        """

        def request() -> tuple[str | None, bytes]:
            response = self._store.get(key)
            return response.attributes.get(WRITER), bytes(response.bytes())

        try:
            stored_writer, stored = self.call("GET after PUT", key, request)
        except FileNotFoundError:
            raise StorageError(
                errno.EIO, "the object existed during the create and has been deleted since: its creator is unknown", self.path(key)
            ) from None
        return stored_writer == writer if stored_writer else stored == data

    def put_stream(self, key: str, parts: Iterator[bytes]) -> None:
        """Upload parts of ``PART_BYTES``, with few in memory.

        If ``parts`` raises, nothing remains of the upload.
        """
        sent = 0

        def counted() -> Iterator[bytes]:
            nonlocal sent
            for part in parts:
                sent += len(part)
                yield part

        try:
            self._once.call(
                "PUT parts", self.path(key), lambda: self._steady.put(key, counted(), chunk_size=PART_BYTES, max_concurrency=_PARTS_AT_ONCE)
            )
        except StorageError:
            if not self._has_size(key, sent):  # perhaps only the answer to the last request was lost
                raise

    def _has_size(self, key: str, size: int) -> bool:
        try:
            metadata = self.head(key)
        except StorageError:
            return False
        return metadata is not None and int(metadata["size"]) == size

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects, many with one request. Missing ones are ignored."""
        if keys:
            self.call("DELETE", keys[0], lambda: self._store.delete(list(keys)))

    def list_level(self, prefix: str) -> tuple[list[str], list[dict[str, Any]]]:
        """Return common prefixes and objects one level below a prefix."""

        def request() -> tuple[list[str], list[dict[str, Any]]]:
            listing = self._store.list_with_delimiter(prefix or None)
            return list(listing["common_prefixes"]), list(listing["objects"])

        return self.call("LIST", prefix, request)

    def list_all(self, prefix: str, limit: int | None = None) -> list[str]:
        """Return all keys below a prefix.

        With ``limit``, only some of them if there are many.
        """

        def request() -> list[str]:
            keys: list[str] = []
            for chunk in self._store.list(prefix or None, chunk_size=limit or 1000):
                keys += [metadata["path"] for metadata in chunk]
                if limit is not None:
                    break
            return keys

        return self.call("LIST", prefix, request)

    def _whole(self, key: str, data: bytes, expected: int) -> bytes:
        if len(data) != expected:
            raise StorageError(errno.EIO, f"received {len(data)} of {expected} bytes", self.path(key))
        return data


def open_bucket(location: ObjectPlace, options: StorageOptions) -> Bucket:
    """Return the bucket of a path.

    Opened once per process and options. Raises ``UnsupportedOption``, ``InvalidArgument``.
    """
    key = os.getpid(), options.fingerprint(location), options.max_retries, options.timeout_millis
    bucket = _open.get(key)
    if bucket is None:
        with _opening:
            bucket = _open.get(key) or Bucket(location, options)
            _open[key] = bucket
    return bucket


def _connect(location: ObjectPlace, options: StorageOptions, *, retries: int) -> Any:
    try:
        from obstore import store as stores  # noqa: PLC0415  # optional dependency, not needed for local tables
    except ImportError as error:
        raise UnsupportedOption("path", _MISSING.format(scheme=location.scheme)) from error
    if location.family is StoreFamily.MEMORY:
        return _memory.setdefault(location.bucket, stores.MemoryStore())
    kind = {StoreFamily.S3: stores.S3Store, StoreFamily.AZURE: stores.AzureStore, StoreFamily.GOOGLE: stores.GCSStore}[location.family]
    client = {"timeout": timedelta(milliseconds=options.timeout_millis), "allow_http": options.allows_http(location)}
    config = options.config(location)
    try:
        return kind(location.bucket, config=config, client_options=client, retry_config={"max_retries": retries})
    except Exception as error:  # noqa: BLE001  # any error of the library: no request has been sent yet
        raise InvalidArgument(f"{location.root}: invalid storage_options or environment ({unfit_reason(error)})") from None


def forget_buckets(roots: Iterable[str]) -> None:
    """Make the next use open these buckets again.

    For changed credentials in the environment.
    """
    gone = set(roots)
    with _opening:
        for key in [key for key, bucket in _open.items() if bucket.root in gone]:
            del _open[key]
