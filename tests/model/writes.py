"""Steps that change rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from manifest.io.errors import CommitConflict, InvalidSchema, SchemaMismatch, UnmergeableRows, UnsupportedTable
from paimon_base.errors import InvalidArgument, PaimonError, UnsupportedOption
from pyspark_paimon import Table
from tests.model.conditions import Condition
from tests.model.containers import contained, fits
from tests.model.values import DrawnColumn, Row, bits, bulk_rows
from tests.model.world import MAIN, Side, Step, World, Wrong


def expected_rows(found: int, wanted: int, what: str) -> None:
    if found != wanted:
        raise Wrong(f"{what} answered {found} rows, not {wanted}")


@dataclass
class Write(Step):
    """An upsert or append, of a part of the columns perhaps, or of kinds; in so many commits of a writer."""

    rows: list[Row]
    kinds: list[str] | None = None
    names: list[str] | None = None
    container: str = "table"
    by_writer: bool = False
    options: dict[str, str] | None = None
    side: str = MAIN
    refusals = (SchemaMismatch,)

    def _arrow(self, side: Side) -> pa.Table:
        return side.arrow(self.rows, self.names, self.kinds)

    def run(self, world: World, side: Side) -> None:
        wanted = side.state.upserted(self.rows, self.kinds)
        rows = self._arrow(side)
        data = contained(rows, self.container) if fits(rows, self.container) else rows
        if self.by_writer:
            with side.table.writer() as writer:
                writer.write(data)
        else:
            side.table.write(data, options=self.options)
        side.lags = side.lags or self.options is not None or self.by_writer
        side.state = wanted

    def code(self, world: World, side: Side) -> list[str]:
        given = "".join(f", {name}={getattr(self, name)!r}" for name in ("names", "kinds") if getattr(self, name) is not None)
        if self.container != "table" and fits(self._arrow(side), self.container):
            given += f", container={self.container!r}"
        rows = f"rows({', '.join(map(repr, self.rows))}{given})" if self.rows else f"rows({given[2:]})"
        if self.by_writer:
            return ["with table.writer() as writer:", f"    writer.write({rows})"]
        return [f"table.write({rows}{'' if self.options is None else f', options={self.options!r}'})"]


@dataclass
class Bulk(Step):
    """Some hundred rows of a seed, so that files have pages, row groups and dictionaries."""

    seed: int
    count: int
    columns: list[DrawnColumn]
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        rows = bulk_rows(self.seed, self.count, self.columns)
        wanted = side.state.upserted(rows)
        side.table.write(side.arrow(rows))
        side.state = wanted

    def code(self, world: World, side: Side) -> list[str]:
        given = f"{self.seed}, {self.count}, {self.columns!r}"
        return ["from tests.model.values import bulk_rows", f"table.write(rows(*bulk_rows({given})))"]


@dataclass
class Late(Step):
    """A writer takes rows, another step runs, then the writer commits; or the rows are committed twice under one id."""

    rows: list[Row]
    inner: Step | None = None
    commit_id: str = ""
    side: str = MAIN
    refusals = (SchemaMismatch, CommitConflict, UnsupportedTable, InvalidArgument, InvalidSchema, UnsupportedOption)

    def run(self, world: World, side: Side) -> None:
        wanted = side.state.upserted(self.rows)
        if self.inner is None:
            first = side.table.write(side.arrow(self.rows), commit_id=self.commit_id)
            again = side.table.write(side.arrow(self.rows), commit_id=self.commit_id)
            if not again.replayed or again.snapshot_id != first.snapshot_id:
                raise Wrong(f"a repeated write answered {again}, the first {first}")
            side.state = wanted
            return
        data = side.arrow(self.rows)
        handle = Table.open(world.path, branch=self.side)
        with handle.writer() as writer:
            writer.write(data)
            self.inner.run(world, side)
            side.note()
            later = side.state.upserted(self.rows)
            writer.commit()
            side.state = later
        side.lags = True

    def code(self, world: World, side: Side) -> list[str]:
        rows = f"rows({', '.join(map(repr, self.rows))})"
        if self.inner is None:
            return [f"for _ in range(2):\n    table.write({rows}, commit_id={self.commit_id!r})"]
        inner = [f"    {line}" for line in self.inner.code(world, side)]
        handle = f"Table.open(path, branch={self.side!r})"
        return [f"with {handle}.writer() as writer:", f"    writer.write({rows})", *inner, "    writer.commit()"]


@dataclass
class Overwrite(Step):
    """An overwrite of the whole table, a partition, or the partitions of the rows. ``partition`` has values for Python and for the model."""

    rows: list[Row]
    partition: Row | None = None
    side: str = MAIN
    refusals = (SchemaMismatch, InvalidArgument, UnsupportedTable)

    def _partition(self, side: Side) -> dict[str, Any] | None:
        if self.partition is None:
            return None
        return {name: pa.scalar(value, side.table.schema.field(name).type).as_py() for name, value in self.partition.items()}

    def run(self, world: World, side: Side) -> None:
        kind, state = world.kind, side.state
        if self.partition is not None:
            named = {name: bits(value) for name, value in self.partition.items()}
            kept = state.without(lambda row: all(bits(row[name]) == value for name, value in named.items()))
        elif kind.partitions and side.table.options.get("dynamic-partition-overwrite") != "false":
            rows = self.rows
            if kind.crosses_partitions and kind.engine != "deduplicate":  # the first row of a key says where all of them go
                rows = list({state.key_of(state.idents(row)): row for row in reversed(rows)}.values())
            touched = {tuple(bits(row[name]) for name in kind.partitions) for row in rows}
            kept = state.without(lambda row: tuple(bits(row[name]) for name in kind.partitions) in touched)
        else:
            kept = state.without(lambda row: True)
        if kind.crosses_partitions and any(kept.shows(kept.key_of(kept.idents(row))) for row in self.rows):
            before = state.copied()
            try:
                side.table.write(side.arrow(self.rows), "overwrite", partition=self._partition(side))
            except PaimonError:
                side.state = before
                return
            raise Wrong("an overwrite took a key that lives in another partition")
        wanted = kept.upserted(self.rows)
        side.table.write(side.arrow(self.rows), "overwrite", partition=self._partition(side))
        side.overwritten = True
        side.state = wanted

    def code(self, world: World, side: Side) -> list[str]:
        partition = "" if self.partition is None else f", partition={self._partition(side)!r}"
        return [f"table.write(rows({', '.join(map(repr, self.rows))}), 'overwrite'{partition})"]


@dataclass
class Delete(Step):
    """A delete by a filter."""

    condition: Condition
    language: str = "sql"
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        wanted, count = side.state.removed(partial(self.condition.matches, language=self.language))
        said, params = self.condition.said(self.language, side.table.schema)
        if (world.kind.keys and (not world.kind.takes_deletes or world.kind.ignores_deletes)) or (
            world.kind.on("row-tracking.enabled") and not world.kind.on("deletion-vectors.enabled")
        ):
            try:
                side.table.delete(said, params=params)
            except PaimonError:
                return
            if count:
                raise Wrong("a delete is refused or does something")
            return
        expected_rows(side.table.delete(said, params=params).rows, count, "delete")
        side.state = wanted

    def code(self, world: World, side: Side) -> list[str]:
        text, _, comment = self.condition.code(self.language, side.table.schema).partition("  # ")
        return [f"table.delete({text})" + (f"  # {comment}" if comment else "")]


@dataclass
class DeleteKeys(Step):
    """A delete of rows by their keys, some of which are not there."""

    keys: list[Row]
    side: str = MAIN
    refusals = (UnsupportedTable,)

    def run(self, world: World, side: Side) -> None:
        names = list(self.keys[0])
        gone = {tuple(bits(row[name]) for name in names) for row in self.keys}
        wanted, count = side.state.removed(lambda row: tuple(bits(row[name]) for name in names) in gone)
        expected_rows(side.table.delete(keys=side.arrow(self.keys, names)).rows, count, "delete by keys")
        side.state = wanted

    def code(self, world: World, side: Side) -> list[str]:
        return [f"table.delete(keys=rows({', '.join(map(repr, self.keys))}, names={list(self.keys[0])!r}))"]


@dataclass
class DryRun(Step):
    """A delete or update that only counts."""

    condition: Condition
    side: str = MAIN
    refusals = (UnsupportedTable,)

    def run(self, world: World, side: Side) -> None:
        _, count = side.state.removed(self.condition.matches)
        said, params = self.condition.said("sql", side.table.schema)
        expected_rows(side.table.delete(said, params=params, dry_run=True).rows, count, "dry run of delete")

    def code(self, world: World, side: Side) -> list[str]:
        return [f"table.delete({self.condition.code('sql', side.table.schema)}, dry_run=True)"]


@dataclass
class Update(Step):
    """An update by a filter: values of one or two columns."""

    condition: Condition
    values: Row
    language: str = "sql"
    side: str = MAIN
    refusals = (UnsupportedTable, InvalidArgument, SchemaMismatch, UnmergeableRows)

    def _set(self, side: Side) -> dict[str, Any]:
        return {name: pa.scalar(value, side.table.schema.field(name).type).as_py() for name, value in self.values.items()}

    def run(self, world: World, side: Side) -> None:
        wanted, count = side.state.updated(partial(self.condition.matches, language=self.language), self.values)
        said, params = self.condition.said(self.language, side.table.schema)
        expected_rows(side.table.update(said, values=self._set(side), params=params).rows, count, "update")
        side.state = wanted

    def code(self, world: World, side: Side) -> list[str]:
        text = self.condition.code(self.language, side.table.schema)
        filtered, _, comment = text.partition("  # ")
        return [f"table.update({filtered}, values={self._set(side)!r})" + (f"  # {comment}" if comment else "")]


@dataclass
class Merge(Step):
    """A merge on the key, or for append tables on a column: what matches is replaced, deleted or left, the rest inserted."""

    rows: list[Row]
    on: list[str]
    matched: str = "update"
    inserts: bool = True
    side: str = MAIN
    refusals = (SchemaMismatch, UnsupportedTable, InvalidArgument, UnmergeableRows)

    def _place(self, row: Row) -> tuple[Any, ...]:
        """Zeros of either sign match each other."""
        return tuple(bits(0.0 if isinstance(row[name], float) and row[name] == 0 else row[name]) for name in self.on)

    def _source(self) -> dict[tuple[Any, ...], Row]:
        return {self._place(row): row for row in self.rows}

    def run(self, world: World, side: Side) -> None:
        state, kind = side.state, world.kind
        source, place = self._source(), self._place
        hit = {place(row) for row in state.rows()}
        wanted = state.copied()
        if self.matched == "delete":
            wanted, _ = state.removed(lambda row: place(row) in source)
        elif self.matched == "update":
            pairs = [(number, record) for number, record in state.records.items() if record[0] in {"+I", "+U"}]
            for number, (_, sequence, row) in pairs:
                new = source.get(place(state.shown(row)))
                if new is not None:
                    wanted.records[number] = ("+I", sequence, {**state.idents(new), **{name: row[name] for name in kind.keys}})
            wanted.bag = [state.idents(source[at]) if (at := place(state.shown(row))) in source else row for row in state.bag]
        if self.inserts:
            wanted = wanted.upserted([row for at, row in source.items() if at not in hit])
        merge = side.table.merge(side.arrow(list(source.values())), on=self.on)
        merge = (
            merge.when_matched_delete()
            if self.matched == "delete"
            else merge.when_matched_update_all()
            if self.matched == "update"
            else merge
        )
        merge = merge.when_not_matched_insert_all() if self.inserts else merge
        merge.execute()
        if not kind.takes_deletes and kind.keys and self.matched == "delete" and hit & source.keys():
            raise Wrong("a merge deleted rows of a table that takes no deletes")
        side.state = wanted

    def code(self, world: World, side: Side) -> list[str]:
        matched = {"delete": ".when_matched_delete()", "update": ".when_matched_update_all()"}.get(self.matched, "")
        inserts = ".when_not_matched_insert_all()" if self.inserts else ""
        source = self._source().values()
        return [f"table.merge(rows({', '.join(map(repr, source))}), on={self.on!r}){matched}{inserts}.execute()"]


@dataclass
class DropPartitions(Step):
    """Partitions go by name of one column or all."""

    partition: Row
    side: str = MAIN

    def run(self, world: World, side: Side) -> None:
        named = {name: bits(value) for name, value in self.partition.items()}
        wanted = side.state.without(lambda row: all(bits(row[name]) == value for name, value in named.items()))
        side.table.drop_partitions([self._spec(side)])
        side.overwritten = True
        side.state = wanted

    def _spec(self, side: Side) -> dict[str, Any]:
        return {name: pa.scalar(value, side.table.schema.field(name).type).as_py() for name, value in self.partition.items()}

    def code(self, world: World, side: Side) -> list[str]:
        return [f"table.drop_partitions([{self._spec(side)!r}])"]
