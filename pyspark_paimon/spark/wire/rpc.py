"""What a Spark client and the data source say to each other: strings of JSON with a strict schema.

A *question* travels in an option and is answered by ``DataSource.schema()`` in the metadata of a column. Spark may ask
twice (gRPC retries), so questions only read. A *command* changes a table: it travels in an option of a write job whose commit hook runs
it on the driver, once for its id; a question fetches the answer. Requests of ``engine`` describe reading and writing rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from fileindex.base.errors import InvalidArgument
from manifest.fsck.problem import Origin
from pyspark_paimon.request.backend import CompactRequest, DeleteRequest, ExpireRequest, IndexView, ScanRequest, TravelRequest, View
from pyspark_paimon.request.merge import MergeRequest
from pyspark_paimon.request.message import CommitId, Message
from pyspark_paimon.request.table_changes import TableChange
from pyspark_paimon.spark.wire.jobs import HashScan, Job

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

QUESTION = "paimon.question"
COMMAND = "paimon.command"
SCAN = "paimon.scan"
FORM = "paimon.form"
"""What a scan gives: ``rows`` (default), ``blobs`` (Arrow IPC streams), ``reports`` (counters as JSON, one per split),
or ``summaries`` (what is asked of columns, as JSON, one per split)."""
WRITE = "paimon.write"
HASHES = "paimon.hashes"
FSCK = "paimon.fsck"
"""A check of the table, as a job that reads: an ``FsckRequest``."""
FILE_COLUMNS = ("partition", "bucket", "file")
HASH_COLUMN, HOME_COLUMN, HOME_PART = "__paimon_hash", "__paimon_home", "__paimon_home_part"
"""Columns of the answer to ``HashScan``: a key's hash, its bucket, and (numbered) the values of its partition."""
ANSWER = "answer"


class AskSchema(Message):
    """The newest schema, or that of an id, as Paimon's JSON."""

    ask: Literal["schema"] = "schema"
    id: int | None = None


class AskSnapshot(Message):
    """The snapshot that ``travel`` pins, as JSON; null if the table is empty."""

    ask: Literal["snapshot"] = "snapshot"
    travel: TravelRequest


class AskStart(Message):
    """As ``AskSnapshot``, and the schema that the scan reads by: JSON texts of both."""

    ask: Literal["start"] = "start"
    travel: TravelRequest


class AskSnapshots(Message):
    """Every retained snapshot, oldest first."""

    ask: Literal["snapshots"] = "snapshots"


class AskFiles(Message):
    """Live data files, as an Arrow IPC stream in Base64."""

    ask: Literal["files"] = "files"
    snapshot_id: int | None


class AskStatistics(Message):
    """The statistics that a snapshot carries, as JSON; null if it carries none."""

    ask: Literal["statistics"] = "statistics"
    snapshot_id: int | None


class AskView(Message):
    """Tags, branches, schemas, partitions or consumers, as an Arrow IPC stream in Base64."""

    ask: Literal["view"] = "view"
    view: View


class AskIndexView(Message):
    """File indexes of a snapshot, or their health, as an Arrow IPC stream in Base64."""

    ask: Literal["index-view"] = "index-view"
    view: IndexView
    snapshot_id: int | None


class AskPlan(Message):
    """Splits and report of a scan."""

    ask: Literal["plan"] = "plan"
    request: ScanRequest


class AskTree(Message):
    """What a table's tree looks like, as a ``TreeReport``."""

    ask: Literal["tree"] = "tree"
    request: ScanRequest


class AskNative(Message):
    """The files of a scan that Spark may read by itself, as a ``NativePlan``."""

    ask: Literal["native"] = "native"
    request: ScanRequest


class AskCount(Message):
    """The number of rows of a scan where the metadata tell it exactly; else null."""

    ask: Literal["count"] = "count"
    request: ScanRequest


class AskAggregate(Message):
    """What a scan's rows come to where few files' metadata and indexes tell it, as ``views.summaries``; else null."""

    ask: Literal["aggregate"] = "aggregate"
    request: ScanRequest


