"""Texts and bytes that end in NULs, are empty or begin one another are found, updated, deleted and merged as what they are."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.odd_bytes import ODD_BYTES, ODD_TEXTS, padded

OPS: dict[str, Any] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
ARROW = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
KINDS: dict[str, tuple[str, list[Any]]] = {
    "STRING": ("STRING", list(ODD_TEXTS)),
    "BYTES": ("BYTES", list(ODD_BYTES)),
    "BINARY": ("BINARY(16)", sorted({padded(value, 16) for value in ODD_BYTES})),
}
INDEXES: dict[str, list[dict[str, str]]] = {
    "STRING": [
        {},
        {"file-index.bloom-filter.columns": "k", "file-index.bitmap.columns": "k"},
        {"file-index.range-bitmap.columns": "k", "file-index.in-manifest-threshold": "1 mb"},
    ],
    "BYTES": [{}, {"file-index.bloom-filter.columns": "k"}],
    "BINARY": [{}, {"file-index.bloom-filter.columns": "k", "file-index.in-manifest-threshold": "1 mb"}],
}


def encoded(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value


def test_a_text_that_ends_in_nul_is_found(create):
    table = create("s STRING, n INT", primary_keys=())
    table.write(pa.table({"s": ["a\0"], "n": pa.array([1], pa.int32())}))
    assert table.scan(pc.field("s") == "a\0").to_arrow().num_rows == 1
    table.update(pc.field("s") == "a\0", {"n": 2})
    assert table.scan().to_arrow()["n"].to_pylist() == [2]
    table.delete(pc.field("s") == "a\0")
    assert table.scan().to_arrow().num_rows == 0


def test_a_binary_that_ends_in_nul_is_found_by_sql(create):
    table = create("k BYTES, n INT", primary_keys=())
    table.write(pa.table({"k": pa.array([bytes.fromhex("01020300")]), "n": pa.array([1], pa.int32())}))
    assert table.scan("k = X'01020300'").to_arrow().num_rows == 1
    assert table.scan("k = X'010203'").to_arrow().num_rows == 0


def test_a_key_that_ends_in_nul_shows_its_newest_row(create):
    table = create("k BINARY(16), n INT", primary_keys=("k",), options={"write-only": "true"})
    for n in (1, 2):
        table.write(pa.table({"k": pa.array([padded(b"k", 16), bytes([n]) * 16], pa.binary(16)), "n": pa.array([n, n], pa.int32())}))
    assert table.scan(pc.field("k") == padded(b"k", 16)).to_arrow()["n"].to_pylist() == [2]


@pytest.mark.parametrize(("kind", "index"), [(kind, index) for kind, indexes in INDEXES.items() for index in range(len(indexes))])
@pytest.mark.parametrize("layout", ["append", "merged on read", "compacted"])
@pytest.mark.sampled(3)
def test_random_rows_are_found_by_every_comparison(create, kind, index, layout):
    type_name, values = KINDS[kind]
    chance = random.Random(f"{kind} {index} {layout}")
    keys = () if layout == "append" else ("k",)
    options = {**INDEXES[kind][index], **({"write-only": "true"} if layout != "compacted" else {})}
    table = create(f"k {type_name}, n INT", primary_keys=keys, options=options)
    arrow = table.schema.field("k").type
    rows: list[tuple[Any, int]] = []

    def checked() -> None:
        for _ in range(4):
            wanted, op = chance.choice(values), chance.choice(list(OPS))
            found = table.scan(getattr(pc.field("k"), ARROW[op])(pa.scalar(wanted, arrow))).to_arrow()
            assert sorted(zip(map(encoded, found["k"].to_pylist()), found["n"].to_pylist(), strict=True)) == sorted(
                (encoded(k), n) for k, n in rows if OPS[op](encoded(k), encoded(wanted))
            ), (op, wanted)
        several = chance.sample(values, 3)
        assert table.scan(pc.field("k").isin(pa.array(several, arrow))).to_arrow().num_rows == sum(k in several for k, _ in rows)
        if kind == "STRING":
            start = chance.choice(values)
            found = table.scan(pc.starts_with(pc.field("k"), start)).to_arrow().num_rows
            assert found == sum(k.startswith(start) for k, _ in rows), start

    for number in range(5):
        written = chance.sample(values, chance.choice([1, 1, 2, 3]))
        table.write(pa.table({"k": pa.array(written, arrow), "n": pa.array([number] * len(written), pa.int32())}))
        rows = [(k, n) for k, n in rows if not keys or k not in written] + [(k, number) for k in written]
        checked()
        chosen = chance.choice(values)
        where = pc.field("k") == pa.scalar(chosen, arrow)
        if number % 3 == 1:
            table.update(where, {"n": -number})
            rows = [(k, -number if k == chosen else n) for k, n in rows]
        elif number % 3 == 2:
            table.delete(where)
            rows = [(k, n) for k, n in rows if k != chosen]
    checked()
