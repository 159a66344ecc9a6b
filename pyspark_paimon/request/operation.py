"""Base classes of operations and questions, with their wire text."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from manifest.snapshot.commit_info import commit_properties
from paimon_base.errors import InvalidArgument
from pyspark_paimon.request.message import CommitId, CommitProperties, Message
from pyspark_paimon.request.tasks import Task, TaskPlan, TaskRun, TaskWork, Worker

if TYPE_CHECKING:
    import pyarrow as pa

    from lsm.aggregate.summary import RowSummary
    from lsm.read.metrics import ReadReport
    from lsm.scan.plan import ScanPlan
    from lsm.scan.splits import DataSplit
    from manifest.commit.conflicts import BucketId
    from manifest.commit.file_store_commit import FileStoreCommit
    from manifest.commit.message import CommitMessage, CommitResult
    from manifest.schema.table_schema import TableSchema
    from manifest.snapshot.snapshot import Snapshot, SnapshotKey
    from manifest.store import FileStore
    from pyspark_paimon.request.backend import Progress, Rows, ScanRequest, TravelRequest, WriteRequest
    from pyspark_paimon.request.results import FunnelStage, WriteResult
    from pyspark_paimon.request.tree_report import TreeReport

A = TypeVar("A")
_R = TypeVar("_R", bound="Request[Any]")
_PACKAGE = "pyspark_paimon."
_TEXT = re.compile(r'\{"name": "((?:operations|request|spark\.wire)\.[a-z_]+)\.([A-Z][A-Za-z]+)", "arguments": (\{.*\})\}', re.DOTALL)
_LONGEST = 1 << 26
"""Maximum length of a text: fits a filter of a million values or the rows of an update, but not a table."""


class OpenTable(Protocol):
    """A table that this process reads and changes.

    ``LocalBackend`` is a table of files, ``SystemTable`` one whose rows are computed.
    """

    reads_files: ClassVar[bool]
    """Whether other engines may read its data files instead."""

    @property
    def path(self) -> str:
        """The table's path."""

    @property
    def threads(self) -> int:
        """Number of buckets or files worked on in parallel."""

    @property
    def progress(self) -> Progress | None:
        """Callback for long operations."""

    def exists(self) -> bool:
        """Return whether the table exists."""

    def run(self, operation: Operation[A]) -> A:
        """Run an operation."""

    def ask(self, question: Question[A]) -> A:
        """Return the answer to a question."""

    def store(self, options: Mapping[str, str] | None = None, schema_id: int | None = None) -> FileStore:
        """Open the files with the newest schema, or ``schema_id``.

        Raises ``TableNotFound``, and ``SystemTableReadOnly`` for a system table.
        """

    def writable(self, options: Mapping[str, str] | None = None, schema_id: int | None = None) -> FileStore:
        """Open the table to change its rows.

        Raises ``UnsupportedTable`` where the table's options forbid changes.
        """

    def without_cache(self) -> FileStore:
        """Open the table without its caches."""

    def create(self, schema: TableSchema) -> TableSchema:
        """Create the table. Raises ``TableExists``."""

    def schema(self, schema_id: int | None = None) -> TableSchema:
        """Return the newest schema, or that of an id."""

    def stored_schema(self, schema_id: int | None = None) -> TableSchema:
        """Return the schema whose keys order a plan's files."""

    def pin(self, travel: TravelRequest) -> Snapshot | None:
        """Return the requested snapshot. None: the table is empty."""

    def start(self, travel: TravelRequest) -> tuple[Snapshot | None, TableSchema]:
        """Return the requested snapshot and its schema for reading."""

    def plan(self, request: ScanRequest) -> ScanPlan:
        """Plan a scan."""

    def tree(self, request: ScanRequest) -> TreeReport:
        """Describe the LSM tree of each bucket."""

    def read(self, request: ScanRequest, *, stage: str = "scan") -> Iterator[pa.RecordBatch]:
        """Read the rows of a scan; ``stage`` names the progress."""

    def read_split(self, request: ScanRequest, split: DataSplit | str, report: ReadReport | None = None) -> Iterator[pa.RecordBatch]:
        """Read the rows of one split; ``report`` counts them."""

    def run_tasks(self, operation: TaskOperation[A]) -> A:
        """Run the tasks of an operation in threads."""

    def read_stages(self, request: ScanRequest) -> tuple[FunnelStage, ...]:
        """Read a scan and count the rows each stage keeps."""

    def scan_bytes(self, request: ScanRequest) -> int:
        """Estimate the bytes of data files that a scan reads."""

    def write(self, request: WriteRequest, rows: Rows) -> WriteResult:
        """Write and commit rows."""

    def count(self, request: ScanRequest) -> int:
        """Count the rows of a scan."""

    def aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary]:
        """Aggregate the rows of a scan by partition."""

    def aggregate_split(self, request: ScanRequest, split: str) -> dict[bytes, RowSummary]:
        """Aggregate the rows of one split."""

    def cheap_count(self, request: ScanRequest) -> int | None:
        """Count rows without opening data files. None: not possible."""

    def cheap_aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary] | None:
        """Aggregate without opening many data files. None: not possible."""

    def cheap_groups(self, request: ScanRequest, by: Sequence[str], counted: Sequence[str]) -> pa.Table | None:
        """Count the rows of each group of values without opening data files. None: not possible."""


