# Paths are strings here, as metadata spells them.
# ruff: noqa: PTH116, PTH118, PTH119, PTH120
"""What a POSIX file system is asked for beneath the local store: directories that are synced and locked, names, whether a file is still itself."""

from __future__ import annotations

import errno
import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

_TURN_SECONDS = 5.0
_TURN_POLL_SECONDS = 0.002


@contextmanager
def turn_at(directory: str) -> Iterator[None]:
    """Hold the lock of a directory; waits for it no longer than some seconds, for it is only fair."""
    with locked(directory):
        yield


@contextmanager
def locked(directory: str) -> Iterator[bool]:
    """Hold the lock of a directory, and say whether it is held: some seconds are waited for it. Mounts without locks count as held."""
    descriptor = _open_directory(directory)
    if descriptor is None:
        yield False
        return
    try:
        deadline = time.monotonic() + _TURN_SECONDS
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


def temporary_name(path: str) -> str:
    """A hidden name of this call's own in the directory of ``path``."""
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{uuid.uuid4()}.tmp")


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


__all__ = ["is_still", "locked", "sync_directory", "temporary_name", "turn_at"]
