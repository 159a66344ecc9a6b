"""Messages of Maxwell and Canal, which read MySQL's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Unpack

from paimon_base.public import public
from pyspark_paimon.plugins.feeds.batches import Change, ChangeBatch, FeedOptions, Message, read_changes
from pyspark_paimon.plugins.feeds.debezium import sortable

_Operation = Literal["c", "r", "u", "d"]
_MAXWELL: dict[str, _Operation] = {"insert": "c", "bootstrap-insert": "r", "update": "u", "delete": "d"}
_CANAL: dict[str, _Operation] = {"INSERT": "c", "UPDATE": "u", "DELETE": "d"}
_WITHOUT_ROWS = {
    *("bootstrap-start", "bootstrap-complete", "database-create", "database-alter", "table-create", "table-alter"),
    *("CREATE", "ALTER", "CINDEX", "DINDEX", "QUERY"),
}
"""Types of messages that change no row: the next row shows a new column."""


@public
def from_maxwell(messages: Iterable[Message], primary_keys: Sequence[str], **options: Unpack[FeedOptions]) -> Iterator[ChangeBatch]:
    """Yield the changes of Maxwell's messages as batches of rows.

    Values have the types of JSON. Arguments and errors are those of ``from_debezium``. Order ``source`` needs Maxwell's option
    ``output_binlog_position``.

    >>> from pyspark_paimon import from_maxwell
    >>> update = {"database": "shop", "table": "t", "type": "update", "data": {"id": 1, "n": 6}, "old": {"n": 5}, "position": "binlog.000002:40"}
    >>> next(from_maxwell([update], ["id"], before_images=True)).rows.select(["id", "n", "_row_kind"]).to_pylist()
    [{'id': 1, 'n': 5, '_row_kind': '-U'}, {'id': 1, 'n': 6, '_row_kind': '+U'}]
    """
    return read_changes(messages, _maxwell, primary_keys, **options)


@public
def from_canal(messages: Iterable[Message], primary_keys: Sequence[str], **options: Unpack[FeedOptions]) -> Iterator[ChangeBatch]:
    """Yield the changes of Canal's flat messages as batches of rows.

    All values are texts: write them with ``cast=True``. Messages have no positions, so their numbers order the changes.
    Arguments and errors are those of ``from_debezium``.

    >>> from pyspark_paimon import from_canal
    >>> message = {"database": "shop", "table": "t", "type": "DELETE", "data": [{"id": "1"}, {"id": "2"}], "es": 1700000000000}
    >>> next(from_canal([message], ["id"])).rows.to_pylist()
    [{'id': '1', '_row_kind': '-D', '_position': 0}, {'id': '2', '_row_kind': '-D', '_position': 0}]
    """
    options["order"] = "arrival"
    return read_changes(messages, _canal, primary_keys, **options)


def _maxwell(message: Mapping[str, Any]) -> Iterator[Change]:
    position = {name: message[name] for name in ("position", "xid", "xoffset", "ts") if name in message}
    file, _, byte = str(message.get("position") or "").rpartition(":")
    sequence = f"{sortable(file, is_file=True)} {sortable(byte)} {sortable(message.get('xoffset', 0))}" if file else None
    return _changes(message, _MAXWELL, [(message.get("data"), message.get("old"))], position, sequence)


def _canal(message: Mapping[str, Any]) -> Iterator[Change]:
    position = {name: message[name] for name in ("id", "es") if name in message}
    rows = message.get("data") or []
    return _changes(message, _CANAL, list(zip(rows, message.get("old") or [None] * len(rows), strict=True)), position)


def _changes(
    message: Mapping[str, Any],
    operations: Mapping[str, _Operation],
    rows: Sequence[tuple[Any, Any]],
    position: Mapping[str, object],
    sequence: str | None = None,
) -> Iterator[Change]:
    """Yield the changes of a message. Raises ``ValueError``."""
    kind = str(message.get("type"))
    if kind in _WITHOUT_ROWS:
        return
    if kind not in operations:
        raise ValueError(f"type '{kind}' is not one of {', '.join(operations)}; apply it by hand, then go on after this message")
    operation, table = operations[kind], f"{message.get('database')}.{message.get('table')}"
    for row, changed in rows:
        if operation == "d":
            yield Change("d", row, None, table, position, sequence)
        else:  # ``old`` has the changed columns only
            yield Change(operation, {**row, **(changed or {})} if operation == "u" else None, row, table, position, sequence)