class Request(Message, Generic[A]):
    """A named message whose answer has type ``A``."""

    def to_text(self) -> str:
        """Return the wire text.

        >>> from pyspark_paimon.operations.tags import DeleteTag
        >>> DeleteTag(name="v1").to_text()
        '{"name": "operations.tags.DeleteTag", "arguments": {"dry_run":false,"name":"v1"}}'
        """
        name = f"{type(self).__module__.removeprefix(_PACKAGE)}.{type(self).__name__}"
        return f'{{"name": "{name}", "arguments": {self.model_dump_json()}}}'

    @classmethod
    def answer_text(cls, answer: A) -> str:
        """Return an answer as JSON."""
        return _answers(cls).dump_json(answer).decode()

    @classmethod
    def answer_of(cls, text: str) -> A:
        """Return the answer in a JSON text."""
        found: A = _answers(cls).validate_json(text)
        return found


class Operation(Request[A], Generic[A]):
    """A change of a table. An executor runs it once."""

    stage: ClassVar[str | None] = None
    """Name of the progress. None: too short to report."""

    @property
    def identity(self) -> str | None:
        """Id of its commit, by which it can be repeated. None: it has none."""
        return None

    def is_small(self, table: OpenTable, most_bytes: int) -> bool:  # noqa: ARG002  # operations that read data files need both
        """Return whether the driver of Spark runs it without a job.

        ``most_bytes``: maximum bytes of data files to read.
        """
        return self.stage is None

    @abstractmethod
    def run(self, table: OpenTable) -> A:
        """Change the table and return the result."""


class Question(Request[A], Generic[A]):
    """A request that only reads.

    An executor may ask it twice.
    """

    @abstractmethod
    def answer(self, table: OpenTable) -> A:
        """Return the answer."""


