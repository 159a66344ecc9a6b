"""Messages of Debezium."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

from paimon_base.public import public
from pyspark_paimon.plugins.feeds.batches import Change, ChangeBatch, FeedOptions, Message, read_changes
from pyspark_paimon.plugins.feeds.connect_types import ConnectType, column_types

_POSITIONS = (("lsn",), ("file", "pos", "row"), ("commit_lsn", "change_lsn", "event_serial_no"), ("scn", "rs_id", "ssn"))
"""Fields of the source that order its changes: PostgreSQL, MySQL and MariaDB, SQL Server and Db2, Oracle."""
_OPERATIONS = ("c", "r", "u", "d")
_HINTS = {
    None: "; remove the transformation that unwraps envelopes (ExtractNewRecordState)",
    "t": "; apply it by table.delete('TRUE'), then go on after this message",
}
_DIGITS = 20
_FILE_DIGITS = 10


@public
def from_debezium(
    messages: Iterable[Message],
    primary_keys: Sequence[str],
    **options: Unpack[FeedOptions],
) -> Iterator[ChangeBatch]:
    """Yield the changes of Debezium's messages as batches of rows.

    A batch ends where columns or types change, so that a write with ``schema_mode="merge"`` can follow. Messages with a ``schema`` give
    dates, times, decimals and bytes their types; without one, values have those of JSON. Tombstones are left out.

    Args:
        messages: JSON as text, bytes or dict, with or without ``schema`` and ``payload``. None is a tombstone.
        primary_keys: Primary keys of the table to write. An update that changes one deletes the old row.
        offset: Number of the first message, such as its offset in the topic.
        order: ``source`` orders changes by their positions in the log of the source. ``arrival`` orders them by the numbers of the
            messages, for a topic that has the changes of a key in order.
        sequence: Column for the position, for the table's ``sequence.field``. It is BIGINT for PostgreSQL and for ``arrival``, else
            STRING. None: no column.
        before_images: Whether updates also give the old row, of kind ``-U``: for ``changelog-producer`` = ``input``, and for
            aggregations.

    Raises:
        InvalidMessage: A message is no change of a row, such as op ``t``, or lacks its row, key or position. Earlier batches were yielded.
        SchemaMismatch: A value does not have the type of its schema.
        InvalidArgument: An argument is not valid.

    >>> from pyspark_paimon import from_debezium
    >>> message = '{"op": "u", "before": {"id": 1, "n": 5}, "after": {"id": 2, "n": 5}, "source": {"table": "t", "lsn": 70}}'
    >>> batch = next(from_debezium([message, None], ["id"]))
    >>> batch.rows.to_pylist()
    [{'id': 1, 'n': 5, '_row_kind': '-D', '_position': 70}, {'id': 2, 'n': 5, '_row_kind': '+U', '_position': 70}]
    >>> batch.offset, batch.properties
    (2, {'feed.offset': '2', 'feed.table': 't', 'feed.lsn': '70'})
    """
    return read_changes(messages, _Parser().changes, primary_keys, **options)


class _Parser:
    """Parser of envelopes. Holds the types of the last schema, which most messages share."""

    def __init__(self) -> None:
        self._struct: Mapping[str, Any] | None = None
        self._types: Mapping[str, ConnectType] | None = None

    def changes(self, message: Mapping[str, Any]) -> Iterator[Change]:
        """Yield the change of a message. Raises ``ValueError``."""
        envelope = message.get("payload", message)
        if envelope is None:
            return  # a tombstone
        operation = envelope.get("op") if isinstance(envelope, Mapping) else None
        if operation not in _OPERATIONS:
            hint = _HINTS.get(operation, "")
            raise ValueError(f"op {operation!r} is not one of {', '.join(_OPERATIONS)}{hint}")
        source = envelope.get("source") or {}
        table = ".".join(str(source[name]) for name in ("db", "schema", "table") if source.get(name) is not None)
        position, sequence = _position(source)
        yield Change(
            operation, envelope.get("before"), envelope.get("after"), table, position, sequence, self._row_types(message.get("schema"))
        )

    def _row_types(self, schema: Mapping[str, Any] | None) -> Mapping[str, ConnectType] | None:
        if schema is None:
            return None
        struct = next((part for part in schema.get("fields", ()) if part.get("field") == "after"), None)
        if struct is None:
            raise ValueError("its schema has no field 'after'")
        if struct != self._struct:
            self._struct, self._types = struct, column_types(struct)
        return self._types


def _position(source: Mapping[str, Any]) -> tuple[Mapping[str, object], int | str | None]:
    """Return what a source says of its position, and a value that orders positions."""
    for names in _POSITIONS:
        if source.get(names[0]) is not None:
            position = {name: source.get(name) for name in (*names, "ts_ms")}
            if len(names) == 1:
                return position, int(source[names[0]])
            return position, " ".join(sortable(source.get(name), is_file=name == "file") for name in names)
    return {}, None


def sortable(value: object, *, is_file: bool = False) -> str:
    """Return a text that sorts like a number of a log, or the name of its file.

    >>> sortable(154)[-5:], sortable("binlog.000009", is_file=True), sortable("00000027:00000ac0:0002")
    ('00154', 'binlog.0000000009', '00000027:00000ac0:0002')
    """
    text = "" if value is None else str(value)
    if is_file:
        stem, _, number = text.rpartition(".")
        return f"{stem}.{number.zfill(_FILE_DIGITS)}"
    return text.zfill(_DIGITS) if text.isdigit() else text
