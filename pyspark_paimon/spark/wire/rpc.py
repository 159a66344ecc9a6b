"""Messages between a Spark client and the data source, as strict JSON.

A *question* travels in an option. ``DataSource.schema()`` answers it in the metadata of a column. Spark may ask twice, so questions
only read. A *command* is an operation in an option of a write job. The commit hook of the job runs it on the driver, once for its id,
and a question fetches the answer. ``jobs`` describes jobs that read and write rows.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from paimon_base.errors import InvalidArgument
from pyspark_paimon._version import HOME, __version__
from pyspark_paimon.request.operation import Operation, Request, parse_request
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.results.message import CommitId, Message
from pyspark_paimon.results.results import Outcome
from pyspark_paimon.spark.wire.jobs import HashScan, Job
from pyspark_paimon.spark.wire.native_plan import NativePlan

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

QUESTION = "paimon.question"
COMMAND = "paimon.command"
SCAN = "paimon.scan"
FORM = "paimon.form"
"""Output of a scan: ``rows`` (default), ``blobs`` (Arrow IPC streams), ``reports`` (counters as JSON, one per split),
or ``summaries`` (aggregates of columns as JSON, one per split)."""
WRITE = "paimon.write"
HASHES = "paimon.hashes"
SHARED = "paimon.shared"
"""Option of a read whose tasks answer parts of a question: the wire text of a ``SharedQuestion``."""
TASK_COLUMNS = ("partition", "bucket", "size", "file")
"""Columns of the rows of a ``TasksJob``: the fields of ``Task``."""
HASH_COLUMN, BUCKET_COLUMN, PARTITION_COLUMN = "__paimon_hash", "__paimon_home", "__paimon_home_part"
"""Columns of a ``HashScan``: a key's hash, its bucket, and (numbered) its partition values."""
ANSWER = "answer"


class ServerFacts(Message):
    """Versions of the driver's Python process."""

    package: str
    shipped: str | None
    """Name of the zip that the package was imported from. None: the package is installed."""
    python: str
    """Major and minor version."""
    machine: str
    """Operating system and processor."""


def server_facts() -> ServerFacts:
    """Return the versions of this process.

    >>> server_facts().package == __version__
    True
    """
    return ServerFacts(
        package=__version__,
        shipped=HOME.name if HOME.suffix == ".zip" else None,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        machine=f"{platform.system()} {platform.machine()}",
    )


class AskNative(Request[NativePlan]):
    """The files of a scan that Spark's own reader may read."""

    request: ScanRequest


class AskAll(Request[list[str]]):
    """Several questions in one round trip. The answers are in their order, as text."""

    questions: list[str]


class AskOutcome(Request[Outcome | None]):
    """The outcome of the commit ``commit_id``. None: it is not visible."""

    commit_id: CommitId


class AskAnswer(Request[str | None]):
    """The answer of the command ``id``. None: it failed."""

    id: str


class RunSmall(Request[str | None]):
    """An operation to run at once, without a job, if it is small.

    The answer is the operation's answer as text. None: the operation needs a job, and nothing was changed.
    """

    id: str
    """A second request with the same id returns the answer of the first."""
    operation: str
    most_bytes: int


class AskServer(Request[ServerFacts]):
    """Versions and settings of the server. The path is ignored."""


class Command(Message):
    """An operation to run once."""

    id: str
    """A second command with the same id does nothing."""
    operation: str


_FORMS = ("rows", "blobs", "reports", "summaries")


LONGEST = 1 << 26


"""Maximum characters of a request. A filter of a million values is shorter."""


_T = TypeVar("_T")


_JOB: TypeAdapter[Job] = TypeAdapter(Annotated[Job, Field(discriminator="job")])


def parse_question(text: str) -> Request[Any]:
    """Return the question in an option. Raises ``InvalidArgument``.

    >>> parse_question('{"name": "spark.wire.rpc.AskAnswer", "arguments": {"id": "x"}}')
    AskAnswer(id='x')
    """
    return parse_request(text, Request, QUESTION)


def parse_operation(text: str) -> Operation[Any]:
    """Return the operation in a text. Raises ``InvalidArgument``."""
    return parse_request(text, Operation, QUESTION)  # type: ignore[type-abstract]  # only a base


def parse_command(text: str) -> tuple[str, Operation[Any]]:
    """Return id and operation of the command in an option. Raises ``InvalidArgument``."""
    command = _parse(TypeAdapter(Command), COMMAND, text)
    return command.id, parse_request(command.operation, Operation, COMMAND)  # type: ignore[type-abstract]  # only a base


def parse_job(text: str) -> Job:
    """Return the job in an option. Raises ``InvalidArgument``."""
    return _parse(_JOB, WRITE, text)


def parse_hash_scan(text: str) -> HashScan:
    """Return the scan of key hashes in an option. Raises ``InvalidArgument``."""
    return _parse(TypeAdapter(HashScan), HASHES, text)


def parse_scan(text: str) -> ScanRequest:
    """Return the scan in an option. Raises ``InvalidArgument``."""
    return _parse(TypeAdapter(ScanRequest), SCAN, text)


def form_of(options: Mapping[str, str]) -> str:
    """Return the output of a scan (``FORM``). Raises ``InvalidArgument``.

    >>> form_of({FORM: "blobs"}), form_of({})
    ('blobs', 'rows')
    """
    form = options.get(FORM, "rows")
    if form not in _FORMS:
        raise InvalidArgument(f"option '{FORM}' must be one of {', '.join(_FORMS)}, not '{form}'")
    return form


def answer_schema(answer: str) -> StructType:
    """Return a schema with ``answer`` (JSON) in a column's metadata."""
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415  # Spark is imported when it is used

    return StructType([StructField(ANSWER, StringType(), nullable=True, metadata={ANSWER: answer})])


def parts_schema() -> StructType:
    """Return the schema of rows that have JSON."""
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415  # as above

    return StructType([StructField(ANSWER, StringType(), nullable=False)])


def answer_of(schema: StructType) -> str:
    """Return the answer in a schema of ``answer_schema``.

    Raises ``InvalidArgument`` for another schema.
    """
    if schema.names != [ANSWER] or ANSWER not in schema[0].metadata:
        raise InvalidArgument("the server's format 'paimon' is not this package's: install the same version on client and server")
    return str(schema[0].metadata[ANSWER])


def _parse(adapter: TypeAdapter[_T], option: str, text: str) -> _T:
    if len(text) > LONGEST:
        raise InvalidArgument(f"option '{option}' has {len(text)} characters; the maximum is {LONGEST}")
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()[:3])
        raise InvalidArgument(f"option '{option}' is invalid ({problems}): install the same version on client and server") from None
