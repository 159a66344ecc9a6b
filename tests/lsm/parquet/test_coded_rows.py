"""A few rows of dictionary pages have the values that the decoder returns, for any writer's layout. Damage is never a wrong value."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lsm.parquet.coded_rows
from lsm.parquet.coded_rows import codes_at, levels
from lsm.parquet.fields import PageHeader
from lsm.parquet.page_index import ColumnPages
from lsm.parquet.reader import ParquetDataFile
from lsm.parquet.row_group_pages import GroupPages
from lsm.parquet.thrift import decode_struct
from manifest.io.file_cache import FileCache
from manifest.io.file_io import LocalFileIO
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import use_thresholds
from tests.examples import some

ROWS = 2000
NAME = "data-0b5e2e3c-6f0e-4d6c-8a53-0d9c1f3a2b11-0.parquet"
"""A name that is never used again, so that young files are cached."""
CODECS = ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]


@cache
def columns() -> pa.Table:
    """Columns with few values: scattered, in long runs, with nulls in both ways, and all the same."""
    draw = np.random.default_rng(0)
    few, runs = draw.integers(0, 300, ROWS).tolist(), (np.arange(ROWS) // 130).tolist()
    lists = [None if n % 17 == 0 else [None if m % 5 == 0 else m for m in range(n % 5)] for n in few]
    return pa.table(
        {
            "int": pa.array(few, pa.int32()),
            "long": pa.array([None if n % 3 == 0 else n for n in few], pa.int64()),
            "float": pa.array([(0.0, -0.0, float("nan"), 1.5)[n % 4] for n in few], pa.float32()),
            "double": pa.array([n / 3 for n in runs]),
            "text": pa.array([f"text {n} ä" for n in few]),
            "runs": pa.array([None if n % 4 == 0 else f"{n}" for n in runs]),
            "bytes": pa.array([bytes([n % 256]) * (n % 5) for n in few]),
            "money": pa.array([Decimal(n).scaleb(-2) for n in few], pa.decimal128(20, 2)),
            "cents": pa.array([Decimal(n).scaleb(-2) for n in few], pa.decimal128(7, 2)),
            "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(n) for n in few]),
            "time": pa.array([dt.datetime(2020, 1, 1) + dt.timedelta(hours=n) for n in few], pa.timestamp("us")),  # noqa: DTZ001  # as stored
            "same": pa.array([7] * ROWS, pa.int64()),
            "none": pa.nulls(ROWS, pa.string()),
            "list": pa.array(lists, pa.list_(pa.int32())),
            "long list": pa.array([[n] * (40 * (n % 2)) for n in runs], pa.list_(pa.int64())),
            "map": pa.array(
                [None if n % 11 == 0 else [(f"k{m}", None if m % 3 == 0 else n) for m in range(n % 4)] for n in few],
                pa.map_(pa.string(), pa.int64()),
            ),
            "no map": pa.array([None] * ROWS, pa.map_(pa.string(), pa.string())),
            "row": pa.array([{"a": n, "b": [n] * (n % 3)} for n in few], pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int32()))])),
        }
    )


FIXED = columns().schema.field("int").with_nullable(False)


@pytest.fixture(scope="module", params=[("zstd", "2.0"), *[(codec, "1.0") for codec in CODECS]], ids="-".join)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    codec, version = request.param
    path = tmp_path_factory.mktemp("coded") / NAME
    rows = columns().cast(columns().schema.set(0, FIXED))
    pq.write_table(
        rows,
        path,
        compression=codec,
        data_page_version=version,
        row_group_size=1100,
        data_page_size=300,
        write_batch_size=90,
        write_page_index=True,
        write_page_checksum=True,
        store_decimal_as_integer=True,
    )
    return path


def is_version_2(file: Path) -> bool:
    """Return whether data pages have the newer layout, which is left to the decoder."""
    with ParquetDataFile(LocalFileIO(), str(file)) as data:
        page = pages_of(data, data.row_groups[0]).column("text")
        assert isinstance(page, ColumnPages)
        offset, size, _ = page.locations[0].tolist()
        return PageHeader.DATA_PAGE_HEADER_V2 in decode_struct(page.indexes.read_range(offset, size))[0]


def pages_of(data: ParquetDataFile, group: Any) -> GroupPages:
    assert data._page_indexes is not None
    return GroupPages(data._page_indexes, group.index, lambda name: data.compressed_size([name], [group]))


def opened(file: Path) -> ParquetDataFile:
    """Open a file with a cache of its own."""
    return ParquetDataFile(LocalFileIO(), str(file), files=FileCache(1 << 22))


def taken(data: ParquetDataFile, name: str, rows: list[int], number: int = 0) -> Any:
    """Take rows twice: dictionaries are searched from their second use on."""
    once, again = (data.take(pages_of(data, data.row_groups[number]), [name], np.array(rows))[0] for _ in range(2))
    assert str(once) == str(again)
    return again


@settings(max_examples=some(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.sets(st.integers(0, 899), min_size=1, max_size=8))
def test_a_few_rows_are_those_of_the_decoder(file: Path, rows: set[int]) -> None:
    wanted = sorted(rows)
    with opened(file) as data:
        for group in data.row_groups:
            for name in columns().column_names:
                found = taken(data, name, wanted, group.index)
                expected = columns()[name].slice(group.first_row).take(pa.array(wanted)).combine_chunks()
                assert found.type.equals(data.schema.field(name).type), name
                found.validate(full=True)
                assert str(found.to_pylist()) == str(expected.to_pylist()), name


def test_dictionaries_are_decoded_once_at_their_second_use(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, real = [], lsm.parquet.coded_rows._decode_dictionary
    monkeypatch.setattr(lsm.parquet.coded_rows, "_decode_dictionary", lambda leaf: (made.append(leaf.name), real(leaf))[1])
    cache = FileCache(1 << 20)
    counts = []
    for row in (3, 800, 3, 5):
        with ParquetDataFile(LocalFileIO(), str(file), files=cache) as data:
            (found,) = data.take(pages_of(data, data.row_groups[0]), ["text"], np.array([row]))
            assert found.to_pylist() == columns()["text"].slice(row, 1).to_pylist()
        counts.append(len(made))
    assert counts == ([0, 0, 0, 0] if is_version_2(file) else [0, 1, 1, 1])


@pytest.mark.parametrize("name", ["int", "long", "text", "runs", "list", "map"])
def test_the_usual_columns_need_no_decoder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(columns(), tmp_path / NAME, write_page_index=True, data_page_size=300, write_batch_size=90)
    with opened(tmp_path / NAME) as data:
        taken(data, name, [5, 1500])
        monkeypatch.setattr(lsm.parquet.coded_rows, "take_leaves", lambda leaves, *_: pytest.fail("decoded") if leaves else [])
        assert taken(data, name, [5, 1500]).to_pylist() == columns()[name].take([5, 1500]).to_pylist()


@pytest.mark.parametrize("name", ["text", "map"])
def test_dictionaries_that_overflow_are_left_to_the_decoder(name: str, tmp_path: Path) -> None:
    """Later pages of a chunk have plain values then."""
    rows = columns()
    pq.write_table(rows, tmp_path / NAME, write_page_index=True, data_page_size=300, write_batch_size=90, dictionary_pagesize_limit=400)
    with opened(tmp_path / NAME) as data:
        for row in (0, 50, 900, 1999):
            assert taken(data, name, [row]).to_pylist() == rows[name].slice(row, 1).to_pylist()


@settings(max_examples=some(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["int", "long", "text", "runs", "list", "map", "same"]),
    at=st.integers(0, 10**6),
    value=st.integers(0, 255),
    row=st.integers(0, 1099),
)
def test_a_changed_byte_is_an_error_or_no_matter(file: Path, name: str, at: int, value: int, row: int) -> None:
    content = bytearray(file.read_bytes())
    chunk = next(
        column
        for column in map(pq.ParquetFile(file).metadata.row_group(0).column, range(30))
        if column.path_in_schema.split(".")[0] == name
    )
    start = chunk.dictionary_page_offset
    content[start + at % chunk.total_compressed_size] = value
    broken = file.with_name(NAME.replace("data", "broken"))
    broken.write_bytes(content)
    with opened(broken) as data:
        for _ in range(2):  # the decoder, then the search: either may be the one that reads the byte
            try:
                (found,) = data.take(pages_of(data, data.row_groups[0]), [name], np.array([row]))
            except CorruptFile as error:
                assert "broken" in str(error)  # noqa: PT017  # the other outcome is a value
                continue
            if found is None:
                continue  # whole chunks are decoded, which reports damage
            expected = None
            with use_thresholds(coded_rows=0), suppress(CorruptFile):
                expected = taken(data, name, [row])
            expected = columns()[name].slice(row, 1) if expected is None else expected
            assert str(found.to_pylist()) == str(expected.to_pylist())


RUNS = st.lists(
    st.one_of(st.tuples(st.integers(1, 40), st.integers(0, 255)), st.lists(st.integers(0, 255), min_size=8, max_size=24)),
    min_size=1,
    max_size=6,
)


def encoded(runs: Any, width: int) -> tuple[bytes, list[int]]:
    """Return runs as Parquet stores them, and their values."""
    data, values = b"", []
    for run in runs:
        if isinstance(run, tuple):
            count, value = run[0], run[1] % (1 << width)
            data += bytes([count << 1]) + value.to_bytes((width + 7) // 8, "little")
            values += [value] * count
        else:
            some = [value % (1 << width) for value in run[: len(run) // 8 * 8]]
            packed = sum(value << at * width for at, value in enumerate(some))
            data += bytes([len(some) // 8 << 1 | 1]) + packed.to_bytes(len(some) // 8 * width, "little")
            values += some
    return data, values


@settings(max_examples=some(100))
@given(RUNS, st.integers(0, 8), st.data())
def test_runs_are_searched_as_they_are_decoded(runs: Any, width: int, data: st.DataObject) -> None:
    content, values = encoded(runs, width)
    ranks = sorted(data.draw(st.sets(st.integers(0, len(values) - 1), min_size=1, max_size=5)))
    assert codes_at(b"x" + content + b"y", 1, 1 + len(content), width, ranks) == [values[rank] for rank in ranks]
    if width:
        count = data.draw(st.integers(1, len(values)))
        assert levels(b"x" + content + b"y", 1, 1 + len(content), width, count).tolist() == values[:count]
    with pytest.raises(ValueError, match="early"):
        codes_at(content, 0, len(content), width, [len(values)])
    with pytest.raises(ValueError, match="early"):
        codes_at(content, 0, len(content) - 1, width, [len(values) - 1] if content else [0])
