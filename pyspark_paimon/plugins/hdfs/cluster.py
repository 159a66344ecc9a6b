"""One HDFS cluster: requests with retries, and typed errors.

The client library silently repeats a request whose answer was lost. So a rename may report a missing source, and a deletion a missing
file, although the first request was done. ``rename_new`` finds out what happened.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from manifest.io.errors import CredentialsRefused, FileMissing, FileTaken, OutOfDisk, StorageDenied, StorageError
from manifest.storage import parallel
from manifest.storage.faults import RETRIED, Fault
from manifest.storage.hdfs_options import HdfsOptions
from manifest.storage.schemes import ObjectPlace
from manifest.storage.storage_options import StorageOptions
from paimon_base.errors import InvalidArgument, PaimonError, UnsupportedOption
from paimon_base.log import logger_of
from paimon_base.process import run_after_fork
from paimon_base.redaction import redact
from paimon_base.thresholds import thresholds

T = TypeVar("T")
_LOG = logger_of(__name__)
_MISSING = "'{scheme}:' needs the client library of HDFS: pip install 'pyspark-paimon[hdfs]'"
_RANGES_AT_ONCE = 8
_VARIANT = re.compile(r'(\w+)(?:\((?:"((?:[^"\\]|\\.)*)"(?:, "((?:[^"\\]|\\.)*)")?)?)?')
"""Debug text of the library's error: variant, and the Java class and message of a remote one."""
_LOGIN = frozenset({"GSSAPIError", "NoSASLMechanism", "SASLError"})
_NOT_NOW = frozenset({"RetriableException", "SafeModeException", "StandbyException", "ServerTooBusyException"})
"""Answers of a name node that did nothing, and may do it later."""
_QUOTA = frozenset({"DSQuotaExceededException", "NSQuotaExceededException", "QuotaByStorageTypeExceededException"})
_BROKEN = frozenset({"DataTransferError", "IOError"})

_ENVIRONMENT = ("HADOOP_CONF_DIR", "HADOOP_HOME", "HADOOP_PROXY_USER", "HADOOP_TOKEN_FILE_LOCATION", "HADOOP_USER_NAME")

_open: dict[tuple[object, ...], HdfsCluster] = {}
_opening = threading.Lock()
_forked_from: list[int] = []
"""Process that used the library before this one was forked from it."""


def _remember_fork() -> None:
    if _open or _opening.locked():  # a thread was opening the first one
        _forked_from.append(os.getppid())


run_after_fork(_remember_fork)


@dataclass(frozen=True, slots=True)
class HdfsStatus:
    """Status of a file or directory. ``modified`` is in milliseconds, and does not change by a rename."""

    name: str
    size: int
    modified: int
    is_dir: bool


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failed request: variant of the library's error, simple name of the Java class, reason."""

    variant: str
    java: str
    reason: str

    @classmethod
    def of(cls, error: BaseException) -> _Failure | None:
        """Parse an error of the library. None: it is no such error."""
        text = str(error)
        if type(error) is RuntimeError:
            match = _VARIANT.match(text)
            variant, first, second = match.groups() if match else ("", None, None)
            reason = (first or text) if second is None else second
            java = "" if second is None else str(first).rpartition(".")[2]
            return cls(variant, java, redact(reason.replace('\\"', '"').partition("\\n")[0][:300]))
        variants: dict[type[BaseException], str] = {
            FileNotFoundError: "FileNotFound",
            FileExistsError: "AlreadyExists",
            IsADirectoryError: "IsADirectory",
            NotImplementedError: "UnsupportedFeature",
            OSError: "IOError",
        }
        variant = variants.get(type(error), "")
        return cls(variant, "", redact(text.partition("\n")[0][:300])) if variant else None

    def may_pass(self, *, repeatable: bool) -> bool:
        """Return whether a repetition may succeed, and does no harm."""
        return self.java in _NOT_NOW or (repeatable and self.variant in _BROKEN)

    def error(self, path: str) -> StorageError:
        """Return the typed error."""
        reason = self.reason or self.java or self.variant
        if self.variant in _LOGIN or self.java == "InvalidToken":
            advice = "get a Kerberos ticket (kinit), or a token in HADOOP_TOKEN_FILE_LOCATION"
            return CredentialsRefused(errno.EACCES, f"the login to HDFS failed ({reason}); {advice}", path)
        if self.variant == "UnsupportedFeature":
            return StorageError(errno.ENOSYS, f"the client library of HDFS cannot do that ({reason}); use a place without it", path)
        if self.java == "AccessControlException":
            return StorageDenied(errno.EACCES, f"HDFS refuses ({reason})", path)
        if self.java in _QUOTA:
            return OutOfDisk(errno.EDQUOT, f"a quota of HDFS is used up ({reason})", path)
        if self.variant == "AlreadyExists":
            return FileTaken(errno.EEXIST, "the file or directory exists", path)
        if self.variant == "FileNotFound" or self.java in {"FileNotFoundException", "ParentNotDirectoryException"}:
            return FileMissing(errno.ENOENT, "there is no such file or directory", path)
        if self.java == "PathIsNotEmptyDirectoryException":
            return StorageError(errno.ENOTEMPTY, "the directory is not empty", path)
        return StorageError(errno.EIO, f"HDFS failed ({reason})", path)


