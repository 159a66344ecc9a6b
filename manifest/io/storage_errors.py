"""Conversion of ``OSError`` to a ``StorageError`` with the file's path."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar, cast

from manifest.io.errors import FileMissing, FileTaken, OutOfDisk, StorageDenied, StorageError
from paimon_base.errors import PaimonError

_Class = TypeVar("_Class", bound=type)
_KINDS: tuple[tuple[type[OSError], type[StorageError]], ...] = (
    (FileNotFoundError, FileMissing),
    (FileExistsError, FileTaken),
    (PermissionError, StorageDenied),
)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_MEMORY = ("malloc of size", "realloc of size", "bad_alloc", "Allocation error", "not enough memory", "Error -4 ")
"""Messages of decoders without a typed out-of-memory error: Arrow, the C++ library, zstandard, zlib."""
OPERATIONS = (
    "read",
    "read_range",
    "size",
    "identity",
    "exists",
    "list",
    "mkdirs",
    "write",
    "write_hint",
    "create_exclusive",
    "replace",
    "delete",
    "delete_directory",
    "rename_directory",
    "open_output",
    "open_input",
    "sync",
)
"""Methods of ``FileIO`` that access storage. Their first argument is the path."""


class storage_errors(AbstractContextManager[None]):  # noqa: N801  # used like a function
    """Convert an ``OSError`` of the block to ``StorageError``.

    The error names ``path``, even if a temporary file or a parent directory failed.

    >>> with storage_errors("/warehouse/t/snapshot/snapshot-1"):
    ...     raise OSError(errno.EIO, "Input/output error")
    Traceback (most recent call last):
    ...
    pyspark_paimon.StorageError: [Errno 5] Input/output error: '/warehouse/t/snapshot/snapshot-1'
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Raise the typed error. Other errors pass."""
        if isinstance(error, OSError) and not isinstance(error, PaimonError):
            raise _to_storage_error(error, self.path) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether a decoder failed for lack of memory.

    The file may be intact then.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(OSError("ZSTD decompression failed: Allocation error : not enough memory"))
    (True, True)
    """
    return isinstance(error, MemoryError) or any(text in str(error) for text in _NO_MEMORY)


def _to_storage_error(error: OSError, path: str) -> StorageError:
    """Return the ``StorageError`` for an ``OSError``."""
    # The type also inherits from the builtin one: ``except FileNotFoundError`` catches both.
    reason = error.strerror or str(error) or "the storage failed"
    if error.errno in _FULL:
        return OutOfDisk(error.errno, f"no space left while writing ({reason})", path)
    if error.filename and path.startswith(f"{error.filename}/"):
        reason = f"{reason} at '{error.filename}'"
    kind = StorageError
    for theirs, ours in _KINDS:
        if isinstance(error, theirs):
            kind = ours
            break
    return kind(error.errno or errno.EIO, reason, path)


def with_storage_errors(store: _Class) -> _Class:
    """Make a store's own methods raise only ``StorageError``.

    Inherited methods are not changed.
    """
    for name in OPERATIONS:
        method = vars(store).get(name)
        if callable(method):
            setattr(store, name, _translate_errors(method))
    return store


def _translate_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def operation(self: Any, path: str, *arguments: Any, **options: Any) -> Any:
        try:
            return method(self, path, *arguments, **options)
        except OSError as error:
            if isinstance(error, PaimonError):
                raise
            raise _to_storage_error(error, path) from error
        except UnicodeEncodeError as error:
            raise StorageError(errno.EINVAL, "a file name cannot contain an unpaired surrogate", ascii(path)) from error

    return cast("Callable[..., Any]", operation)
