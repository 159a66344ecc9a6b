"""Random tables: merge engines, buckets, layouts, indexes, formats and changes of the schema; and the rows that they must hold."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from fileindex.build.options import option_key
from pyspark_paimon import Table
from tests.oracle.values import TYPES, VALUES, Names, Row

INDEXABLE = {
    "bitmap": ("i", "e", "b", "s", "t", "dt", "bo", "m[k]"),
    "bsi": ("i", "e", "b", "t", "dt", "n"),
    "range-bitmap": ("i", "e", "b", "s", "d", "n", "t", "dt", "bo"),
    "bloom-filter": ("i", "e", "b", "s", "d", "t", "dt", "m[k]"),
    "ngram-filter": ("s",),
}
COLUMNS = ("id", "p", "i", "e", "b", "s", "d", "n", "t", "dt", "bo", "l", "r", "m")


_CHANGED = {"add": "z", "widen": "e", "rescale": "n"}


@dataclass(frozen=True)
class Step:
    """``verb``: write, delete, compact, add, widen, rescale, rename, index, rewrite."""

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

    @property
    def indexed(self) -> set[str]:
        """Columns that some index covers, perhaps in some files only, and those that change."""
        options = [*self.options, *(option for step in self.steps for option in step.options)]
        named = {name for key, value in options if key.endswith(".columns") for name in value.split(",")}
        return named | {_CHANGED[step.verb] for step in self.steps if step.verb in _CHANGED}

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
        for at in range(len(self.options)):
            if self.options[at][0] not in {"bucket", "merge-engine"}:
                yield replace(self, options=self.options[:at] + self.options[at + 1 :])


def draw_spec(draw: random.Random) -> Spec:
    """A random table of about forty rows."""
    engine = draw.choice(["append", "append", "deduplicate", "deduplicate", "partial-update", "aggregation", "first-row"])
    is_keyed = engine != "append"
    partitions = draw.choice([(), (), ("p",)])
    crosses = engine == "deduplicate" and bool(partitions) and draw.random() < 0.3
    keys = (("id",) if crosses or not partitions else ("p", "id")) if is_keyed else ()
    options = {} if engine in {"append", "deduplicate"} else {"merge-engine": engine}
    if engine == "aggregation":
        options["fields.b.aggregate-function"] = "max"
    if is_keyed:
        options |= (
            {"bucket": "-1", "dynamic-bucket.target-row-num": "7"} if crosses else {"bucket": draw.choice(["1", "1", "2", "-1", "-2"])}
        )
    else:
        options |= draw.choice([{"bucket": "-1"}, {"bucket": "2", "bucket-key": "id"}])
    if engine != "first-row" and draw.random() < 0.4:
        options["deletion-vectors.enabled"] = "true"
    if draw.random() < 0.4:
        options["file.format"] = draw.choice(["orc", "avro"])
    if draw.random() < 0.3:
        options["metadata.stats-mode"] = draw.choice(["none", "full", "truncate(2)", "counts"])
    if draw.random() < 0.5:
        options["file-index.in-manifest-threshold"] = draw.choice(["1 b", "1 mb"])
    if is_keyed and draw.random() < 0.5:
        options["num-sorted-run.compaction-trigger"] = draw.choice(["2", "9"])
    if not is_keyed and draw.random() < 0.2 and options["bucket"] == "-1":
        options |= {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
        options.pop("deletion-vectors.enabled", None)
    options |= draw_indexes(draw)
    return Spec(engine, keys, partitions, tuple(options.items()), _draw_steps(draw, engine, crosses=crosses), tiny=draw.random() < 0.7)


def draw_indexes(draw: random.Random) -> dict[str, str]:
    """Options of indexes on some columns."""
    columns = {kind: [column for column in fit if draw.random() < 0.35] for kind, fit in INDEXABLE.items() if draw.random() < 0.6}
    return {option_key(kind, "columns"): ",".join(chosen) for kind, chosen in columns.items() if chosen}


def _draw_steps(draw: random.Random, engine: str, *, crosses: bool) -> tuple[Step, ...]:
    steps: list[Step] = []
    columns = list(COLUMNS)
    changes = ["add", "widen", "widen", "rescale", "rename", "index"]
    draw.shuffle(changes)
    for _ in range(draw.choice([1, 2, 3, 4])):
        steps.append(Step("write", tuple(_draw_row(draw, columns, engine, crosses=crosses) for _ in range(draw.choice([3, 10, 20])))))
        chance = draw.random()
        if chance < 0.25:
            steps.append(Step("compact", full=draw.random() < 0.7))
        elif chance < 0.5 and engine in {"deduplicate", "append"}:
            steps.append(Step("delete", rows=tuple({"id": number} for number in draw.sample(range(30), 5))))
        if changes and draw.random() < 0.5:
            verb = changes.pop()
            changes = [change for change in changes if change != verb]
            columns += ["z"] if verb == "add" else []
            steps.append(Step(verb, options=tuple(draw_indexes(draw).items()) if verb == "index" else ()))
    if draw.random() < 0.2:
        steps.append(Step("rewrite"))
    return tuple(steps)


def _draw_row(draw: random.Random, columns: list[str], engine: str, *, crosses: bool) -> Row:
    number = draw.randrange(30)
    row: Row = {"id": number, "p": draw.randrange(3) if crosses else number % 3}
    if engine == "append" and number % 4 == 0:  # of other tables the key has the partition
        row["p"] = None
    return row | {ident: draw.choice(VALUES[ident]) for ident in columns if ident in VALUES}


class Built:
    """A table and the rows that it must hold, by identity of the columns."""

    def __init__(self, spec: Spec, path: str) -> None:
        self.spec = spec
        columns = ", ".join(f"{ident} {TYPES[ident]}" for ident in COLUMNS)
        self.table = Table.create(path, columns, list(spec.keys), list(spec.partitions), dict(spec.options))
        self.names = {ident: ident for ident in COLUMNS}
        self.scale = Decimal("0.01")
        self.rows: list[Row] = []
        self.by_key: dict[int, Row] = {}
        for step in spec.steps:
            getattr(self, f"_{step.verb}")(step)
        if spec.keys and dict(spec.options).get("bucket") == "-2":
            self.table.compact(full=True)

    @property
    def expected(self) -> list[Row]:
        return list(self.by_key.values()) if self.spec.keys else self.rows

    @property
    def columns(self) -> Names:
        return Names(tuple(self.names.items()), tuple(TYPES.items()))

    def arrow(self, rows: list[Row]) -> pa.Table:
        schema = self.table.schema
        return pa.Table.from_pylist([{self.names[ident]: row.get(ident) for ident in self.names} for row in rows], schema=schema)

    def _write(self, step: Step) -> None:
        if not step.rows:
            return
        self.table.write(self.arrow(list(step.rows)))
        for given in step.rows:
            row = {ident: given.get(ident) for ident in self.names}
            row["n"] = self._rescaled(row["n"])
            self.rows.append(row)
            old = self.by_key.get(row["id"])
            self.by_key[row["id"]] = row if old is None else self._merged(old, row)

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
        if "data-evolution.enabled" in dict(self.spec.options):
            return
        numbers = {row["id"] for row in step.rows}
        self.table.delete(f"id IN ({', '.join(map(str, sorted(numbers)))})")
        self.by_key = {number: row for number, row in self.by_key.items() if number not in numbers}
        self.rows = [row for row in self.rows if row["id"] not in numbers]

    def _compact(self, step: Step) -> None:
        self.table.compact(full=step.full)

    def _add(self, _: Step) -> None:
        self.table.add_column("z", "INT")
        self.names["z"] = "z"
        for row in (*self.rows, *self.by_key.values()):
            row["z"] = None

    def _widen(self, _: Step) -> None:
        self.table.change_type(self.names["e"], "BIGINT")

    def _rescale(self, _: Step) -> None:
        self.table.change_type("n", "DECIMAL(12, 3)")
        self.scale = Decimal("0.001")
        for row in (*self.rows, *self.by_key.values()):
            row["n"] = self._rescaled(row["n"])

    def _rescaled(self, value: Decimal | None) -> Decimal | None:
        return None if value is None else value.quantize(self.scale)

    def _rename(self, _: Step) -> None:
        self.table.rename_column(self.names["s"], "s2")
        self.names["s"] = "s2"

    def _index(self, step: Step) -> None:
        renamed = [(key, ",".join(self.names.get(name, name) for name in value.split(","))) for key, value in step.options]
        if renamed:
            self.table.alter_options(dict(renamed))

    def _rewrite(self, _: Step) -> None:
        self.table.rewrite_file_index()


def value_of(built: Built, row: dict[str, Any]) -> Row:
    """A row of the product with identities for names."""
    idents = {name: ident for ident, name in built.names.items()}
    return {idents[name]: value for name, value in row.items()}
