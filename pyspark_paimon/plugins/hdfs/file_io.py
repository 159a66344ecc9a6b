# The methods of a FileIO are documented once, in the protocol.
# ruff: noqa: D102
"""Tables on HDFS: the ``FileIO`` of the schemes ``hdfs:`` and ``viewfs:``.

A commit is a rename that fails if the new name exists, which the name node decides. A file is complete and acknowledged by data nodes before
its rename. There are no locks. A late rename cannot be cancelled without one, so ids of snapshots are never used again, as on object stores.
"""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from manifest.io.directories import publish_by_rename, retire_by_rename
from manifest.io.errors import FileMissing, FileTaken, StorageError
from manifest.io.file_io import FileIO, FileStatus, is_written_once
from manifest.io.posix import target_of_temporary, temporary_name
from manifest.io.storage_errors import with_storage_errors
from manifest.storage import parallel
from manifest.storage.hdfs_options import HdfsOptions
from manifest.storage.remote import PartWriter, RemoteFileIO, RemoteOutput
from manifest.storage.schemes import ObjectPlace, object_place
from manifest.storage.storage_options import StorageOptions
from pyspark_paimon.plugins.hdfs.cluster import HdfsCluster, HdfsStatus, open_cluster

_STABLE_MILLIS = 300_000
"""Age of a file that surely does not change within a tick of the clock. Clocks of a cluster differ by less: Kerberos needs that."""
_SWAP = ".swap"
_POLITE_SECONDS, _REPLACE_SECONDS = 2.0, 30.0
_CHUNK = 1 << 20


@with_storage_errors
class HdfsFileIO(RemoteFileIO[HdfsCluster]):
    """Files of any cluster accessible with ``options`` and environment.

    Paths are whole URIs.

    >>> HdfsFileIO(StorageOptions.of({"hadoop.dfs.replication": "2"}))
    HdfsFileIO(StorageOptions(dfs.replication='2'))
    """

    def __init__(self, options: StorageOptions) -> None:
        HdfsOptions.of(options.hdfs)  # a mistake is named before the first request
        super().__init__(options)

    def _open(self, location: ObjectPlace) -> HdfsCluster:
        return open_cluster(location, self.options)

    def _find(self, store: HdfsCluster, key: str) -> FileStatus | None:
        status = store.status(key)
        return None if status is None else _file_status(store, status)

    def is_directory(self, path: str) -> bool:
        cluster, key = self._at(path)
        status = self._find(cluster, key)
        return status is not None and status.is_dir

    def list(self, path: str) -> list[FileStatus]:
        cluster, key = self._at(path)
        return [_file_status(cluster, entry) for entry in cluster.entries(key)]

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
            with _Temporary(cluster, temporary):
                cluster.put(temporary, data)
                if not cluster.rename_over(temporary, key, data):
                    raise FileMissing(
                        errno.ENOENT, "another process deleted the new file before it had its name; nothing was changed", path
                    )

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:  # noqa: ARG002  # see below
        """See ``FileIO``.

        A running rename cannot be cancelled, so a guard would prove nothing.
        """
        cluster, key = self._at(path)
        if cluster.status(key) is not None:
            return False
        temporary = _key(temporary_name(path))
        with _Temporary(cluster, temporary):
            cluster.put(temporary, data)
            return cluster.rename_new(temporary, key, data)

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
                with _Temporary(cluster, _key(temporary)), suppress(FileNotFoundError):  # another caller deleted the new file
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
        other_swaps = [other for other in self._swaps(path) if other != name]
        if polite and any(other < name for other in other_swaps):
            return False
        for other in other_swaps:
            cluster.delete(_key(f"{directory}/{other}"))
        return True

    def _swaps(self, path: str) -> Sequence[str]:
        """Return the names of new files that would replace ``path``."""
        directory, name = path.rpartition("/")[::2]
        return [status.name for status in self.list(directory) if target_of_temporary(status.name) == f"{name}{_SWAP}"]

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
        return RemoteOutput(_Writer(*self._at(path), overwrite=is_written_once(path)))


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


def _file_status(cluster: HdfsCluster, entry: HdfsStatus) -> FileStatus:
    changed = time.time_ns() // 1_000_000 - entry.modified < _STABLE_MILLIS
    identity = None if changed else (cluster.fingerprint, entry.size, entry.modified)
    return FileStatus(entry.name, entry.size, entry.modified, entry.is_dir, identity)


class _Writer(PartWriter):
    def __init__(self, cluster: HdfsCluster, key: str, *, overwrite: bool) -> None:
        super().__init__(_CHUNK)
        self._cluster, self._key = cluster, key
        self._file = cluster.create(key, overwrite=overwrite)

    def _send(self, part: bytes) -> None:
        self._call(lambda: self._file.write(part))

    def _finish(self, part: bytes) -> None:
        try:
            if part:
                self._send(part)
            self._call(self._file.close)
        except StorageError:
            self._cancel()
            raise

    def _call(self, request: Callable[[], object]) -> None:
        try:
            request()
        except Exception as error:  # noqa: BLE001  # any error of the library
            raise self._cluster.failed(self._key, error) from None

    def _cancel(self) -> None:
        with suppress(StorageError):  # an orphan at worst
            self._cluster.delete(self._key)
