"""Changes of a source as batches of rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict, get_args

import pyarrow as pa

from lsm.arrow.row_kind import ROW_KIND
from lsm.rows_in.arrow import python_column
from manifest.io.errors import SchemaMismatch
from paimon_base.errors import InvalidArgument, describe_error
from paimon_base.public import public
from paimon_base.thresholds import thresholds
from pyspark_paimon.plugins.feeds.connect_types import ConnectType

Row: TypeAlias = Mapping[str, Any]
Message: TypeAlias = str | bytes | Mapping[str, Any] | None
Order = Literal["source", "arrival"]
_UNAVAILABLE = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")
"""Debezium's text, plain or in base64, for a large value that the update did not touch and the log does not have."""


@public
class InvalidMessage(InvalidArgument):
    """A message is not a change that can be written.

    ``number`` is its number in the feed.
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"message {number}: {reason}")
        self.number = number
        self.reason = reason

    def __reduce__(self) -> tuple[type[InvalidMessage], tuple[int, str]]:
        return type(self), (self.number, self.reason)


@public
@dataclass(frozen=True)
class ChangeBatch:
    """Rows of a feed with the same columns and types.

    ``rows`` has the column ``_row_kind``, and the position of each change for ``sequence.field``. ``table`` is the source's table.
    ``offset`` is the number of messages read so far: the number to resume at, and a ``batch_id``. ``properties`` say it to the
    snapshot, with the position of the last change in the source. ``missing`` is the argument of the write: ``keep`` if the source's log
    lacks large values that did not change, else ``null``, as columns that the batch lacks are no longer in the source.
    """

    rows: pa.Table
    table: str
    offset: int
    properties: Mapping[str, str]
    missing: Literal["keep", "null"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one row.

    ``operation``: ``c`` created, ``r`` read by a snapshot, ``u`` updated, ``d`` deleted. ``position``: what the source says of its log.
    ``sequence``: position that compares like the order of changes. None: the message has none. ``types`` None: infer them.
    """

    operation: Literal["c", "r", "u", "d"]
    before: Row | None
    after: Row | None
    table: str
    position: Mapping[str, object]
    sequence: int | str | None
    types: Mapping[str, ConnectType] | None = None


class FeedOptions(TypedDict, total=False):
    """Options of a feed. ``from_debezium`` describes them."""

    offset: int
    order: Order
    sequence: str | None
    before_images: bool


def read_changes(
    messages: Iterable[Message],
    parse: Callable[[Mapping[str, Any]], Iterable[Change]],
    primary_keys: Sequence[str],
    *,
    offset: int = 0,
    order: Order = "source",
    sequence: str | None = "_position",
    before_images: bool = False,
) -> Iterator[ChangeBatch]:
    """Yield the rows of messages in batches.

    A batch ends where columns, types or the source's table change.

    ``parse`` returns the changes of a message. It raises ``ValueError`` with the reason if the message is none.

    Raises the errors of ``from_debezium``.
    """
    if order not in get_args(Order):
        raise InvalidArgument(f"order must be one of {', '.join(get_args(Order))}, not {order!r}")
    if isinstance(primary_keys, str):
        raise InvalidArgument(f"primary_keys are names in a list, not a text: give [{primary_keys!r}]")
    rows, number = _Rows(), offset - 1
    for number, message in enumerate(messages, offset):
        try:
            changes = list(parse(decoded)) if (decoded := _decode(message)) else []  # a tombstone follows its delete
            added = [row for change in changes for row in _rows_of(change, primary_keys, before_images=before_images)]
        except ValueError as error:
            raise InvalidMessage(number, str(error)) from error
        except (LookupError, TypeError, AttributeError) as error:
            raise InvalidMessage(number, f"its parts are not those of a change: {describe_error(error)}") from error
        for row in added:
            if sequence is not None and order == "source" and row.change.sequence is None:
                raise InvalidMessage(number, "it has no position in the source's log; give order='arrival' to use the numbers of messages")
            if reserved := {ROW_KIND, sequence} & row.names:
                raise InvalidMessage(number, f"the source has a column '{reserved.pop()}', which the batch needs; give another sequence")
            if not rows.fit(row):
                yield rows.batch(number, sequence)
                rows = _Rows()
            rows.add(row, number if order == "arrival" else row.change.sequence)
        rows.size += len(message) if isinstance(message, str | bytes) else 0
        if len(rows.rows) >= thresholds.message_rows or rows.size >= thresholds.message_bytes:
            yield rows.batch(number + 1, sequence)
            rows = _Rows()
    if rows.rows:
        yield rows.batch(number + 1, sequence)


