"""Steps that ask: filters in every language, projections, limits, orders, keys, counts, other readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
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
        wanted = [row for row in side.state.rows() if self.condition.matches(row)]
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


@dataclass
class OtherReader(Step):
    """The rows as DuckDB, polars, batches or a dataset show them."""

    how: str
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        table, names = side.table, side.state.names
        match self.how:
            case "duckdb":
                count = table.scan().to_duckdb().aggregate("count(*)").fetchall()[0][0]
                if count != len(side.state.rows()):
                    raise Wrong(f"DuckDB counts {count}, not {len(side.state.rows())}")
            case "polars":
                if table.scan().to_polars().height != len(side.state.rows()):
                    raise Wrong("polars has another number of rows")
            case "batches":
                same(pa.Table.from_batches(table.scan().to_batches(), table.scan().schema), names, side.state.rows(), "to_batches")
            case "reader":
                same(table.scan().to_reader().read_all(), names, side.state.rows(), "to_reader")
            case _:
                same(table.scan().to_dataset().to_table(), names, side.state.rows(), "to_dataset")

    def code(self, world: World, side: Side) -> list[str]:
        call = {"duckdb": "to_duckdb().fetchall()", "polars": "to_polars()", "batches": "to_batches()", "reader": "to_reader().read_all()"}
        return [f"table.scan().{call.get(self.how, 'to_dataset().to_table()')}"]


@dataclass
class Aggregate(Step):
    """Minimum, maximum and number of values of a column."""

    name: str
    side: str = MAIN
    refusals = (InvalidArgument,)

    def run(self, world: World, side: Side) -> None:
        from tests.lsm.aggregate_model import order_of

        kind = side.state.column(self.name).type
        values = [row[self.name] for row in side.state.rows() if row[self.name] is not None]
        found = plain_rows(side.table.scan().aggregate({self.name: ["min", "max", "count"]}))[0]
        low, high, count = list(found.values())[-3:]
        order: Any = lambda value: order_of(0.0 if isinstance(value, float) and value == 0 else value, kind)  # noqa: E731
        wanted = (min(map(order, values), default=None), max(map(order, values), default=None), len(values))
        there = (None if low is None else order(low), None if high is None else order(high), count)
        if there != wanted:
            raise Wrong(f"aggregate of {self.name} gave {found}, not {wanted}")

    def code(self, world: World, side: Side) -> list[str]:
        return [f"table.scan().aggregate({{{self.name!r}: ['min', 'max', 'count']}})"]


@dataclass
class Changelog(Step):
    """Changes between two snapshots, applied to the first, give the second."""

    first: int
    last: int
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        keys = [column.name for column in side.state.columns if column.ident in world.kind.keys]
        names = side.state.names
        place = lambda row: tuple(bits(row[name]) for name in keys)  # noqa: E731
        state = side.state
        before = [] if self.first == 0 else state.restored(side.snapshots[self.first].state).rows()
        after = state.restored(side.snapshots[self.last].state).rows()
        rows = {place(row): row for row in before}
        for change in plain_rows(side.table.changelog(self.first, self.last).to_arrow()):
            kind = change.pop("_row_kind")
            if kind in {"+I", "+U"}:
                rows[place(change)] = change
            elif kind == "-D":
                rows.pop(place(change), None)
        if bag(rows.values(), names) != bag(after, names):
            raise Wrong(f"changelog from {self.first} to {self.last} leads to {list(rows.values())}, not to {after}")

    def code(self, world: World, side: Side) -> list[str]:
        return [f"print(table.changelog({self.first}, {self.last}).to_arrow().to_pylist())"]
