"""Steps that ask: filters in every language, projections, limits, orders, keys, counts, other readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from manifest.io.errors import SchemaMismatch, SnapshotExpired
from paimon_base.errors import InvalidArgument
from tests.lsm.aggregate_model import order_of
from tests.model.conditions import Condition
from tests.model.values import Row, bag, bits, plain_rows
from tests.model.world import MAIN, Side, Step, World, Wrong, same


@dataclass
class Scan(Step):
    """A filter in one language, some columns, perhaps a limit."""

    condition: Condition
    language: str
    names: list[str] | None = None
    limit: int | None = None
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        said, params = self.condition.said(self.language, side.table.schema)
        wanted = [row for row in side.state.rows() if self.condition.matches(row, self.language)]
        names = self.names or side.state.names
        scan = side.table.scan(said, self.names, self.limit, params=params)
        found = scan.to_arrow()
        if self.limit is None:
            same(found, names, wanted, "filtered scan")
            if scan.count() != len(wanted):
                raise Wrong(f"count() of the filtered scan is {scan.count()}, not {len(wanted)}")
        else:
            there = bag(plain_rows(found), names)
            if found.num_rows != min(self.limit, len(wanted)) or there - bag(wanted, names):
                raise Wrong(f"limit {self.limit} gave {there} of {wanted}")

    def code(self, world: World, side: Side) -> list[str]:
        text, _, comment = self.condition.code(self.language, side.table.schema).partition("  # ")
        given = (f", columns={self.names!r}" if self.names else "") + ("" if self.limit is None else f", limit={self.limit}")
        return [f"table.scan({text}{given}).to_arrow()" + (f"  # {comment}" if comment else "")]


@dataclass
class PolarsFilter(Step):
    """A filter that polars hands down to a lazy scan."""

    condition: Condition
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        wanted = [row for row in side.state.rows() if self.condition.matches(row)]
        said, _ = self.condition.said("polars", side.table.schema)
        found = side.table.scan().scan_polars().filter(said).collect().height
        if found != len(wanted):
            raise Wrong(f"polars finds {found} rows, not {len(wanted)}")

    def code(self, world: World, side: Side) -> list[str]:
        said, _ = self.condition.said("polars", side.table.schema)
        return [f"table.scan().scan_polars().filter(pl.Expr.deserialize({said.meta.serialize()!r})).collect()"]


@dataclass
class Lookup(Step):
    """Rows by key, in the order of the keys."""

    keys: list[Row]
    side: str = MAIN

    def _arrow(self, side: Side) -> pa.Table:
        return side.arrow(self.keys, list(self.keys[0]))

    def run(self, world: World, side: Side) -> None:
        names = list(self.keys[0])
        place = lambda row: tuple(bits(row[name]) for name in names)  # noqa: E731
        there = {place(row): row for row in side.state.rows()}
        wanted = [there[place(key)] for key in self.keys if place(key) in there]
        found = plain_rows(side.table.lookup(self._arrow(side)))
        if [bits(row) for row in found] != [bits(row) for row in wanted]:
            raise Wrong(f"lookup gave {found}, not {wanted}")

    def code(self, world: World, side: Side) -> list[str]:
        return [f"table.lookup(rows({', '.join(map(repr, self.keys))}, names={list(self.keys[0])!r}))"]


SHARED = ("BOOLEAN", "INT", "BIGINT", "STRING", "DATE", "SMALLINT", "TINYINT", "DOUBLE")
"""Types that DuckDB and polars hold as they are."""


@dataclass
class OtherReader(Step):
    """The rows as DuckDB, polars, batches or a dataset show them."""

    how: str
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        table, names, rows = side.table, side.state.names, side.state.rows()
        shared = [column.name for column in side.state.columns if column.type in SHARED]
        match self.how:
            case "duckdb" | "polars" if not shared:
                return
            case "duckdb":
                same(table.scan().to_duckdb().select(*(f'"{name}"' for name in shared)).to_arrow_table(), shared, rows, "DuckDB")
            case "polars":
                same(table.scan(columns=shared).to_polars().to_arrow(), shared, rows, "polars")
            case "batches":
                same(pa.Table.from_batches(table.scan().to_batches(), table.scan().schema), names, rows, "to_batches")
            case "reader":
                same(table.scan().to_reader().read_all(), names, rows, "to_reader")
            case "dictionaries":
                same(table.scan().to_arrow(dictionaries=True), names, rows, "to_arrow with dictionaries")
            case "splits":
                scan = table.scan()
                parts = [batch for split in scan.plan().splits for batch in scan.read(split)]
                same(pa.Table.from_batches(parts, scan.schema), names, rows, "splits")
            case _:
                same(table.scan().to_dataset().to_table(), names, rows, "to_dataset")

    def code(self, world: World, side: Side) -> list[str]:
        call = {
            "duckdb": "to_duckdb().fetchall()",
            "polars": "to_polars()",
            "batches": "to_batches()",
            "reader": "to_reader().read_all()",
            "dictionaries": "to_arrow(dictionaries=True)",
            "splits": "plan().splits",
        }
        return [f"table.scan().{call.get(self.how, 'to_dataset().to_table()')}"]


def ordering(value: Any, kind: str) -> Any:
    """What Spark sorts by: null first, NaN last, both zeros alike."""
    return order_of(0.0 if isinstance(value, float) and value == 0 else value, kind)


@dataclass
class Ordered(Step):
    """The first rows by one or two columns, of those that a filter finds."""

    condition: Condition | None
    items: list[tuple[str, bool]]
    limit: int | None
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        rows = [row for row in side.state.rows() if self.condition is None or self.condition.matches(row)]
        for name, descends in reversed(self.items):
            kind = side.state.column(name).type
            rows.sort(key=lambda row: ordering(row[name], kind), reverse=descends)
        names = [name for name, _ in self.items]
        wanted = [[ordering(row[name], side.state.column(name).type) for name in names] for row in rows[: self.limit]]
        said, params = (None, None) if self.condition is None else self.condition.said("sql", side.table.schema)
        table = side.table.scan(said, limit=self.limit, params=params, order_by=self._text()).to_arrow()
        found = [[ordering(row[name], side.state.column(name).type) for name in names] for row in plain_rows(table)]
        if found != wanted or bag(plain_rows(table), side.state.names) - bag(rows, side.state.names):
            raise Wrong(f"order by {self._text()} limit {self.limit} gave {found}, not {wanted}")

    def _text(self) -> str:
        return ", ".join(f"`{name}` {'DESC' if descends else 'ASC'}" for name, descends in self.items)

    def code(self, world: World, side: Side) -> list[str]:
        text = "None" if self.condition is None else self.condition.code("sql", side.table.schema)
        return [f"table.scan({text}, limit={self.limit}, order_by={self._text()!r}).to_arrow()"]


@dataclass
class Aggregate(Step):
    """Minimum, maximum and number of values of a column, by partitions perhaps, of the rows that a filter finds."""

    name: str
    by: list[str]
    condition: Condition | None = None
    side: str = MAIN
    refusals = (InvalidArgument,)

    def run(self, world: World, side: Side) -> None:
        kind = side.state.column(self.name).type
        groups: dict[Any, list[Any]] = {} if self.by else {(): []}
        for row in side.state.rows():
            if self.condition is None or self.condition.matches(row):
                values = groups.setdefault(tuple(bits(row[name]) for name in self.by), [])
                values += [row[self.name]] if row[self.name] is not None else []
        wanted = {
            group: (
                *((ordering(end(values, key=lambda value: ordering(value, kind)), kind) if values else None) for end in (min, max)),
                len(values),
            )
            for group, values in groups.items()
        }
        said, params = (None, None) if self.condition is None else self.condition.said("sql", side.table.schema)
        table = side.table.scan(said, params=params).aggregate({self.name: ["min", "max", "count"]}, by=self.by)
        there = {}
        for row in plain_rows(table):
            low, high, count = (row[f"{self.name}_{function}"] for function in ("min", "max", "count"))
            ends = (None if value is None else ordering(value, kind) for value in (low, high))
            there[tuple(bits(row[name]) for name in self.by)] = (*ends, count)
        if there != wanted:
            raise Wrong(f"aggregate of {self.name} by {self.by} gave {there}, not {wanted}")

    def code(self, world: World, side: Side) -> list[str]:
        text = "" if self.condition is None else self.condition.code("sql", side.table.schema)
        return [f"table.scan({text}).aggregate({{{self.name!r}: ['min', 'max', 'count']}}, by={self.by!r})"]


def applied(rows: dict[Any, Row], changes: list[Row], keys: list[str]) -> None:
    """Change rows by key as a changelog says."""
    for change in changes:
        kind = change.pop("_row_kind")
        place = tuple(bits(change[name]) for name in keys)
        if kind in {"+I", "+U"}:
            rows[place] = change
        elif kind == "-D":
            rows.pop(place, None)


def keys_in(world: World, side: Side) -> list[str]:
    return [column.name for column in side.state.columns if column.ident in world.kind.keys]


@dataclass
class Changelog(Step):
    """Changes between two snapshots, applied to the first, give the second."""

    first: int
    last: int
    side: str = MAIN
    refusals = (SnapshotExpired,)

    def run(self, world: World, side: Side) -> None:
        keys, names, state = keys_in(world, side), side.state.names, side.state
        before = [] if self.first == 0 else state.restored(side.snapshots[self.first].state).rows()
        after = state.restored(side.snapshots[self.last].state).rows()
        rows = {tuple(bits(row[name]) for name in keys): row for row in before}
        changes = plain_rows(side.table.changelog(self.first, self.last).to_arrow())
        applied(rows, changes, keys)
        if bag(rows.values(), names) != bag(after, names):
            raise Wrong(f"changelog from {self.first} to {self.last} leads from {before} to {list(rows.values())}, not to {after}")

    def code(self, world: World, side: Side) -> list[str]:
        return [f"print(table.changelog({self.first}, {self.last}).to_arrow().to_pylist())"]


@dataclass
class Follow(Step):
    """A stream of changes from where it was left; its sum is the table."""

    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        tells = side.table.options.get("changelog-producer", "none") in {"none", "input"}
        if not tells and side.overwritten:
            side.offset = None
        try:
            batches = list(side.table.follow(side.offset, overwrites=tells))
        except (SnapshotExpired, SchemaMismatch):
            if side.offset is None:
                raise
            side.offset, side.followed = None, {}
            batches = list(side.table.follow(None, overwrites=tells))
        side.overwritten = False
        keys = keys_in(world, side)
        if side.offset is None:
            side.followed = {}
        for batch in batches:
            applied(side.followed, plain_rows(batch.rows), keys)
            side.offset = batch.offset
        names = side.state.names
        waits = side.lags or side.table.options.get("write-only") == "true" or side.table.options.get("bucket") == "-2"
        if not waits and bag(side.followed.values(), names) != bag(side.state.rows(), names):
            raise Wrong(f"follow leads to {list(side.followed.values())}, not to {side.state.rows()}")

    def code(self, world: World, side: Side) -> list[str]:
        tells = side.table.options.get("changelog-producer", "none") in {"none", "input"}
        return [f"offset = [batch.offset for batch in table.follow({'None' if side.offset is None else 'offset'}, overwrites={tells})][-1]"]
