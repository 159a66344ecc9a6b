"""Bloom filters and dictionaries of chunks: no value of a chunk is excluded, absent ones are, whoever wrote them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.parquet.chunk_values import bloom_has_one, encodings
from lsm.parquet.fields import BloomFilterHeader, ColumnChunk, FileMetaData, PhysicalType, RowGroupMetaData, list_of, value
from lsm.parquet.reader import ParquetDataFile
from lsm.parquet.thrift import I32, STRUCT, decode_struct, encode_struct
from manifest.io.file_io import LocalFileIO
from manifest.types.data_type import DataType
from manifest.types.ddl import parse_ddl
from paimon_base.errors import CorruptIndex
from pyspark_paimon import Table
from sparkexpr.values.column_type import Kind
from sparkexpr.values.plain_value import from_scalar
from tests.examples import some
from tests.foreign_parquet.rows import TYPES, held
from tests.foreign_parquet.test_foreign_parquet import FILES, HERE, found, rows_of, table_of

MOST = 1 << 20
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # TIMESTAMP has no zone
parse_type = cache(lambda kind: parse_ddl(f"a {kind}")[0].type)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
KINDS = {
    "INT": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "SMALLINT": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "BIGINT": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "STRING": (pa.string(), TEXTS),
    "BYTES": (pa.binary(), st.binary(max_size=12)),
    "DOUBLE": (pa.float64(), st.floats()),
    "FLOAT": (pa.float32(), st.floats(width=32)),
    "DATE": (pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))),
    "TIMESTAMP(3)": (
        pa.timestamp("ms"),
        st.integers(-(2**40), 2**40).map(lambda ms: EPOCH + dt.timedelta(milliseconds=ms)),
    ),
    "DECIMAL(30, 2)": (pa.decimal128(30, 2), st.integers(-(10**29), 10**29).map(lambda unscaled: Decimal(unscaled).scaleb(-2))),
}


@given(
    st.sampled_from(sorted(KINDS)).flatmap(
        lambda kind: st.tuples(st.just(kind), st.lists(KINDS[kind][1], max_size=30), st.lists(KINDS[kind][1], max_size=30))
    ),
    st.booleans(),
    st.sampled_from(["none", "snappy", "gzip", "brotli", "zstd", "lz4"]),
    st.booleans(),
)
@settings(max_examples=some(150), deadline=None)
def test_no_value_of_a_chunk_is_excluded(tmp_path_factory, kind_and_values, dictionary, codec, checksums):
    kind, values, others = kind_and_values
    arrow, data_type = KINDS[kind][0], parse_type(kind)
    array = pa.array([None, *values, *values], arrow)
    path = str(tmp_path_factory.mktemp("chunk") / "a.parquet")
    blooms = {"a": {"ndv": 2 * len(values) + 1, "fpp": 0.01}}
    pq.write_table(
        pa.table({"a": array}),
        path,
        use_dictionary=dictionary,
        compression=codec,
        bloom_filter_options=blooms,
        write_page_checksum=checksums,
    )
    with ParquetDataFile(LocalFileIO(), path) as file:
        (group,) = file.row_groups

        def lacks(*wanted):
            plain = tuple(from_scalar(one, data_type.column_type) for one in pa.array(wanted, arrow))
            return file.lacks(group, "a", plain, data_type, MOST)

        assert not any(lacks(one) for one in values)
        assert not any(lacks(*others[:5], one) for one in values)
        if dictionary and arrow not in {pa.float32(), pa.float64(), pa.string(), pa.binary()}:
            assert all(lacks(one) == (one not in values) for one in others)
        if 0.0 in values and kind in {"FLOAT", "DOUBLE"}:
            assert not lacks(-0.0)
            assert not lacks(0.0)


@pytest.mark.parametrize(("kind", "arrow"), [("INT", pa.int32()), ("STRING", pa.string()), ("DECIMAL(30, 2)", pa.decimal128(30, 2))])
@pytest.mark.parametrize("how", ["bloom", "large bloom", "dictionary"])
def test_most_absent_values_are_excluded(tmp_path, set_thresholds, kind, arrow, how):
    set_thresholds(bloom_read_bytes=80 if how == "large bloom" else 1 << 20)
    path = str(tmp_path / "a.parquet")
    present = pa.array(range(0, 2000, 2), pa.int32()).cast(arrow if kind != "DECIMAL(30, 2)" else pa.decimal128(30, 0)).cast(arrow)
    blooms = None if how == "dictionary" else {"a": {"ndv": 1000, "fpp": 0.01}}
    pq.write_table(pa.table({"a": present}), path, use_dictionary=how == "dictionary", bloom_filter_options=blooms)
    data_type = parse_type(kind)
    with ParquetDataFile(LocalFileIO(), path) as file:
        plain = [str(at) if kind == "STRING" else at * 100 if kind.startswith("DECIMAL") else at for at in range(2000)]
        absent = [file.lacks(file.row_groups[0], "a", (one,), data_type, MOST) for one in plain]
        assert not any(absent[::2])
        assert sum(absent[1::2]) >= (1000 if how == "dictionary" else 950)
        assert not file.lacks(file.row_groups[0], "a", tuple(plain), data_type, MOST)
        assert not file.lacks(file.row_groups[0], "a", (plain[1],), data_type, 50)  # more bytes than allowed
        assert not file.lacks(file.row_groups[0], "a", (plain[1],), DataType(Kind.DATE), MOST)  # stored with another type


def test_chunks_with_pages_beside_the_dictionary_are_not_excluded(tmp_path):
    path = str(tmp_path / "a.parquet")
    values = pa.array([f"text {at}" for at in range(4000)])
    pq.write_table(pa.table({"a": values}), path, dictionary_pagesize_limit=1000, data_page_size=500, write_batch_size=50)
    with ParquetDataFile(LocalFileIO(), path) as file:
        assert file.metadata.row_group(0).column(0).has_dictionary_page
        assert not any(file.lacks(file.row_groups[0], "a", (one,), parse_type("STRING"), MOST) for one in ("text 1", "text 3999", "no"))


EXCLUDED = {
    "s": [
        "duckdb-2.0",
        "paimon-0.8",
        "paimon-1.4",
        "parquet-rs-arro3-0.9",
        "parquet-rs-deltalake-1.6",
        "pyarrow-10",
        "pyarrow-26",
        "spark-4.3",
    ],
    "t": ["paimon-1.4", "parquet-rs-arro3-0.9", "parquet-rs-deltalake-1.6", "pyarrow-26", "spark-4.3"],
}
"""Files with a Bloom filter or dictionary of the column."""


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_writers_are_searched(name):
    rows = rows_of(name)
    absent = {"s": ["s00", "s3x", "s10"], "t": [f"text-{at:05}" for at in (1, 500, 4001, 7000, 9999)]}
    with ParquetDataFile(LocalFileIO(), str(HERE / f"{name}.parquet")) as file:
        for column in (column for column in held(name) if "<" not in TYPES[column]):
            data_type = parse_type(TYPES[column])
            for group in file.row_groups:
                here = pa.array([row[column] for row in rows[group.first_row : group.end_row]], data_type.arrow)
                plain = {from_scalar(one, data_type.column_type) for one in here if one.is_valid}
                assert not any(file.lacks(group, column, (one,), data_type, MOST) for one in plain), column
                if name in EXCLUDED.get(column, ()):
                    wanted = [one for one in absent[column] if one not in plain]
                    assert sum(file.lacks(group, column, (one,), data_type, MOST) for one in wanted) >= len(wanted) - 2, column


def decoded(table: Table, filter_: str) -> int:
    """Rows decoded for a filter."""
    rows = stage(table, filter_, "rows")
    return int(rows.kept + rows.dropped)


def stage(table: Table, filter_: str, name: str):
    return next(one for one in table.scan(filter_).explain().stages if one.name == name)


@pytest.mark.parametrize("name", ["paimon-1.4", "parquet-rs-arro3-0.9", "pyarrow-26"])
def test_absent_values_decode_no_row(tmp_path: Path, set_thresholds, name: str) -> None:
    set_thresholds(probe_pays=1)
    table = table_of(tmp_path, name)
    absent = [f"text-{at:05}" for at in range(1, 10000, 397) if not any(row["t"] == f"text-{at:05}" for row in rows_of(name))]
    assert not any(table.scan(f"t = '{text}'").to_arrow().num_rows for text in absent)
    assert sum(not decoded(table, f"t = '{text}'") for text in absent) > 0.9 * len(absent)
    last = table.scan(f"t = '{absent[0]}' OR t = 'text-07919' OR id < 0")
    assert [row["t"] for row in found(last)] == ["text-07919"]
    assert not decoded(table, f"t IN ('{absent[0]}', '{absent[1]}') AND id > 5")
    assert table.scan(f"t = '{absent[0]}' OR id = 5").to_arrow().num_rows == 1
    assert table.scan(f"t <> '{absent[0]}'").count() == len(rows_of(name))


def own_table(path: Path, **options: str) -> Table:
    table = Table.create(path / "t", "id INT, v BIGINT", options={"bucket": "-1", **options})
    table.write(pa.table({"id": pa.array(range(2000), pa.int32()), "v": [at * 2 for at in range(2000)]}))
    return Table.open(table.path)


def test_own_bloom_filters_are_read_and_verified(tmp_path, set_thresholds):
    set_thresholds(probe_pays=1)
    table = own_table(tmp_path, **{"parquet.bloom.filter.enabled#v": "true", "parquet.enable.dictionary": "false"})
    assert sum(not decoded(table, f"v = {at}") for at in range(1001, 1101, 2)) > 40
    assert stage(table, "v = 1001", "row groups").dropped == 1
    (path,) = Path(table.path).glob("bucket-0/*.parquet")
    meta = decode_footer(path.read_bytes())
    offset = meta[14][1]
    for at in (offset, offset + 40):
        damage(path, at)
        table = Table.open(table.path)
        assert decoded(table, "v = 1001") == 2000
        assert table.scan("v = 1000").to_arrow().num_rows == 1
        note = stage(table, "v = 1001", "file index").note
        assert "'v'" in note
        assert "checksum" in note
        damage(path, at)


def decode_footer(data: bytes):
    length = int.from_bytes(data[-8:-4], "little")
    fields, _ = decode_struct(data[-8 - length : -8])
    return value(list_of(list_of(fields, FileMetaData.ROW_GROUPS)[0], RowGroupMetaData.COLUMNS)[-1], ColumnChunk.META_DATA)


def damage(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x11
    path.write_bytes(bytes(data))


HEADER = {
    BloomFilterHeader.NUM_BYTES: (I32, 64),
    BloomFilterHeader.ALGORITHM: (STRUCT, {1: (STRUCT, {})}),
    BloomFilterHeader.HASH: (STRUCT, {1: (STRUCT, {})}),
    BloomFilterHeader.COMPRESSION: (STRUCT, {1: (STRUCT, {})}),
}


@pytest.mark.parametrize(
    "change",
    [
        {BloomFilterHeader.NUM_BYTES: (I32, 63)},
        {BloomFilterHeader.NUM_BYTES: (I32, 0)},
        {BloomFilterHeader.NUM_BYTES: (I32, -32)},
        {BloomFilterHeader.NUM_BYTES: (I32, 32)},
        {BloomFilterHeader.NUM_BYTES: (I32, 96)},
        {BloomFilterHeader.ALGORITHM: (STRUCT, {2: (STRUCT, {})})},
        {BloomFilterHeader.HASH: (STRUCT, {})},
        {BloomFilterHeader.COMPRESSION: (STRUCT, {2: (STRUCT, {})})},
    ],
)
def test_unknown_or_wrong_headers_are_refused(change):
    filter_ = encode_struct({**HEADER, **change}) + bytes(64)
    with pytest.raises(ValueError, match="Bloom filter"):
        bloom_has_one(lambda at, size: filter_[at : at + size], (0, len(filter_)), len(filter_), (b"a",), MOST)
    right = encode_struct(HEADER) + bytes(64)
    assert not bloom_has_one(lambda at, size: right[at : at + size], (0, 0), len(right), (b"a",), MOST)
    full = encode_struct(HEADER) + b"\xff" * 64
    assert bloom_has_one(lambda at, size: full[at : at + size], (0, len(full)), len(full), (b"a",), MOST)


@given(st.integers(0, 400), st.integers(1, 255))
@settings(max_examples=some(150), deadline=None)
def test_damaged_bytes_never_crash(tmp_path_factory, at, change):
    """Whatever a damaged filter or dictionary page shows, it is an answer or ``CorruptIndex``."""
    path = tmp_path_factory.mktemp("damage") / "a.parquet"
    pq.write_table(pa.table({"a": [f"x{n % 20}" for n in range(100)]}), path, bloom_filter_options={"a": {"ndv": 20, "fpp": 0.1}})
    data = bytearray(path.read_bytes())
    meta = decode_footer(bytes(data))
    places = range(meta[11][1], meta[9][1]), range(meta[14][1], meta[14][1] + meta[15][1])
    where = [*places[0], *places[1]]
    data[where[at % len(where)]] ^= change
    path.write_bytes(bytes(data))
    with ParquetDataFile(LocalFileIO(), str(path)) as file:
        try:
            file.lacks(file.row_groups[0], "a", ("x1", "y"), parse_type("STRING"), MOST)
        except CorruptIndex as error:
            assert "column 'a'" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("literal", "kind", "length"),
    [
        (math.nan, PhysicalType.DOUBLE, 0),
        (0.1, PhysicalType.FLOAT, 0),
        (1e300, PhysicalType.FLOAT, 0),
        (2**31, PhysicalType.INT32, 0),
        (5, PhysicalType.BYTE_ARRAY, 0),
        (5, PhysicalType.INT96, 0),
        (300, PhysicalType.FIXED_LEN_BYTE_ARRAY, 1),
        (b"abc", PhysicalType.FIXED_LEN_BYTE_ARRAY, 2),
        ("\ud800", PhysicalType.BYTE_ARRAY, 0),
        ("text", PhysicalType.INT32, 0),
    ],
)
def test_values_without_one_encoding_are_not_searched(literal, kind, length):
    assert encodings((literal,), kind, length) is None
    assert encodings((literal, literal), kind, length) is None
