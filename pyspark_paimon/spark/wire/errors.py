"""Typed errors across Spark: raised in a server's Python worker, seen by the client as the same class.

Spark carries an exception of a worker as text. Ours get a note, which every traceback prints after the message, with the
class and its arguments as one line of JSON; the client looks for that line and raises the class again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from traceback import extract_tb
from types import TracebackType
from typing import Any

import fileindex.base.errors
from fileindex.base.errors import PaimonError
from fileindex.base.public import public
from fileindex.base.redaction import redacted
from manifest.io import errors
from pyspark_paimon._version import __version__


@public
class SparkUnavailable(PaimonError, RuntimeError):
    """pyspark, Java or the server is missing or cannot be reached; the message says which."""


@public
class SourceMissing(SparkUnavailable):
    """The server does not know our data source; the message has the command that installs it there."""


@public
class InstallRefused(PaimonError, RuntimeError):
    """This client cannot ship the package to that server; the message says why, and what to do there."""


@public
class RemoteError(PaimonError):
    """The server failed with an error of ours that this client does not know (the server's package is newer)."""


INSTALL = (
    f"on the server and on the machines of its workers, with the Python that Spark uses there, run "
    f"python -m pip install pyspark-paimon=={__version__} and restart the server"
)
_NOT_FOUND = re.compile(r"\[DATA_SOURCE_NOT_FOUND\].*?: (?:pyspark_)?paimon\.")
MARK = "paimon-error: "
"""What the note of a typed error begins with."""
_NOTE = re.compile(r"^\s*" + re.escape(MARK) + r"(\{.*\})\s*$", re.MULTILINE)


def describe_error(error: PaimonError) -> str:
    """The note that carries ``error``: one line of ASCII.

    >>> describe_error(errors.CommitConflict("bucket 3 was compacted"))
    'paimon-error: {"class": "CommitConflict", "args": ["bucket 3 was compacted"], "text": "bucket 3 was compacted"}'
    """
    reduced = error.__reduce__()
    raw = reduced[1] if isinstance(reduced, tuple) and isinstance(reduced[1], tuple) else error.args
    arguments = [redacted(argument) if isinstance(argument, str) else argument for argument in raw]
    name = type(error).__name__
    try:
        return MARK + json.dumps({"class": name, "args": arguments, "text": str(error)})
    except TypeError:
        return MARK + json.dumps({"class": name, "args": [str(error)], "text": str(error)})


class errors_noted(AbstractContextManager[None]):  # noqa: N801  # used as a function is
    """Attach the note to a typed error that leaves the block, and cut its traceback to that block; others pass as they are.

    Spark puts the traceback before the message, and a typed error tells its cause in its message. One frame of ours must stay,
    or Spark shows all of its own.
    """

    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Let the error pass, with its note."""
        if isinstance(error, PaimonError):
            if not any(MARK in note for note in getattr(error, "__notes__", ())):
                error.add_note(_raised_at(error.__traceback__))
                error.add_note(describe_error(error))
            error.__cause__, error.__suppress_context__ = None, True
            if traceback is not None:
                error.__traceback__ = TracebackType(None, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)


def _raised_at(traceback: TracebackType | None) -> str:
    """The line of ours that raised, for those who look for its cause."""
    frames = extract_tb(traceback)
    return f"(raised at {Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def typed_error(text: str) -> PaimonError | None:
    r"""The typed error that a server's message carries, or None.

    >>> typed_error("Traceback...\n" + describe_error(fileindex.base.errors.UnknownColumn("citi", ("id", "city"))))
    UnknownColumn('citi', ('id', 'city'))
    """
    found = _NOTE.search(text)
    if found is None:
        return None
    try:
        note: dict[str, Any] = json.loads(found.group(1))
    except ValueError:
        return None
    name = str(note.get("class"))
    known = getattr(errors, name, None) or getattr(fileindex.base.errors, name, None) or globals().get(name)
    if not (isinstance(known, type) and issubclass(known, PaimonError)):
        return RemoteError(f"{note.get('class')}: {note.get('text')}")
    arguments = [tuple(argument) if isinstance(argument, list) else argument for argument in note.get("args", ())]
    try:
        return known(*arguments)
    except TypeError:
        return RemoteError(f"{note.get('class')}: {note.get('text')}")


@contextmanager
def errors_mapped() -> Iterator[None]:
    """Turn Spark's exceptions that carry one of our errors back into it; the Spark exception becomes its cause."""
    try:
        yield
    except PaimonError:
        raise
    except Exception as error:
        text = str(error)
        typed = typed_error(text)
        if typed is None and _NOT_FOUND.search(text):
            typed = SourceMissing(f"the Spark server does not know format 'paimon': {INSTALL}; or try pyspark_paimon.install(spark)")
        if typed is None:
            raise
        raise typed from error


__all__ = [
    "INSTALL",
    "MARK",
    "InstallRefused",
    "RemoteError",
    "SourceMissing",
    "SparkUnavailable",
    "describe_error",
    "errors_mapped",
    "errors_noted",
    "typed_error",
]