class AskBuckets(Message):
    """The buckets that a compaction has to look at, or the postponed ones with rows at a snapshot: (partition in hexadecimal, number, bytes)."""

    ask: Literal["buckets"] = "buckets"
    request: CompactRequest
    waiting_at: int | None = None


class AskDynamicBuckets(Message):
    """The dynamic buckets of the partition that has the most, at a snapshot."""

    ask: Literal["dynamic-buckets"] = "dynamic-buckets"
    snapshot_id: int


class AskIndexFiles(Message):
    """The data files that a rewrite of file indexes looks at: (partition in hexadecimal, bucket, name, bytes), and their snapshot."""

    ask: Literal["index-files"] = "index-files"
    partitions: tuple[dict[str, str | None], ...] | None


class AskGone(Message):
    """Which of these states, that a check met, are no more: a list of booleans."""

    ask: Literal["gone"] = "gone"
    origins: tuple[Origin, ...]


class AskOrphans(Message):
    """Files that nothing refers to."""

    ask: Literal["orphans"] = "orphans"
    older_than_ms: int


class AskOutcome(Message):
    """What the commit of ``commit_id`` left: an ``Outcome``, or null if none is visible."""

    ask: Literal["outcome"] = "outcome"
    commit_id: CommitId


class AskAnswer(Message):
    """The answer of the command ``id``; null if it did not end well."""

    ask: Literal["answer"] = "answer"
    id: str


class AskServer(Message):
    """What the server has: a ``ServerFacts`` of ``server_info``. The path is not looked at."""

    ask: Literal["server"] = "server"


FileQuestion: TypeAlias = AskPlan | AskNative | AskAggregate | AskCount | AskBuckets | AskDynamicBuckets | AskIndexFiles | AskGone
"""Those that need a table's files planned, or looked at."""
Question: TypeAlias = (
    FileQuestion
    | AskSchema
    | AskServer
    | AskSnapshot
    | AskStart
    | AskSnapshots
    | AskFiles
    | AskView
    | AskIndexView
    | AskStatistics
    | AskTree
    | AskOrphans
    | AskOutcome
    | AskAnswer
)


class Create(Message):
    """Create the table; ``table_schema`` is Paimon's JSON. Answer: the schema."""

    do: Literal["create"] = "create"
    id: str
    table_schema: str


class ChangeTable(Message):
    """Change the schema or the history. Answer: a ``TableChangeResult``."""

    do: Literal["change"] = "change"
    id: str
    change: TableChange


class Expire(Message):
    """Expire snapshots. Answer: an ``ExpireResult``."""

    do: Literal["expire"] = "expire"
    id: str
    request: ExpireRequest


class RemoveOrphans(Message):
    """Delete files that nothing refers to. Answer: the files."""

    do: Literal["remove-orphans"] = "remove-orphans"
    id: str
    older_than_ms: int


class Analyze(Message):
    """Count rows and columns and commit the statistics. Answer: an ``AnalyzeResult``."""

    do: Literal["analyze"] = "analyze"
    id: str
    commit_id: CommitId
    columns: tuple[str, ...]


class MergeHeldRows(Message):
    """Merge rows that the client sends along. Answer: a ``MergeResult``."""

    do: Literal["merge"] = "merge"
    id: str
    request: DeleteRequest
    wanted: MergeRequest


Command: TypeAlias = Create | ChangeTable | Expire | RemoveOrphans | Analyze | MergeHeldRows


class Outcome(Message):
    """A visible commit: its snapshots, and the counts that it noted in their properties."""

    snapshot_id: int | None
    compact_snapshot_id: int | None
    compact_lost: bool = False
    counts: dict[str, int] = Field(default_factory=dict)


