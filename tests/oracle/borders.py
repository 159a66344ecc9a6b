"""Written values at the border: each is stored exactly, or refused by the name of its column.

A case is a column type, nested to depth three, the type in which the values are given, the values, their container and a policy. What
each value means is said by plain Python (``meanings.py``). What is refused leaves schema and rows as they were.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from paimon_base.errors import PaimonError
from pyspark_paimon import Table
from tests.model.machine import FAST
from tests.oracle.containers import SOURCES, contain, holds
from tests.oracle.meanings import ATOMS, MUST, NEVER, Type, means, values_of
from tests.oracle.values import bits

COLUMN, EXTRA = "measured", "remarks"
Rows = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class Policy:
    """Arguments of a write. ``leaves_out``: the rows have no column to test. ``adds``: they have one that the table lacks."""

    cast: bool | str = False
    errors: str = "raise"
    missing: str = "refuse"
    merges: bool = False
    widens: bool = False
    leaves_out: bool = False
    adds: bool = False


@dataclass(frozen=True)
class Border:
    """A write to a table of an INT key and a column of ``type``."""

    type: Type
    given: Type
    values: tuple[Any, ...]
    source: str = "arrow"
    policy: Policy = Policy()
    keyed: bool = False
    stored: Any = None

    def failure(self) -> str | None:
        """What is wrong. None: all values are stored exactly, or refused."""
        home = tempfile.mkdtemp(prefix="paimon-border-", dir=FAST)
        try:
            return self._failure(f"{home}/t")
        finally:
            shutil.rmtree(home)

    def _failure(self, path: str) -> str | None:
        options = {"bucket": "1"} if self.keyed else {}
        if self.policy.widens:
            options["write.merge-schema.type-widening"] = "true"
        table = Table.create(path, f"id INT, `{COLUMN}` {self.type.ddl}", ["id"] if self.keyed else [], options=options)
        table.write(pa.table({"id": pa.array([0, 1], pa.int32()), COLUMN: pa.array([self.stored, None], self.type.arrow)}))
        before = {0: {COLUMN: self.stored}, 1: {COLUMN: None}}
        if (wrong := _differ(table, before)) is not None:
            return f"the first rows: {wrong}"
        schema = table.table_schema
        first = 0 if self.keyed else 2
        expected = [means(value, self.given, self.type, self.policy) for value in self.values]
        try:
            result = table.write(self._rows(first), **self._arguments())
        except PaimonError as error:
            return self._refused(Table.open(path), error, schema, before, [sure for sure, _ in expected])
        except Exception as error:  # noqa: BLE001  # an untyped error is a failure, too
            return f"untyped {type(error).__name__}: {error}"
        if self.policy.adds and not self.policy.merges:
            return f"column '{EXTRA}' is unknown, and its rows are written"
        return self._written(Table.open(path), result, before, first, expected)

    def _rows(self, first: int) -> Any:
        columns: dict[str, tuple[Any, list[Any]]] = {"id": (pa.int32(), list(range(first, first + len(self.values))))}
        if not self.policy.leaves_out:
            columns[COLUMN] = self.given.arrow, list(self.values)
        if self.policy.adds:
            columns[EXTRA] = pa.string(), [f"r{at}" for at in range(len(self.values))]
        return contain(columns, self.source)

    def _arguments(self) -> dict[str, Any]:
        policy = self.policy
        given: dict[str, Any] = {"cast": policy.cast, "missing": policy.missing} | ({"errors": policy.errors} if policy.cast else {})
        return given | ({"schema_mode": "merge"} if policy.merges else {})

    def _refused(self, table: Table, error: PaimonError, schema: Any, before: Rows, sure: list[str]) -> str | None:
        if COLUMN not in str(error) and not (self.policy.adds and EXTRA in str(error)):
            return f"the column is not named: {type(error).__name__}: {error}"
        if table.table_schema != schema:
            return f"refused, but the schema changed: {table.table_schema}"
        if (wrong := _differ(table, before)) is not None:
            return f"refused, but the rows changed: {wrong}"
        may = (self.policy.adds and not self.policy.merges) or (self.source == "list view" and self.type.has("ARRAY"))
        fits = all(each == MUST for each in sure) and not may  # Arrow casts some list views to other values, so they are refused
        if fits and not self.policy.leaves_out:
            return f"refused, but all values fit: {type(error).__name__}: {error}"
        return None

    def _written(self, table: Table, result: Any, before: Rows, first: int, expected: list[tuple[str, Any]]) -> str | None:
        rejected = {row["id"] for row in result.rejected.to_pylist()} if result.rejected is not None else set()
        after = {key: dict(row) for key, row in before.items()}
        loose: set[int] = set()
        for number, (sure, value) in enumerate(expected, first):
            if number in rejected:
                if sure == MUST:
                    return f"row {number} is rejected, but {value!r} fits"
                continue
            if self.policy.leaves_out:
                keeps = self.policy.missing == "keep" and number in before
                after[number] = {COLUMN: before[number][COLUMN] if keeps else None}
            else:
                if sure == NEVER:
                    return f"{self.values[number - first]!r} of {self.given.ddl} is written to {self.type.ddl}, where it does not fit"
                after[number] = {COLUMN: value}
                loose |= {number} if sure != MUST and self.policy.errors == "null" else set()
            if self.policy.adds:
                after[number][EXTRA] = f"r{number - first}"
        return _differ(table, after, loose)

    def shrunk(self) -> Iterator[Border]:
        """Simpler cases, the simplest first."""
        if len(self.values) > 1:
            yield from (replace(self, values=(value,)) for value in self.values)
        for source in SOURCES[: SOURCES.index(self.source)]:
            if all(holds(value, self.given, source) for value in self.values):
                yield replace(self, source=source)
        for name, plain in vars(Policy()).items():
            if getattr(self.policy, name) != plain:
                yield replace(self, policy=replace(self.policy, **{name: plain}))
        if self.keyed:
            yield replace(self, keyed=False)
        if self.stored is not None:
            yield replace(self, stored=None)
        for inner, given, part in self._inside():
            yield replace(self, type=inner, given=given, values=part, stored=None)

    def _inside(self) -> Iterator[tuple[Type, Type, tuple[Any, ...]]]:
        if self.type.name != self.given.name or not self.type.parts:
            return
        valid = [value for value in self.values if value is not None]
        match self.type.name:
            case "ARRAY":
                yield self.type.parts[0], self.given.parts[0], tuple(item for value in valid for item in value)
            case "MAP":
                yield self.type.parts[0], self.given.parts[0], tuple(item for value in valid for _, item in value)
            case "ROW":
                for at, (inner, given) in enumerate(zip(self.type.parts, self.given.parts, strict=True)):
                    yield inner, given, tuple(value[f"f{at}"] for value in valid)

    def script(self) -> str:
        """Python text that repeats the failure by itself."""
        return "\n".join(
            [
                "import datetime",
                "from decimal import Decimal",
                "from tests.oracle.borders import Border, Policy",
                "from tests.oracle.meanings import Type",
                "nan, inf = float('nan'), float('inf')",
                f"border = {self!r}",
                "print(border.failure())",
            ]
        )


def _differ(table: Table, rows: Rows, loose: set[int] = frozenset()) -> str | None:  # type: ignore[assignment]
    """What differs. Values of ``loose`` rows may be null, and so may parts of them."""
    found = {row.pop("id"): row for row in table.scan().to_arrow().to_pylist()}
    if found.keys() != rows.keys():
        return f"rows {sorted(found)} instead of {sorted(rows)}"
    for number, row in rows.items():
        for name, value in found[number].items():
            if not _same(value, row.get(name), loose=number in loose):
                return f"row {number} has {value!r} in '{name}' instead of {row.get(name)!r}"
    return None


def _same(found: Any, expected: Any, *, loose: bool) -> bool:
    if found is None:
        return expected is None or loose
    match found, expected:
        case (dict(), dict()):
            return found.keys() == expected.keys() and all(_same(found[name], expected[name], loose=loose) for name in found)
        case (list() | tuple(), list() | tuple()):
            return len(found) == len(expected) and all(_same(*pair, loose=loose) for pair in zip(found, expected, strict=True))
        case (float(), int() | Decimal()) | (Decimal(), int() | float()) | (int(), Decimal() | float()):  # in a widened column
            return type(expected) is not bool and found == expected
    return bits(found) == bits(expected) or (isinstance(found, Decimal) and found == expected)


def draw_border(draw: random.Random) -> Border:
    """A random case of a few values."""
    target = _draw_type(draw, draw.choice([0, 0, 0, 1, 1, 2, 3]))
    cast: bool | str = draw.choice([False, False, True, "round"])
    given = _draw_given(draw, target, cast=bool(cast))
    merges = draw.random() < 0.3
    policy = Policy(
        cast,
        draw.choice(["raise", "null", "collect"]) if cast else "raise",
        merges=merges,
        widens=merges and draw.random() < 0.5,
        leaves_out=draw.random() < 0.06,
        adds=draw.random() < 0.15,
    )
    keyed = draw.random() < 0.3
    if policy.leaves_out:
        policy = replace(policy, missing=draw.choice(["null", "keep", "refuse"] if keyed else ["null", "refuse"]))
    pool = values_of(draw, given, target)
    source = draw.choice(SOURCES)
    values = tuple(value for value in (draw.choice(pool) for _ in range(draw.choice([1, 2, 4]))) if holds(value, given, source))
    stored = draw.choice(values_of(draw, target, target))
    if not values:
        values, source = (None,), "arrow"
    return Border(target, given, values, source, policy, keyed, stored)


def _draw_type(draw: random.Random, depth: int) -> Type:
    if not depth:
        return Type(draw.choice(list(ATOMS)))
    name = draw.choice(["ARRAY", "MAP", "ROW"])
    return Type(name, tuple(_draw_type(draw, depth - 1) for _ in range(draw.choice([1, 2]) if name == "ROW" else 1)))


def _draw_given(draw: random.Random, target: Type, *, cast: bool) -> Type:
    """The type itself, or one with other atoms."""
    if target.parts:
        return Type(target.name, tuple(_draw_given(draw, part, cast=cast) for part in target.parts))
    if cast and draw.random() < 0.4:
        return Type("STRING")
    return target if draw.random() < 0.5 else Type(draw.choice(list(ATOMS)))


def shrink(border: Border, most: int = 200) -> tuple[Border, str]:
    """The simplest case on the way that is still wrong, and what is wrong with it."""
    text, tried, improved = border.failure() or "right when it is written alone", 0, True
    while improved and tried < most:
        improved = False
        for less in border.shrunk():
            tried += 1
            if less.values and (wrong := less.failure()) is not None:
                border, text, improved = less, wrong, True
                break
    return border, text


def run(seed: int, cases: int) -> Border | None:
    """The first wrong one of some cases."""
    draw = random.Random(seed)
    return next((border for border in (draw_border(draw) for _ in range(cases)) if border.failure() is not None), None)