def _decode(message: Message) -> Mapping[str, Any] | None:
    """Return a message as a dict. None: a tombstone. Raises ``ValueError``."""
    try:
        decoded = message if message is None or isinstance(message, Mapping) else json.loads(message or "null")
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {describe_error(error)}") from error
    if isinstance(decoded, Mapping | None):
        return decoded
    raise ValueError(f"a change is an object, not {type(decoded).__name__}")


def _rows_of(change: Change, primary_keys: Sequence[str], *, before_images: bool) -> Iterator[_Row]:
    """Yield the rows of a change.

    An update that moves a row to another key deletes the old one. Raises ``ValueError``.
    """
    before, after = change.before, None if change.operation == "d" else change.after
    if change.operation != "d" and after is None:
        raise ValueError(f"op '{change.operation}' has no row 'after'")
    if before is None and (change.operation == "d" or (change.operation == "u" and before_images)):
        raise ValueError("it has no row 'before'; let the source log it (REPLICA IDENTITY of PostgreSQL)")
    if before is not None and change.operation in "du":
        if lacking := [name for name in primary_keys if before.get(name) is None]:
            raise ValueError(f"'before' has no '{lacking[0]}' of the primary key; let the source log whole rows (REPLICA IDENTITY FULL)")
        if after is None or any(before[name] != after.get(name) for name in primary_keys):
            yield _Row("-D", before, change)
        elif before_images:
            yield _Row("-U", before, change)
    if after is not None:
        yield _Row("+U" if change.operation == "u" else "+I", after, change)


class _Row:
    """A row of a change. ``names`` are its columns with a known value."""

    __slots__ = ("change", "kind", "names", "values")

    def __init__(self, kind: str, values: Row, change: Change) -> None:
        self.kind, self.values, self.change = kind, values, change
        lacking = {name for name, value in values.items() if isinstance(value, str) and value in _UNAVAILABLE}
        self.names = (values if change.types is None else change.types).keys() - lacking


class _Rows:
    """Rows of the next batch."""

    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self.positions: list[int | str | None] = []
        self.size = 0
        """Bytes of their messages."""
        self._python_types: dict[str, type] = {}
        """Without declared types, those of each column's values."""

    def fit(self, row: _Row) -> bool:
        """Return whether the rows have the columns and types of another one."""
        if not self.rows:
            return True
        last, change = self.rows[-1], row.change
        if change.table != last.change.table or row.names != last.names or change.types is not last.change.types:
            return False
        return change.types is not None or all(_is_same(self._python_types.get(name), type(row.values[name])) for name in row.names)

    def add(self, row: _Row, position: int | str | None) -> None:
        """Add a row."""
        if row.change.types is None:
            self._python_types |= {name: type(value) for name, value in row.values.items() if value is not None}
        self.rows.append(row)
        self.positions.append(position)

    def batch(self, offset: int, sequence: str | None) -> ChangeBatch:
        """Return the rows as a batch that ends before the message ``offset``."""
        first, change = self.rows[0], self.rows[-1].change
        all_names = list(first.values if change.types is None else change.types)
        names = [name for name in all_names if name in first.names]
        columns = {name: _column(name, [row.values.get(name) for row in self.rows], change.types) for name in names}
        columns[ROW_KIND] = pa.array([row.kind for row in self.rows])
        if sequence is not None:
            columns[sequence] = python_column(sequence, self.positions, None)
        position = {f"feed.{name}": str(value) for name, value in change.position.items() if value is not None}
        properties = {"feed.offset": str(offset), "feed.table": change.table, **position}
        return ChangeBatch(pa.table(columns), change.table, offset, properties, "null" if names == all_names else "keep")


def _is_same(before: type | None, after: type) -> bool:
    return before is None or after in {before, type(None)} or {before, after} == {int, float}


def _column(name: str, values: Sequence[Any], types: Mapping[str, ConnectType] | None) -> Any:
    if types is None:
        return python_column(name, values, None)
    try:
        return types[name].array(values)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, pa.ArrowException) as error:
        raise SchemaMismatch(f"column '{name}': a message has a value that its schema does not allow: {error}") from error
