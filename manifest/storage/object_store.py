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
import re
import threading
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Self

import pyarrow as pa

from fileindex.base.errors import UnsupportedOption
from fileindex.base.thresholds import thresholds
from manifest.io.directories import CLAIM, publish_by_claim, retire_by_roots
from manifest.io.errors import FileMissing, FileTaken, StorageError, UnsafeFileIO
from manifest.io.file_io import FileIO, FileStatus, Holder
from manifest.io.storage_errors import with_storage_errors
from manifest.io.threads import start_one
from manifest.storage import parallel
from manifest.storage.bucket import PART_BYTES, Bucket, open_bucket
from manifest.storage.parallel import start
from manifest.storage.ranges import ObjectInput, ObjectRanges
from manifest.storage.schemes import object_place
from manifest.storage.storage_options import StorageOptions

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
    kept = False
    try:
        kept = bucket.create(key, b"first") and bucket.refuses(key, b"second")
        bucket.probed = kept
    finally:
        if kept:
            start(_remove, bucket, key)  # without waiting
        else:
            _remove(bucket, key)
    if not kept:
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
_UNIQUE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Names with a UUID are never reused."""


@with_storage_errors
class ObjectStoreFileIO:
    """Objects of any bucket accessible with ``options`` and environment.

    Paths are whole URIs.

    >>> ObjectStoreFileIO(StorageOptions.of({"s3.region": "eu-north-1", "s3.access-key": "AKIA", "s3.secret-key": "x"}))
    ObjectStoreFileIO(StorageOptions(region='eu-north-1', access_key_id=***, secret_access_key=***))
    """

    max_concurrency = parallel.MAX_CONCURRENCY
    cancels_creates = False

    def __init__(self, options: StorageOptions) -> None:
        self.options = options

    def __repr__(self) -> str:
        return f"ObjectStoreFileIO({self.options!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStoreFileIO) and other.options == self.options

    def __hash__(self) -> int:
        return hash(self.options)

    def _at(self, path: str) -> tuple[Bucket, str]:
        place = object_place(path)
        return open_bucket(place, self.options), place.key

    def read(self, path: str) -> bytes:
        bucket, key = self._at(path)
        return bucket.get(key)

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        return parallel.spread(self.read, paths)

    def run_parallel(self, *jobs: Callable[[], Any]) -> list[Any]:
        return parallel.run_parallel(jobs)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        bucket, key = self._at(path)
        return ObjectRanges(bucket, key, tail=False).once(offset, length)

    def size(self, path: str) -> int:
        return int(self._head(path)["size"])

    def identity(self, path: str) -> tuple[int, ...] | None:
        bucket, _ = self._at(path)
        if _UNIQUE.search(path.rpartition("/")[2]):
            return (bucket.fingerprint,)
        return self._identity(bucket, self._head(path))

    def exists(self, path: str) -> bool:
        bucket, key = self._at(path)
        return bucket.head(key) is not None

    def is_directory(self, path: str) -> bool:
        bucket, key = self._at(path)
        return bool(bucket.list_all(key, most=1))

    def list(self, path: str) -> list[FileStatus]:
        bucket, key = self._at(path)
        prefixes, objects = bucket.list_level(key)
        found = [FileStatus(prefix.rpartition("/")[2], 0, 0, is_dir=True) for prefix in prefixes]
        for one in objects:
            name = one["path"].removeprefix(f"{key}/") if key else one["path"]
            if name not in {MARKER, CLAIM} and one["path"] != key:
                changed = int(one["last_modified"].timestamp() * 1000)
                found.append(FileStatus(name, one["size"], changed, is_dir=False, identity=self._identity(bucket, one)))
        return found

    def mkdirs(self, path: str) -> None:
        bucket, key = self._at(path)
        bucket.put(f"{key}/{MARKER}", b"")

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:  # noqa: ARG002  # always durable
        bucket, key = self._at(path)
        if len(data) > PART_BYTES:
            with ObjectOutput(bucket, key) as upload:
                upload.write(data)
        elif overwrite:
            bucket.put(key, data)
        elif not bucket.create(key, data):
            raise FileTaken(errno.EEXIST, "another object has that name", path)

    def write_hint(self, path: str, data: bytes, guard: Callable[[], bool]) -> None:  # noqa: ARG002  # ids never decrease here
        self.write(path, data, overwrite=True)

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        return parallel.start(self.write, path, data).result

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:  # noqa: ARG002  # see below
        """See ``FileIO``.

        A running put cannot be cancelled, so a guard would prove nothing.
        """
        bucket, key = self._at(path)
        probe(bucket, key.rpartition("/")[0])
        return bucket.create(key, data)

    def cancel_creates(self, directory: str, chosen: Callable[[str], bool]) -> None:
        pass

    def replace(self, path: str, old: bytes, data: bytes) -> bool:
        bucket, key = self._at(path)
        probe_replace(bucket, key.rpartition("/")[0])
        try:
            held, version = bucket.get_version(key)
        except FileNotFoundError:
            return False
        return held == old and bucket.put_over(key, data, version)

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
        return ObjectOutput(*self._at(path))

    def open_input(self, path: str, size: int | None = None) -> Any:
        return ObjectInput(ObjectRanges(*self._at(path), size, tail=True))

    def open_ranges(self, path: str, held: Holder | None = None) -> ObjectRanges:
        return ObjectRanges(*self._at(path), tail=False, held=held if _UNIQUE.search(path.rpartition("/")[2]) else None)

    def sync(self, path: str) -> None:
        """Do nothing: a put is durable when it is answered."""

    def fair_lock(self, directory: str) -> AbstractContextManager[None]:
        """Start the probe for the coming commit.

        Object stores have no lock.
        """
        begin_probe(*self._at(directory))
        return nullcontext()

    def lock(self, directory: str, seconds: float | None = None) -> AbstractContextManager[bool]:  # noqa: ARG002  # no lock
        return nullcontext(enter_result=True)

    def local_path(self, path: str) -> str | None:  # noqa: ARG002
        return None

    def _head(self, path: str) -> dict[str, Any]:
        bucket, key = self._at(path)
        found = bucket.head(key)
        if found is None:
            raise FileMissing(errno.ENOENT, "there is no such object", path)
        return found

    @staticmethod
    def _identity(bucket: Bucket, found: Mapping[str, Any]) -> tuple[int, ...] | None:
        tag = found.get("e_tag")
        return (
            None
            if tag is None
            else (bucket.fingerprint, int(found["size"]), zlib.crc32(tag.encode()), int(found["last_modified"].timestamp()))
        )


def _delete(bucket: Bucket, keys: Sequence[str]) -> None:
    step = thresholds.deleted_together
    batches = [keys[at : at + step] for at in range(0, len(keys), step)]
    for _ in parallel.spread(bucket.delete, batches):
        pass


class _Aborted(Exception):  # not an error: the program ends
    """Makes the client library delete the sent parts."""


class _Upload:
    """File interface for Arrow.

    A file that fits into one part is a single request on close.
    """

    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket = bucket
        self._key = key
        self._pending: list[bytes] = []
        self._held = 0
        self._written = 0
        self._parts: queue.Queue[bytes | None] = queue.Queue(1)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._writer = threading.current_thread()
        self.closed = False

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError("the upload has ended")
        view = memoryview(data).cast("B")
        self._written += len(view)
        rest = view
        while self._held + len(rest) > PART_BYTES:
            room = PART_BYTES - self._held
            self._take(rest[:room])
            rest = rest[room:]
            self._send(self._join_pending())
        self._take(rest)
        return len(view)

    def _take(self, data: memoryview) -> None:
        self._pending.append(bytes(data))
        self._held += len(data)

    def _join_pending(self) -> bytes:
        part = b"".join(self._pending)
        self._pending.clear()
        self._held = 0
        return part

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._thread is None:
            self._bucket.put(self._key, self._join_pending())
        else:
            self._send(self._join_pending())
            self._send(None)
            self._thread.join()
            if self._error is not None:
                raise self._error

    def abort(self) -> None:
        """Abort the upload."""
        if self.closed:
            return
        self.closed = True
        self._pending.clear()
        # Cancelling would leave parts that are being sent. So the upload is completed and the object deleted.
        if self._thread is not None:
            with suppress(Exception):  # the upload has failed and was cancelled
                self._send(None)
            self._thread.join()
            with suppress(StorageError):
                self._bucket.delete([self._key])

    def _send(self, part: bytes | None) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._upload, name="paimon-upload", daemon=True)
            start_one(thread)
            self._thread = thread
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


class ObjectOutput(pa.PythonFile):  # type: ignore[misc]  # pyarrow ships no types
    """A new object as a writable Arrow file.

    It exists once it is closed, and never if it is aborted.
    """

    _upload: _Upload

    def __new__(cls, bucket: Bucket, key: str) -> Self:
        """Create the object with its file, which Arrow requires here."""
        upload = _Upload(bucket, key)
        created: Self = super().__new__(cls, upload, mode="w")
        created._upload = upload
        return created

    def __init__(self, bucket: Bucket, key: str) -> None:  # noqa: ARG002  # __new__ has them
        super().__init__()

    def abort(self) -> None:
        """Abort the object and delete its parts."""
        self._upload.abort()


__all__ = ["MARKER", "PROBE", "ObjectOutput", "ObjectStoreFileIO", "begin_probe", "probe", "probe_replace"]
