# The methods of a FileIO are documented once, in the protocol.
# ruff: noqa: D102
"""Tables on object stores: the ``FileIO`` of all other schemes.

All schemes except ``file:``. An object appears whole or not at all, and there are no renames. A commit is a conditional put, which is probed
on each bucket before the first one. Directories are common prefixes of keys: they need not be created, and an empty one has a marker. A
directory that must appear at once, such as a branch, is claimed first and its schemas are written last.

An upload sends its parts while the file is written, so only a few are in memory. An aborted upload leaves nothing behind.
"""

from __future__ import annotations

import errno
import queue
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

from manifest.io.directories import CLAIM, publish_by_claim, retire_by_roots
from manifest.io.errors import FileTaken, StorageError, UnsafeFileIO
from manifest.io.file_io import FileIO, FileStatus
from manifest.io.storage_errors import with_storage_errors
from manifest.io.threads import start_one
from manifest.storage import parallel
from manifest.storage.bucket import PART_BYTES, Bucket, open_bucket
from manifest.storage.parallel import start
from manifest.storage.remote import PartWriter, RemoteFileIO, RemoteOutput
from manifest.storage.schemes import ObjectPlace
from paimon_base.errors import UnsupportedOption
from paimon_base.thresholds import thresholds

PROBE = ".paimon-probe-"
_beginning = threading.Lock()
_POLL_SECONDS = 0.5


def probe(bucket: Bucket, directory: str) -> None:
    """Verify once per process that the store honours put-if-absent.

    Uses a temporary object below the key ``directory``, or waits for ``begin_probe``. Raises ``UnsafeFileIO`` for a store that ignores the
    condition, ``StorageError`` for one that does not answer.
    """
    under_way, bucket.probing = bucket.probing, None
    if under_way is not None:
        with suppress(StorageError):  # probed again below
            under_way.result()
    if not bucket.probed:
        _probe(bucket, directory)


def begin_probe(bucket: Bucket, directory: str) -> None:
    """Start the probe in the background, before the first commit."""
    with _beginning:
        if not bucket.probed and bucket.probing is None:
            bucket.probing = start(_probe, bucket, directory)


def _probe(bucket: Bucket, directory: str) -> None:
    key = f"{directory}/{PROBE}{uuid.uuid4()}".lstrip("/")
    is_safe = False
    try:
        is_safe = bucket.create(key, b"first") and bucket.refuses(key, b"second")
        bucket.probed = is_safe
    finally:
        if is_safe:
            start(_remove, bucket, key)  # without waiting
        else:
            _remove(bucket, key)
    if not is_safe:
        raise UnsafeFileIO(
            f"{bucket.path(directory)}: this store ignores the condition of a conditional put (If-None-Match), so commits could replace each "
            "other; nothing was committed. Use a store that honours it, or one family of engines through a REST catalog"
        )


def probe_replace(bucket: Bucket, directory: str) -> None:
    """Verify once that the store honours conditional replacement (If-Match).

    Raises ``UnsafeFileIO``, ``StorageError``.
    """
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
            f"{bucket.path(directory)}: this store does not compare before it replaces (If-Match), so a concurrent replacement of a file could be "
            "lost unnoticed; nothing was changed. Delete the file and create it again, or use a store that compares"
        )


def _remove(bucket: Bucket, key: str) -> None:
    with suppress(StorageError):
        bucket.delete([key])


MARKER = ".directory"
"""Object that represents an empty directory."""


