from __future__ import annotations

import datetime as dt
from collections import defaultdict
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lsm.bucket.hash import bucket_hashes
from manifest.types.data_type import DataType
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.spark.client.bucket_expr import BucketKey, expressible, with_bucket
from sparkexpr.values.column_type import ColumnType, Kind

pytestmark = pytest.mark.spark

INT, BIGINT, TINYINT, DATE = (ColumnType(kind) for kind in (Kind.INT, Kind.BIGINT, Kind.TINYINT, Kind.DATE))
FLOAT, DOUBLE, STRING, BYTES = (ColumnType(kind) for kind in (Kind.FLOAT, Kind.DOUBLE, Kind.VARCHAR, Kind.VARBINARY))
MILLIS, MICROS, MICROS_LTZ = ColumnType(Kind.TIMESTAMP, 3), ColumnType(Kind.TIMESTAMP, 6), ColumnType(Kind.TIMESTAMP_LTZ, 6)
NEW_YEAR = dt.datetime(2026, 1, 1)  # noqa: DTZ001  # a timestamp without zone

EXAMPLES = [  # types, values, and the buckets of 16 and 100 as Paimon computes them
    ((INT,), (0,), (11, 99)),
    ((INT,), (1,), (14, 98)),
    ((INT,), (42,), (5, 37)),
    ((INT,), (-1,), (3, 67)),
    ((INT,), (123456789,), (5, 1)),
    ((INT,), (-2147483648,), (3, 19)),
    ((INT,), (None,), (0, 44)),
    ((BIGINT,), (-1,), (0, 32)),
    ((BIGINT,), (1234567890123,), (12, 36)),
    ((STRING,), ("",), (7, 19)),
    ((STRING,), ("abc",), (3, 19)),
    ((STRING,), ("1234567",), (12, 72)),
    ((STRING,), ("12345678",), (9, 1)),
    ((STRING,), ("hello world",), (2, 94)),
    ((STRING,), ("中文",), (4, 4)),
    ((BYTES,), (b"\1\2\3",), (1, 97)),
    ((TINYINT,), (-1,), (3, 59)),
    ((FLOAT,), (1.5,), (11, 79)),
    ((DOUBLE,), (1.5,), (1, 73)),
    ((DATE,), (dt.date(2026, 1, 1),), (5, 29)),
    ((MILLIS,), (NEW_YEAR.replace(microsecond=123000),), (8, 28)),
    ((MICROS,), (NEW_YEAR.replace(microsecond=123456),), (4, 28)),
    ((MICROS,), (dt.datetime(1969, 12, 31, 23, 59, 59, 999999),), (15, 19)),  # noqa: DTZ001
    ((MICROS,), (None,), (5, 61)),
    ((MICROS_LTZ,), (NEW_YEAR.replace(microsecond=123456, tzinfo=dt.UTC),), (4, 28)),
    ((ColumnType(Kind.DECIMAL, 10, 2),), (Decimal("1.23"),), (11, 3)),
    ((INT, STRING), (1, "a"), (6, 62)),
    ((INT, STRING), (3, "a string longer than seven"), (2, 30)),
    ((BIGINT, DATE, STRING), (7, dt.date(2026, 1, 1), "k-000001"), (2, 22)),
    ((STRING, STRING), ("12345678", "abcdefghij"), (3, 3)),
]


def buckets_in_spark(spark, table: pa.Table, keys: list[BucketKey], counts: tuple[int, ...]) -> list[tuple[int, ...]]:
    df = spark.createDataFrame(table)
    for key in keys:
        if key.type.kind is Kind.TIMESTAMP:  # Spark takes every Arrow timestamp as one with a zone
            df = df.withColumn(key.name, df[quote_name(key.name)].cast("timestamp_ntz"))
    for count in counts:
        df = with_bucket(df, keys, count, f"of_{count}")
    got = df.toArrow()
    assert got.column_names == [*table.column_names, *(f"of_{count}" for count in counts)]
    return list(zip(*(got.column(f"of_{count}").to_pylist() for count in counts), strict=True))


def by_types() -> list[tuple[tuple[ColumnType, ...], list[tuple], list[tuple[int, ...]]]]:
    groups: dict[tuple[ColumnType, ...], list[tuple]] = defaultdict(list)
    for types, values, buckets in EXAMPLES:
        groups[types].append((values, buckets))
    return [(types, [values for values, _ in rows], [buckets for _, buckets in rows]) for types, rows in groups.items()]


