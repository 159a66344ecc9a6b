"""Operations of a REST catalog, one method each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

from manifest.io.catalog_errors import NotOffered, ResourceMissing
from manifest.io.paths import split_branch
from manifest.schema.change import (
    AddColumn,
    ChangeComment,
    ChangeDefault,
    ChangeNullability,
    ChangeOptions,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    ReplaceColumns,
    SchemaChange,
)
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from paimon_base.errors import UnsupportedOption
from pyspark_paimon.plugins.catalogs.rest.client import RestClient
from pyspark_paimon.plugins.catalogs.rest.messages import (
    ColumnsAndKeys,
    CommitAnswer,
    CommitRequest,
    Configuration,
    CreateTableRequest,
    CreateViewRequest,
    DatabaseAnswer,
    Identifier,
    NewestAnswer,
    Page,
    RenameRequest,
    TableAnswer,
    TokenAnswer,
    VersionAnswer,
    ViewAnswer,
    ViewDefinition,
)
from pyspark_paimon.plugins.catalogs.rest.options import RestOptions


def server_changes(changes: Sequence[SchemaChange]) -> list[dict[str, Any]]:
    """Return the API's form of schema changes, in order.

    Raises ``UnsupportedOption`` for moving a nested column, which the API does not support.

    >>> server_changes([ChangeOptions(options={"bucket": "4", "comment": None})])
    [{'action': 'setOption', 'key': 'bucket', 'value': '4'}, {'action': 'removeOption', 'key': 'comment'}]
    """
    return [action for change in changes for action in _actions(change)]


def _actions(change: SchemaChange) -> Iterator[dict[str, Any]]:
    match change:
        case AddColumn(path=path, default=default):
            move = _move(path[-1], first=change.first, after=change.after) if change.first or change.after else None
            yield {"action": "addColumn", "fieldNames": path, "dataType": change.type, "comment": change.comment, "move": move}
            if default is not None:
                yield {"action": "updateColumnDefaultValue", "fieldNames": path, "newDefaultValue": default}
        case DropColumn(path=path):
            yield {"action": "dropColumn", "fieldNames": path}
        case RenameColumn(path=path, name=name):
            yield {"action": "renameColumn", "fieldNames": path, "newName": name}
        case MoveColumn(path=path):
            if len(path) > 1:
                raise UnsupportedOption("move", f"a REST catalog cannot move nested column '{'.'.join(path)}', only top-level columns")
            yield {"action": "updateColumnPosition", "move": _move(path[0], first=change.first, after=change.after)}
        case ChangeType(path=path):
            yield {"action": "updateColumnType", "fieldNames": path, "newDataType": change.type, "keepNullability": True}
        case ChangeNullability(path=path, nullable=nullable):
            yield {"action": "updateColumnNullability", "fieldNames": path, "newNullability": nullable}
        case ChangeComment(path=path, comment=comment):
            yield {"action": "updateColumnComment", "fieldNames": path, "newComment": comment} if path else _table_comment(comment)
        case ChangeDefault(path=path, default=default):
            yield {"action": "updateColumnDefaultValue", "fieldNames": path, "newDefaultValue": default}
        case ChangeOptions(options=options):
            for key, value in options.items():
                yield {"action": "removeOption", "key": key} if value is None else {"action": "setOption", "key": key, "value": value}
        case ReplaceColumns():
            raise UnsupportedOption("replace", "a REST catalog cannot replace all columns at once; drop the table and create it again")


def _table_comment(comment: str | None) -> dict[str, Any]:
    return {"action": "updateComment", "comment": comment}


def _move(name: str, *, first: bool, after: str | None) -> dict[str, Any]:
    kind = "FIRST" if first else "AFTER" if after is not None else "LAST"
    return {"fieldName": name, "referenceFieldName": after, "type": kind}


class RestApi:
    """One catalog on a server, below the server's prefix.

    Raises the errors of ``RestClient``.
    """

    def __init__(self, client: RestClient) -> None:
        self._client = client
        prefix = client.options.prefix
        self._base = f"/v1/{_encode(prefix)}" if prefix else "/v1"

    @classmethod
    def connect(cls, options: RestOptions) -> RestApi:
        """Connect to a catalog and apply the server's options."""
        client = RestClient(options)
        query = {"warehouse": options.warehouse} if options.warehouse else None
        configuration = client.get("/v1/config", Configuration, query)
        return cls(client.with_options(options.merge(configuration.defaults, configuration.overrides)))

    @property
    def options(self) -> RestOptions:
        """Options of the user and of the server."""
        return self._client.options

    def databases(self) -> list[str]:
        """Return the names of all databases."""
        return self._names(f"{self._base}/databases")

    def create_database(self, name: str, options: Mapping[str, str]) -> None:
        """Create a database. Raises ``ResourceTaken``."""
        self._client.post(f"{self._base}/databases", {"name": name, "options": dict(options)})

    def database(self, name: str) -> DatabaseAnswer:
        """Return a database. Raises ``ResourceMissing``."""
        return self._client.get(self._database(name), DatabaseAnswer)

    def alter_database(self, name: str, updates: Mapping[str, str], removals: Sequence[str]) -> None:
        """Set and remove options. Raises ``ResourceMissing``."""
        self._client.post(self._database(name), {"removals": list(removals), "updates": dict(updates)})

    def drop_database(self, name: str) -> None:
        """Drop a database with its tables. Raises ``ResourceMissing``."""
        self._client.delete(self._database(name))

    def tables(self, database: str) -> list[str]:
        """Return the names of a database's tables. Raises ``ResourceMissing``."""
        return self._names(f"{self._database(database)}/tables")

    def create_table(self, table: Identifier, schema: TableSchema, path: str | None = None) -> None:
        """Create a table, an external one with ``path``.

        Raises ``ResourceTaken``, or ``ResourceMissing`` for the database.
        """
        options = schema.options if path is None else {**schema.options, "path": path}
        columns = ColumnsAndKeys.of(schema.model_copy(update={"options": options}))
        request = CreateTableRequest(identifier=table, columns=columns)  # type: ignore[call-arg]  # by its alias's name
        self._client.post(f"{self._database(table.database)}/tables", request)

    def table(self, table: Identifier) -> TableAnswer:
        """Return a table. Raises ``ResourceMissing``."""
        return self._client.get(self._table(table), TableAnswer)

    def alter_table(self, table: Identifier, changes: Sequence[SchemaChange]) -> None:
        """Write a new schema version with all changes or none.

        Raises ``ResourceMissing`` and ``ResourceTaken``, also for columns.
        """
        self._client.post(self._table(table), {"changes": server_changes(changes)})

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Rename a table. Raises ``ResourceMissing``, ``ResourceTaken``."""
        self._client.post(f"{self._base}/tables/rename", RenameRequest(source=source, destination=target))

    def drop_table(self, table: Identifier) -> None:
        """Drop a table. Raises ``ResourceMissing``."""
        self._client.delete(self._table(table))

    def views(self, database: str) -> list[str]:
        """Return the names of a database's views.

        Raises ``ResourceMissing``, and ``NotOffered`` by a server without views. So do the other methods of views.
        """
        return self._names(f"{self._database(database)}/views")

    def view(self, view: Identifier) -> ViewDefinition:
        """Return a view."""
        return self._client.get(self._view(view), ViewAnswer).definition

    def create_view(self, view: Identifier, definition: ViewDefinition) -> None:
        """Create a view. Raises ``ResourceTaken``."""
        request = CreateViewRequest(identifier=view, definition=definition)  # type: ignore[call-arg]  # by its alias's name
        self._client.post(f"{self._database(view.database)}/views", request)

    def alter_view(self, view: Identifier, changes: Sequence[Mapping[str, str | None]]) -> None:
        """Change dialects, options or comment of a view."""
        self._client.post(self._view(view), {"changes": [dict(change) for change in changes]})

    def rename_view(self, source: Identifier, target: Identifier) -> None:
        """Rename a view. Raises ``ResourceTaken``."""
        self._client.post(f"{self._base}/views/rename", RenameRequest(source=source, destination=target))

    def drop_view(self, view: Identifier) -> None:
        """Drop a view."""
        self._client.delete(self._view(view))

    def token(self, table: Identifier) -> TokenAnswer:
        """Return temporary keys of the table's storage.

        A branch uses the keys of its table.
        """
        return self._client.get(f"{self._table(_main(table))}/token", TokenAnswer)

    def commit(self, table: Identifier, request: CommitRequest) -> bool:
        """Return whether the server made the snapshot. Sent once."""
        answer = self._client.post(f"{self._table(table)}/commit", request, CommitAnswer)
        return answer is not None and answer.success

    def latest_snapshot(self, table: Identifier) -> Snapshot | None:
        """Return the newest snapshot, None before the first."""
        try:
            return self._client.get(f"{self._table(table)}/snapshot", NewestAnswer).counted.snapshot
        except ResourceMissing as error:
            if error.kind == "TABLE":
                raise
            return None

    def snapshot(self, table: Identifier, snapshot_id: int) -> Snapshot | None:
        """Return a snapshot.

        None if it does not exist, or the server cannot return single snapshots.
        """
        try:
            snapshot = self._client.get(f"{self._table(table)}/snapshots/{snapshot_id}", VersionAnswer).snapshot
        except (ResourceMissing, NotOffered) as error:
            if isinstance(error, ResourceMissing) and error.kind == "TABLE":
                raise
            return None
        return snapshot if snapshot.id == snapshot_id else None

    def rollback(self, table: Identifier, *, snapshot_id: int | None = None, tag: str | None = None) -> None:
        """Roll back to a snapshot or tag. Raises ``ResourceMissing``."""
        instant: dict[str, Any] = {"type": "snapshot", "snapshotId": snapshot_id} if tag is None else {"type": "tag", "tagName": tag}
        self._client.post(f"{self._table(table)}/rollback", {"instant": instant})

    def create_tag(self, table: Identifier, name: str, snapshot_id: int, retained_ms: int | None) -> None:
        """Create a tag.

        Raises ``ResourceTaken``, ``ResourceMissing``, ``NotOffered``.
        """
        retained = {} if retained_ms is None else {"timeRetained": f"{retained_ms} ms"}
        self._client.post(f"{self._table(table)}/tags", {"tagName": name, "snapshotId": snapshot_id, **retained})

    def delete_tag(self, table: Identifier, name: str) -> None:
        """Delete a tag. Raises ``ResourceMissing``, ``NotOffered``."""
        self._client.delete(f"{self._table(table)}/tags/{_encode(name)}")

    def branches(self, table: Identifier) -> list[str]:
        """Return the names of a table's branches other than main."""
        return self._names(f"{self._table(table)}/branches")

    def create_branch(self, table: Identifier, name: str, tag: str | None) -> None:
        """Create a branch from a tag, or an empty one.

        Raises ``ResourceTaken``, ``ResourceMissing``.
        """
        self._client.post(f"{self._table(table)}/branches", {"branch": name, **({} if tag is None else {"fromTag": tag})})

    def delete_branch(self, table: Identifier, name: str) -> None:
        """Delete a branch. Raises ``ResourceMissing``."""
        self._client.delete(f"{self._table(table)}/branches/{_encode(name)}")

    def forward_branch(self, table: Identifier, name: str) -> None:
        """Replace the table's history by a branch's. Raises ``ResourceMissing``."""
        self._client.post(f"{self._table(table)}/branches/{_encode(name)}/forward", {})

    def _names(self, path: str) -> list[str]:
        names: list[str] = []
        earlier_tokens: set[str] = set()
        token: str | None = None
        while True:
            page = self._client.get(path, Page, None if token is None else {"pageToken": token})
            names += page.names
            token = page.next_page_token
            if not token or token in earlier_tokens:  # stop if the server repeats a page
                return sorted(set(names))
            earlier_tokens.add(token)

    def _database(self, name: str) -> str:
        return f"{self._base}/databases/{_encode(name)}"

    def _view(self, view: Identifier) -> str:
        return f"{self._database(view.database)}/views/{_encode(view.object)}"

    def _table(self, table: Identifier) -> str:
        return f"{self._database(table.database)}/tables/{_encode(table.object)}"


def _main(table: Identifier) -> Identifier:
    return table.model_copy(update={"object": split_branch(table.object)[0]})


def _encode(name: str) -> str:
    """Encode a path component in form encoding.

    Paimon's servers decode that.
    """
    return quote_plus(name, safe="*")
