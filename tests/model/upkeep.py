"""Steps that change no row: upkeep of files, columns, tags, branches and other handles."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from manifest.io.errors import InvalidSchema, UnsupportedTable
from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon import Table
from tests.model.columns import Column
from tests.model.world import MAIN, Side, Step, World, Wrong, same

CASTS: dict[str, list[str]] = {
    "TINYINT": ["SMALLINT", "STRING"],
    "SMALLINT": ["INT", "DOUBLE", "STRING"],
    "INT": ["BIGINT", "DOUBLE", "STRING"],
    "BIGINT": ["STRING"],
    "FLOAT": ["DOUBLE"],
    "BOOLEAN": ["STRING"],
    "DECIMAL(4, 2)": ["DECIMAL(18, 3)", "STRING"],
    "VARCHAR(20)": ["STRING"],
    "VARBINARY(20)": ["BYTES"],
    "DATE": ["TIMESTAMP(3)"],
    "TIMESTAMP(3)": ["TIMESTAMP(6)"],
}
"""Types that a column may be given, those first that keep the order of its values."""


@dataclass
class Upkeep(Step):
    """A call of the table by its name and arguments."""

    call: str
    arguments: dict[str, Any]
    side: str = MAIN
    refusals = (UnsupportedTable,)

    def run(self, world: World, side: Side) -> None:
        getattr(side.table, self.call)(**self.arguments)
        if self.call == "compact" and self.arguments.get("full"):
            side.lags = False
            if world.kind.engine in {"partial-update", "aggregation"}:
                side.state = side.state.compacted()

    def code(self, world: World, side: Side) -> list[str]:
        return [f"table.{self.call}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"]


@dataclass
class Expire(Step):
    """Old snapshots go, but for the newest so many."""

    retain: int
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        side.table.expire_snapshots(retain_min=self.retain, retain_max=self.retain)

    def code(self, world: World, side: Side) -> list[str]:
        return [f"table.expire_snapshots(retain_min={self.retain}, retain_max={self.retain})"]


@dataclass
class Orphans(Step):
    """Nothing is orphaned by what was acknowledged or refused; what goes is of commits that were refused late."""

    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        side.table.remove_orphan_files(older_than=time.time_ns() // 1_000_000 + 10_000)

    def code(self, world: World, side: Side) -> list[str]:
        return ["import time; table.remove_orphan_files(older_than=time.time_ns() // 1_000_000 + 10_000)"]


@dataclass
class Reopen(Step):
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        side.table = Table.open(world.path, branch=self.side)

    def code(self, world: World, side: Side) -> list[str]:
        return [f"table = Table.open(path, branch={self.side!r})"]


@dataclass
class AddColumn(Step):
    column: Column
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        side.table.add_column(self.column.name, self.column.type)
        side.offset = None
        side.state = side.state.copied()
        side.state.columns.append(self.column)

    def code(self, world: World, side: Side) -> list[str]:
        return [f"table.add_column({self.column.name!r}, {self.column.type!r})"]


@dataclass
class ChangeColumn(Step):
    """Drop a column, rename it, or give it a wider type."""

    name: str
    how: str
    new: str = ""
    side: str = MAIN
    refusals = (InvalidSchema, UnsupportedOption)

    def run(self, world: World, side: Side) -> None:
        state, side.offset = side.state.copied(), None
        at = state.names.index(self.name)
        if self.how != "widen":
            world.freed.add(self.name)
        match self.how:
            case "drop":
                side.table.drop_column(self.name)
                del state.columns[at]
            case "rename":
                side.table.rename_column(self.name, self.new)
                state.columns[at] = replace(state.columns[at], name=self.new)
            case _:
                side.table.change_type(self.name, self.new)
                state.columns[at] = replace(state.columns[at], type=self.new)
                state = state.restored(side.state)
        side.state = state

    def code(self, world: World, side: Side) -> list[str]:
        call = {"drop": "drop_column", "rename": "rename_column"}.get(self.how, "change_type")
        return [f"table.{call}({self.name!r}{f', {self.new!r}' if self.new else ''})"]


@dataclass
class AlterOptions(Step):
    options: dict[str, str | None]
    side: str = MAIN
    refusals = (UnsupportedOption, UnsupportedTable, InvalidSchema)

    def run(self, world: World, side: Side) -> None:
        side.table.alter_options(self.options)
        side.lags = True

    def code(self, world: World, side: Side) -> list[str]:
        return [f"table.alter_options({self.options!r})"]


@dataclass
class Tag(Step):
    """``how`` is create, replace, rename or delete; without a snapshot the newest is meant."""

    name: str
    how: str = "create"
    snapshot: int | None = None
    new: str = ""
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        newest = max(side.snapshots)
        match self.how:
            case "delete":
                side.table.delete_tag(self.name)
                del side.tags[self.name]
            case "rename":
                side.table.rename_tag(self.name, self.new)
                side.tags[self.new] = side.tags.pop(self.name)
            case _:
                call = side.table.create_tag if self.how == "create" else side.table.replace_tag
                call(self.name, self.snapshot)
                number = self.snapshot or newest
                side.tags[self.name] = number, side.snapshots[number]

    def code(self, world: World, side: Side) -> list[str]:
        given = f", {self.snapshot}" if self.snapshot else f", {self.new!r}" if self.new else ""
        return [f"table.{self.how}_tag({self.name!r}{given})"]


@dataclass
class GoBack(Step):
    """Roll back to a snapshot or tag (``how``: rollback), or write its rows anew (restore)."""

    how: str
    snapshot: int | None = None
    tag: str | None = None
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        number, shown = side.tags[self.tag] if self.tag else (self.snapshot or 0, side.snapshots[self.snapshot or 0])
        if self.how == "restore":
            side.table.restore(self.snapshot, tag=self.tag)
            side.overwritten = True
        else:
            side.table.rollback_to(self.snapshot, tag=self.tag)
            side.offset, side.lags = None, True
            side.snapshots = {at: found for at, found in side.snapshots.items() if at <= number}
            side.tags = {name: found for name, found in side.tags.items() if found[0] <= number}
        side.state = side.state.restored(shown.state)

    def code(self, world: World, side: Side) -> list[str]:
        place = f"tag={self.tag!r}" if self.tag else f"snapshot={self.snapshot}"
        return [f"table.{'restore' if self.how == 'restore' else 'rollback_to'}({place})"]


@dataclass
class Branch(Step):
    """``how`` is create (from a tag), forward or delete."""

    name: str
    how: str = "create"
    tag: str | None = None
    refusals = (InvalidArgument,)

    def run(self, world: World, side: Side) -> None:
        match self.how:
            case "create":
                side.table.create_branch(self.name, self.tag)
                number, shown = side.tags[self.tag or ""]
                state = shown.state.copied()
                table, tags = Table.open(world.path, branch=self.name), {self.tag or "": (number, shown)}
                world.sides[self.name] = Side(table, state, {number: shown}, tags, lags=True)
            case "delete":
                side.table.delete_branch(self.name)
                del world.sides[self.name]
            case _:
                other = world.sides[self.name]
                first = min(other.snapshots)
                side.table.fast_forward(self.name)
                side.table = Table.open(world.path)
                side.offset, side.lags = None, True
                side.snapshots = {**{at: found for at, found in side.snapshots.items() if at < first}, **other.snapshots}
                side.state = other.state.copied()
                kept = set(side.table.tags()["tag_name"].to_pylist())
                side.tags = {name: found for name, found in {**side.tags, **other.tags}.items() if name in kept}

    def code(self, world: World, side: Side) -> list[str]:
        match self.how:
            case "create":
                return [f"table.create_branch({self.name!r}, {self.tag!r})"]
            case "delete":
                return [f"table.delete_branch({self.name!r})"]
        return [f"table.fast_forward({self.name!r})", "table = Table.open(path)"]


@dataclass
class Travel(Step):
    """Read a snapshot or a tag as it was."""

    snapshot: int | None = None
    tag: str | None = None
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        shown = side.tags[self.tag][1] if self.tag else side.snapshots[self.snapshot or 0]
        found = side.table.scan(snapshot=self.snapshot, tag=self.tag).to_arrow()
        same(found, shown.names, shown.rows, f"snapshot {self.snapshot} tag {self.tag}")
        tags = set(side.table.tags()["tag_name"].to_pylist())
        if tags != set(side.tags):
            raise Wrong(f"tags are {tags}, not {set(side.tags)}")

    def code(self, world: World, side: Side) -> list[str]:
        return [f"table.scan(snapshot={self.snapshot!r}, tag={self.tag!r}).to_arrow()"]