_FORMS = ("rows", "blobs", "reports", "summaries")
_LONGEST = 1 << 26
"""Characters of a request: a filter of a million values, or the rows of an update, not a table."""
_T = TypeVar("_T")
_QUESTION: TypeAdapter[Question] = TypeAdapter(Annotated[Question, Field(discriminator="ask")])
_COMMAND: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="do")])
_JOB: TypeAdapter[Job] = TypeAdapter(Annotated[Job, Field(discriminator="job")])


def parse_question(text: str) -> Question:
    """The question in an option; ``InvalidArgument`` for one that this version does not know.

    >>> parse_question('{"ask": "count", "request": {"columns": ["id"], "snapshot_id": 3}}').request.snapshot_id
    3
    """
    return _parse(_QUESTION, QUESTION, text)


def parse_command(text: str) -> Command:
    """The command in an option; raises as ``parse_question``."""
    return _parse(_COMMAND, COMMAND, text)


def parse_job(text: str) -> Job:
    """The job in an option; raises as ``parse_question``."""
    return _parse(_JOB, WRITE, text)


def parse_hash_scan(text: str) -> HashScan:
    """The request for hashes in an option; raises as ``parse_question``."""
    return _parse(TypeAdapter(HashScan), HASHES, text)


def parse_scan(text: str) -> ScanRequest:
    """The scan in an option; raises as ``parse_question``."""
    return _parse(TypeAdapter(ScanRequest), SCAN, text)


def form_of(options: Mapping[str, str]) -> str:
    """What a scan is to give: rows unless the option says otherwise. Raises ``InvalidArgument``.

    >>> form_of({FORM: "blobs"}), form_of({})
    ('blobs', 'rows')
    """
    form = options.get(FORM, "rows")
    if form not in _FORMS:
        raise InvalidArgument(f"option '{FORM}' is one of {', '.join(_FORMS)}")
    return form


def answer_schema(answer: str) -> StructType:
    """The schema that carries ``answer`` (JSON) to the client, in the metadata of its only column."""
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415  # Spark is imported when it is used

    return StructType([StructField(ANSWER, StringType(), nullable=True, metadata={ANSWER: answer})])


def answer_of(schema: StructType) -> str:
    """What ``answer_schema`` carries. Raises ``InvalidArgument`` if the server gave something else."""
    if schema.names != [ANSWER] or ANSWER not in schema[0].metadata:
        raise InvalidArgument("the server does not answer as format 'paimon' of this package does; which package does it have installed?")
    return str(schema[0].metadata[ANSWER])


def _parse(adapter: TypeAdapter[_T], option: str, text: str) -> _T:
    if len(text) > _LONGEST:
        raise InvalidArgument(f"option '{option}' has {len(text)} characters; at most {_LONGEST} are read")
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()[:3])
        raise InvalidArgument(f"option '{option}' cannot be understood; do client and server have the same version? ({problems})") from None


__all__ = [
    "ANSWER",
    "COMMAND",
    "FILE_COLUMNS",
    "FORM",
    "FSCK",
    "HASHES",
    "HASH_COLUMN",
    "HOME_COLUMN",
    "HOME_PART",
    "QUESTION",
    "SCAN",
    "WRITE",
    "Analyze",
    "AskAggregate",
    "AskAnswer",
    "AskBuckets",
    "AskCount",
    "AskDynamicBuckets",
    "AskFiles",
    "AskGone",
    "AskIndexFiles",
    "AskIndexView",
    "AskNative",
    "AskOrphans",
    "AskOutcome",
    "AskPlan",
    "AskSchema",
    "AskServer",
    "AskSnapshot",
    "AskSnapshots",
    "AskStart",
    "AskStatistics",
    "AskTree",
    "AskView",
    "ChangeTable",
    "Command",
    "Create",
    "Expire",
    "FileQuestion",
    "MergeHeldRows",
    "Outcome",
    "Question",
    "RemoveOrphans",
    "answer_of",
    "answer_schema",
    "form_of",
    "parse_command",
    "parse_hash_scan",
    "parse_job",
    "parse_question",
    "parse_scan",
]
