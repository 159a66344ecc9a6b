"""Answers of commands and marks of running jobs, as files of the driver.

A write job returns only success, so the answer of a command goes into a file. A later question reads it. A repeated command finds its
answer there and does nothing. Answers older than a day are deleted.

A question about the outcome of a job waits for the end of the job. For a client, an operation ends when it is cancelled or the connection
is lost. On the server, tasks may continue, and a commit hook always runs to its end. Before that, the answer "not committed" could soon
be wrong. So a job leaves a mark when its writer is created. Its commit or abort hook removes the mark; Spark calls one of them.

The name of a file is a hash of the command id. Only this user can read the directory, which is below that of temporary files. Neither
the directory nor a file in it may be a symbolic link, which another user could have made.
"""

from __future__ import annotations

import errno
import getpass
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from manifest.io.file_io import LocalFileIO
from paimon_base.errors import InvalidArgument

_KEPT_SECONDS = 24 * 3600
_SWEEP_SECONDS = 600
PATIENCE_SECONDS = 60.0
"""Seconds that a question waits for a running job. Then the client reports that the job may still run."""
_LOOK_SECONDS = 0.02
T = TypeVar("T")


def answer_once(command_id: str, work: Callable[[], str]) -> str:
    """Return the stored answer of a command, or compute it.

    ``work`` computes the answer, which is then stored.

    >>> from uuid import uuid4
    >>> first = str(uuid4())
    >>> answer_once(first, lambda: "done"), answer_once(first, lambda: "again"), stored_answer(first)
    ('done', 'done', 'done')
    """
    earlier_answer = stored_answer(command_id)
    if earlier_answer is not None:
        return earlier_answer
    answer = work()
    _sweep()
    LocalFileIO().create_exclusive(str(answer_file(command_id)), answer.encode())
    return answer


@contextmanager
def exclusively(command_id: str) -> Iterator[None]:
    """Run the block while no other process of the driver runs a block with this id.

    A process must not run two such blocks at once.
    """
    import fcntl  # noqa: PLC0415  # missing on Windows, where no Spark server runs

    with os.fdopen(_open(_directory() / "locks", os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as locks:
        # Each id locks a byte of one file, beyond its end. Files of locks cannot be deleted safely, and would pile up.
        fcntl.lockf(locks, fcntl.LOCK_EX, 1, int(hashlib.sha256(command_id.encode()).hexdigest()[:14], 16))
        yield


def stored_answer(command_id: str) -> str | None:
    """Return the stored answer of a command.

    None: the command left no answer, or the answer was deleted.
    """
    try:
        return _read(answer_file(command_id))
    except FileNotFoundError:
        return None


def answer_file(name: str, kind: str = "json") -> Path:
    """Return the file that stores data of ``name``.

    Only this user can read its directory.
    """
    return _directory() / f"{hashlib.sha256(name.encode()).hexdigest()}.{kind}"


def _directory() -> Path:
    directory = Path(tempfile.gettempdir()) / f"pyspark-paimon-{getpass.getuser()}"
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise InvalidArgument(f"{directory} is a symbolic link or a file, where answers of jobs need a directory; remove it")
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise InvalidArgument(f"{directory} belongs to or is open to others; remove it")
    return directory


def _open(path: Path, flags: int) -> int:
    """Open a regular file of this user, and no link.

    Raises ``InvalidArgument`` for another kind of file.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EISDIR, errno.ENXIO}:
            raise _irregular(path) from error
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        os.close(descriptor)
        raise _irregular(path)
    return descriptor


def _irregular(path: Path) -> InvalidArgument:
    return InvalidArgument(f"{path} is not a regular file of this user; remove it")


def _read(path: Path) -> str:
    with os.fdopen(_open(path, os.O_RDONLY), encoding="utf-8") as file:
        return file.read()


def _sweep() -> None:
    """Delete old answers, not more often than all ``_SWEEP_SECONDS``."""
    swept, now = _directory() / "swept", time.time()
    with suppress(FileNotFoundError):
        if now - swept.lstat().st_mtime < _SWEEP_SECONDS:  # many small commands must not look at each other's files
            return
    descriptor = _open(swept, os.O_WRONLY | os.O_CREAT)
    os.utime(descriptor)
    os.close(descriptor)
    oldest = now - _KEPT_SECONDS
    for path in _directory().glob("*.*"):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if status.st_mtime < oldest and not stat.S_ISDIR(status.st_mode):
                path.unlink()


def mark_started(name: str) -> None:
    """Mark the job ``name`` as running.

    The mark is valid until ``mark_ended``, or until the parent of this process ends.

    >>> mark_started("a nightly job"), is_running("a nightly job"), mark_ended("a nightly job"), is_running("a nightly job")
    (None, True, None, False)
    """
    mark = answer_file(name, "job")
    mark.unlink(missing_ok=True)
    with os.fdopen(_open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w") as file:
        file.write(str(os.getppid()))  # Spark's process, which starts the processes of the hooks


def mark_ended(name: str) -> None:
    """Remove the mark of a job."""
    answer_file(name, "job").unlink(missing_ok=True)


def is_running(name: str) -> bool:
    """Return whether the job is running."""
    try:
        parent = _read(answer_file(name, "job"))
    except FileNotFoundError:
        return False
    try:
        os.kill(int(parent), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):  # a partial mark, or the mark of a dead process
        return False
    return True


def wait_for_end(name: str, look: Callable[[], T | None]) -> T | None:
    """Wait for a job until ``look`` returns a result.

    Returns None if the job has ended without result, or still runs after ``PATIENCE_SECONDS``.

    >>> wait_for_end("a nightly job", lambda: None) is None
    True
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        under_way = is_running(name)  # before look(): a job that ends between both calls must not be missed
        state = look()
        if state is not None or not under_way or time.monotonic() > until:
            return state
        _wait_for_change(name)


def _wait_for_change(name: str) -> None:
    """Wait until the job ends, for about one second."""
    # The commit may be visible long before its hook ends.
    for _ in range(round(1 / _LOOK_SECONDS)):
        time.sleep(_LOOK_SECONDS)
        if not is_running(name):
            return
