"""Hashes and buckets of keys: Paimon's own answers, and whole columns against one row at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.bucket.hash import bucket_hashes, bucket_ids
from manifest.row.binary_row import decode_row, encode_row
from manifest.schema.validation import build_schema
from manifest.store import FileStore
from manifest.types.data_type import DataType
from sparkexpr.values.column_type import Plain
from sparkexpr.values.plain_value import to_scalar
from tests.odd_bytes import odd_bytes, odd_texts

DAY = 20454
MILLIS = DAY * 86_400_000
ENGINE_ANSWERS: list[tuple[list[str], list[Plain], str, int]] = [
    (["INT"], [0], "00000001 0000000000000000 0000000000000000", -300363099),
    (["INT"], [1], "00000001 0000000000000000 0100000000000000", 1465514398),
    (["INT"], [2], "00000001 0000000000000000 0200000000000000", 1340390384),
    (["INT"], [42], "00000001 0000000000000000 2a00000000000000", 907821237),
    (["INT"], [-1], "00000001 0000000000000000 ffffffff00000000", 1133687267),
    (["INT"], [123456789], "00000001 0000000000000000 15cd5b0700000000", -1751827701),
    (["INT"], [-(2**31)], "00000001 0000000000000000 0000008000000000", 916225219),
    (["BIGINT"], [1234567890123], "00000001 0000000000000000 cb04fb711f010000", -1873221036),
    (["STRING"], [""], "00000001 0000000000000000 0000000000000080", 302122119),
    (["STRING"], ["abc"], "00000001 0000000000000000 6162630000000083", -101922419),
    (["STRING"], ["1234567"], "00000001 0000000000000000 3132333435363787", 199144172),
    (["STRING"], ["12345678"], "00000001 0000000000000000 0800000010000000 3132333435363738", -391021801),
    (["STRING"], ["hello world"], "00000001 0000000000000000 0b00000010000000 68656c6c6f20776f 726c640000000000", 161593394),
    (["STRING"], ["中文"], "00000001 0000000000000000 e4b8ade696870086", 1956728004),
    (["TINYINT"], [-1], "00000001 0000000000000000 ff00000000000000", 2004758659),
    (["FLOAT"], [1.5], "00000001 0000000000000000 0000c03f00000000", -173842779),
    (["DOUBLE"], [1.5], "00000001 0000000000000000 000000000000f83f", 1860889473),
    (["DATE"], [DAY], "00000001 0000000000000000 e64f000000000000", -1582905029),
    (["TIME(3)"], [3_600_000], "00000001 0000000000000000 80ee360000000000", -2060102702),
    (["TIMESTAMP(3)"], [MILLIS + 123], "00000001 0000000000000000 7ba8da769b010000", 678833528),
    (["TIMESTAMP(6)"], [MILLIS * 1000 + 123_456], "00000001 0000000000000000 40f5060010000000 7ba8da769b010000", -869000628),
    (["TIMESTAMP(6)"], [-1], "00000001 0000000000000000 583e0f0010000000 ffffffffffffffff", 1236894319),
    (["DECIMAL(10, 2)"], [123], "00000001 0000000000000000 7b00000000000000", 681710603),
    (["DECIMAL(30, 3)"], [12345678901234], "00000001 0000000000000000 0600000010000000 0b3a73ce2ff20000 0000000000000000", -1682347801),
    (["DECIMAL(30, 3)"], [-1000], "00000001 0000000000000000 0200000010000000 fc18000000000000 0000000000000000", -1147727520),
    (["BYTES"], [b"\x01\x02\x03"], "00000001 0000000000000000 0102030000000083", 1066645297),
    (["INT"], [None], "00000001 0001000000000000 0000000000000000", -1748325344),
    (["TIMESTAMP(6)"], [None], "00000001 0001000000000000 0000000010000000 0000000000000000", -340882661),
    (["DECIMAL(30, 3)"], [None], "00000001 0001000000000000 0000000010000000 0000000000000000 0000000000000000", -1380280760),
    (["INT", "STRING"], [1, "a"], "00000002 0000000000000000 0100000000000000 6100000000000081", -948407462),
    (
        ["INT", "STRING"],
        [3, "a string longer than seven"],
        "00000002 0000000000000000 0300000000000000 1a00000018000000 6120737472696e67 206c6f6e67657220 7468616e20736576 656e000000000000",
        1319723730,
    ),
    (
        ["BIGINT", "DATE", "STRING"],
        [7, DAY, "k-000001"],
        "00000003 0000000000000000 0700000000000000 e64f000000000000 0800000020000000 6b2d303030303031",
        951463522,
    ),
    (
        ["STRING", "STRING"],
        ["12345678", "abcdefghij"],
        "00000002 0000000000000000 0800000018000000 0a00000020000000 3132333435363738 6162636465666768 696a000000000000",
        1171914803,
    ),
]


def columns_of(values: list[Plain], types: list[DataType]) -> list[pa.Array]:
    return [pa.repeat(to_scalar(value, kind.column_type), 1) for value, kind in zip(values, types, strict=True)]


@pytest.mark.parametrize(("names", "values", "row", "expected"), ENGINE_ANSWERS, ids=str)
def test_rows_and_hashes_are_the_engines(names: list[str], values: list[Plain], row: str, expected: int) -> None:
    types = [DataType.from_json(name) for name in names]
    assert encode_row(values, types) == bytes.fromhex(row.replace(" ", ""))
    assert decode_row(encode_row(values, types), types) == tuple(values)
    assert bucket_hashes(columns_of(values, types), types).tolist() == [expected]


def test_57_fields_take_a_second_header_word() -> None:
    types = [DataType.from_json("INT")] * 57
    row = encode_row([*range(56), None], types)
    assert row[4:20].hex() == "0000000000000000" + "0100000000000000"
    assert len(row) == 4 + 16 + 57 * 8
    assert decode_row(row, types) == (*range(56), None)
    assert bucket_hashes(columns_of([*range(56), None], types), types).tolist() == [scalar_hash(row[4:])]


def scalar_hash(image: bytes) -> int:
    """Murmur3 over little-endian words, one row at a time: the model."""
    full = 0xFFFFFFFF
    state = 42
    for at in range(0, len(image), 4):
        word = int.from_bytes(image[at : at + 4], "little") * 0xCC9E2D51 & full
        word = (word << 15 | word >> 17) & full
        state ^= word * 0x1B873593 & full
        state = (state << 13 | state >> 19) & full
        state = (state * 5 + 0xE6546B64) & full
    state ^= len(image)
    state = (state ^ state >> 16) * 0x85EBCA6B & full
    state = (state ^ state >> 13) * 0xC2B2AE35 & full
    state ^= state >> 16
    return state - (1 << 32) if state >= 1 << 31 else state


KEYS = {
    "BOOLEAN": st.booleans(),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(allow_nan=False),
    "STRING": odd_texts | st.text(max_size=40),
    "BYTES": odd_bytes | st.binary(max_size=40),
    "DECIMAL(18, 4)": st.integers(-(10**18) + 1, 10**18 - 1),
    "DECIMAL(38, 0)": st.integers(-(10**38) + 1, 10**38 - 1),
    "TIMESTAMP(6)": st.integers(-(2**62), 2**62),
    "TIMESTAMP(9)": st.integers(-(2**62), 2**62),
}


@given(
    st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=4).flatmap(
        lambda names: st.tuples(st.just(names), st.lists(st.tuples(*(st.none() | KEYS[name] for name in names)), min_size=1, max_size=12))
    )
)
def test_whole_columns_hash_as_single_rows_do(case: tuple[list[str], list[tuple[Plain, ...]]]) -> None:
    names, rows = case
    types = [DataType.from_json(name) for name in names]
    single = [columns_of(list(row), types) for row in rows]
    columns = [pa.chunked_array([row[i] for row in single]) for i in range(len(types))]
    assert bucket_hashes(columns, types).tolist() == [scalar_hash(encode_row(row, types)[4:]) for row in rows]
    assert [decode_row(encode_row(row, types), types) for row in rows] == rows


def test_slices_hash_as_whole_arrays_do() -> None:
    types = [DataType.from_json("STRING"), DataType.from_json("BOOLEAN"), DataType.from_json("DECIMAL(30, 3)")]
    rows = [(str(i) * (i % 5), i % 3 == 0, i * 7 - 50) for i in range(100)]
    columns = [pa.concat_arrays([columns_of(list(row), types)[i] for row in rows]) for i in range(3)]
    whole = bucket_hashes(columns, types)
    assert bucket_hashes([column.slice(13, 50) for column in columns], types).tolist() == whole[13:63].tolist()


def test_the_bucket_is_the_truncating_remainder() -> None:
    schema = build_schema("id INT", primary_keys=["id"], options={"bucket": "7"})
    rows = pa.table({"id": pa.array([0, 1, 2, 42, -1, 123456789, -(2**31)], pa.int32())})
    expected = {4: [3, 2, 0, 1, 3, 1, 3], 7: [1, 5, 4, 1, 6, 1, 0], 16: [11, 14, 0, 5, 3, 5, 3], 100: [99, 98, 84, 37, 67, 1, 19]}
    for buckets, answers in expected.items():
        assert bucket_ids(rows, schema, buckets).tolist() == answers
        assert [bucket_ids(rows.slice(at, 1), schema, buckets).item() for at in range(rows.num_rows)] == answers


def test_mod_takes_the_floor_remainder() -> None:
    schema = build_schema("id BIGINT", primary_keys=["id"], options={"bucket": "4", "bucket-function.type": "mod"})
    rows = pa.table({"id": pa.array([-1, 0, 5, 2**40 + 3])})
    assert bucket_ids(rows, schema, 4).tolist() == [3, 0, 1, 3]
    assert bucket_ids(rows, schema, 4).dtype == np.int32


def test_mod_takes_a_null_for_zero_and_large_numbers_exactly() -> None:
    schema = build_schema("id BIGINT", options={"bucket": "4", "bucket-key": "id", "bucket-function.type": "mod"})
    rows = pa.table({"id": pa.array([2**62 + 3, None, -(2**62) - 1])})
    assert bucket_ids(rows, schema, 4).tolist() == [3, 0, 3]


def test_chunks_of_different_lengths_hash_as_one_column_does() -> None:
    types = [DataType.from_json("BIGINT"), DataType.from_json("STRING")]
    numbers, texts = pa.array(range(100)), pa.array([f"text of row {i}" for i in range(100)])
    chunked = pa.chunked_array([numbers[:7], numbers[7:93], numbers[93:]]), pa.chunked_array([texts[:50], texts[50:]])
    assert bucket_hashes(chunked, types).tolist() == bucket_hashes([numbers, texts], types).tolist()
    assert bucket_hashes([pa.chunked_array([], pa.int64()), pa.chunked_array([], pa.string())], types).tolist() == []


GOLDEN = Path(__file__).parents[2] / "golden"


def fixed_buckets(name: str) -> bool:
    """Of tables whose files are Parquet alone: others are read by our own readers, and their rows compared elsewhere."""
    store = FileStore.open(GOLDEN / name / "table")
    entries = store.live_entries(store.snapshots.latest()).entries() if store.options.bucket > 1 else []
    return bool(entries) and all(entry.file.file_name.endswith(".parquet") for entry in entries)


@pytest.mark.parametrize("name", [name for name in sorted(path.parent.name for path in GOLDEN.glob("*/table")) if fixed_buckets(name)])
def test_the_engines_rows_lie_in_the_buckets_that_we_compute(name: str) -> None:
    store = FileStore.open(GOLDEN / name / "table")
    entries = store.live_entries(store.snapshots.latest()).entries()
    assert entries
    for entry in entries:
        schema = store.schemas.get(entry.file.schema_id)
        with pa.OSFile(store.physical_files(entry.partition, entry.bucket, entry.file)[0]) as source:
            rows = pq.read_table(source, columns=list(schema.bucket_keys))
        assert set(bucket_ids(rows, schema, entry.total_buckets).tolist()) == {entry.bucket}
