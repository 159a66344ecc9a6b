"""The seam between the public ``Table`` and what does its work: threads in this process or a Spark server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from pyspark_paimon.request.backend import Rows, ScanRequest, WriteRequest
from pyspark_paimon.request.counters import ScanTally

if TYPE_CHECKING:
    from lsm.aggregate.summary import RowSummary
    from lsm.scan.plan import ScanPlan
    from lsm.scan.splits import DataSplit
    from pyspark_paimon.request.operation import Operation, Question
    from pyspark_paimon.request.results import (
        WriteResult,
    )

A = TypeVar("A")


class RowWriter(Protocol):
    """Takes the rows of one commit after the other."""

    @property
    def is_open(self) -> bool:
        """Whether rows wait for a commit."""

    def take(self, request: WriteRequest, rows: Rows) -> None:
        """Add rows to the next commit, whose first ones say as which ``request`` it is begun."""

    def commit(self, request: WriteRequest) -> WriteResult:
        """Make what was taken visible; on any error nothing of it is."""

    def discard(self) -> None:
        """Forget what was taken."""

    def close(self) -> None:
        """Forget what was taken, and wait for the compaction under way."""


class Backend(Protocol):
    """Does a table's work where its files are. Every method raises the typed errors of ``manifest.io.errors``."""

    @property
    def path(self) -> str:
        """The table's path, as its engine spells it."""

    @property
    def spark(self) -> Any:
        """The session that reaches the files, or None in process."""

    def run(self, operation: Operation[A]) -> A:
        """Run an operation once."""

    def ask(self, question: Question[A]) -> A:
        """Return the answer to a question."""

    def read(self, request: ScanRequest, *, keeps_all: bool = False, tally: ScanTally | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, in the Arrow types of the schema; exact filter and limit applied, memory bounded by batches; ``tally`` counts them.

        ``keeps_all``: whoever reads them holds them all in the end, so nobody need wait until they are taken.
        """

    def read_split(self, request: ScanRequest, split: DataSplit | str) -> Iterator[pa.RecordBatch]:
        """The rows of one split of ``plan``, in no order. Raises ``InvalidArgument`` where tasks of a server read them."""

    def readers(self, request: ScanRequest, plan: ScanPlan) -> str:
        """Who reads the rows of a DataFrame, for people; "" where nobody else than this process does."""

    def count(self, request: ScanRequest) -> int:
        """Number of rows that ``read`` would give."""

    def aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary]:
        """What the rows that ``read`` would give come to, by partition (a serialised BinaryRow)."""

    def frame(self, request: ScanRequest, spark: Any, *, native: bool = False) -> Any:
        """The scan as a lazy Spark DataFrame of ``spark`` (or of the backend's own session); ``native``: Spark may read files itself."""

    def write(self, request: WriteRequest, rows: Rows) -> WriteResult:
        """Write and commit; on any error nothing is visible."""

    def writer(self, commit_id: str) -> RowWriter:
        """A writer whose compactions have a name like ``commit_id``. Raises ``InvalidArgument`` where no process of ours would hold the rows."""


__all__ = ["Backend", "RowWriter"]
