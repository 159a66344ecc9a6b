"""Every nested type to depth 3, in every format: written, read, compacted, and evolved beside it and inside it."""

from __future__ import annotations

import random
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from lsm.schema.evolution import can_cast
from manifest.types.ddl import parse_ddl
from pyspark_paimon import Table
from tests.build import keyed

Nested: TypeAlias = tuple[Any, ...]
INT, TEXT = ("INT",), ("STRING",)
PARTS = {"ARRAY": "element", "MAP": "value"}


def around(inner: Nested) -> list[Nested]:
    """The nested types that hold ``inner``, in each of their places."""
    return [("ARRAY", inner), ("MAP", TEXT, inner), ("MAP", inner, INT), ("ROW", inner, TEXT), ("MULTISET", inner)]


DEPTH_1 = [one for leaf in (INT, TEXT) for one in around(leaf)]
DEPTH_2 = [one for inner in DEPTH_1[:5] for one in around(inner)]
DEPTH_3 = [one for inner in DEPTH_2 for one in around(inner)]
TYPES = [*DEPTH_1, *DEPTH_2, *DEPTH_3]
STEP = 14
GROUPS = [TYPES[at : at + STEP] for at in range(0, len(TYPES), STEP)]


def ddl_of(type_: Nested) -> str:
    match type_:
        case ("ROW", first, second):
            return f"ROW<a {ddl_of(first)}, b {ddl_of(second)}>"
        case (name,):
            return name
        case (name, *parts):
            return f"{name}<{', '.join(map(ddl_of, parts))}>"
    raise AssertionError(type_)


def value_of(type_: Nested, dice: random.Random, *, null: bool = True) -> Any:
    """A value in the form of ``to_pylist``: maps are lists of pairs."""
    if null and dice.random() < 0.2:
        return None
    match type_:
        case ("INT",):
            return dice.randrange(-5, 5)
        case ("STRING",):
            return dice.choice(["", "a", "Tromsø", "x" * 20])
        case ("ARRAY", element):
            return [value_of(element, dice) for _ in range(dice.randrange(3))]
        case ("ROW", first, second):
            return {"a": value_of(first, dice), "b": value_of(second, dice)}
        case ("MAP" | "MULTISET", key, *rest):
            keys: list[Any] = []
            for _ in range(dice.randrange(3)):
                if (made := value_of(key, dice, null=False)) not in keys:
                    keys.append(made)
            return [(key, dice.randrange(1, 9) if type_[0] == "MULTISET" else value_of(rest[0], dice)) for key in keys]
    raise AssertionError(type_)


def path_inside(type_: Nested) -> tuple[str, ...] | None:
    """The way to a ROW that can get a field, None if there is none."""
    match type_:
        case ("ROW", _, _):
            return ()
        case ("ARRAY", inner) | ("MAP", _, inner):
            way = path_inside(inner)
            return None if way is None else (PARTS[type_[0]], *way)
    return None


def with_field(value: Any, way: tuple[str, ...]) -> Any:
    """A value that was written before its ROW got a field ``z``."""
    if value is None:
        return None
    if not way:
        return {**value, "z": None}
    if way[0] == "element":
        return [with_field(one, way[1:]) for one in value]
    return [(key, with_field(one, way[1:])) for key, one in value]


def rows_of(table: Table, types: dict[str, Nested], first: int, dice: random.Random) -> list[dict[str, Any]]:
    return [{"id": at, **{name: value_of(type_, dice) for name, type_ in types.items()}} for at in range(first, first + 12)]


def stored(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table([pa.array([row.get(field.name) for row in rows], field.type) for field in table.schema], schema=table.schema)


def read(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("number", range(len(GROUPS)))
@pytest.mark.sampled(4)
def test_nested_types_are_written_read_compacted_and_evolved(tmp_path, kind, number):
    dice = random.Random(number)
    types = {f"c{at}": type_ for at, type_ in enumerate(GROUPS[number])}
    ddl = ", ".join(["id BIGINT", *(f"{name} {ddl_of(type_)}" for name, type_ in types.items())])
    table = keyed(tmp_path / "t", ddl, {"file.format": kind})
    expected = {row["id"]: row for row in rows_of(table, types, 0, dice)}
    table.write(stored(table, list(expected.values())))
    assert read(table) == list(expected.values())
    newer = rows_of(table, types, 6, dice)
    table.write(stored(table, newer))
    expected |= {row["id"]: row for row in newer}
    assert read(table) == list(expected.values())
    table.compact(full=True)
    assert read(table) == list(expected.values())
    assert table.fsck("deep").problems == ()

    table = table.add_column("beside", "INT")
    ways = {name: way for name, type_ in types.items() if (way := path_inside(type_)) is not None}
    for name, way in ways.items():
        table = table.add_column([name, *way, "z"], "INT")
    older = [
        {name: with_field(one, ways[name]) if name in ways else one for name, one in row.items()} | {"beside": None}
        for row in expected.values()
    ]
    assert read(table) == older
    newer = rows_of(table, types, 100, dice)
    newer = [
        {name: with_field(one, ways[name]) if name in ways else one for name, one in row.items()} | {"beside": row["id"]} for row in newer
    ]
    table.write(stored(table, newer))
    assert read(table) == [*older, *newer]
    table.compact(full=True)
    assert read(table) == [*older, *newer]
    assert table.fsck("deep").problems == ()


@pytest.mark.parametrize("type_", TYPES, ids=ddl_of)
def test_a_type_can_be_read_as_itself(type_):
    (field,) = parse_ddl(f"c {ddl_of(type_)}")
    assert can_cast(field.type, field.type)
    assert can_cast(field.type, field.type.with_nullable(nullable=False))
