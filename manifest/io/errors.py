"""Typed errors of the metadata of record: tables, schemas, snapshots, commits."""

from __future__ import annotations

from fileindex.base.errors import PaimonError
from fileindex.base.public import public
from fileindex.base.redaction import redacted


@public
class TableNotFound(PaimonError, FileNotFoundError):
    """The path holds no Paimon table (no ``schema/schema-N``)."""


@public
class UnknownSystemTable(TableNotFound):
    """``<table>$name``: the table is there, and has no system table of that name."""


@public
class SystemTableReadOnly(PaimonError):
    """A system table (``<table>$files``) is made of a table's metadata: it can be scanned, and neither written nor changed."""


@public
class TableExists(PaimonError, FileExistsError):
    """A table, or something else, already stands at the path."""


@public
class UnsupportedTable(PaimonError):
    """The table uses a feature that would make our rows wrong; the message names the option or the file."""


@public
class InvalidSchema(PaimonError, ValueError):
    """A schema breaks a rule of Paimon's (duplicate column, nested key, missing key column...)."""


@public
class SchemaMismatch(PaimonError, ValueError):
    """The rows to write do not fit the table: missing, extra or duplicate columns, incompatible types."""


@public
class CastFailed(PaimonError, ValueError):
    """A value of an old file is no value of the type that its column has now (``'abc'`` as INT)."""


@public
class EncodeFailed(PaimonError, ValueError):
    """A file format's encoder refuses rows. ``path`` is the file, ``column`` the column if known."""

    def __init__(self, path: str, column: str | None, reason: str) -> None:
        super().__init__(path, column, reason)
        self.path = path
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        what = "rows" if self.column is None else f"column '{self.column}'"
        hint = "write other values or types, or choose another 'file.format'"
        return redacted(f"{self.path}: {what} cannot be encoded ({self.reason}); {hint}")

    def __reduce__(self) -> tuple[type[EncodeFailed], tuple[str, str | None, str]]:
        return type(self), (self.path, self.column, self.reason)


@public
class NullInKey(SchemaMismatch):
    """A NOT NULL column (every primary-key column is one) holds a null."""


@public
class UnmergeableRows(PaimonError, ValueError):
    """The table's merge engine cannot fold the versions of a key: a delete that a function cannot take back, a sum that overflows."""


@public
class SnapshotNotFound(PaimonError, LookupError):
    """No snapshot, tag or timestamp of that name."""


@public
class SnapshotExpired(SnapshotNotFound):
    """The pinned snapshot was expired meanwhile; raise ``snapshot.num-retained.min`` or ``snapshot.time-retained``."""


@public
class CommitConflict(PaimonError):
    """Another commit removed or overlaps files that this one was built on; redo the operation on the new snapshot."""


@public
class HistoryBusy(CommitConflict):
    """Another process is changing the table's history (rollback, fast-forward, expiry); nothing was done, try again."""


@public
class CommitGaveUp(CommitConflict):
    """``commit.max-retries`` races were lost in a row."""


@public
class CommitReplayed(PaimonError):
    """A commit identifier is replayed after its snapshot has expired: refused, for it might append twice."""


@public
class CatalogRefused(PaimonError):
    """A catalog's server refuses what it was asked to do; nothing was done unless a subclass says otherwise."""


@public
class UnsafeFileIO(PaimonError):
    """The file system has no atomic create-if-absent, so a commit on it could be lost."""


@public
class PathNotAllowed(PaimonError):
    """The process that would open ``path`` allows tables in certain directories only, and it is in none of them; which, it does not say."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return redacted(
            f"{self.path}: not in a directory that is allowed here; the machine's administrator sets these (PYSPARK_PAIMON_ROOTS)"
        )

    def __reduce__(self) -> tuple[type[PathNotAllowed], tuple[str]]:
        return type(self), (self.path,)


@public
class StorageError(PaimonError, OSError):
    """The storage refuses or fails (permission, I/O error): nothing is known of the file's content; ``errno`` and ``filename`` tell more."""


@public
class FileMissing(StorageError, FileNotFoundError):
    """The storage has no such file or directory."""


@public
class FileTaken(StorageError, FileExistsError):
    """Something stands already where a file or directory is to be made."""


@public
class FileReplaced(StorageError):
    """A file that was just created has been replaced by another process, which did not look whether its name was free."""


@public
class StorageDenied(StorageError, PermissionError):
    """This process may not do that there (permissions)."""


@public
class CredentialsRefused(StorageDenied):
    """The store does not take the credentials (wrong, expired, of another clock); with new ones the same call may be made again."""


@public
class OutOfDisk(StorageError):
    """The disk or the quota is full; what this attempt wrote is removed, the table is as it was."""


@public
class NotARegularFile(StorageError):
    """A FIFO, socket or device stands where a file should be. It is not opened, for that could wait forever."""


@public
class OutOfThreads(PaimonError, RuntimeError):
    """The process may start no more threads, and none that runs could do the work."""

    def __init__(self) -> None:
        super().__init__("no thread can be started; raise the limit (ulimit -u, pids.max of the container) or ask for fewer threads")

    def __reduce__(self) -> tuple[type[OutOfThreads], tuple[()]]:
        return type(self), ()


@public
class OutOfMemory(PaimonError, MemoryError):
    """The process got no memory for what ``path`` holds: its limit is too low, or a damaged file asks for too much; nothing is known of the file."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return redacted(f"{self.path}: out of memory ({self.reason or 'no more to be had'})")

    def __reduce__(self) -> tuple[type[OutOfMemory], tuple[str, str]]:
        return type(self), (self.path, self.reason)


__all__ = [
    "CastFailed",
    "CatalogRefused",
    "CommitConflict",
    "CommitGaveUp",
    "CommitReplayed",
    "CredentialsRefused",
    "EncodeFailed",
    "FileMissing",
    "FileReplaced",
    "FileTaken",
    "HistoryBusy",
    "InvalidSchema",
    "NotARegularFile",
    "NullInKey",
    "OutOfDisk",
    "OutOfMemory",
    "OutOfThreads",
    "PathNotAllowed",
    "SchemaMismatch",
    "SnapshotExpired",
    "SnapshotNotFound",
    "StorageDenied",
    "StorageError",
    "SystemTableReadOnly",
    "TableExists",
    "TableNotFound",
    "UnknownSystemTable",
    "UnmergeableRows",
    "UnsafeFileIO",
    "UnsupportedTable",
]
