# Paths are strings, as in metadata.
# ruff: noqa: PTH116, PTH118, PTH119, PTH120
"""POSIX operations of the local store: locks, links, renames, syncs."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from manifest.io.errors import NotARegularFile, UnsafeFileIO

_TURN_SECONDS = 5.0
_TURN_POLL_SECONDS = 0.002
_LOCK_SECONDS = 10.0
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp")
_NO_LINK = frozenset(
    # EACCES counts too: the source was just created in the same directory, so permissions are not the reason.
    {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK}
)


@contextmanager
def turn_at(directory: str) -> Iterator[None]:
    """Hold the lock of a directory after a bounded wait.

    For fairness only.
    """
    with lock_directory(directory, _TURN_SECONDS):
        yield


@contextmanager
def lock_directory(directory: str, seconds: float | None = None) -> Iterator[bool]:
    """Lock a directory and yield whether the lock is held.

    The kernel releases it when the process dies, not when it stalls.

    Args:
        directory: Locked itself, without a lock file. Yields False if it does not exist.
        seconds: Time to wait. None: a default. Mounts without locks count as held.
    """
    seconds = _LOCK_SECONDS if seconds is None else seconds
    descriptor = _open_directory(directory)
    if descriptor is None:
        yield False
        return
    try:
        deadline = time.monotonic() + seconds
        while not (alone := _try_lock(descriptor)) and time.monotonic() < deadline:
            time.sleep(_TURN_POLL_SECONDS)
        yield alone
    finally:
        os.close(descriptor)  # releases the lock


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a mount without locks
        return True
    return True


def _open_directory(directory: str) -> int | None:
    """Return a descriptor to lock, or None.

    None is not an error: the directory may not exist yet, and other failures appear in the operation itself.
    """
    try:
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None


def check_regular(path: str) -> None:
    """Raise ``NotARegularFile`` for a FIFO, socket or device."""
    mode = os.stat(path).st_mode  # opening one of these may wait forever
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a directory fails later
        raise NotARegularFile(errno.EINVAL, "a FIFO, socket or device instead of a file; remove it", path)


def temporary_name(path: str) -> str:
    """Return a hidden unique name in the directory of ``path``."""
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{uuid.uuid4()}.tmp")


def target_of_temporary(name: str) -> str | None:
    """Return the final name of a temporary file.

    None for other files.

    >>> target_of_temporary(os.path.basename(temporary_name("/t/snapshot/snapshot-7")))
    'snapshot-7'
    """
    match = _TEMPORARY.fullmatch(name)
    return match and match[1]


def link_new(source: str, path: str, created: os.stat_result, data: bytes) -> bool:
    """Link ``source`` to ``path`` if that name is free.

    Returns False if the name exists or the source was deleted. Raises ``UnsafeFileIO`` if the file system has no hard links, ``OSError`` if
    the outcome is unknown.

    Args:
        source: Temporary file.
        path: Final name.
        created: Status of ``source``.
        data: Content of ``source``, unlike that of every other file.
    """
    try:
        os.link(source, path)
    except OSError as error:
        # A network file system may repeat a request whose answer was lost, and report the second result.
        if _is_linked(path, created) and Path(path).read_bytes() == data:
            return True
        if isinstance(error, FileExistsError):
            return False
        if isinstance(error, FileNotFoundError) and not os.path.lexists(source):
            return False
        if error.errno in _NO_LINK:
            raise UnsafeFileIO(
                f"{path}: cannot create a hard link ({error.strerror}), and without hard links a commit could be lost. Nothing was "
                "committed. Use a file system with hard links (ext4, XFS, APFS, NFS; not exFAT, and not every FUSE or SMB mount), "
                "an object store, or a REST catalog"
            ) from error
        raise
    return True


def move(rename: Callable[[str, str], None], source: str, target: str) -> None:
    """Rename a file or directory.

    Raises ``FileExistsError`` if a directory exists at the target, ``OSError`` if the rename surely failed.
    """
    before = os.stat(source)
    try:
        rename(source, target)
    except OSError as error:
        if _is_linked(target, before):  # as in ``link_new``
            return
        if error.errno == errno.ENOTEMPTY:
            raise FileExistsError(errno.EEXIST, "the target exists", target) from error
        raise


def _is_linked(path: str, created: os.stat_result) -> bool:
    """Return whether ``path`` is the file of ``created``.

    Size and time are compared too: if that file was deleted, a new one may have its inode.
    """
    try:
        status = os.stat(path)
    except OSError:
        return False
    return os.path.samestat(status, created) and (status.st_size, status.st_mtime_ns) == (created.st_size, created.st_mtime_ns)


def is_same_file(path: str, created: os.stat_result) -> bool:
    """Return whether the linked file was not replaced.

    Paimon's engines check whether the name exists and then rename over it. An engine that checked before the link replaces our file. If
    this function sees that, it is a lost race. Only an engine that stalls until after this check can undo an acknowledged commit.
    """
    try:
        return os.path.samestat(os.stat(path), created)
    except FileNotFoundError:  # deleted, as by a rollback: the link succeeded
        return True


def sync_directory(path: str) -> None:
    """Make the entries of a directory durable if possible."""
    descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # some mounts cannot sync directories and need not
            raise
    finally:
        os.close(descriptor)
