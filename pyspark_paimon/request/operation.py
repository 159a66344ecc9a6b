"""Base classes of operations and questions, with their wire text."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from paimon_base.errors import InvalidArgument
from pyspark_paimon.results.message import Message

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType

    from lsm.aggregate.summary import RowSummary
    from lsm.read.metrics import ReadReport
    from lsm.scan.plan import ScanPlan
    from lsm.scan.splits import DataSplit
    from manifest.schema.table_schema import TableSchema
    from manifest.snapshot.snapshot import Snapshot
    from manifest.store import FileStore
    from pyspark_paimon.request.requests import Progress, Rows, ScanRequest, TravelRequest, WriteRequest
    from pyspark_paimon.results.results import FunnelStage, WriteResult
    from pyspark_paimon.results.tree_report import TreeReport

A = TypeVar("A")
_R = TypeVar("_R", bound="Request[Any]")
_PACKAGE = "pyspark_paimon."
_TEXT = re.compile(
    r'\{"name": "((?:operations|operations\.history|request|spark\.wire|plugins\.[a-z_]+)\.[a-z_]+)\.([A-Z][A-Za-z]+)", "arguments": (\{.*\})\}',
    re.DOTALL,
)
_LONGEST = 1 << 26
"""Maximum length of a text: fits a filter of a million values or the rows of an update, but not a table."""


class TableEngine(Protocol):
    """What every engine does for a table.

    Every method raises the typed errors of ``manifest.io.errors``.
    """

    @property
    def path(self) -> str:
        """The table's path in the engine's spelling."""

    def run(self, operation: Operation[A]) -> A:
        """Run an operation once."""

    def ask(self, question: Question[A]) -> A:
        """Return the answer to a question."""

    def count(self, request: ScanRequest) -> int:
        """Return the number of rows of a scan."""

    def aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary]:
        """Aggregate the rows of a scan by partition.

        Keys are partitions as serialised BinaryRows.
        """

    def write(self, request: WriteRequest, rows: Rows) -> WriteResult:
        """Write and commit rows.

        On an error no row is visible.
        """


class OpenTable(TableEngine, Protocol):
    """A table that this process reads and changes.

    ``LocalEngine`` is a table of files, ``SystemTable`` one whose rows are computed.
    """

    reads_files: ClassVar[bool]
    """Whether other engines may read its data files instead."""

    @property
    def threads(self) -> int:
        """Number of buckets or files worked on in parallel."""

    @property
    def progress(self) -> Progress | None:
        """Callback for long operations."""

    def exists(self) -> bool:
        """Return whether the table exists."""

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

    def read_stages(self, request: ScanRequest) -> tuple[FunnelStage, ...]:
        """Read a scan and count the rows each stage keeps."""

    def scan_bytes(self, request: ScanRequest) -> int:
        """Estimate the bytes of data files that a scan reads."""

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

        >>> from pyspark_paimon.operations.history.tags import DeleteTag
        >>> DeleteTag(name="v1").to_text()
        '{"name": "operations.history.tags.DeleteTag", "arguments": {"dry_run":false,"name":"v1"}}'
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
        answer: A = _answers(cls).validate_json(text)
        return answer


class Operation(Request[A], Generic[A]):
    """A change of a table. An engine runs it once."""

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

    An engine may ask it twice.
    """

    @abstractmethod
    def answer(self, table: OpenTable) -> A:
        """Return the answer."""


class SharedQuestion(Question[A], Generic[A]):
    """A question about many files.

    A process answers it with ``answer``. On Spark tasks answer parts of it, and the client combines them.
    """

    stage: ClassVar[str]
    """Name of the progress."""

    @abstractmethod
    def reader(self, path: str, schema: StructType) -> DataSourceReader:
        """Return a reader of Spark. Each of its tasks returns one row with a part of the answer as JSON."""

    @abstractmethod
    def combine(self, parts: Iterable[str], ask: Callable[[Question[Any]], Any]) -> A:
        """Return the answer. ``ask`` asks the driver more."""


def parse_request(text: str, base: type[_R], option: str) -> _R:
    """Return the request in ``text``. Raises ``InvalidArgument``.

    Args:
        text: Wire text, as ``Request.to_text`` returns it.
        base: The class that the request must have: an operation is not a question.
        option: Where the text comes from, for errors.

    >>> parse_request('{"name": "operations.history.tags.DeleteTag", "arguments": {"name":"v1"}}', Operation, "paimon.command")
    DeleteTag(dry_run=False, name='v1')
    """
    if len(text) > _LONGEST:
        raise InvalidArgument(f"option '{option}' has {len(text)} characters; the maximum is {_LONGEST}")
    parts = _TEXT.fullmatch(text)
    request_class = None if parts is None else _class_of(parts[1], parts[2], base)
    if parts is None or request_class is None:
        raise _not_understood(option, "the request is unknown")
    try:
        return request_class.model_validate_json(parts[3])
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()[:3])
        raise _not_understood(option, problems) from None


def _class_of(module: str, name: str, base: type[_R]) -> type[_R] | None:
    try:
        member = getattr(import_module(f"{_PACKAGE}{module}"), name, None)
    except ModuleNotFoundError:
        return None
    # Names that a module imports are not its requests.
    is_request = isinstance(member, type) and issubclass(member, base) and member.__module__ == f"{_PACKAGE}{module}"
    return member if is_request else None


def _not_understood(option: str, reason: str) -> InvalidArgument:
    return InvalidArgument(f"option '{option}' is invalid ({reason}): install the same version on client and server")


@cache
def _answers(request: type[Request[Any]]) -> TypeAdapter[Any]:
    """Return the adapter for the ``A`` of ``Operation[A]`` or ``Question[A]``."""
    for base in request.__mro__:
        if arguments := getattr(base, "__pydantic_generic_metadata__", {}).get("args"):
            return TypeAdapter(arguments[0])
    raise TypeError(f"{request.__name__} has no answer type")
