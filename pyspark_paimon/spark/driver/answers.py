"""Command answers, stored on the driver's disk.

A write job returns only success, so the answer of a command goes into a file. A later question reads it.
The file name is a hash of the command id. Only this user can read the directory.
A repeated command finds its answer there and does nothing. Answers older than a day are deleted.
"""

from __future__ import annotations

import getpass
import hashlib
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fileindex.base.errors import InvalidArgument
from manifest.io.file_io import LocalFileIO

_KEPT_SECONDS = 24 * 3600


def answered(command_id: str, work: Callable[[], str]) -> str:
    """Return the stored answer of a command, or compute it.

    ``work`` computes the answer, which is then stored.

    >>> from uuid import uuid4
    >>> first = str(uuid4())
    >>> answered(first, lambda: "done"), answered(first, lambda: "again"), stored_answer(first)
    ('done', 'done', 'done')
    """
    found = stored_answer(command_id)
    if found is not None:
        return found
    answer = work()
    _sweep()
    LocalFileIO().create_exclusive(str(answer_file(command_id)), answer.encode())
    return answer


def stored_answer(command_id: str) -> str | None:
    """Return the stored answer of a command.

    None: the command left no answer, or the answer was deleted.
    """
    try:
        return answer_file(command_id).read_text()
    except FileNotFoundError:
        return None


def answer_file(name: str, kind: str = "json") -> Path:
    """Return the file that stores data of ``name``.

    Only this user can read its directory.
    """
    return _directory() / f"{hashlib.sha256(name.encode()).hexdigest()}.{kind}"


def _directory() -> Path:
    directory = Path(tempfile.gettempdir()) / f"pyspark-paimon-{getpass.getuser()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.owner() != getpass.getuser() or directory.stat().st_mode & 0o077:
        raise InvalidArgument(f"{directory} belongs to or is open to others; remove it")
    return directory


def _sweep() -> None:
    oldest = time.time() - _KEPT_SECONDS
    for path in _directory().glob("*.*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < oldest:
                path.unlink()


__all__ = ["answer_file", "answered", "stored_answer"]
