"""``TableWriter``: what ``Table.writer`` gives, rows in, one commit after the other."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from fileindex.base.errors import InvalidArgument
from fileindex.base.public import public
from pyspark_paimon.request.arguments import CheckedMethods
from pyspark_paimon.request.backend import WriteRequest
from pyspark_paimon.request.executor import Backend
from pyspark_paimon.request.inputs import has_row_kinds, rows_of
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.request.validate import commit_identity, write_request
from pyspark_paimon.typing import Data

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema
    from pyspark_paimon.request.results import WriteResult


@public
class TableWriter(CheckedMethods):
    """Rows of one process for many commits; for one thread at a time, and not twice.

    >>> from pyspark_paimon.example import cities
    >>> with cities().writer() as writer:
    ...     writer.write({"id": [9], "city": ["Bergen"], "country": ["NO"], "attrs": [None]})
    ...     writer.commit().rows
    1
    """

    def __init__(self, backend: Backend, *, options: Mapping[str, str] | None, commit_id: str | None) -> None:
        self._backend, self._options, self._commit_id = backend, options, commit_id
        self._name = commit_identity(commit_id)
        self._schema: TableSchema | None = None
        self._batch = 0
        self._closed = False
        self._request()
        self._rows = backend.writer(self._name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None and self._rows.is_open:
                self.commit()
        finally:
            self.close()

    def write(self, data: Data) -> None:
        """Add rows to the next commit; what is more than ``write-buffer-size`` goes to files already. ``data`` is as for ``Table.write``.

        Raises ``SchemaMismatch``, ``NullInKey``, ``InvalidArgument``; what was not committed yet is discarded then.
        """
        self._check_open()
        try:
            if not self._rows.is_open:
                self._schema = None
            request = self._request()
            rows = rows_of(data, self._of().arrow)
            kinds = has_row_kinds(rows, self._of())
        except BaseException:
            self._rows.discard()
            raise
        self._rows.take(request.model_copy(update={"row_kinds": kinds}), rows)

    def commit(self, batch_id: int | None = None) -> WriteResult:
        """Make the rows since the last commit visible: all at once, or, on an error, none, and they are discarded.

        Args:
            batch_id: which batch of the job it is that ``commit_id`` names, from 0 up; needed there and only there. One that is in the table
                already, or is older than one that is, is answered, and its rows are discarded.

        Raises:
            InvalidArgument: a name without a number, a number without a name, or the writer is closed.
            CommitReplayed: the batch was begun before, and its snapshot, if there was one, has expired; nothing is written.
            UnmergeableRows, CommitConflict: as ``Table.write``.
        """
        self._check_open()
        if self._commit_id is not None and batch_id is None:
            raise InvalidArgument(
                f"commit(batch_id): the commits of '{self._commit_id}' are numbered by whoever repeats them; say which one it is"
            )
        request = self._request(batch_id)
        if self._commit_id is None:
            request = request.model_copy(update={"batch_id": self._batch})
            self._batch += 1
        result = self._rows.commit(request)
        self._schema = None
        return result

    def discard(self) -> None:
        """Forget the rows since the last commit."""
        self._rows.discard()

    def close(self) -> None:
        """Forget the rows since the last commit, and wait for the compaction under way; a second call does nothing."""
        self._closed = True
        self._rows.close()

    def _of(self) -> TableSchema:
        """The schema of the rows since the last commit."""
        if self._schema is None:
            self._schema = self._backend.ask(SchemaOf())
        return self._schema

    def _request(self, batch_id: int | None = None) -> WriteRequest:
        made = write_request(self._of(), None, options=self._options, commit_id=self._commit_id, batch_id=batch_id)
        return made.model_copy(update={"commit_id": self._name})

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgument(f"{self._backend.path}: the writer is closed; Table.writer() makes another one")


__all__ = ["TableWriter"]
