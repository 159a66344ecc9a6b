# The methods of a FileIO are documented once, in the protocol.
# ruff: noqa: D102
"""Tables on HDFS: the ``FileIO`` of the schemes ``hdfs:`` and ``viewfs:``.

A commit is a rename that fails if the new name exists, which the name node decides. A file is complete and acknowledged by data nodes before
its rename. There are no locks. A late rename cannot be cancelled without one, so ids of snapshots are never used again, as on object stores.
"""

from __future__ import annotations

import errno
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Self

import pyarrow as pa

from manifest.io.directories import publish_by_rename, retire_by_rename
from manifest.io.errors import FileMissing, FileTaken, StorageError
from manifest.io.file_io import FileIO, FileStatus, Holder, is_written_once
from manifest.io.posix import target_of_temporary, temporary_name
from manifest.io.storage_errors import with_storage_errors
from manifest.storage import parallel
from manifest.storage.hdfs_cluster import HdfsCluster, HdfsStatus, open_cluster
from manifest.storage.hdfs_options import HdfsOptions
from manifest.storage.ranges import ObjectInput, ObjectRanges
from manifest.storage.schemes import object_place
from manifest.storage.storage_options import StorageOptions

_UNIQUE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Names with a UUID are never reused."""
_STABLE_MILLIS = 300_000
"""Age of a file that surely does not change within a tick of the clock. Clocks of a cluster differ by less: Kerberos needs that."""
_SWAP = ".swap"
_POLITE_SECONDS, _REPLACE_SECONDS = 2.0, 30.0
_CHUNK = 1 << 20


@with_storage_errors
class HdfsFileIO:
    """Files of any cluster accessible with ``options`` and environment.

    Paths are whole URIs.

    >>> HdfsFileIO(StorageOptions.of({"hadoop.dfs.replication": "2"}))
    HdfsFileIO(StorageOptions(dfs.replication='2'))
    """

    max_concurrency = parallel.MAX_CONCURRENCY
    cancels_creates = False

    def __init__(self, options: StorageOptions) -> None:
        HdfsOptions.of(options.hdfs)  # a mistake is named before the first request
        self.options = options

    def __repr__(self) -> str:
        return f"HdfsFileIO({self.options!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HdfsFileIO) and other.options == self.options

    def __hash__(self) -> int:
        return hash(self.options)

    def _at(self, path: str) -> tuple[HdfsCluster, str]:
        place = object_place(path)
        return open_cluster(place, self.options), place.key

    def read(self, path: str) -> bytes:
        cluster, key = self._at(path)
        return cluster.get(key)

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        return parallel.spread(self.read, paths)

    def run_parallel(self, *jobs: Callable[[], Any]) -> list[Any]:
        return parallel.run_parallel(jobs)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return ObjectRanges(*self._at(path), tail=False).once(offset, length)

    def size(self, path: str) -> int:
        return self._status(path).size

    def identity(self, path: str) -> tuple[int, ...] | None:
        cluster, _ = self._at(path)
        if _UNIQUE.search(path.rpartition("/")[2]):
            return (cluster.fingerprint,)
        return _identity(cluster, self._status(path))

    def exists(self, path: str) -> bool:
        cluster, key = self._at(path)
        found = cluster.status(key)
        return found is not None and not found.is_dir

    def is_directory(self, path: str) -> bool:
        cluster, key = self._at(path)
        found = cluster.status(key)
        return found is not None and found.is_dir

    def list(self, path: str) -> list[FileStatus]:
        cluster, key = self._at(path)
        return [FileStatus(one.name, one.size, one.modified, one.is_dir, _identity(cluster, one)) for one in cluster.entries(key)]

    def mkdirs(self, path: str) -> None:
        cluster, key = self._at(path)
        cluster.mkdirs(key)

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:  # noqa: ARG002  # always durable
        cluster, key = self._at(path)
        if is_written_once(path):
            cluster.put(key, data)
        elif not overwrite:
            if not self.create_exclusive(path, data):
                raise FileTaken(errno.EEXIST, "another file has that name", path)
        else:
            temporary = _key(temporary_name(path))
            with self._without(cluster, temporary):
                cluster.put(temporary, data)
                if not cluster.rename_over(temporary, key, data):
                    raise FileMissing(
                        errno.ENOENT, "another process deleted the new file before it had its name; nothing was changed", path
                    )

    def write_hint(self, path: str, data: bytes, guard: Callable[[], bool]) -> None:  # noqa: ARG002  # ids never decrease here
        self.write(path, data, overwrite=True)

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        return parallel.start(self.write, path, data).result

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:  # noqa: ARG002  # see below
        """See ``FileIO``.

        A running rename cannot be cancelled, so a guard would prove nothing.
        """
        cluster, key = self._at(path)
        if cluster.status(key) is not None:
            return False
        temporary = _key(temporary_name(path))
        with self._without(cluster, temporary):
            cluster.put(temporary, data)
            return cluster.rename_new(temporary, key, data)

    def cancel_creates(self, directory: str, chosen: Callable[[str], bool]) -> None:
        pass

    def replace(self, path: str, old: bytes, data: bytes) -> bool:
        """See ``FileIO``.

        Each caller writes its new file, deletes those of others, compares, and renames. A rename whose file was deleted fails. Of two callers
        at least one finds the other's file, so it compares after the other's rename or prevents it. For a while callers wait instead, for
        the one whose file's name is the smallest.
        """
        cluster, key = self._at(path)
        began = time.monotonic()
        while (waited := time.monotonic() - began) < _REPLACE_SECONDS:
            polite = waited < _POLITE_SECONDS
            if not (polite and self._swaps(path)):
                temporary = temporary_name(f"{path}{_SWAP}")
                with self._without(cluster, _key(temporary)), suppress(FileNotFoundError):  # another caller deleted the new file
                    cluster.put(_key(temporary), data)
                    if self._goes_first(path, temporary, polite=polite):
                        if cluster.get(key) != old:
                            cluster.delete(_key(temporary))
                            return False
                        if cluster.rename_over(_key(temporary), key, data):
                            return True
                cluster.delete(_key(temporary))
                if not self.exists(path):
                    return False
            time.sleep(random.uniform(0.005, 0.05))  # noqa: S311  # not a secret
        raise StorageError(
            errno.EBUSY, f"other processes kept replacing the file for {_REPLACE_SECONDS:.0f} s; nothing was changed, try again", path
        )

    def _goes_first(self, path: str, temporary: str, *, polite: bool) -> bool:
        """Delete the new files of other callers, or return False for one that goes first."""
        cluster, _ = self._at(path)
        directory, name = temporary.rpartition("/")[::2]
        others = [other for other in self._swaps(path) if other != name]
        if polite and any(other < name for other in others):
            return False
        for other in others:
            cluster.delete(_key(f"{directory}/{other}"))
        return True

    def _swaps(self, path: str) -> Sequence[str]:
        """Return the names of new files that would replace ``path``."""
        directory, name = path.rpartition("/")[::2]
        return [found.name for found in self.list(directory) if target_of_temporary(found.name) == f"{name}{_SWAP}"]

    def delete(self, path: str) -> bool:
        """Delete a file.

        Returns True even if it did not exist: after a lost answer the name node does not know that it did.
        """
        cluster, key = self._at(path)
        cluster.delete(key)
        return True

    def delete_many(self, paths: Sequence[str]) -> int:
        return sum(parallel.spread(self.delete, paths))

    def delete_directory(self, path: str, *, recursive: bool = False) -> bool:
        cluster, key = self._at(path)
        try:
            return cluster.delete(key, recursive=recursive)
        except StorageError as error:
            if error.errno == errno.ENOTEMPTY:
                return False
            raise

    def rename_directory(self, source: str, target: str) -> None:
        if object_place(source).root != object_place(target).root:
            raise StorageError(errno.EXDEV, f"{target} is on another cluster; copy the directory instead", source)
        cluster, key = self._at(target)
        cluster.mkdirs(key.rpartition("/")[0])
        cluster.rename_directory(_key(source), key)

    def publish_directory(self, directory: str, contents: Mapping[str, bytes], *, through: FileIO | None = None) -> None:
        publish_by_rename(through or self, directory, contents)

    def retire_directory(self, directory: str, roots: Sequence[str], *, through: FileIO | None = None) -> None:  # noqa: ARG002  # one rename
        retire_by_rename(through or self, directory)

    def open_output(self, path: str) -> Any:
        return HdfsOutput(*self._at(path), overwrite=is_written_once(path))

    def open_input(self, path: str, size: int | None = None) -> Any:
        return ObjectInput(ObjectRanges(*self._at(path), size, tail=True))

    def open_ranges(self, path: str, held: Holder | None = None) -> ObjectRanges:
        return ObjectRanges(*self._at(path), tail=False, held=held if _UNIQUE.search(path.rpartition("/")[2]) else None)

    def sync(self, path: str) -> None:
        """Do nothing: data nodes have acknowledged a closed file."""

    def fair_lock(self, directory: str) -> AbstractContextManager[None]:  # noqa: ARG002  # no lock
        return nullcontext()

    def lock(self, directory: str, seconds: float | None = None) -> AbstractContextManager[bool]:  # noqa: ARG002  # no lock
        return nullcontext(enter_result=True)

    def local_path(self, path: str) -> str | None:  # noqa: ARG002
        return None

    def _status(self, path: str) -> HdfsStatus:
        cluster, key = self._at(path)
        found = cluster.status(key)
        if found is None:
            raise FileMissing(errno.ENOENT, "there is no such file or directory", path)
        return found

    @staticmethod
    def _without(cluster: HdfsCluster, temporary: str) -> _Temporary:
        return _Temporary(cluster, temporary)


class _Temporary(AbstractContextManager[None]):
    """A file that an error of the block deletes."""

    def __init__(self, cluster: HdfsCluster, key: str) -> None:
        self._cluster, self._key_of = cluster, key

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with suppress(StorageError):  # an orphan at worst
                self._cluster.delete(self._key_of)


def _key(path: str) -> str:
    return object_place(path).key


def _identity(cluster: HdfsCluster, found: HdfsStatus) -> tuple[int, ...] | None:
    if time.time_ns() // 1_000_000 - found.modified < _STABLE_MILLIS:
        return None
    return cluster.fingerprint, found.size, found.modified


class _Writer:
    """File interface for Arrow."""

    def __init__(self, cluster: HdfsCluster, key: str, *, overwrite: bool) -> None:
        self._cluster, self._key = cluster, key
        self._file = cluster.create(key, overwrite=overwrite)
        self._pending: list[bytes] = []
        self._held = self._written = 0
        self.closed = False

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError("the file is closed")
        content = bytes(data)
        self._pending.append(content)
        self._held += len(content)
        self._written += len(content)
        if self._held >= _CHUNK:
            self._send()
        return len(content)

    def _send(self) -> None:
        data, self._pending, self._held = b"".join(self._pending), [], 0
        if data:
            self._call(lambda: self._file.write(data))

    def _call(self, request: Callable[[], object]) -> None:
        try:
            request()
        except Exception as error:  # noqa: BLE001  # any error of the library
            raise self._cluster.failed(self._key, error) from None

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._send()
            self._call(self._file.close)
            self.closed = True

    def abort(self) -> None:
        """Delete the file instead of completing it."""
        if not self.closed:
            self.closed = True
            self._pending.clear()
            with suppress(StorageError):
                self._cluster.delete(self._key)


class HdfsOutput(pa.PythonFile):  # type: ignore[misc]  # pyarrow ships no types
    """A new file as a writable Arrow file."""

    _writer: _Writer

    def __new__(cls, cluster: HdfsCluster, key: str, *, overwrite: bool) -> Self:
        """Create the object with its file, which Arrow requires here."""
        writer = _Writer(cluster, key, overwrite=overwrite)
        created: Self = super().__new__(cls, writer, mode="w")
        created._writer = writer
        return created

    def __init__(self, cluster: HdfsCluster, key: str, *, overwrite: bool) -> None:  # noqa: ARG002  # __new__ has them
        super().__init__()

    def abort(self) -> None:
        """Delete the file instead of completing it."""
        self._writer.abort()


__all__ = ["HdfsFileIO", "HdfsOutput"]
