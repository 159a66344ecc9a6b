"""Typed errors that cross from a server's Python worker to the client.

The client raises the same class.
Spark sends an exception of a worker to the client as text. Our exceptions get a note, which a traceback prints after the message.
The note is one line of JSON with the class and its arguments. The client finds that line and raises the class.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from traceback import extract_tb
from types import TracebackType
from typing import Any

import paimon_base.errors
from manifest.io import catalog_errors as catalogs
from manifest.io import errors
from paimon_base.errors import PaimonError
from paimon_base.process import set_environment
from paimon_base.public import public
from paimon_base.redaction import redact
from pyspark_paimon._version import __version__


@public
class SparkUnavailable(PaimonError, RuntimeError):
    """pyspark, Java or the server is missing or unreachable."""


@public
class SessionLost(SparkUnavailable):
    """The Spark session has ended, or its server does not answer.

    A change that was running may be committed: repeat it with its ``commit_id`` in a new session.
    """


@public
class SourceMissing(SparkUnavailable):
    """The server lacks the data source.

    The message has the command that installs it.
    """


@public
class InstallRefused(PaimonError, RuntimeError):
    """This client cannot send the package to the server."""


@public
class RemoteError(PaimonError):
    """The server raised an error class that this client lacks.

    The server's package is newer.
    """


INSTALL = (
    f"on the server and on the machines of its workers, with the Python that Spark uses there, run "
    f"python -m pip install pyspark-paimon=={__version__} and restart the server"
)
_NOT_FOUND = re.compile(r"\[DATA_SOURCE_NOT_FOUND\].*?: (?:pyspark_)?paimon\.")
_LOST = re.compile(
    r"(?:\[|\] )(NO_ACTIVE_SESSION|INVALID_HANDLE\.SESSION_(?:NOT_FOUND|CLOSED|CHANGED)|RETRIES_EXCEEDED|SESSION_ALREADY_EXIST)\b"
    r"|StatusCode\.(UNAVAILABLE)|incorrect (server side session) identifier"
)
MARK = "paimon-error: "
"""First characters of the note of a typed error."""
_NOTE = re.compile(r"^\s*" + re.escape(MARK) + r"(\{.*\})\s*$", re.MULTILINE)


def describe_error(error: PaimonError) -> str:
    """Return the note of ``error``, one line of ASCII.

    >>> describe_error(errors.CommitConflict("bucket 3 was compacted"))
    'paimon-error: {"class": "CommitConflict", "args": ["bucket 3 was compacted"]}'
    """
    reduced = error.__reduce__()
    raw = reduced[1] if isinstance(reduced, tuple) and isinstance(reduced[1], tuple) else error.args
    arguments = [redact(argument) if isinstance(argument, str) else argument for argument in raw]
    name, text = type(error).__name__, str(error)
    note = {"class": name, "args": arguments, **({} if arguments == [text] else {"text": text})}  # people read the note, too
    try:
        return MARK + json.dumps(note)
    except TypeError:
        return MARK + json.dumps({"class": name, "args": [text]})


class attach_error_notes(AbstractContextManager[None]):  # noqa: N801  # used as a function is
    """Context that adds the note to a typed error.

    It also shortens the traceback. A worker of Spark leaves it out, so that the message comes first.
    Other exceptions pass unchanged.
    """

    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Add the note."""
        if isinstance(error, PaimonError):
            if not any(MARK in note for note in getattr(error, "__notes__", ())):
                error.add_note(_describe_origin(error.__traceback__))
                error.add_note(describe_error(error))
            error.__cause__, error.__suppress_context__ = None, True
            # Spark prints the traceback before the message. Without any frame it would print all frames of Spark.
            if traceback is not None:
                error.__traceback__ = TracebackType(None, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)
            if "pyspark.worker_util" in sys.modules:  # Spark ends a worker after any exception
                set_environment("SPARK_HIDE_TRACEBACK", "1")


def _describe_origin(traceback: TracebackType | None) -> str:
    """Return file and line of the raise statement."""
    frames = extract_tb(traceback)
    return f"(raised at {Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def typed_error(text: str) -> PaimonError | None:
    r"""Return the typed error in a server's message, or None.

    >>> typed_error("Traceback...\n" + describe_error(paimon_base.errors.UnknownColumn("citi", ("id", "city"))))
    UnknownColumn('citi', ('id', 'city'))
    """
    match = _NOTE.search(text)
    if match is None:
        return None
    try:
        note: dict[str, Any] = json.loads(match.group(1))
    except ValueError:
        return None
    name = str(note.get("class"))
    error_class = (
        getattr(errors, name, None) or getattr(paimon_base.errors, name, None) or globals().get(name) or getattr(catalogs, name, None)
    )
    arguments = [tuple(argument) if isinstance(argument, list) else argument for argument in note.get("args", ())]
    unknown = RemoteError(f"{name}: {note.get('text') or ' '.join(map(str, arguments))}")
    if not (isinstance(error_class, type) and issubclass(error_class, PaimonError)):
        return unknown
    try:
        return error_class(*arguments)
    except TypeError:
        return unknown


def session_lost(reason: str) -> SessionLost:
    """Return the error of a session that has ended, with the way to go on."""
    return SessionLost(
        f"the Spark session has ended, or its server does not answer ({reason}): make a new session, and open the table in it with "
        f"Table.open(path, spark=...). A write that was running can be repeated there with its commit_id"
    )


@contextmanager
def raise_typed_errors() -> Iterator[None]:
    """Raise the typed error in a Spark exception.

    The Spark exception becomes its cause.
    """
    try:
        yield
    except PaimonError:
        raise
    except Exception as error:
        text = str(error)
        typed = typed_error(text)
        if typed is None and _NOT_FOUND.search(text):
            typed = SourceMissing(f"the Spark server lacks format 'paimon': {INSTALL}; or try pyspark_paimon.install(spark)")
        lost = _LOST.search(text) if typed is None else None
        if lost is not None:
            typed = session_lost(lost[1] or lost[2] or lost[3])
        if typed is None:
            raise
        raise typed from error