class TaskOperation(Operation[A], Generic[A]):
    """A change whose work is split into buckets or files.

    An executor calls ``plan`` where the metadata is. Threads or Spark tasks run the tasks.
    The executor commits their messages. It starts again if another commit was first.
    """

    stage: ClassVar[str]
    """Name of the progress."""
    unit: ClassVar[str] = "buckets"
    """Unit of work of one task, for progress."""
    commits_parts: ClassVar[bool] = False
    """Whether a commit may leave out tasks that lost a race. False: all or nothing."""

    commit_id: CommitId
    options: dict[str, str] = Field(default_factory=dict)
    properties: CommitProperties = Field(default_factory=dict)
    """The user's properties of the snapshot."""

    @property
    def identity(self) -> str | None:
        """Id of its commit."""
        return self.commit_id

    def run(self, table: OpenTable) -> A:
        """Run all tasks in this process."""
        return table.run_tasks(self)

    def is_small(self, table: OpenTable, most_bytes: int) -> bool:
        """Return whether all tasks together are small."""
        return sum(task.size for task in self.plan(table.store(self.options)).tasks) <= most_bytes

    def round(self, number: int) -> Self:
        """Return the operation of a round, counted from 1.

        Rounds that commit parts have their own commit ids.
        """
        return self if number == 1 or not self.commits_parts else self.model_copy(update={"commit_id": f"{self.commit_id}-{number}"})

    @abstractmethod
    def plan(self, store: FileStore) -> TaskPlan:
        """List the tasks at the newest snapshot."""

    @abstractmethod
    def prepare(self, store: FileStore, base: SnapshotKey, tasks: Sequence[Task], threads: int) -> Worker:
        """Return the worker of ``tasks``.

        Its messages are relative to ``base``. Each call of the worker may use ``threads`` threads.
        """

    def group_tasks(self, tasks: Sequence[Task], small_at_once: int) -> tuple[list[list[Task]], list[list[Task]]]:
        """Group the tasks by call of the worker.

        Returns large tasks, then small ones. ``small_at_once`` calls with small tasks run in parallel.
        """
        del small_at_once
        return [[task] for task in tasks], []

    @property
    def verb(self) -> str:
        """Name of the operation in the table's history."""
        return self.stage

    def noted(self, work: TaskWork) -> dict[str, str]:
        """Return the properties of the snapshot."""
        return commit_properties(self.verb, self.counts(work), self.properties)

    def counts(self, work: TaskWork, lost: Sequence[BucketId] = ()) -> dict[str, int]:
        """Return the counts of committed work.

        Buckets in ``lost`` lost a race and do not count.
        """
        del lost
        return dict(work.counts)

    @abstractmethod
    def commit(
        self,
        commit: FileStoreCommit,
        base: SnapshotKey,
        messages: Sequence[CommitMessage],
        properties: dict[str, str],
    ) -> CommitResult:
        """Commit the messages of all tasks. Raises ``CommitConflict``."""

    @abstractmethod
    def result(self, run: TaskRun) -> A:
        """Return the answer for users."""


def parse_request(text: str, base: type[_R], option: str) -> _R:
    """Return the request in ``text``. Raises ``InvalidArgument``.

    Args:
        text: Wire text, as ``Request.to_text`` returns it.
        base: The class that the request must have: an operation is not a question.
        option: Where the text comes from, for errors.

    >>> parse_request('{"name": "operations.tags.DeleteTag", "arguments": {"name":"v1"}}', Operation, "paimon.command")
    DeleteTag(dry_run=False, name='v1')
    """
    if len(text) > _LONGEST:
        raise InvalidArgument(f"option '{option}' has {len(text)} characters; the maximum is {_LONGEST}")
    parts = _TEXT.fullmatch(text)
    found = None if parts is None else _class_of(parts[1], parts[2], base)
    if parts is None or found is None:
        raise _not_understood(option, "the request is unknown")
    try:
        return found.model_validate_json(parts[3])
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()[:3])
        raise _not_understood(option, problems) from None


def _class_of(module: str, name: str, base: type[_R]) -> type[_R] | None:
    try:
        found = getattr(import_module(f"{_PACKAGE}{module}"), name, None)
    except ModuleNotFoundError:
        return None
    # Names that a module imports are not its requests.
    is_request = isinstance(found, type) and issubclass(found, base) and found.__module__ == f"{_PACKAGE}{module}"
    return found if is_request else None


def _not_understood(option: str, reason: str) -> InvalidArgument:
    return InvalidArgument(f"option '{option}' is invalid ({reason}): install the same version on client and server")


@cache
def _answers(request: type[Request[Any]]) -> TypeAdapter[Any]:
    """Return the adapter for the ``A`` of ``Operation[A]`` or ``Question[A]``."""
    for base in request.__mro__:
        if arguments := getattr(base, "__pydantic_generic_metadata__", {}).get("args"):
            return TypeAdapter(arguments[0])
    raise TypeError(f"{request.__name__} has no answer type")
