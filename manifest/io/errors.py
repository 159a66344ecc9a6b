"""Typed errors of tables, schemas, snapshots, commits and storage."""

from __future__ import annotations

from paimon_base.errors import InvalidArgument, PaimonError
from paimon_base.public import public
from paimon_base.redaction import redact


@public
class TableNotFound(PaimonError, FileNotFoundError):
    """The path has no Paimon table (no ``schema/schema-N``)."""


@public
class UnknownSystemTable(TableNotFound):
    """The table in ``<table>$name`` has no system table ``name``."""


@public
class SystemTableReadOnly(PaimonError):
    """System tables (``<table>$files``) can be scanned, but not changed."""


@public
class TableExists(PaimonError, FileExistsError):
    """A table or another directory exists at the path."""


@public
class TagExists(InvalidArgument):
    """The table has a tag of that name."""


@public
class BranchExists(InvalidArgument):
    """The table has a branch of that name, or a part of one."""


@public
class UnsupportedTable(PaimonError):
    """The table uses an unsupported feature that affects its rows.

    The message names the option or the file.
    """


@public
class InvalidSchema(PaimonError, ValueError):
    """A schema breaks a rule of Paimon.

    Examples: duplicate column, nested key, missing key column.
    """


@public
class SchemaMismatch(PaimonError, ValueError):
    """The rows to write do not fit the table.

    Examples: missing, extra or duplicate columns, incompatible types.
    """


@public
class CastFailed(PaimonError, ValueError):
    """A stored value cannot be cast to its column's type.

    The column type has changed since. Example: ``'abc'`` in an old file as INT.
    """


@public
class EncodeFailed(PaimonError, ValueError):
    """A file format's encoder rejects rows.

    ``path`` is the file, ``column`` the column if known.
    """

    def __init__(self, path: str, column: str | None, reason: str) -> None:
        super().__init__(path, column, reason)
        self.path = path
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        what = "rows" if self.column is None else f"column '{self.column}'"
        hint = "write other values or types, or choose another 'file.format'"
        return redact(f"{self.path}: {what} cannot be encoded ({self.reason}); {hint}")

    def __reduce__(self) -> tuple[type[EncodeFailed], tuple[str, str | None, str]]:
        return type(self), (self.path, self.column, self.reason)


@public
class NullInKey(SchemaMismatch):
    """A NOT NULL column has nulls. Keys are NOT NULL."""


@public
class UnmergeableRows(PaimonError, ValueError):
    """The merge engine cannot merge the versions of a key.

    Examples: a delete for a function that cannot retract, a sum that overflows.
    """


@public
class SnapshotNotFound(PaimonError, LookupError):
    """No snapshot, tag or timestamp matches."""


@public
class SnapshotExpired(SnapshotNotFound):
    """The snapshot has expired.

    The table keeps snapshots by ``snapshot.time-retained`` (one hour) and ``snapshot.num-retained.min`` (10). A tag keeps one for good, and
    a consumer those that it has yet to read.
    """


KEEP_SNAPSHOTS = (
    "to keep a state for good, create a tag (create_tag); to keep what a reader has yet to see, give it a consumer (follow(consumer=...), or 'consumer-id'); "
    "to keep all longer, raise 'snapshot.time-retained' or 'snapshot.num-retained.min'"
)
"""Advice for readers of snapshots that expire."""


@public
class CommitConflict(PaimonError):
    """Another commit changed or overlaps files that this one needs.

    Repeat the operation on the new snapshot.
    """


@public
class HistoryBusy(CommitConflict):
    """Another process is changing the table's history.

    A rollback, fast-forward or expiry is running. The message names the step that did nothing. Try again.
    """


@public
class CommitGaveUp(CommitConflict):
    """``commit.max-retries`` races were lost in a row."""


@public
class CommitReplayed(PaimonError):
    """A repeated commit's snapshot may have expired.

    The commit is refused because it might append rows twice.
    """


@public
class CatalogRefused(PaimonError):
    """A catalog's server refuses a request.

    Nothing was done unless a subclass says otherwise.
    """


@public
class UnsafeFileIO(PaimonError):
    """The file system cannot create files atomically if absent.

    A commit on it could be lost.
    """


@public
class PathNotAllowed(PaimonError):
    """``path`` is outside the directories allowed for tables.

    The message does not list the allowed directories.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return redact(
            f"{self.path}: not in a directory that is allowed here; the machine's administrator sets these (PYSPARK_PAIMON_ROOTS)"
        )

    def __reduce__(self) -> tuple[type[PathNotAllowed], tuple[str]]:
        return type(self), (self.path,)


@public
class PathNotOwned(PaimonError):
    """``path`` is outside of the directories of ``table``, or behind a link."""

    def __init__(self, table: str, path: str) -> None:
        super().__init__(table, path)
        self.table = table
        self.path = path

    def __str__(self) -> str:
        return redact(
            f"{self.table}: '{self.path}' is not in the table's own directory, or behind a link; nothing was written or deleted there. "
            "Look for the name in the table's options and metadata, and replace links by directories"
        )

    def __reduce__(self) -> tuple[type[PathNotOwned], tuple[str, str]]:
        return type(self), (self.table, self.path)


@public
class StorageError(PaimonError, OSError):
    """The storage failed (permission, I/O error).

    The content of the file is unknown. ``errno`` and ``filename`` have details.
    """


@public
class FileMissing(StorageError, FileNotFoundError):
    """The storage has no such file or directory."""


@public
class FileTaken(StorageError, FileExistsError):
    """The file or directory to create already exists."""


@public
class FileReplaced(StorageError):
    """Another process replaced a file that was just created.

    That process did not check whether the name was free.
    """


@public
class StorageDenied(StorageError, PermissionError):
    """This process lacks the permission."""


@public
class CredentialsRefused(StorageDenied):
    """The store rejects the credentials.

    They are wrong, expired, or a clock differs. Repeat the call with new ones.
    """


@public
class OutOfDisk(StorageError):
    """The disk or the quota is full.

    The files of this attempt were removed. The table is unchanged.
    """


@public
class NotARegularFile(StorageError):
    """The path is a FIFO, socket or device.

    It is not opened, because that could wait forever.
    """


@public
class OutOfThreads(PaimonError, RuntimeError):
    """The process cannot start a thread, and none is running."""

    def __init__(self) -> None:
        super().__init__("no thread can be started; raise the limit (ulimit -u, pids.max of the container) or ask for fewer threads")

    def __reduce__(self) -> tuple[type[OutOfThreads], tuple[()]]:
        return type(self), ()


@public
class OutOfMemory(PaimonError, MemoryError):
    """The process has too little memory for ``path``.

    Its limit is too low, or a damaged file requests too much. The content of the file is unknown.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return redact(f"{self.path}: out of memory ({self.reason or 'allocation failed'})")

    def __reduce__(self) -> tuple[type[OutOfMemory], tuple[str, str]]:
        return type(self), (self.path, self.reason)
