"""In-process engine for tables of a REST catalog.

The server creates snapshots and stores schema, tags and branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from fileindex.base.errors import InvalidArgument, UnknownColumn
from manifest.io.errors import InvalidSchema, SnapshotNotFound, TableNotFound
from manifest.io.file_io import FileIO
from manifest.rest.api import RestApi
from manifest.rest.errors import NotOffered, ResourceMissing, ResourceTaken
from manifest.rest.messages import Identifier
from manifest.schema.evolution import evolve
from manifest.snapshot.snapshot import SnapshotCommit
from manifest.store import FileStore
from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.operations.alter import AlterSchema, check_rescale
from pyspark_paimon.operations.branches import CreateBranch, DeleteBranch, FastForward
from pyspark_paimon.operations.rollback import Rollback
from pyspark_paimon.operations.tags import CreateTag, DeleteTag, tagged_snapshot
from pyspark_paimon.request.operation import Operation
from pyspark_paimon.request.state_results import TableChangeResult

A = TypeVar("A")


class ServerBackend(LocalBackend):
    """``LocalBackend`` of ``table`` at ``path`` in a REST catalog.

    ``commits`` None: an external table, where the server stores only the schema.
    """

    def __init__(
        self, api: RestApi, table: Identifier, path: str, *, file_io: FileIO | None = None, commits: SnapshotCommit | None = None
    ) -> None:
        super().__init__(path, file_io=file_io, storage_options=api.options.storage, commits=commits)
        self._api = api
        self._table = table

    def run(self, operation: Operation[A]) -> A:
        """Run an operation on the server, or on the files.

        The files are used for operations that the server does not support.
        """
        with raise_table_errors():
            if isinstance(operation, AlterSchema):
                return cast("A", self._alter(operation))
            if self._commits is None or getattr(operation, "dry_run", False):
                return super().run(operation)
            try:
                done = self._by_server(operation)
            except NotOffered:
                # A rollback of the files alone would leave another newest snapshot on the server.
                if isinstance(operation, Rollback | FastForward):
                    raise
                done = None
            return super().run(operation) if done is None else cast("A", done)

    def _alter(self, operation: AlterSchema) -> TableChangeResult:
        store = self.store()
        if not operation.rescales:
            check_rescale(store, operation.changes)
        if evolve(store.schema, operation.changes) is not store.schema:
            self._api.alter_table(self._table, operation.changes)
        return TableChangeResult()

    def _by_server(self, operation: Operation[Any]) -> TableChangeResult | None:
        """Return the result of the server's operation.

        None: the server has no such operation.
        """
        api, table = self._api, self._table
        match operation:
            case CreateTag(name=name):
                snapshot, retained_ms = tagged_snapshot(self.store(), operation)
                api.create_tag(table, name, snapshot.id, retained_ms)
                return TableChangeResult(snapshot_id=snapshot.id, tags=(name,))
            case DeleteTag(name=name):
                api.delete_tag(table, name)
                return TableChangeResult(tags=(name,))
            case Rollback():
                return self._roll_back(self.store(), operation)
            case CreateBranch(name=name, tag=tag):
                api.create_branch(table, name, tag)
            case DeleteBranch(name=name):
                api.delete_branch(table, name)
            case FastForward(name=name):
                api.forward_branch(table, name)
            case _:
                return None
        return TableChangeResult()

    def _roll_back(self, store: FileStore, rollback: Rollback) -> TableChangeResult:
        target, newest = rollback.target(store), store.snapshots.latest_id()
        self._api.rollback(self._table, snapshot_id=None if rollback.tag is not None else target.id, tag=rollback.tag)
        return TableChangeResult(snapshot_id=target.id, snapshots=max(0, (newest or 0) - target.id))


@contextmanager
def raise_table_errors() -> Iterator[None]:
    """Convert the server's missing and conflict errors to table errors."""
    try:
        yield
    except ResourceMissing as error:
        match error.kind:
            case "TABLE" | "":
                raise TableNotFound(str(error)) from error
            case "SNAPSHOT" | "TAG":
                raise SnapshotNotFound(str(error)) from error
            case "COLUMN":
                raise UnknownColumn(error.name) from error
            case _:
                raise InvalidArgument(str(error)) from error
    except ResourceTaken as error:
        raise (InvalidSchema if error.kind == "COLUMN" else InvalidArgument)(str(error)) from error


__all__ = ["ServerBackend", "raise_table_errors"]
