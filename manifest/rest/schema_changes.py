"""Our changes of a schema as the API's: each has an ``action`` and names a column by its path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fileindex.base.errors import UnsupportedOption
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
    SchemaChange,
)


def server_changes(changes: Sequence[SchemaChange]) -> list[dict[str, Any]]:
    """In order. Raises ``UnsupportedOption`` for a move inside of a nested column, which the API cannot say.

    >>> server_changes([ChangeOptions(options={"bucket": "4", "comment": None})])
    [{'action': 'setOption', 'key': 'bucket', 'value': '4'}, {'action': 'removeOption', 'key': 'comment'}]
    """
    return [said for change in changes for said in _said(change)]


def _said(change: SchemaChange) -> Iterator[dict[str, Any]]:
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
                raise UnsupportedOption("move", f"a REST catalog moves whole columns, not '{'.'.join(path)}' inside of one")
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


def _table_comment(comment: str | None) -> dict[str, Any]:
    return {"action": "updateComment", "comment": comment}


def _move(name: str, *, first: bool, after: str | None) -> dict[str, Any]:
    kind = "FIRST" if first else "AFTER" if after is not None else "LAST"
    return {"fieldName": name, "referenceFieldName": after, "type": kind}


__all__ = ["server_changes"]
