"""What a table must hold: rows by key or in a list, under idents of columns, changed as the merge engine says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from tests.lsm.aggregate_model import order_of
from tests.lsm.merge_model import Model, Record
from tests.model.columns import Column
from tests.model.tables import TableKind
from tests.model.values import Row, bits

Key = tuple[Any, ...]
VISIBLE = ("+I", "+U")


class Unpredictable(Exception):
    """The answer depends on what a compaction has removed already."""


@dataclass
class State:
    """A table's columns and rows. A primary-key table holds one record a key, a deleted one too; others a list of rows."""

    kind: TableKind
    columns: list[Column]
    records: dict[Key, Record] = field(default_factory=dict)
    bag: list[Row] = field(default_factory=list)

    def copied(self) -> State:
        return replace(self, columns=list(self.columns), records=dict(self.records), bag=list(self.bag))

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def rows(self) -> list[Row]:
        """The rows that a scan shows, under the columns' names."""
        return [self.shown(row) for row in self._visible()]

    def shown(self, row: Row) -> Row:
        return {column.name: row.get(column.ident) for column in self.columns}

    def idents(self, row: Row) -> Row:
        return {column.ident: row.get(column.name) for column in self.columns}

    def _visible(self) -> list[Row]:
        if self.kind.keys:
            return [row for kind, _, row in self.records.values() if kind in VISIBLE]
        return self.bag

    def shows(self, key: Key) -> bool:
        """Whether the table has a row of a key."""
        return key in self.records and self.records[key][0] in VISIBLE

    def key_of(self, row: Row) -> Key:
        return tuple(bits(row[name]) for name in self.kind.keys)

    def upserted(self, rows: Iterable[Row], kinds: Sequence[str] | None = None) -> State:
        """The table after a write of rows under the columns' names."""
        done = self.copied()
        for at, shown in enumerate(rows):
            row = self.idents(shown)
            kind = row[self.kind.rowkind] if self.kind.rowkind else kinds[at] if kinds else "+I"
            if not self.kind.keys:
                done.bag.append(row)
                continue
            done._fold((kind, 0, row))
        return done

    def _fold(self, new: Record) -> None:
        key = self.key_of(new[2])
        if self.kind.ignores_deletes and new[0] in {"-D", "-U"}:
            return
        old = self.records.get(key)
        if old is None:
            self.records[key] = new
            return
        if self.kind.engine in {"partial-update", "aggregation"} and "-D" in {old[0], new[0]} and old[0] not in VISIBLE:
            # Merged without the older row, a delete and what follows it are an insert: the older values come back, in Java too.
            raise Unpredictable
        if self.kind.crosses_partitions and not self._moves(old, new):
            if self.kind.engine == "first-row":
                return
            new = (new[0], 0, {**new[2], **{name: old[2][name] for name in self.kind.partitions}})
        pair = [old, new]
        if self.kind.sequence and self._sequence(new) < self._sequence(old):
            pair = [new, old]
            if old[0] not in VISIBLE and "delete.time-retained" not in self.kind.options:
                raise Unpredictable
        merged = self._merger().merge([(kind, number, self._complete(row)) for kind, number, row in pair])
        if merged is not None:
            self.records[key] = merged

    def _complete(self, row: Row) -> Row:
        return {column.ident: row.get(column.ident) for column in self.columns}

    def _moves(self, old: Record, new: Record) -> bool:
        same = all(bits(old[2][name]) == bits(new[2][name]) for name in self.kind.partitions)
        return same or self.kind.engine == "deduplicate" or old[0] not in VISIBLE

    def _sequence(self, record: Record) -> list[Any]:
        types = {column.ident: column.type for column in self.columns}
        return [order_of(record[2].get(name), types[name]) for name in self.kind.sequence]

    def _merger(self) -> Model:
        types = {column.ident: column.type for column in self.columns}
        return Model(types, self.kind.keys, self.kind.options)

    def removed(self, matches: Callable[[Row], bool]) -> tuple[State, int]:
        """The table without the rows that match, and how many they are."""
        done, count = self.copied(), 0
        if not self.kind.keys:
            done.bag = [row for row in self.bag if not matches(self.shown(row))]
            return done, len(self.bag) - len(done.bag)
        for key, (kind, number, row) in self.records.items():
            if kind in VISIBLE and matches(self.shown(row)):
                folds = self.kind.engine in {"partial-update", "aggregation"}  # a delete leaves nothing there that a later row could show
                done.records[key] = ("-D", number, {name: row[name] for name in {*self.kind.keys, *self.kind.partitions}} if folds else row)
                count += 1
        return done, count

    def updated(self, matches: Callable[[Row], bool], values: Row) -> tuple[State, int]:
        """The table with other values in the rows that match, and how many they are."""
        done, count = self.copied(), 0
        change = {self.column(name).ident: value for name, value in values.items()}
        if not self.kind.keys:
            done.bag = [{**row, **change} if matches(self.shown(row)) else row for row in self.bag]
            return done, sum(matches(self.shown(row)) for row in self.bag)
        for key, (kind, number, row) in self.records.items():
            if kind in VISIBLE and matches(self.shown(row)):
                done.records[key] = ("+I", number, {**row, **change})
                count += 1
        return done, count

    def without(self, goes: Callable[[Row], bool]) -> State:
        """The table once partitions are gone, deletes in them too; ``goes`` judges rows under idents."""
        done = self.copied()
        done.records = {key: record for key, record in self.records.items() if not goes(record[2])}
        done.bag = [row for row in self.bag if not goes(row)]
        return done

    def compacted(self) -> State:
        """The state once nothing of a deleted record is left in files."""
        return replace(self, records={key: record for key, record in self.records.items() if record[0] in VISIBLE})

    def restored(self, older: State) -> State:
        """The rows of an older state under the columns of this one."""
        types = {column.ident: column.type for column in older.columns}
        changed = {
            column.ident: (types[column.ident], column.type)
            for column in self.columns
            if types.get(column.ident, column.type) != column.type
        }

        def cast(row: Row) -> Row:
            return {name: cast_value(value, *changed[name]) if name in changed else value for name, value in row.items()}

        records = {key: (kind, number, cast(row)) for key, (kind, number, row) in older.records.items()}
        return replace(self, columns=list(self.columns), records=records, bag=[cast(row) for row in older.bag])


def cast_value(value: Any, old: str, new: str) -> Any:
    """A value of a column whose type changed, as Paimon casts it."""
    if value is None:
        return None
    match new:
        case "STRING" if isinstance(value, bool):
            return str(value).lower()
        case "STRING":
            return str(value)
        case "DOUBLE":
            return float(value)
        case "DECIMAL(18, 3)":
            return value.quantize(Decimal("0.001"))
        case "TIMESTAMP(3)" if old == "DATE":
            return value * 86_400_000
        case "TIMESTAMP(6)" if old == "DATE":
            return value * 86_400_000_000
        case "TIMESTAMP(6)" if old == "TIMESTAMP(3)":
            return value * 1000
        case _:
            return value
