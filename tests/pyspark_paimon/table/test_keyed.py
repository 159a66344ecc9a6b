"""Rows looked up and deleted by a frame of keys, held against a dict."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from itertools import product
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fileindex.predicate import evaluate_rows
from fileindex.predicate.tree import ColumnRef, In
from lsm.keys.key_set import KeySet
from lsm.read import data_file, keyed_read
from manifest.io.errors import NullInKey
from pyspark_paimon import InvalidArgument, SchemaMismatch, Table, UnknownColumn
from pyspark_paimon.request.requests import ScanRequest
from sparkexpr.values.column_type import ColumnType, Kind
from tests.examples import some

NUL_TEXTS = ["", "a", "a\0", "a\0\0", "b", "eight by", "eight by\0", "a longer text than that", "ä"]
FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, 5e-324]
NUMBERS = [*range(6), -(2**63), 2**63 - 1]
DIGITS = [Decimal("0.01"), Decimal("-0.01"), Decimal(10) ** 17, Decimal("123456789012345678.90")]
DAYS = [date(2024, 1, 1), date(2024, 1, 2), date(1969, 12, 31)]
KEYS: dict[str, tuple[str, list[list[Any]]]] = {
    "number": ("k BIGINT", [NUMBERS]),
    "text": ("k STRING", [NUL_TEXTS]),
    "bytes": ("k VARBINARY(99)", [[text.encode() for text in NUL_TEXTS]]),
    "float": ("k DOUBLE", [FLOATS]),
    "several": ("k STRING, f FLOAT, d DECIMAL(20,2)", [NUL_TEXTS, FLOATS[:6], DIGITS]),
    "days": ("k DATE, b BIGINT", [DAYS, NUMBERS]),
}
ENGINES: dict[str, tuple[dict[str, str], Callable[[int | None, int], int]]] = {
    "deduplicate": ({}, lambda _, new: new),
    "vectors": ({"deletion-vectors.enabled": "true"}, lambda _, new: new),
    "first-row": ({"merge-engine": "first-row"}, lambda old, new: new if old is None else old),
    "partial-update": ({"merge-engine": "partial-update"}, lambda _, new: new),
    "aggregation": ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}, lambda old, new: (old or 0) + new),
}


def identity(value: Any) -> Any:
    """What tells a key: floats by their bits, every NaN alike."""
    return struct.pack(">d", math.nan if math.isnan(value) else value) if isinstance(value, float) else value


def key_of(row: dict[str, Any], names: list[str]) -> tuple[Any, ...]:
    return tuple(identity(row[name]) for name in names)


def pairs() -> Iterator[Any]:
    """Every kind of key and every engine once; all pairs of them among the long tests."""
    short = {("number", "vectors"), ("text", "first-row"), ("bytes", "partial-update"), ("float", "deduplicate")}
    short |= {("several", "vectors"), ("days", "aggregation")}
    for pair in product(KEYS, ENGINES):
        yield pytest.param(*pair, id="-".join(pair), marks=() if pair in short else pytest.mark.long)


@pytest.mark.parametrize(("kind", "engine"), list(pairs()))
def test_lookup_answers_as_a_dict_does(tmp_path, kind, engine):
    columns, pools = KEYS[kind]
    names = [column.split()[0] for column in columns.split(", ")]
    options, fold = ENGINES[engine]
    rng = random.Random(f"{kind} {engine}")
    buckets = {"bucket": rng.choice(["1", "3", "-1"]), "file-index.bloom-filter.columns": names[0]}
    partitions = ["k"] if kind == "days" else []
    table = Table.create(tmp_path / "t", f"{columns}, n BIGINT", names, partitions, options | buckets)
    model: dict[tuple[Any, ...], int] = {}
    for turn in range(3):
        rows = [{name: rng.choice(pool) for name, pool in zip(names, pools, strict=True)} | {"n": rng.randrange(100)} for _ in range(12)]
        table.write(pa.Table.from_pylist(rows, table.schema))
        for row in rows:
            model[key_of(row, names)] = fold(model.get(key_of(row, names)), row["n"])
        if engine in {"deduplicate", "vectors"}:
            gone = rows[:3] + [{name: rng.choice(pool) for name, pool in zip(names, pools, strict=True)} for _ in range(2)]
            wanted = pa.table({name: pa.array([row[name] for row in gone], table.schema.field(name).type) for name in names})
            present = {key_of(row, names) for row in gone} & set(model)
            assert table.delete(keys=wanted).rows == len(present)
            for key in present:
                del model[key]
        if turn == 1:
            table.compact(full=True)
        asked = [{name: rng.choice(pool) for name, pool in zip(names, pools, strict=True)} for _ in range(20)]
        frame = pa.table({name: pa.array([row[name] for row in asked], table.schema.field(name).type) for name in reversed(names)})
        found = table.lookup(frame, columns=["n", names[-1]])
        assert found.column_names == ["n", names[-1]]
        expected = [(model[key_of(row, names)], identity(row[names[-1]])) for row in asked if key_of(row, names) in model]
        assert [(row["n"], identity(row[names[-1]])) for row in found.to_pylist()] == expected


@pytest.fixture
def table(create) -> Table:
    made = create("id BIGINT, city STRING", options={"bucket": "2"})
    made.write(pa.table({"id": range(100), "city": [f"c{n}" for n in range(100)]}))
    return made


def frames() -> Iterator[tuple[str, Any]]:
    yield "arrow", pa.table({"id": [7, 3, 7, 1000]})
    yield "other integers", pa.table({"id": pa.array([7, 3, 7, 1000], pa.int16())})
    yield "batch", pa.record_batch({"id": [7, 3, 7, 1000]})
    yield "pandas", pd.DataFrame({"id": [7, 3, 7, 1000]})
    yield "polars", pl.DataFrame({"id": [7, 3, 7, 1000]})
    yield "lists", {"id": [7, 3, 7, 1000]}
    yield "numpy", {"id": pd.Series([7, 3, 7, 1000]).to_numpy()}
    yield "arrays", {"id": pa.chunked_array([[7, 3], [7, 1000]])}


@pytest.mark.slow("arrays")
@pytest.mark.parametrize("keys", [pytest.param(keys, id=name) for name, keys in frames()])
def test_keys_come_as_any_frame_and_rows_in_their_order(table, keys):
    assert table.lookup(keys)["city"].to_pylist() == ["c7", "c3", "c7"]
    assert table.lookup(keys).schema == table.scan().schema


def test_a_lookup_may_ask_nothing_or_an_older_snapshot(table):
    table.delete(keys={"id": [3]})
    assert table.lookup({"id": []}).num_rows == 0
    assert table.delete(keys={"id": []}).rows == 0
    assert table.lookup({"id": [3, 4]})["id"].to_pylist() == [4]
    assert table.lookup({"id": [3, 4]}, snapshot=1)["id"].to_pylist() == [3, 4]


@pytest.mark.parametrize(
    ("keys", "error", "said"),
    [
        ({"id": [1, None]}, NullInKey, "'id' has a null"),
        ({"city": ["c1"]}, SchemaMismatch, "column 'city' is no primary key; column 'id' is missing"),
        ({"id": [1], "city": ["c1"]}, SchemaMismatch, "column 'city' is no primary key"),
        ({}, SchemaMismatch, "column 'id' is missing"),
        ({"id": ["one"]}, SchemaMismatch, "column 'id'"),
        (pa.table({"id": [1.5]}), SchemaMismatch, "column 'id'"),
        (pa.table({"id": pa.array([2**64 - 1], pa.uint64())}), SchemaMismatch, "column 'id'"),
        (1, InvalidArgument, "keys must be"),
        ([(1, 2)], InvalidArgument, "keys must be"),
        ("id = 1", InvalidArgument, "keys must be"),
    ],
)
def test_keys_that_do_not_fit_are_refused_by_name(table, keys, error, said):
    for method in (table.lookup, lambda wrong: table.delete(keys=wrong)):
        with pytest.raises(error, match=said):
            method(keys)
    assert table.scan().count() == 100


def test_keys_need_a_primary_key_and_no_filter_beside(create, table):
    plain = create("id BIGINT", name="plain", primary_keys=())
    for method in (plain.lookup, lambda keys: plain.delete(keys=keys)):
        with pytest.raises(InvalidArgument, match="has none; give a filter"):
            method({"id": [1]})
    with pytest.raises(InvalidArgument, match="not both"):
        table.delete("id = 1", keys={"id": [1]})
    with pytest.raises(InvalidArgument, match="needs a filter"):
        table.delete()
    with pytest.raises(UnknownColumn):
        table.lookup({"id": [1]}, columns=["nope"])


def test_missing_keys_have_rows_of_nulls(table):
    keys = pa.table({"id": pa.array([7, 1000, 7], pa.int32())})
    found = table.lookup(keys, missing="null", indicator="known")
    assert found.to_pylist() == [
        {"id": 7, "city": "c7", "known": True},
        {"id": 1000, "city": None, "known": False},
        {"id": 7, "city": "c7", "known": True},
    ]
    assert found.schema.field("id").type == pa.int64()
    assert table.lookup({"id": [1000]}, ["city"], missing="null").to_pylist() == [{"city": None}]
    assert table.lookup({"id": []}, missing="null", indicator=True).schema.names == ["id", "city", "_found"]


def test_missing_keys_of_an_empty_table_have_rows(create):
    empty = create("id BIGINT, city STRING NOT NULL")
    found = empty.lookup({"id": [3]}, missing="null", indicator=True)
    assert found.to_pylist() == [{"id": 3, "city": None, "_found": False}]
    assert found.schema.field("city").nullable


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"missing": "raise"}, "missing is 'drop' or 'null', not 'raise'"),
        ({"indicator": True}, "indicator needs missing='null'"),
        ({"missing": "null", "indicator": ""}, "indicator is True, False or the name of a column"),
        ({"missing": "null", "indicator": "city"}, "indicator 'city' is a column of the result"),
    ],
)
def test_arguments_about_missing_keys_are_checked(table, arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        table.lookup({"id": [1]}, **arguments)


def test_a_lookup_opens_only_files_whose_range_holds_a_key(create):
    table = create("id BIGINT, city STRING", options={"num-sorted-run.compaction-trigger": "99"})
    for low in range(0, 500, 100):
        table.write(pa.table({"id": range(low, low + 100), "city": [str(n) for n in range(low, low + 100)]}))
    opened: list[str] = []
    real = data_file.open_data_file
    with pytest.MonkeyPatch.context() as patch:
        for module in (data_file, keyed_read):
            patch.setattr(module, "open_data_file", lambda io, path, *rest: (opened.append(path), real(io, path, *rest))[1])
        assert table.lookup({"id": [*range(250, 230, -1), 5]})["id"].to_pylist() == [*range(250, 230, -1), 5]
    assert len(set(opened)) == 2


def test_a_long_list_is_made_an_array_once_however_many_files_are_asked(create, monkeypatch):
    table = create("id BIGINT, city STRING", options={"bucket": "8"})
    table.write(pa.table({"id": range(4000), "city": [str(n) for n in range(4000)]}))
    made: list[int] = []
    real = evaluate_rows.literal_array
    monkeypatch.setattr(evaluate_rows, "literal_array", lambda values, kind: (made.append(len(values)), real(values, kind))[1])
    assert table.scan("id IN :ids", params={"ids": range(3000)}).to_arrow().num_rows == 3000
    assert made[0] == 3000
    assert len(made) < 8  # threads may make it beside each other


@pytest.mark.sizes
def test_an_index_that_makes_a_row_set_of_every_literal_is_not_asked_for_thousands(create, set_thresholds):
    table = create("id BIGINT, city STRING", primary_keys=(), options={"file-index.bitmap.columns": "city"})
    table.write(pa.table({"id": range(300), "city": [f"c{n}" for n in range(300)]}))
    filter_ = In(ColumnRef("city"), tuple(f"c{n}" for n in range(0, 300, 2)))
    assert any("bitmap" in stage.name for stage in table.scan(filter_).explain().stages)
    set_thresholds(row_sets=10)
    assert table.scan(filter_).to_arrow().num_rows == 150
    assert not any("bitmap" in stage.name for stage in table.scan(filter_).explain().stages)


TEXTS = st.text(st.sampled_from("a\0ß"), max_size=20)
ROWS = st.lists(st.tuples(TEXTS, st.floats(allow_nan=True), st.integers(-2, 2)), max_size=20)


@settings(max_examples=some(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ROWS, ROWS)
def test_a_key_set_finds_what_a_dict_finds(wanted, rows):
    schema = pa.schema([("t", pa.string()), ("f", pa.float64()), ("n", pa.int8())])
    keys, table = (pa.table(list(map(list, zip(*some, strict=True))) if some else [[], [], []], schema=schema) for some in (wanted, rows))
    key_set = KeySet(keys)
    known = {tuple(map(identity, row)): number for row, number in zip(wanted, key_set.numbers.tolist(), strict=True)}
    assert sorted(known.values()) == list(range(len(key_set)))
    assert key_set.find(table).tolist() == [known.get(tuple(map(identity, row)), -1) for row in rows]


def test_keys_travel_as_text():
    keys = KeySet(pa.table({"t": ["a", "a\0"], "f": [math.nan, -0.0]}))
    request = ScanRequest(columns=("t",), snapshot_id=1).model_copy(update={"keys": keys})
    back = ScanRequest.model_validate_json(request.model_dump_json())
    assert back.keys is not None
    assert back.keys.numbers.tolist() == keys.numbers.tolist()
    assert back.keys.find(keys.rows).tolist() == keys.numbers.tolist()
    with pytest.raises(ValueError, match="keys"):
        ScanRequest.model_validate_json('{"columns": ["t"], "snapshot_id": 1, "keys": "AAAA"}')


def test_values_of_every_kind_come_back_from_an_array_of_literals():
    from sparkexpr.values.plain_value import literal_array, plain_array, plain_values

    cases = {
        ColumnType(Kind.DECIMAL, precision=38, scale=4): [10**37, -1, 0],
        ColumnType(Kind.DECIMAL, precision=9, scale=2): [-300, 999999999],
        ColumnType(Kind.TIMESTAMP, precision=9): [-(2**63), 5],
        ColumnType(Kind.TIME): [0, 86_399_999],
        ColumnType(Kind.FLOAT): [-0.0, math.inf],
        ColumnType(Kind.VARBINARY): [b"", b"a\0"],
        ColumnType(Kind.BOOLEAN): [True, False],
    }
    for kind, values in cases.items():
        assert plain_values(plain_array(literal_array(values, kind), kind), kind) == values
