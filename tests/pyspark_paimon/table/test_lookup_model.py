"""Lookups and equality on the whole key against a model of random tables: engines, key types, formats, unmerged runs, older schemas."""

from __future__ import annotations

import math
import random
import struct
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lsm.bucket.hash import bucket_ids
from paimon_base.thresholds import Thresholds, use_thresholds
from pyspark_paimon import InvalidArgument, Table
from tests.examples import some
from tests.pyspark_paimon.readers_beside_writer import look_up_beside, write_all
from tests.tiny import tiny_options

Row = dict[str, Any]
NOON = datetime.fromisoformat("2024-01-01T12:00:00")
POOLS: dict[str, list[Any]] = {
    "BIGINT": [*range(24), -(2**63), 2**63 - 1],
    "TINYINT": [*range(-8, 8), 127, -128],
    "STRING": ["", "a", "a\0", "a\0\0", "eight by", "eight byt", "eight by\0", "ä", *[f"a longer text {n}" for n in range(9)]],
    "BYTES": [b"", b"\0", b"\xff" * 9, b"\xff" * 8, *[bytes([n, 0]) for n in range(9)]],
    "DECIMAL(9, 2)": [Decimal(n) / 4 for n in range(-9, 9)],
    "DECIMAL(30, 4)": [Decimal(10) ** 24 + n for n in range(-9, 9)],
    "DATE": [date(1969, 12, 31), *[date(2024, 1, n) for n in range(1, 12)]],
    "TIMESTAMP(3)": [NOON + timedelta(milliseconds=n) for n in range(12)],
    "TIMESTAMP(6)": [NOON.replace(year=1969), *[NOON + timedelta(microseconds=n) for n in range(12)]],
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": [datetime(2024, 1, 1, n, tzinfo=UTC) for n in range(12)],
    "DOUBLE": [0.0, -0.0, math.nan, math.inf, -math.inf, *[n / 4 for n in range(1, 9)]],
    "BOOLEAN": [False, True],
}
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "ignored deletes": {"ignore-delete": "true"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "sequence": {"sequence.field": "n"},
    "first-row": {"merge-engine": "first-row"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "lookup sums": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "changelog-producer": "lookup"},
}
DELETES = {"deduplicate", "ignored deletes", "vectors"}
FORMATS = ["parquet", "parquet", "parquet", "orc", "avro"]


def identity(value: Any) -> Any:
    return struct.pack(">d", math.nan if math.isnan(value) else value) if isinstance(value, float) else value


def merged(engine: str, old: Row | None, new: Row) -> Row:
    """The row of a key after another version of it."""
    if old is None or engine in {"deduplicate", "ignored deletes", "vectors"}:
        return new
    if engine == "sequence":
        return new if new["n"] >= old["n"] else old
    if engine == "first-row":
        return old
    if engine == "partial-update":
        return {name: old[name] if value is None else value for name, value in new.items()}
    both = [value for value in (old["n"], new["n"]) if value is not None]
    return {name: old.get(name) if value is None else value for name, value in new.items()} | {"n": sum(both) if both else None}


class World:
    """A random table with its model."""

    def __init__(self, path: Any, rng: random.Random, engine: str, types: list[str], *, tiny: bool) -> None:
        self.rng, self.engine, self.tiny = rng, engine, tiny
        self.keys = {f"k{at}": kind for at, kind in enumerate(types)}
        self.values = ["n", "v"]
        options = {"bucket": rng.choice(["1", "2", "3", "-1"]), "write-only": "true", "file.format": rng.choice(FORMATS)} | ENGINES[engine]
        if engine in {"vectors", "lookup sums"} or options["bucket"] == "-1":
            options.pop("write-only")
        partitions = ["k0"] if rng.random() < 0.3 and types[0] not in {"DOUBLE", "BYTES"} and len(types) > 1 else []
        ddl = ", ".join(f"{name} {kind}" for name, kind in self.keys.items()) + ", n INT, v STRING"
        made = Table.create(path, ddl, list(self.keys), partitions, tiny_options(options) if tiny else options)
        self.table = Table.open(made.path)
        self.model: dict[tuple[Any, ...], Row] = {}

    def key(self) -> Row:
        return {name: self.rng.choice(POOLS[kind]) for name, kind in self.keys.items()}

    def write(self) -> None:
        rows = []
        for _ in range(self.rng.randrange(1, 25)):
            value = None if self.engine == "partial-update" and self.rng.random() < 0.3 else f"v{self.rng.randrange(99)}"
            row = self.key() | {"n": self.rng.randrange(99), "v": value} | dict.fromkeys(self.values[2:], 7)
            kind = "-D" if self.engine in DELETES and self.rng.random() < 0.2 else "+I"
            rows.append(row | {"_row_kind": kind})
        fields = [*self.table.schema, pa.field("_row_kind", pa.string())]
        self.table.write(pa.Table.from_pylist(rows, pa.schema(fields)))
        for row in rows:
            name = tuple(identity(row[column]) for column in self.keys)
            if row.pop("_row_kind") == "-D":
                if self.engine != "ignored deletes":
                    self.model.pop(name, None)
                continue
            self.model[name] = merged(self.engine, self.model.get(name), row)

    def step(self) -> None:
        choice = self.rng.random()
        if choice < 0.7:
            self.write()
        elif choice < 0.85:
            self.table.compact(full=self.rng.random() < 0.5)
        elif choice < 0.95 and len(self.values) < 4:
            name = f"x{len(self.values)}"
            self.table.add_column(name, "INT")
            self.values.append(name)
            for row in self.model.values():
                row[name] = None
        elif self.engine == "vectors":
            self.table = Table.open(self.table.path)

    def check(self) -> None:
        asked = [self.key() for _ in range(self.rng.choice([1, 1, 2, 30]))]
        schema = self.table.schema
        keys = pa.table({name: pa.array([row[name] for row in asked], schema.field(name).type) for name in self.keys})
        expected = [found for row in asked if (found := self.model.get(tuple(map(identity, row.values())))) is not None]
        found = self.table.lookup(keys)
        assert plain(found) == [ordered(row, schema.names) for row in expected]
        every = self.table.lookup(keys, missing="null", indicator=True)
        assert every.select(list(self.keys)).to_pylist() == keys.to_pylist() or any("DOUBLE" in kind for kind in self.keys.values())
        assert plain(every.filter(every["_found"]).drop_columns("_found")) == [ordered(row, schema.names) for row in expected]
        assert every.filter(pc.invert(every["_found"]))["n"].null_count == len(asked) - len(expected)
        one = asked[0]
        if not any(isinstance(value, float) for value in one.values()):
            named = {f"p{at}": value for at, value in enumerate(one.values())}
            text = " AND ".join(f"{name} = :p{at}" for at, name in enumerate(self.keys))
            there = self.model.get(tuple(map(identity, one.values())))
            assert plain(self.table.scan(text, params=named).to_arrow()) == ([] if there is None else [ordered(there, schema.names)])
            more = self.table.scan(f"{text} AND n < 50", params=named, columns=["v"]).to_arrow()["v"].to_pylist()
            assert more == ([] if there is None or there["n"] is None or there["n"] >= 50 else [there["v"]])


