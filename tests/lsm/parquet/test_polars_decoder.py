"""The decoder that filters: the same values as the first decoder's for every type, mask and layout, and no broken page goes unnoticed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsm.parquet.page_index import ColumnPages
from lsm.parquet.polars_decoder import masked_rows, rows_of_texts
from lsm.parquet.reader import ParquetDataFile
from manifest.io.file_io import LocalFileIO
from paimon_base.thresholds import use_thresholds
from tests.children import run_python
from tests.examples import some

pytestmark = pytest.mark.sizes

ROWS = 3000
TYPES = {
    "tiny": (pa.int8(), [None, -128, 127, 0]),
    "small": (pa.int16(), [-(2**15), 2**15 - 1, None]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, 0, None]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, 5]),
    "bool": (pa.bool_(), [True, False, None, False]),
    "float": (pa.float32(), [float("nan"), -0.0, 1.5, float("inf"), None]),
    "double": (pa.float64(), [float("nan"), -0.0, 5e-324, float("-inf"), None]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), None]),
    "decimal": (pa.decimal128(9, 2), [Decimal("-1234567.89"), Decimal("0.01"), None]),
    "money": (pa.decimal128(18, 4), [Decimal("-12345678901234.5678"), Decimal(0)]),
    "wide": (pa.decimal128(38, 10), [Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.0000000001"), None]),
    "text": (pa.string(), ["", "a", "ä" * 40, "\U0001f600", None]),
    "bytes": (pa.binary(), [b"", b"\x00\xff", b"x" * 100, None]),
    "never": (pa.int32(), [None]),
    "time": (pa.timestamp("us"), [dt.datetime(2020, 1, 1), None]),  # noqa: DTZ001
    "clock": (pa.time32("ms"), [dt.time(1, 2, 3), None]),
    "list": (pa.list_(pa.int32()), [[1, None], [], None]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1)], [], None]),
}
OTHERS = {"time", "clock", "list", "map"}
"""Left to the first decoder."""


@pytest.fixture
def filtering_always(set_thresholds):
    """Have the filtering decoder read whatever it can, even if that does not pay."""
    set_thresholds(paged_rows=1)
    set_thresholds(masked_chunk_bytes=0)
    set_thresholds(small_dictionary_bytes=0)
    set_thresholds(sparse=10**9)
    set_thresholds(dense=1)


def table(seed: int = 1):
    random = np.random.default_rng(seed)
    columns = {}
    for name, (arrow, values) in TYPES.items():
        column = pa.array([values[at] for at in random.integers(0, len(values), ROWS)], arrow)
        columns[name] = column
    columns["counted"] = pa.array([f"text {number * 7919 % ROWS}" for number in range(ROWS)])
    return pa.table(columns)


def write_file(rows, path, **options):
    pq.write_table(
        rows, path, **{"data_page_size": 1024, "write_batch_size": 64, "write_page_index": True, "write_page_checksum": True, **options}
    )
    return path


def leaves_of(data, group, names):
    pages = data.pages(group)
    return [one for one in map(pages.column, names) if isinstance(one, ColumnPages)]


@pytest.mark.usefixtures("filtering_always")
@pytest.mark.parametrize("compression", ["zstd", "snappy", "none", "gzip", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_every_type_comes_out_as_the_first_decoder_has_it(tmp_path, compression, version, dictionary):
    rows = table()
    path = write_file(
        rows, tmp_path / "t.parquet", compression=compression, data_page_version=version, use_dictionary=dictionary, row_group_size=1100
    )
    with ParquetDataFile(LocalFileIO(), str(path)) as data:
        for group in data.row_groups:
            whole = rows.slice(group.first_row, group.num_rows)
            for share in (0.0, 0.001, 0.3, 1.0):
                chosen = np.random.default_rng(7).random(group.num_rows) < share
                taken = data.take_masked(data.pages(group), rows.schema.names, chosen)
                for name, array in zip(rows.schema.names, taken, strict=True):
                    if name in OTHERS:
                        assert array is None
                    else:
                        expected = whole[name].combine_chunks().filter(pa.array(chosen))
                        assert array.type == rows.schema.field(name).type
                        assert bits(array) == bits(expected)


def bits(array):
    """Values such that NaN equals NaN and -0.0 is not 0.0."""
    return [repr(value) for value in array.to_pylist()]


@pytest.mark.usefixtures("filtering_always")
@pytest.mark.parametrize("as_integer", [False, True])
def test_decimals_come_out_alike_however_they_are_stored(tmp_path, as_integer):
    rows = table().select(["decimal", "money", "wide"])
    path = write_file(rows, tmp_path / "t.parquet", store_decimal_as_integer=as_integer)
    chosen = np.arange(ROWS) % 3 == 0
    with ParquetDataFile(LocalFileIO(), str(path)) as data:
        taken = data.take_masked(data.pages(data.row_groups[0]), rows.schema.names, chosen)
        assert pa.table(taken, rows.schema.names) == rows.filter(pa.array(chosen))


@settings(max_examples=some(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_rows_of_any_layout(tmp_path, data):
    rows = table(data.draw(st.integers(0, 5))).select(["int", "text", "wide", "bytes", "counted"]).slice(0, data.draw(st.integers(1, 400)))
    options = {
        "row_group_size": data.draw(st.integers(1, 400)),
        "data_page_size": data.draw(st.sampled_from([64, 1000, 1 << 20])),
        "use_dictionary": data.draw(st.sampled_from([True, False, ["text"]])),
    }
    path = write_file(rows, tmp_path / "t.parquet", **options)
    wanted = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    names = data.draw(st.lists(st.sampled_from(rows.schema.names), min_size=1, unique=True))
    types = [rows.schema.field(name).type for name in names]
    with use_thresholds(paged_rows=1), ParquetDataFile(LocalFileIO(), str(path)) as file:
        for group in file.row_groups:
            chosen = np.array(wanted[group.first_row : group.end_row])
            taken = masked_rows(leaves_of(file, group, names), types, chosen)
            expected = rows.select(names).slice(group.first_row, group.num_rows).filter(pa.array(chosen))
            assert pa.table(taken, names) == expected


@pytest.mark.usefixtures("filtering_always")
@pytest.mark.parametrize(
    "texts", [["text 17"], ["text 17", "", "text 2999", "no such text"], [""], ["ä" * 40], ["missing"], ["\U0001f600", "a"]]
)
@pytest.mark.parametrize("name", ["text", "counted"])
def test_rows_of_texts_are_those_that_equal_one(tmp_path, texts, name):
    rows = table().select([name])
    path = write_file(rows, tmp_path / "t.parquet", row_group_size=700, use_dictionary=False)
    with ParquetDataFile(LocalFileIO(), str(path)) as data:
        found = rows_of_texts([leaf for group in data.row_groups for leaf in leaves_of(data, group, [name])], texts)
        positions = [int(group.first_row + row) for group, part in zip(data.row_groups, found, strict=True) for row in part]
    assert positions == [at for at, value in enumerate(rows[name].to_pylist()) if value in texts]


def test_a_column_may_be_named_as_the_mask_would_be(tmp_path, filtering_always):
    rows = pa.table({"_rows": [f"{n}" for n in range(100)], "_rows_": list(range(100))})
    path = write_file(rows, tmp_path / "t.parquet", use_dictionary=False)
    chosen = np.arange(100) % 10 == 0
    with ParquetDataFile(LocalFileIO(), str(path)) as data:
        group = data.row_groups[0]
        leaves = leaves_of(data, group, rows.schema.names)
        assert pa.table(masked_rows(leaves, rows.schema.types, chosen), rows.schema.names) == rows.filter(pa.array(chosen))
        assert [part.tolist() for part in rows_of_texts(leaves[:1], ["30"])] == [[30]]


@pytest.mark.usefixtures("filtering_always")
@pytest.mark.parametrize("column", ["text", "long", "counted"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_a_flipped_bit_anywhere_in_a_chunk_is_noticed_or_changes_nothing(tmp_path, column, dictionary):
    rows = table().select([column])
    path = write_file(rows, tmp_path / "t.parquet", use_dictionary=dictionary, compression="none")
    whole = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(0)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    chosen = np.arange(ROWS) % 5 == 0
    expected = rows[column].combine_chunks().filter(pa.array(chosen))
    noticed = 0
    for at in np.random.default_rng(3).integers(start, start + chunk.total_compressed_size, 150).tolist():
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        with ParquetDataFile(LocalFileIO(), str(path)) as data:
            taken = data.take_masked(data.pages(data.row_groups[0]), [column], chosen)
        noticed += taken is None
        assert taken is None or taken[0].equals(expected)
    assert noticed > 100


FORKED = """
import os, sys
import numpy as np
from paimon_base.thresholds import use_thresholds
from lsm.parquet.reader import ParquetDataFile
from manifest.io.file_io import LocalFileIO

def taken():
    with ParquetDataFile(LocalFileIO(), sys.argv[1]) as data:
        group = data.row_groups[0]
        return data.take_masked(data.pages(group), ["long"], np.arange(group.num_rows) % 2 == 0)

with use_thresholds(paged_rows=1, masked_chunk_bytes=0):
    assert taken() is not None
    child = os.fork()
    if child == 0:
        os._exit(0 if taken() is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert taken() is not None
"""


@pytest.mark.slow
def test_a_forked_process_leaves_polars_alone_whose_threads_it_does_not_have(tmp_path):
    path = write_file(table().select(["long"]), tmp_path / "t.parquet")
    run_python(FORKED, str(path), timeout=60)