class HdfsCluster:
    """An open cluster. Thread-safe.

    Keys are paths without slash at either end. Every method raises ``StorageError`` and its subclasses, with the whole path.
    """

    def __init__(self, location: ObjectPlace, options: StorageOptions) -> None:
        self.root = location.root
        self.fingerprint = options.fingerprint(location)
        self._retries = options.max_retries
        self._settings = HdfsOptions.of(options.hdfs)
        self._library, self._client = _connect(location, self._settings, options.timeout_millis)

    def path(self, key: str) -> str:
        """Return the whole path of a key."""
        return f"{self.root}/{key}"

    def call(self, what: str, key: str, request: Callable[[Any], T], *, repeatable: bool = True) -> T:
        """Return the result of a request to the library's client.

        ``repeatable``: whether it may be done twice.
        """
        for attempt in range(self._retries + 1):
            try:
                return request(self._client)
            except Exception as error:
                failure = None if isinstance(error, PaimonError) else _Failure.of(error)
                if failure is None:
                    raise
                if not failure.may_pass(repeatable=repeatable) or attempt == self._retries:
                    raise failure.error(self.path(key)) from None
                seconds = Fault(failure.reason, None, "").wait_seconds(attempt)
                RETRIED[f"{what}: {failure.java or failure.variant}"] += 1
                path = redact(self.path(key))
                _LOG.warning("%s: %s failed (%s); retrying in %.1f s, attempt %d", path, what, failure.reason, seconds, attempt + 2)
                time.sleep(seconds)
        raise AssertionError("every attempt returns or raises")

    def status(self, key: str) -> HdfsStatus | None:
        """Return the status of a file or directory, None if there is none."""
        try:
            return _status(self.call("getFileInfo", key, lambda client: client.get_file_info(f"/{key}")))
        except FileNotFoundError:
            return None

    def entries(self, key: str) -> list[HdfsStatus]:
        """Return the entries of a directory. [] if there is none."""
        try:
            statuses = self.call("getListing", key, lambda client: list(client.list_status(f"/{key}")))
        except FileNotFoundError:
            return []
        return [status for entry in statuses if (status := _status(entry)).name and entry.path.strip("/") != key]  # a file lists itself

    def get(self, key: str) -> bytes:
        """Return a whole file."""
        return self.call("read", key, lambda client: self._bytes(key, client.read(f"/{key}"), 0, None))

    def get_part(self, key: str, start: int, length: int) -> tuple[bytes, int]:
        """Return a part of a file, and the file's size.

        At most ``length`` bytes from ``start``. Negative ``start``: the last ``length`` bytes.
        """

        def request(client: Any) -> tuple[bytes, int]:
            reader = client.read(f"/{key}")
            size = len(reader)
            return self._bytes(key, reader, max(0, size - length) if start < 0 else start, length), size

        return self.call("read part", key, request)

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return (offset, length) ranges, read in parallel.

        Near ranges are read together. A range beyond the file's end is shorter.
        """

        def request(client: Any) -> dict[tuple[int, int], bytes]:
            reader = client.read(f"/{key}")
            spans = _spans(ranges)
            jobs = [spans[first::_RANGES_AT_ONCE] for first in range(min(_RANGES_AT_ONCE, len(spans)))]
            parts = parallel.run_parallel([partial(read, reader, job) for job in jobs])
            return {span: data for part in parts for span, data in part.items()}

        def read(reader: Any, spans: Sequence[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
            return {(start, end): self._bytes(key, reader, start, end - start) for start, end in spans}

        data_by_range = self.call("read ranges", key, request)
        range_by_offset = {
            offset: (start, data)
            for (start, end), data in data_by_range.items()
            for offset, _ in ranges
            if start <= offset < max(end, start + 1)
        }
        return [
            range_by_offset[offset][1][offset - range_by_offset[offset][0] : offset - range_by_offset[offset][0] + length]
            for offset, length in ranges
        ]

    def _bytes(self, key: str, reader: Any, start: int, length: int | None) -> bytes:
        size = len(reader)
        first = min(start, size)
        end = size if length is None else min(size, start + length)
        data = bytes(reader.read_range(first, end - first)) if end > first else b""
        if len(data) != max(0, end - first):
            raise StorageError(errno.EIO, f"received {len(data)} of {end - first} bytes", self.path(key))
        return data

    def create(self, key: str, *, overwrite: bool) -> Any:
        """Create a file and its parents, and return its writer.

        With ``overwrite`` a repeated request has the same result, so names that are never used again need it.
        """
        options = self._library.WriteOptions(
            overwrite=overwrite,
            create_parent=False,
            permission=self._settings.file_permission,
            replication=self._settings.replication,
            block_size=self._settings.block_size,
        )

        def request(client: Any) -> Any:
            return client.create(f"/{key}", options)

        try:
            return self.call("create", key, request, repeatable=overwrite)
        except FileNotFoundError:
            self.mkdirs(key.rpartition("/")[0])  # the name node would ignore the umask
            return self.call("create", key, request, repeatable=overwrite)

    def put(self, key: str, data: bytes) -> None:
        """Write a whole file, under a name that no other writer uses."""

        def request(_: Any) -> None:
            writer = self.create(key, overwrite=True)
            if data:
                writer.write(data)
            writer.close()

        self.call("write", key, request)

    def rename_new(self, source: str, key: str, data: bytes) -> bool:
        """Rename a file of this call, with content ``data``, unless the new name exists.

        Returns False if it exists; the file is deleted then. Raises ``StorageError`` if the outcome is unknown.
        """
        written = self.status(source)
        if written is None:
            raise FileMissing(errno.ENOENT, "another process deleted this new file; nothing was created", self.path(source))
        try:
            self.call("rename", key, lambda client: client.rename(f"/{source}", f"/{key}", False))  # by position only
        except StorageError as error:
            # The deletion decides: once the source is gone, no rename that is still under way can succeed.
            if self.delete(source):
                if isinstance(error, FileExistsError):
                    return False
                raise
            return self._is_renamed(key, written, data, error)
        return True

    def _is_renamed(self, key: str, written: HdfsStatus, data: bytes, error: StorageError) -> bool:
        """Return True if the file at ``key`` is the one that was ``written``, else raise."""
        if self._is_at(key, written, data):
            return True
        raise StorageError(
            errno.EIO, f"it is unknown whether the file was created ({error.strerror}), because an answer was lost", self.path(key)
        ) from error

    def _is_at(self, key: str, written: HdfsStatus, data: bytes) -> bool:
        # Files of two callers may have the same size and millisecond.
        status = self.status(key)
        return status is not None and (status.size, status.modified) == (written.size, written.modified) and self.get(key) == data

    def rename_over(self, source: str, key: str, data: bytes) -> bool:
        """Rename a file of this call, with content ``data``, and replace what has the new name.

        Returns False if another process deleted the file before.
        """
        written = self.status(source)
        if written is None:
            return False
        try:
            self.call("rename", key, lambda client: client.rename(f"/{source}", f"/{key}", True))  # by position only
        except StorageError as error:
            if self.delete(source):
                raise
            if self._is_at(key, written, data):
                return True  # only the answer was lost
            if isinstance(error, FileNotFoundError):
                return False
            raise
        return True

    def rename_directory(self, source: str, key: str) -> None:
        """Move a directory. Raises ``FileTaken`` if the new name exists."""
        before = self.status(source)
        if before is None:
            raise FileMissing(errno.ENOENT, "there is no such directory", self.path(source))
        try:
            self.call("rename", key, lambda client: client.rename(f"/{source}", f"/{key}", False))  # by position only
        except FileExistsError:
            raise
        except StorageError:
            target_status = self.status(key)
            if (
                self.status(source) is not None
                or target_status is None
                or (target_status.modified, target_status.is_dir) != (before.modified, before.is_dir)
            ):
                raise

    def mkdirs(self, key: str) -> None:
        """Create a directory and its parents."""
        permission = self._settings.directory_permission
        self.call("mkdirs", key, lambda client: client.mkdirs(f"/{key}", permission, create_parent=True))

    def delete(self, key: str, *, recursive: bool = False) -> bool:
        """Delete a file or directory.

        True: it existed. False: there is none; a lost answer may be the reason.
        """
        return bool(self.call("delete", key, lambda client: client.delete(f"/{key}", recursive)))

    def failed(self, key: str, error: BaseException) -> BaseException:
        """Return the typed error for an error of the library."""
        failure = None if isinstance(error, PaimonError) else _Failure.of(error)
        return error if failure is None else failure.error(self.path(key))


def _status(entry: Any) -> HdfsStatus:
    return HdfsStatus(entry.path.rstrip("/").rpartition("/")[2], int(entry.length), int(entry.modification_time), bool(entry.isdir))


def _spans(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return (start, end) of neighbouring ranges, joined.

    >>> _spans([(0, 10), (12, 3), (1 << 30, 5)])
    [(0, 15), (1073741824, 1073741829)]
    """
    return list(_joined(sorted((offset, offset + length) for offset, length in ranges)))