def ordered(row: Row, names: list[str]) -> list[Any]:
    return [identity(row[name]) for name in names]


def plain(rows: pa.Table) -> list[list[Any]]:
    return [[identity(value) for value in row.values()] for row in rows.to_pylist()]


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=() if seed < 2 else pytest.mark.long) for seed in range(20)])
@pytest.mark.sampled(2)
def test_lookups_answer_as_the_model_does(tmp_path, engine, seed):
    rng = random.Random(f"{engine} {seed}")
    types = rng.choices(list(POOLS), k=rng.choice([1, 1, 2, 3]))
    tiny = seed % 2 == 1
    with ExitStack() as sizes:
        if tiny:
            sizes.enter_context(use_thresholds(Thresholds.tiny()))
        world = World(tmp_path / "t", rng, engine, types, tiny=tiny)
        world.write()
        for _ in range(some(rng.randrange(3, 6))):
            world.step()
            for _ in range(3):
                world.check()


def test_rows_that_a_deletion_vector_marks_are_not_found(tmp_path):
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "9"}
    table = Table.create(tmp_path / "t", "id BIGINT, n BIGINT", ["id"], options=options)
    table.write(pa.table({"id": range(100), "n": [0] * 100}))
    table.compact(full=True)
    table.write(pa.table({"id": range(20), "n": [1] * 20}))
    table.delete(keys={"id": range(20, 30)})
    table.compact()
    [split] = table.scan().plan().splits
    assert split.raw_convertible
    assert any(split.deletion_files)
    found = table.lookup({"id": range(15, 35)}, missing="null")
    assert found["n"].to_pylist() == [1] * 5 + [None] * 10 + [0] * 5
    assert [table.scan(f"id = {key}").to_arrow()["n"].to_pylist() for key in (15, 25, 35)] == [[1], [], [0]]


def test_lookup_of_append_tables_is_refused(tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, city STRING")
    with pytest.raises(InvalidArgument, match="the table has none"):
        table.lookup({"id": [1]})


@pytest.mark.slow
def test_32_threads_look_up_while_another_writer_commits(tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, n BIGINT", ["id"], options={"bucket": "2", "num-sorted-run.compaction-trigger": "3"})
    table.write(pa.table({"id": range(200), "n": [0] * 200}))
    look_up_beside(table.lookup, 200, (write_all(table.path, 200, number) for number in range(1, 5)))


def test_keys_are_hashed_once_for_all_splits(tmp_path, monkeypatch):
    table = Table.create(tmp_path / "t", "d INT, id BIGINT", ["d", "id"], ["d"], {"bucket": "8", "write-only": "true"})
    table.write(pa.table({"d": pa.array([at % 3 for at in range(600)], pa.int32()), "id": range(600)}))
    hashed: list[int] = []

    def counted(rows: Any, *arguments: Any) -> Any:
        hashed.append(rows.num_rows)
        return bucket_ids(rows, *arguments)

    monkeypatch.setattr("lsm.read.split_keys.bucket_ids", counted)
    monkeypatch.setattr("lsm.scan.key_plan.bucket_ids", counted)
    wanted = [{"d": at % 3, "id": at} for at in range(0, 900, 2)]
    assert table.lookup(wanted)["id"].to_pylist() == list(range(0, 600, 2))
    assert hashed == [450]
