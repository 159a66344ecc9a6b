"""In-process engine for tables of a REST catalog.

The server creates snapshots and stores schema, tags and branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar, cast

from manifest.io.catalog_errors import NotOffered, ResourceMissing, ResourceTaken
from manifest.io.errors import InvalidSchema, SnapshotNotFound, TableNotFound, UnsupportedTable
from manifest.io.file_io import FileIO
from manifest.io.paths import MAIN_BRANCH, split_branch, with_branch
from manifest.schema.evolution import evolve
from manifest.snapshot.snapshot import SnapshotCommit
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument, UnknownColumn
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.operations.alter import AlterSchema, check_rescale, check_types
from pyspark_paimon.operations.history.branches import CreateBranch, DeleteBranch, FastForward
from pyspark_paimon.operations.history.rollback import Rollback
from pyspark_paimon.operations.history.tags import CreateTag, DeleteTag, tagged_snapshot
from pyspark_paimon.plugins.catalogs.rest.api import RestApi
from pyspark_paimon.plugins.catalogs.rest.location import TableLocation
from pyspark_paimon.plugins.catalogs.rest.server_snapshots import ServerSnapshots
from pyspark_paimon.plugins.catalogs.rest.vended_credentials import VendedFileIO
from pyspark_paimon.request.operation import Operation
from pyspark_paimon.request.requests import Progress
from pyspark_paimon.results.state_results import TableChangeResult
from pyspark_paimon.typing import SparkSession

A = TypeVar("A")
_TYPES_WITH_ROWS = {None, "table"}
"""Values of the option ``type`` of tables with rows. Others are views of files and objects."""


class RestEngine(LocalEngine):
    """``LocalEngine`` of a REST catalog's table, whose files are at ``path``.

    ``commits`` None: an external table, where the server stores only the schema.
    """

    def __init__(
        self,
        api: RestApi,
        location: TableLocation,
        path: str,
        *,
        progress: Progress | None = None,
        file_io: FileIO | None = None,
        commits: SnapshotCommit | None = None,
    ) -> None:
        storage = api.options.store_options(path) if file_io is None else None
        super().__init__(path, progress=progress, file_io=file_io, storage_options=storage, commits=commits)
        self._api = api
        self._location = location
        self._table = location.table

    @classmethod
    def open(cls, api: RestApi, location: TableLocation, *, progress: Progress | None = None) -> RestEngine:
        """Open a table or branch by its name on the server.

        Raises:
            ResourceMissing: The server has no such database, table or branch.
            TableNotFound: The table of that name has another id than ``location``.
            UnsupportedTable: It is a view of files or objects.
        """
        table = location.table
        server_table = api.table(table)
        if not server_table.path or (server_table.columns is not None and server_table.columns.options.get("type") not in _TYPES_WITH_ROWS):
            raise UnsupportedTable(
                f"{table.full_name}: this is not a table with rows but a view, for example of files; it cannot be opened"
            )
        root, (_, branch) = split_branch(server_table.path)[0], split_branch(table.object)
        # A branch may have an id of its own.
        if branch == MAIN_BRANCH and location.table_id not in {None, server_table.id}:
            raise TableNotFound(f"{table.full_name}: the table was dropped, and another one has its name; open it again by its name")
        return cls(
            api,
            replace(location, table_id=server_table.id),
            with_branch(root, branch),
            progress=progress,
            file_io=VendedFileIO(api, table, root) if api.options.data_tokens else None,
            commits=None if server_table.is_external else ServerSnapshots(api, table, server_table.id),
        )

    def location(self, spark: SparkSession) -> str:
        """Send the catalog's options to the session's server; return the text by which it opens the table."""
        from pyspark_paimon.spark.wire.session_storage import send_catalog  # noqa: PLC0415  # only sessions need it

        self._api.options.for_session()
        send_catalog(spark, self._location.catalog, self._api.options.given)
        return self._location.text

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
                result = self._by_server(operation)
            except NotOffered:
                # A rollback of the files alone would leave another newest snapshot on the server.
                if isinstance(operation, Rollback | FastForward):
                    raise
                result = None
            return super().run(operation) if result is None else cast("A", result)

    def _alter(self, operation: AlterSchema) -> TableChangeResult:
        store = self.store()
        if not operation.rescales:
            check_rescale(store, operation.changes)
        check_types(store, operation.changes)
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
                return TableChangeResult(done=(f"branch '{name}' created",))
            case DeleteBranch(name=name):
                api.delete_branch(table, name)
                return TableChangeResult(done=(f"branch '{name}' deleted",))
            case FastForward(name=name):
                api.forward_branch(table, name)
                return TableChangeResult(done=(f"history of branch '{name}' taken",))
        return None

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


def open_location(location: str, *, progress: Progress | None = None) -> RestEngine:
    """Return the engine of a table by its location ``rest://...``."""
    named = TableLocation.parse(location)
    with raise_table_errors():
        return RestEngine.open(named.api(), named, progress=progress)