def _joined(ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    if not ranges:
        return
    start, end = ranges[0]
    for first, last in ranges[1:]:
        if first - end > thresholds.joined_gap_bytes:
            yield start, end
            start, end = first, last
        end = max(end, last)
    yield start, end


def open_cluster(location: ObjectPlace, options: StorageOptions) -> HdfsCluster:
    """Return the cluster of a path.

    Opened once per process, options and environment. Raises ``UnsupportedOption``, ``InvalidArgument``.
    """
    if _forked_from:
        raise UnsupportedOption(
            "path",
            f"{location.scheme}: cannot be used in a process that was forked from one that used it: the client library's connections would be "
            "shared. Start processes by 'spawn' or 'forkserver' (multiprocessing.set_start_method)",
        )
    key = (
        options.fingerprint(location),
        options.max_retries,
        options.timeout_millis,
        *(os.environ.get(name) for name in _ENVIRONMENT),
    )
    cluster = _open.get(key)
    if cluster is None:
        with _opening:
            cluster = _open.get(key) or HdfsCluster(location, options)
            _open[key] = cluster
    return cluster


def _check_reachable(location: ObjectPlace, timeout_millis: int) -> None:
    """Raise ``StorageError`` if nothing listens at the name node's address."""
    # The library waits for a connection without a limit.
    host, _, port = location.bucket.rpartition(":")
    if not host or not port.isdecimal():  # a nameservice: its nodes are known to the library only
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout_millis / 1000).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise StorageError(errno.EIO, f"HDFS cannot be reached ({error}); is this the RPC port of the name node?", location.root) from None


def _connect(location: ObjectPlace, settings: HdfsOptions, timeout_millis: int) -> tuple[Any, Any]:
    if location.scheme == "viewfs" and not location.bucket:  # the library would use fs.defaultFS, of any scheme
        raise InvalidArgument("a path of viewfs must name its mount table: viewfs://name/path")
    try:
        import hdfs_native  # noqa: PLC0415  # optional dependency, not needed for other stores
    except ImportError as error:
        raise UnsupportedOption("path", _MISSING.format(scheme=location.scheme)) from error
    _check_reachable(location, timeout_millis)
    try:
        client = hdfs_native.Client(location.root if location.bucket else None, settings.config(location), settings.conf_dir)
    except BaseException as error:
        with suppress(AttributeError):  # an error of the library's own runtime is no Exception
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                failure = _Failure.of(error)
                reason = redact(str(error)[:200]) if failure is None else failure.reason
                raise InvalidArgument(
                    f"{location.root}: HDFS cannot be opened ({reason}); name a name node as hdfs://host:port, or a nameservice of "
                    "HADOOP_CONF_DIR or of option 'hadoop-conf-dir'"
                ) from None
        raise
    return hdfs_native, client
