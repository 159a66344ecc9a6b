"""Groups and distinct values counted by bitmap indexes: the same as of the rows, with files that are not opened where indexes are enough."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest

from fileindex.format.bitmap_reader import BitmapReader
from fileindex.format.bitmap_writer import write_bitmap
from fileindex.format.container import Payload
from fileindex.keys.group_by import ColumnRows
from manifest.store import FileStore
from paimon_base.errors import CorruptIndex
from paimon_base.thresholds import use_thresholds
from pyspark_paimon import InvalidArgument
from sparkexpr.values.column_type import ColumnType, Kind

ROWS = 3000
INDEXES = {"file-index.bitmap.columns": "c,d,f,attrs[k],at,flag", "file-index.bitmap.d.version": "1"}
SCHEMA = "id BIGINT, part STRING, c STRING, d DATE, f DOUBLE, at TIMESTAMP(3), flag BOOLEAN, attrs MAP<STRING, INT>, n INT"
TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("c", pa.string()),
        ("d", pa.date32()),
        ("f", pa.float64()),
        ("at", pa.timestamp("ms")),
        ("flag", pa.bool_()),
        ("attrs", pa.map_(pa.string(), pa.int32())),
        ("n", pa.int32()),
    ]
)


def rows(first: int = 0, count: int = ROWS) -> list[dict[str, Any]]:
    floats = [0.0, -0.0, math.nan, 1.5, None, -math.inf]
    return [
        {
            "id": at,
            "part": "ab"[at % 2],
            "c": None if at % 13 == 0 else ["Oslo", "Lima", "", "Tromsø", "😀"][at % 5],
            "d": date(2024, 1, 1 + at % 7),
            "f": floats[at % 6],
            "at": datetime(2024, 1, 1, at % 24),  # noqa: DTZ001  # a wall clock
            "flag": None if at % 4 == 0 else at % 3 == 0,
            "attrs": None if at % 17 == 0 else [("k", at % 3)] if at % 5 else [("other", 1)],
            "n": at % 10,
        }
        for at in range(first, first + count)
    ]


def table_of(create, *, plain: bool = False, keys: Any = (), **options: str):
    table = create(
        SCHEMA,
        name="plain" if plain else "t",
        primary_keys=keys,
        partition_keys=["part"],
        options={**({} if plain else INDEXES), **options},
    )
    for first in (0, ROWS // 2):
        table.write(pa.Table.from_pylist(rows(first, ROWS // 2), TYPES))
    return table


def lines(table: pa.Table) -> list[str]:
    return [repr(row) for row in table.to_pylist()]


QUESTIONS: list[tuple[Any, Any, str | None]] = [
    ({"n": "count"}, "c", None),
    ({"rows": "count"}, "c", None),
    ({"rows": "count"}, ["part", "c"], None),
    ({"rows": "count", "c": "count"}, "c", "c = 'Oslo' OR c IS NULL"),
    ({"rows": "count"}, "d", "flag = true AND c <> 'Lima'"),
    ({"rows": "count"}, "f", None),
    ({"rows": "count"}, "at", "d > DATE'2024-01-03'"),
    ({"rows": "count"}, "flag", "n = 3"),
    ({"rows": "count"}, {"k": "attrs['k']"}, None),
    ({"rows": "count"}, ["c", "d"], None),
    ({"rows": "count", "n": "sum"}, "c", None),
    ({"c": "count_distinct"}, (), None),
    ({"c": ["count", "count_distinct"], "f": "count_distinct", "rows": "count"}, (), "d = DATE'2024-01-02'"),
    ({"c": "count_distinct"}, "part", None),
    ({"c": "count_distinct", "n": ["count_distinct", "max"]}, ["part", "flag"], None),
    ({"c": "count_distinct"}, {"even": "n % 2 = 0"}, None),
    ({"c": "count_distinct"}, (), "c = 'nowhere'"),
    ({"c": "count_distinct"}, "d", "c = 'nowhere'"),
]


@pytest.mark.slow
@pytest.mark.parametrize("keys", [(), ("part", "id")])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_answers_of_indexes_are_those_of_rows(create, keys, vectors) -> None:
    options = {"deletion-vectors.enabled": vectors, **({"bucket": "2"} if keys else {"bucket": "-1"})}
    indexed, plain = (table_of(create, plain=without, keys=keys, **options) for without in (False, True))
    for step in range(3):
        for wanted, by, condition in QUESTIONS:
            found, right = (table.scan(condition).aggregate(wanted, by=by) for table in (indexed, plain))
            assert found.schema == right.schema
            assert lines(found) == lines(right), (step, wanted, by, condition)
        for table in (indexed, plain):
            if step == 0:
                table.delete("id % 7 = 0")
            elif step == 1:
                table.compact(full=True)


def test_files_with_indexes_are_not_opened(create, monkeypatch) -> None:
    table = table_of(create, bucket="-1")
    model = Counter(row["c"] for row in rows())

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a data file is opened")

    monkeypatch.setattr("lsm.read.data_file.open_data_file", refuse)
    found = table.scan().aggregate({"rows": "count"}, by="c").to_pylist()
    assert {row["c"]: row["rows"] for row in found} == model
    assert table.scan().aggregate({"c": "count_distinct"}).to_pylist() == [{"c_count_distinct": 5}]
    assert table.scan("flag = true").aggregate({"rows": "count"}, by="d")["rows"].to_pylist() == [
        sum(row["flag"] is True and row["d"].day == day for row in rows()) for day in range(1, 8)
    ]
    with pytest.raises(AssertionError, match="is opened"):
        table.scan().aggregate({"rows": "count"}, by=["c", "d"])
    with use_thresholds(dense_sets=3), pytest.raises(AssertionError, match="is opened"):
        table.scan("flag = true").aggregate({"rows": "count"}, by="d")
    with use_thresholds(row_sets=3), pytest.raises(AssertionError, match="is opened"):
        table.scan().aggregate({"rows": "count"}, by="c")


def test_damaged_or_missing_indexes_cost_only_time(create) -> None:
    table = table_of(create, **{"bucket": "-1", "file-index.in-manifest-threshold": "1 b"})
    right = lines(table.scan().aggregate({"rows": "count"}, by="c"))
    store = FileStore.open(table.path)
    entries = store.live_entries(store.snapshots.latest()).entries()
    path = store.paths.extra_file(
        store.physical_files(entries[0].partition, entries[0].bucket, entries[0].file)[0], entries[0].file.index_file
    )
    data = store.file_io.read(path)
    store.file_io.delete(path)
    store.file_io.write(path, data[:-200] + bytes(200))
    assert lines(type(table).open(table.path).scan().aggregate({"rows": "count"}, by="c")) == right


def test_nested_values_are_not_counted(create) -> None:
    with pytest.raises(InvalidArgument, match=r"column 'attrs' of type MAP<.*> has no count_distinct"):
        table_of(create, plain=True).scan().aggregate({"attrs": "count_distinct"})


@pytest.mark.parametrize("version", [1, 2])
def test_row_sets_that_lack_rows_are_corrupt(version) -> None:
    kind, texts = ColumnType(Kind.VARCHAR), ColumnRows(ColumnType(Kind.VARCHAR))
    texts.append(pa.array(["a", "b", "a", None, "c"] * 40))
    data = write_bitmap(texts.group(), kind, version=version, block_size=30)
    values, counts = BitmapReader(Payload.of(data), kind).value_counts(None)
    assert dict(zip(values.to_pylist(), counts.tolist(), strict=True)) == {"a": 80, "b": 40, "c": 40, None: 40}
    more = data[:1] + (205).to_bytes(4, "big") + data[5:]
    with pytest.raises(CorruptIndex, match="have 200 of 205 rows"):
        BitmapReader(Payload.of(more), kind).value_counts(None)