@pytest.mark.parametrize(
    ("types", "rows", "buckets"), by_types(), ids=lambda v: "-".join(str(t.kind) for t in v) if isinstance(v, tuple) else ""
)
def test_a_key_falls_into_the_bucket_that_paimon_gives_it(spark, types, rows, buckets):
    columns = list(zip(*rows, strict=True))
    keys = [BucketKey(f"a `key` {i}", type_, nullable=None in column) for i, (type_, column) in enumerate(zip(types, columns, strict=True))]
    assert expressible(keys)
    table = pa.table({key.name: pa.array(column, key.type.arrow) for key, column in zip(keys, columns, strict=True)})
    assert buckets_in_spark(spark, table, keys, (16, 100)) == buckets


def random_keys(rows: int, seed: int) -> dict[str, pa.Array]:
    """Columns of every type that can be a key, extremes included."""
    make = np.random.default_rng(seed)
    longs = np.concatenate([make.integers(-(2**63), 2**63 - 1, rows - 4), [0, -1, -(2**63), 2**63 - 1]])
    words = ["x" * int(n) + chr(0x100 + int(n)) * (int(n) % 3) for n in make.integers(0, 40, rows)]
    doubles = longs.view(np.float64).copy()
    doubles[:6] = [0.0, -0.0, np.inf, -np.inf, 5e-324, -2.2e-308]
    doubles[np.isnan(doubles)] = 1.25  # a NaN with a payload would come as the one NaN that Spark keeps
    floats = (longs >> 32).astype(np.int32).view(np.float32).copy()
    floats[:6] = [0.0, -0.0, np.inf, -np.inf, 1e-45, -1.2e-38]
    floats[np.isnan(floats)] = 1.25
    micros = longs // 64
    return {
        "t": pa.array((longs >> 56).astype(np.int8)),
        "s": pa.array((longs >> 48).astype(np.int16)),
        "i": pa.array((longs >> 32).astype(np.int32)),
        "l": pa.array(longs),
        "b": pa.array(longs % 2 == 0),
        "f": pa.array(floats),
        "d": pa.array(doubles),
        "day": pa.array((longs >> 44).astype(np.int32)).cast(pa.date32()),
        "dec": pa.array([Decimal(int(value)).scaleb(-3) for value in longs // 100], pa.decimal128(18, 3)),
        "text": pa.array(words),
        "raw": pa.array([word.encode()[: len(word) // 2] for word in words]),
        "at": pa.array(micros).cast(pa.timestamp("us", tz="UTC")),
    }


TYPES = {
    "t": TINYINT,
    "s": ColumnType(Kind.SMALLINT),
    "i": INT,
    "l": BIGINT,
    "b": ColumnType(Kind.BOOLEAN),
    "f": FLOAT,
    "d": DOUBLE,
    "day": DATE,
    "dec": ColumnType(Kind.DECIMAL, 18, 3),
    "text": STRING,
    "raw": BYTES,
    "at": MICROS_LTZ,
}


@pytest.mark.parametrize(
    "names", [("l",), ("t", "s", "i", "b"), ("f", "d"), ("day", "dec", "at"), ("text",), ("i", "text", "at", "raw", "d")], ids="-".join
)
def test_random_keys_fall_into_the_buckets_that_local_writers_compute(spark, names):
    columns = random_keys(400, seed=len(names))
    table = pa.table({name: columns[name] for name in names})
    types = [
        DataType(kind.kind, precision=kind.precision, scale=kind.scale, length=2147483647 if kind in {STRING, BYTES} else 0)
        for kind in (TYPES[n] for n in names)
    ]
    expected = np.abs(np.fmod(bucket_hashes([table.column(name) for name in names], types), 37)).tolist()
    keys = [BucketKey(name, TYPES[name]) for name in names]
    assert [bucket for (bucket,) in buckets_in_spark(spark, table, keys, (37,))] == expected


def test_a_nullable_key_hashes_its_nulls_as_local_writers_do(spark):
    columns = random_keys(40, seed=9)
    names = ("l", "text", "at", "i")
    valid = {name: pa.array(np.arange(40) % (3 + at) != 0) for at, name in enumerate(names)}
    gaps = {name: pc.if_else(valid[name], columns[name], None) for name in names}
    types = [DataType(Kind.BIGINT), DataType(Kind.VARCHAR, length=9), DataType(Kind.TIMESTAMP_LTZ, precision=6), DataType(Kind.INT)]
    expected = np.abs(np.fmod(bucket_hashes(list(gaps.values()), types), 37)).tolist()
    keys = [BucketKey(name, TYPES[name], nullable=True) for name in names]
    assert [bucket for (bucket,) in buckets_in_spark(spark, pa.table(gaps), keys, (37,))] == expected
