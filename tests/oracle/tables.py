"""A table as a list of steps, and the rows that it must hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa

from pyspark_paimon import Table
from tests.oracle.values import TYPES, Names, Row

COLUMNS = ("id", "p", "i", "e", "b", "s", "d", "n", "t", "dt", "bo", "l", "r", "m")
OPTIONAL = ("k", "h", "g", "v")

CHANGED = {"add": "z", "widen": "e", "widen_small": "k", "rescale": "n", "replace": "g2"}


@dataclass(frozen=True)
class Step:
    """``verb``: write, delete, compact, add, widen, widen_small, rescale, rename, replace, nest, move, index, rewrite."""

    verb: str
    rows: tuple[Row, ...] = ()
    full: bool = False
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Spec:
    """A table as it is made, and what happens to it."""

    engine: str
    keys: tuple[str, ...]
    partitions: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    tiny: bool = True
    optional: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS + self.optional

    @property
    def evolves_data(self) -> bool:
        """Whether an update writes single columns."""
        return "data-evolution.enabled" in dict(self.options)

    @property
    def producer(self) -> str:
        """What makes the changelog."""
        return dict(self.options).get("changelog-producer", "none")

    @property
    def is_postponed(self) -> bool:
        """Whether rows are visible only after a compaction."""
        return dict(self.options).get("bucket") == "-2"

    @property
    def crosses(self) -> bool:
        """Whether a key may move to another partition."""
        return bool(self.keys and self.partitions) and "p" not in self.keys

    @property
    def indexed(self) -> set[str]:
        """Columns that some index covers, perhaps in some files only, and those that change."""
        options = [*self.options, *(option for step in self.steps for option in step.options)]
        named = {name for key, value in options if key.endswith(".columns") for name in value.split(",")}
        return named | {CHANGED[step.verb] for step in self.steps if step.verb in CHANGED}

    def shrunk(self) -> Iterator[Spec]:
        """Simpler tables: fewer steps, fewer rows, fewer options."""
        for at, step in enumerate(self.steps):
            yield replace(self, steps=self.steps[:at] + self.steps[at + 1 :])
            half = len(step.rows) // 2
            for rows in (step.rows[:half], step.rows[half:]) if half else ():
                yield replace(self, steps=(*self.steps[:at], replace(step, rows=rows), *self.steps[at + 1 :]))
            if 1 < len(step.rows) <= 4:
                for row in range(len(step.rows)):
                    rows = step.rows[:row] + step.rows[row + 1 :]
                    yield replace(self, steps=(*self.steps[:at], replace(step, rows=rows), *self.steps[at + 1 :]))
        for ident in self.optional:
            yield replace(self, optional=tuple(other for other in self.optional if other != ident))
        for at in range(len(self.options)):
            if self.options[at][0] not in {"bucket", "merge-engine"}:
                yield replace(self, options=self.options[:at] + self.options[at + 1 :])


@dataclass(frozen=True)
class Moment:
    """What a snapshot holds."""

    snapshot: int
    rows: list[Row]
    columns: Names


class Built:
    """A table and the rows that it must hold, by identity of the columns."""

    def __init__(self, spec: Spec, path: str) -> None:
        self.spec = spec
        columns = ", ".join(f"{ident} {TYPES[ident]}" for ident in spec.columns)
        self.table = Table.create(path, columns, list(spec.keys), list(spec.partitions), dict(spec.options))
        self.names = {ident: ident for ident in spec.columns}
        self.fields = ("x", "y")
        self.scale = Decimal("0.01")
        self.expected: list[Row] = []
        self.moments: list[Moment] = []
        for step in spec.steps:
            getattr(self, f"_{step.verb}")(step)
            snapshot = self.table.scan().snapshot_id
            if snapshot is not None and not spec.is_postponed and (not self.moments or self.moments[-1].snapshot < snapshot):
                self.moments.append(Moment(snapshot, self.expected, self.columns))
        if spec.is_postponed:
            self.table.compact(full=True)

    @property
    def columns(self) -> Names:
        return Names(tuple(self.names.items()), tuple(TYPES.items()), self.fields)

    def arrow(self, rows: list[Row]) -> pa.Table:
        schema = self.table.schema
        return pa.Table.from_pylist([{self.names[ident]: row.get(ident) for ident in self.names} for row in rows], schema=schema)

    def partition_of(self, number: int) -> int | None:
        """The partition of a key that does not move."""
        return None if not self.spec.keys and number % 4 == 0 else number % 3

    def after(self, rows: Iterable[Row]) -> list[Row]:
        """The rows of the table after a write."""
        new = [self.conformed(row) for row in rows]
        if not self.spec.keys:
            return self.expected + new
        by_key = {row["id"]: row for row in self.expected}
        for row in new:
            by_key[row["id"]] = row if row["id"] not in by_key else self._merged(by_key[row["id"]], row)
        return list(by_key.values())

    def conformed(self, row: Row) -> Row:
        """A row with the columns, the fields and the scale that the table has by now."""
        struct = row.get("r")
        fields = None if struct is None else {field: struct.get(field) for field in self.fields}
        return {**{ident: row.get(ident) for ident in self.names}, "n": self.rescaled(row.get("n")), "r": fields}

    def _write(self, step: Step) -> None:
        if not step.rows:
            return
        self.table.write(self.arrow(list(step.rows)))
        self.expected = self.after(step.rows)

    def _merged(self, old: Row, new: Row) -> Row:
        match self.spec.engine:
            case "first-row":
                return old
            case "partial-update" | "aggregation":
                row = {**old, **{ident: value for ident, value in new.items() if value is not None}}
                if self.spec.engine == "aggregation" and None not in (old["b"], new["b"]):
                    row["b"] = max(old["b"], new["b"])
                return row
        return new

    def _delete(self, step: Step) -> None:
        if self.spec.evolves_data:
            return
        numbers = {row["id"] for row in step.rows}
        self.table.delete(f"id IN ({', '.join(map(str, sorted(numbers)))})")
        self.expected = [row for row in self.expected if row["id"] not in numbers]

    def _compact(self, step: Step) -> None:
        self.table.compact(full=step.full)

    def _add(self, _: Step) -> None:
        self.table.add_column("z", "INT")
        self.names["z"] = "z"
        self.expected = [self.conformed(row) for row in self.expected]

    def _widen(self, _: Step) -> None:
        self.table.change_type(self.names["e"], "BIGINT")

    def _rescale(self, _: Step) -> None:
        self.table.change_type("n", "DECIMAL(12, 3)")
        self.scale = Decimal("0.001")
        self.expected = [self.conformed(row) for row in self.expected]

    def rescaled(self, value: Decimal | None) -> Decimal | None:
        return None if value is None else value.quantize(self.scale)

    def _widen_small(self, _: Step) -> None:
        if "k" in self.names:
            self.table.change_type("k", "INT")

    def _replace(self, _: Step) -> None:
        """Drop a column, and add another one of its name."""
        if "g" not in self.names:
            return
        self.table.drop_column("g")
        self.table.add_column("g", "STRING")
        self.names = {**{ident: name for ident, name in self.names.items() if ident != "g"}, "g2": "g"}
        self.expected = [self.conformed(row) for row in self.expected]

    def _nest(self, _: Step) -> None:
        self.table.add_column(["r", "w"], "INT")
        self.fields = ("x", "y", "w")
        self.expected = [self.conformed(row) for row in self.expected]

    def _move(self, _: Step) -> None:
        self.table.move_column("i", first=True)
        self.table.move_column("b", after="l")

    def _rename(self, _: Step) -> None:
        self.table.rename_column(self.names["s"], "s2")
        self.names["s"] = "s2"

    def _index(self, step: Step) -> None:
        renamed = [(key, ",".join(self.names.get(name, name) for name in value.split(","))) for key, value in step.options]
        if renamed:
            self.table.alter_options(dict(renamed))

    def _rewrite(self, _: Step) -> None:
        self.table.rewrite_file_index()