@with_storage_errors
class ObjectStoreFileIO(RemoteFileIO[Bucket]):
    """Objects of any bucket accessible with ``options`` and environment.

    Paths are whole URIs.

    >>> from manifest.storage.storage_options import StorageOptions
    >>> ObjectStoreFileIO(StorageOptions.of({"s3.region": "eu-north-1", "s3.access-key": "AKIA", "s3.secret-key": "x"}))
    ObjectStoreFileIO(StorageOptions(region='eu-north-1', access_key_id=***, secret_access_key=***))
    """

    def _open(self, location: ObjectPlace) -> Bucket:
        return open_bucket(location, self.options)

    def _find(self, store: Bucket, key: str) -> FileStatus | None:
        metadata = store.head(key)
        return None if metadata is None else _file_status(store, key, metadata)

    def is_directory(self, path: str) -> bool:
        bucket, key = self._at(path)
        return bool(bucket.list_all(key, limit=1))

    def list(self, path: str) -> list[FileStatus]:
        bucket, key = self._at(path)
        prefixes, objects = bucket.list_level(key)
        statuses = [FileStatus(prefix.rpartition("/")[2], 0, 0, is_dir=True) for prefix in prefixes]
        for metadata in objects:
            name = metadata["path"].removeprefix(f"{key}/") if key else metadata["path"]
            if name not in {MARKER, CLAIM} and metadata["path"] != key:
                statuses.append(_file_status(bucket, name, metadata))
        return statuses

    def mkdirs(self, path: str) -> None:
        bucket, key = self._at(path)
        bucket.put(f"{key}/{MARKER}", b"")

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:  # noqa: ARG002  # always durable
        bucket, key = self._at(path)
        if len(data) > PART_BYTES:
            with RemoteOutput(_Upload(bucket, key)) as upload:
                upload.write(data)
        elif overwrite:
            bucket.put(key, data)
        elif not bucket.create(key, data):
            raise FileTaken(errno.EEXIST, "another object has that name", path)

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:  # noqa: ARG002  # see below
        """See ``FileIO``.

        A running put cannot be cancelled, so a guard would prove nothing.
        """
        bucket, key = self._at(path)
        probe(bucket, key.rpartition("/")[0])
        return bucket.create(key, data)

    def replace(self, path: str, old: bytes, data: bytes) -> bool:
        bucket, key = self._at(path)
        probe_replace(bucket, key.rpartition("/")[0])
        try:
            stored, version = bucket.get_version(key)
        except FileNotFoundError:
            return False
        return stored == old and bucket.put_over(key, data, version)

    def delete(self, path: str) -> bool:
        """Delete an object.

        Returns True even if it did not exist: a store does not report that.
        """
        bucket, key = self._at(path)
        bucket.delete([key])
        return True

    def delete_many(self, paths: Sequence[str]) -> int:
        by_bucket: dict[str, tuple[Bucket, list[str]]] = {}
        for path in paths:
            bucket, key = self._at(path)
            by_bucket.setdefault(bucket.root, (bucket, []))[1].append(key)
        for bucket, keys in by_bucket.values():
            _delete(bucket, keys)
        return len(paths)

    def delete_directory(self, path: str, *, recursive: bool = False) -> bool:
        if not recursive:  # empty directories do not exist
            return False
        bucket, key = self._at(path)
        keys = bucket.list_all(key)
        _delete(bucket, keys)
        return bool(keys)

    def rename_directory(self, source: str, target: str) -> None:
        raise UnsupportedOption(
            "path",
            f"{source} cannot be renamed to {target}: an object store has no renames, and a partial copy is not a table. Create the new table, "
            "write the rows of the old one to it, and drop the old one",
        )

    def publish_directory(self, directory: str, contents: Mapping[str, bytes], *, through: FileIO | None = None) -> None:
        publish_by_claim(through or self, directory, contents)

    def retire_directory(self, directory: str, roots: Sequence[str], *, through: FileIO | None = None) -> None:
        retire_by_roots(through or self, directory, roots)

    def open_output(self, path: str) -> Any:
        return RemoteOutput(_Upload(*self._at(path)))

    def fair_lock(self, directory: str) -> AbstractContextManager[None]:
        """Start the probe for the coming commit.

        Object stores have no lock.
        """
        begin_probe(*self._at(directory))
        return nullcontext()


def _file_status(bucket: Bucket, name: str, metadata: Mapping[str, Any]) -> FileStatus:
    tag, size, modified = metadata.get("e_tag"), int(metadata["size"]), metadata["last_modified"].timestamp()
    identity = None if tag is None else (bucket.fingerprint, size, zlib.crc32(tag.encode()), int(modified))
    return FileStatus(name, size, int(modified * 1000), is_dir=False, identity=identity)


def _delete(bucket: Bucket, keys: Sequence[str]) -> None:
    step = thresholds.deleted_together
    batches = [keys[first : first + step] for first in range(0, len(keys), step)]
    for _ in parallel.spread(bucket.delete, batches):
        pass


class _Aborted(Exception):  # not an error: the program ends
    """Makes the client library delete the sent parts."""


class _Upload(PartWriter):
    """Writer of an object. A file that fits into one part is a single request on close."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        super().__init__(PART_BYTES)
        self._bucket = bucket
        self._key = key
        self._parts: queue.Queue[bytes | None] = queue.Queue(1)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._writer = threading.current_thread()

    def _finish(self, part: bytes) -> None:
        if self._thread is None:
            self._bucket.put(self._key, part)
            return
        self._send(part)
        self._put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _cancel(self) -> None:
        # Cancelling would leave parts that are being sent. So the upload is completed and the object deleted.
        if self._thread is not None:
            with suppress(Exception):  # the upload has failed and was cancelled
                self._put(None)
            self._thread.join()
            with suppress(StorageError):
                self._bucket.delete([self._key])

    def _send(self, part: bytes) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._upload, name="paimon-upload", daemon=True)
            start_one(thread)
            self._thread = thread
        self._put(part)

    def _put(self, part: bytes | None) -> None:
        """Queue a part, or None for the end. Raises the error of the upload."""
        while self._error is None:
            with suppress(queue.Full):
                self._parts.put(part, timeout=_POLL_SECONDS)
                return
        raise self._error

    def _upload(self) -> None:
        try:
            self._bucket.put_stream(self._key, self._next_parts())
        except BaseException as error:  # noqa: BLE001  # raised in the writer's thread
            self._error = error

    def _next_parts(self) -> Iterator[bytes]:
        while True:
            try:
                part = self._parts.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if not self._writer.is_alive() and not threading.main_thread().is_alive():
                    raise _Aborted from None
                continue
            if part is None:
                return
            yield part
