# Paths are strings here, as metadata spells them.
# ruff: noqa: PTH116, PTH118, PTH119, PTH120
"""What a POSIX file system is asked for beneath the local store: directories that are synced and locked, names, whether a file is still itself."""

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
    """Hold the lock of a directory; waits for it no longer than some seconds, for it is only fair."""
    with locked(directory, _TURN_SECONDS):
        yield


@contextmanager
def locked(directory: str, seconds: float | None = None) -> Iterator[bool]:
    """Hold the lock of a directory and yield whether it is held. The kernel releases it when the process dies, not when it stalls.

    Args:
        directory: Its lock is one of the directory itself, so that it needs no file. False if there is no such directory.
        seconds: Time to wait for it. None: some seconds. Mounts without locks count as held.
    """
    seconds = _LOCK_SECONDS if seconds is None else seconds
    descriptor = _open_directory(directory)
    if descriptor is None:
        yield False
        return
    try:
        deadline = time.monotonic() + seconds
        while not (alone := _locked(descriptor)) and time.monotonic() < deadline:
            time.sleep(_TURN_POLL_SECONDS)
        yield alone
    finally:
        os.close(descriptor)  # and with it the lock


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a mount without locks: everybody's turn
        return True
    return True


def _open_directory(directory: str) -> int | None:
    """A descriptor to lock; None if there is none to have: where that is more than a directory not made yet, the work itself tells."""
    try:
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None


def check_regular(path: str) -> None:
    """Raise ``NotARegularFile`` for a FIFO, socket or device, which to open may wait forever."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a directory is refused where it is opened
        raise NotARegularFile(errno.EINVAL, "a FIFO, socket or device, no file; remove it", path)


def temporary_name(path: str) -> str:
    """A hidden name of this call's own in the directory of ``path``."""
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{uuid.uuid4()}.tmp")


def target_of_temporary(name: str) -> str | None:
    """Return the name that a temporary file stands for; None for other files.

    >>> target_of_temporary(os.path.basename(temporary_name("/t/snapshot/snapshot-7")))
    'snapshot-7'
    """
    found = _TEMPORARY.fullmatch(name)
    return found and found[1]


def link_new(source: str, path: str, created: os.stat_result) -> bool:
    """Link ``source``, whose status is ``created``, to a free name; False if the name is taken or the source was deleted.

    Raises ``UnsafeFileIO`` where the file system has no hard links, ``OSError`` if the outcome is not known.
    """
    try:
        os.link(source, path)
    except OSError as error:
        if _is_linked(path, created):  # A network file system may repeat a request whose answer was lost, and report the second result.
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


def moved(rename: Callable[[str, str], None], source: str, target: str) -> None:
    """Rename a file or directory. Raises ``FileExistsError`` if a directory is in the way, ``OSError`` if it did not happen."""
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
    try:
        return os.path.samestat(os.stat(path), created)
    except OSError:
        return False


def is_still(path: str, created: os.stat_result) -> bool:
    """Whether no other file has come in place of the one that was linked to the name.

    Paimon's engines look whether the name is taken and then rename over it: one that looked before the link replaces the file. Seen
    here, that is a lost race; only one that stalls until after this look can take back what was acknowledged.
    """
    try:
        return os.path.samestat(os.stat(path), created)
    except FileNotFoundError:  # removed as a whole, as by a rollback: it was there
        return True


def sync_directory(path: str) -> None:
    """Make the entries of a directory durable, where its file system can."""
    descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # some mounts cannot sync a directory, and need not
            raise
    finally:
        os.close(descriptor)


__all__ = ["check_regular", "is_still", "link_new", "locked", "moved", "sync_directory", "target_of_temporary", "temporary_name", "turn_at"]
