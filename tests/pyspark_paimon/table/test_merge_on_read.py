"""Tables of which other engines show compacted rows only: our reads merge what waits, so that every commit shows when it is made."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from manifest.store import FileStore
from pyspark_paimon import Table
from tests.examples import some

ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")
ENGINES_VIEW = {"deletion-vectors.merge-on-read": "false"}
LATER = {"write-only": "true"}
KEYS = 24
Row = dict[str, Any]


def hidden(path: Any, engine: str = "deduplicate", *, primary_keys: tuple[str, ...] = ("id",), **options: str) -> Table:
    """A table of which other engines show no level 0; indexes and statistics that may prune are there."""
    settings = {"bucket": "2", "file-index.bitmap.columns": "v", "file-index.in-manifest-threshold": "1 kb"}
    if engine == "first-row":
        settings |= {"merge-engine": engine}
    else:
        settings |= {"deletion-vectors.enabled": "true", "merge-engine": engine}
    if engine == "aggregation":
        settings |= {"fields.v.aggregate-function": "sum", "fields.s.aggregate-function": "last_non_null_value"}
    return Table.create(path, "p STRING, id BIGINT, v BIGINT, s STRING", primary_keys=primary_keys, options=settings | options)


@dataclass
class Model:
    """The rows that a table must show, key by key."""

    engine: str
    rows: dict[tuple[str, int], Row] = field(default_factory=dict)

    def write(self, rows: list[Row], kinds: list[str] | None = None) -> None:
        for row, kind in zip(rows, kinds or ["+I"] * len(rows), strict=True):
            key = row["p"], row["id"]
            old = self.rows.get(key)
            if kind == "-D":
                self.rows.pop(key, None)
            elif old is None or self.engine == "deduplicate":
                self.rows[key] = row
            elif self.engine == "partial-update":
                self.rows[key] = {name: old[name] if value is None else value for name, value in row.items()}
            elif self.engine == "aggregation":
                total = row["v"] if old["v"] is None else old["v"] if row["v"] is None else old["v"] + row["v"]
                self.rows[key] = {**old, "v": total, "s": old["s"] if row["s"] is None else row["s"]}


def is_less(value: int | None, limit: int) -> bool:
    return value is not None and value < limit


FILTERS: dict[str, Callable[[Row], bool]] = {
    "v = 3": lambda row: row["v"] == 3,
    "v > 6": lambda row: row["v"] is not None and row["v"] > 6,
    "v IS NULL": lambda row: row["v"] is None,
    "v < 2 OR s = 'c'": lambda row: is_less(row["v"], 2) or row["s"] == "c",
    "s LIKE 'b%'": lambda row: row["s"] is not None and row["s"].startswith("b"),
    "id = 7": lambda row: row["id"] == 7,
    "id BETWEEN 5 AND 9 AND v < 5": lambda row: 5 <= row["id"] <= 9 and is_less(row["v"], 5),
    "p = 'x' AND s = 'a'": lambda row: row["p"] == "x" and row["s"] == "a",
}


def ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["p"], row["id"]))


def check(table: Table, expected: list[Row], filters: list[str], **how: Any) -> None:
    """All ways to ask for rows agree with the model."""
    found = table.scan(**how)
    assert ordered(found.to_arrow().to_pylist()) == ordered(expected)
    assert found.count() == len(expected)
    best = sorted(expected, key=lambda row: (row["v"] is None, -(row["v"] or 0), row["p"], row["id"]))[:3]
    assert table.scan(order_by="v DESC NULLS LAST, p, id", limit=3, **how).to_arrow().to_pylist() == best
    assert table.scan(limit=2, **how).to_arrow().num_rows == min(2, len(expected))
    for text in filters:
        wanted = [row for row in expected if FILTERS[text](row)]
        assert ordered(table.scan(text, **how).to_arrow().to_pylist()) == ordered(wanted), text
        assert table.scan(text, **how).count() == len(wanted), text


def drawn_rows(draw: random.Random) -> list[Row]:
    low = draw.randrange(KEYS)
    ids = sorted(draw.sample(range(low, low + 8), draw.randint(1, 6)))
    some = draw.choice([0, 6])
    texts = draw.choice([["a", "b"], ["c", "bb"], [None, "a"]])
    return [{"p": draw.choice("xy"), "id": at, "v": draw.choice([None, some, some + 3, some + 5]), "s": draw.choice(texts)} for at in ids]


def turn(table: Table, model: Model, draw: random.Random) -> None:
    """One change of the table and of the model; compaction is left to others now and then."""
    options = LATER if draw.random() < 0.6 else {}
    match draw.choice(["write"] * 6 + ["overwrite", "delete", "update", "compact", "full"]):
        case "overwrite":
            rows = drawn_rows(draw)
            table.write(pa.Table.from_pylist(rows, table.schema), mode="overwrite", options=options)
            touched = {row["p"] for row in rows} if table.table_schema.partition_keys else None
            model.rows = {key: row for key, row in model.rows.items() if touched is not None and key[0] not in touched}
            model.write(rows)
        case "delete" if model.engine == "deduplicate":
            text = draw.choice(list(FILTERS))
            table.delete(text, options=options)
            model.rows = {key: row for key, row in model.rows.items() if not FILTERS[text](row)}
        case "update" if model.engine == "deduplicate":
            text = draw.choice(list(FILTERS))
            table.update(text, set={"v": 8}, options=options)
            model.rows = {key: {**row, "v": 8} if FILTERS[text](row) else row for key, row in model.rows.items()}
        case "compact" | "full" as how:
            table.compact(full=how == "full")
        case _:
            rows = drawn_rows(draw)
            kinds = [draw.choice(["+I", "+I", "-D"]) for _ in rows] if model.engine == "deduplicate" else None
            data = pa.Table.from_pylist(rows, table.schema)
            table.write(data if kinds is None else data.append_column("_row_kind", pa.array(kinds)), options=options)
            model.write(rows, kinds)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("seed", "partitioned"),
    [
        (0, True),
        *(pytest.param(seed, parts, marks=pytest.mark.long) for seed in range(40) for parts in (False, True) if (seed, parts) != (0, True)),
    ],
)
@pytest.mark.sampled(2)
def test_every_commit_shows_at_once_however_little_is_compacted(tmp_path, engine, partitioned, seed) -> None:
    draw = random.Random(f"{engine} {partitioned} {seed}")
    keys = ("p", "id")
    settings = {"manifest.merge-min-count": str(draw.choice([2, 30])), "bucket": str(draw.choice([1, 3]))}
    table = (
        hidden(tmp_path / "t", engine, primary_keys=keys, **settings) if not partitioned else partitioned_table(tmp_path, engine, settings)
    )
    model = Model(engine)
    past: dict[int, list[Row]] = {}
    for _ in range(some(6)):
        turn(table, model, draw)
        expected = list(model.rows.values())
        check(table, expected, draw.sample(list(FILTERS), 2))
        newest = FileStore.open(table.path).snapshots.latest_id()
        if newest is not None:
            past.setdefault(newest, expected)
    for snapshot in draw.sample(sorted(past), min(2, len(past))):
        check(table, past[snapshot], draw.sample(list(FILTERS), 2), snapshot=snapshot)
    table.compact(full=True)
    check(table, list(model.rows.values()), list(FILTERS))
    check(table, list(model.rows.values()), [], options=ENGINES_VIEW)
    assert table.fsck("deep").problems == ()


def partitioned_table(path: Any, engine: str, settings: dict[str, str]) -> Table:
    made = hidden(path / "like", engine, primary_keys=("p", "id"), **settings)
    return Table.create(path / "t", made.schema, primary_keys=["p", "id"], partition_keys=["p"], options=dict(made.options))
