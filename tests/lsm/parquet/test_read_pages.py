"""Single pages of a Parquet file: the same rows as decoding everything, whatever the types, and broken indexes that cost nothing but time."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import lsm.parquet.page_index
import lsm.parquet.page_reader
import lsm.parquet.reader
import lsm.parquet.row_group_pages
import lsm.read.row_group
from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import And, ColumnRef, Compare, In, IsNull, Op, Or
from lsm.parquet.page_index import layouts, page_locations
from lsm.parquet.page_reader import data_page, data_pages
from lsm.parquet.reader import ParquetDataFile
from lsm.parquet.row_group_pages import matching_rows
from lsm.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, decode_struct, encode_struct, with_fields
from manifest.entry.bounds import BoundsColumn
from manifest.io.file_io import LocalFileIO
from manifest.stats.column_stats import ColumnBounds, may_match
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import use_thresholds
from sparkexpr.values.column_type import ColumnType, Kind
from tests.examples import some
from tests.golden_rows import GOLDEN, golden_predicate, golden_rows
from tests.lsm.small_tables import create, scan, write
from tests.odd_bytes import odd_bytes

pytestmark = pytest.mark.sizes

ROWS = 3000


@pytest.fixture
def pages_always(set_thresholds):
    """Read by pages whenever that is possible at all."""
    set_thresholds(paged_rows=1)
    set_thresholds(sparse=0)
    set_thresholds(pages_pay=0)


def columns():
    numbers = range(ROWS)
    return pa.table(
        {
            "i": pa.array([None if n % 7 == 0 else n for n in numbers], pa.int32()),
            "l": pa.array([n * n for n in numbers], pa.int64()),
            "f": pa.array([float("nan") if n % 100 == 0 else n / 3 for n in numbers]),
            "b": pa.array([n % 3 == 0 for n in numbers]),
            "s": pa.array([None if n % 5 == 0 else f"text {n // 100} ä" for n in numbers]),
            "x": pa.array([bytes([n % 256]) * (n % 4) for n in numbers]),
            "d": pa.array([Decimal(n).scaleb(-2) for n in numbers], pa.decimal128(20, 2)),
            "t": pa.array([dt.datetime(2020, 1, 1) + dt.timedelta(seconds=n) for n in numbers], pa.timestamp("us")),  # noqa: DTZ001
            "none": pa.nulls(ROWS, pa.int32()),
            "list": pa.array([[n] * (n % 3) for n in numbers], pa.list_(pa.int32())),
            "map": pa.array(
                [None if n % 11 == 0 else [(f"k{m}", None if m % 3 == 0 else n) for m in range(n % 4)] for n in numbers],
                pa.map_(pa.string(), pa.int64()),
            ),
            "row": pa.array(
                [None if n % 9 == 0 else {"a": n % 50, "b": None if n % 4 == 0 else [{"c": str(n), "d": None}] * (n % 3)} for n in numbers],
                pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string()), ("d", pa.float64())])))]),
            ),
            "deep": pa.array(
                [[("x", [n] * (n % 3)), ("y", None)] if n % 5 else None for n in numbers], pa.map_(pa.string(), pa.list_(pa.int16()))
            ),
            "after": pa.array([str(n) for n in numbers]),
        }
    )


@pytest.fixture(scope="module")
def paged(tmp_path_factory):
    file = tmp_path_factory.mktemp("pages") / "f.parquet"
    options = {"row_group_size": 1700, "data_page_size": 256, "write_batch_size": 64, "write_page_index": True, "write_page_checksum": True}
    pq.write_table(columns(), file, compression="zstd", use_dictionary=["s", "b"], store_decimal_as_integer=True, **options)
    return file


def pages_of(data, group):
    return lsm.parquet.row_group_pages.GroupPages(data._page_indexes, group.index, lambda name: data.compressed_size([name], [group]))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.sets(st.integers(0, 1299), min_size=1, max_size=40))
def test_any_rows_of_any_column_are_those_of_the_whole_file(paged, rows):
    wanted = np.array(sorted(rows))
    with ParquetDataFile(LocalFileIO(), str(paged)) as data:
        for group in data.row_groups:
            whole = columns().slice(group.first_row, group.num_rows)
            for name in whole.column_names:
                (found,) = data.take(pages_of(data, group), [name], wanted)
                expected = whole[name].take(pa.array(wanted)).combine_chunks()
                assert found.type.equals(data.schema.field(name).type), name
                found.validate(full=True)
                assert str(found.to_pylist()) == str(expected.to_pylist()), name


def test_only_the_pages_of_the_rows_are_fetched(paged):
    with ParquetDataFile(LocalFileIO(), str(paged)) as data:
        pages = pages_of(data, data.row_groups[0])
        one, pays = pages.cost(["l", "after"], np.array([5]))
        every, never = pages.cost(["l", "after"], np.arange(1700))
        assert pays
        assert not never
        assert 0 < 5 * one < every


def test_bounds_of_pages_hold_for_their_rows(paged):
    types = {"i": DataType(Kind.INT), "s": DataType(Kind.VARCHAR, length=99), "d": DataType(Kind.DECIMAL, precision=20, scale=2)}
    column_types = {name: data_type.column_type for name, data_type in types.items()} | {"f": ColumnType(Kind.DOUBLE)}
    types["f"] = DataType(Kind.DOUBLE)
    predicates = [
        Compare(ColumnRef("i"), Op.LT, 20),
        In(ColumnRef("i"), (5, 2999)),
        IsNull(ColumnRef("i")),
        Compare(ColumnRef("s"), Op.EQ, "text 7 ä"),
        Compare(ColumnRef("d"), Op.GE, 2990),
        Compare(ColumnRef("f"), Op.GT, 2000.0),
        Or((Compare(ColumnRef("i"), Op.EQ, 3), And((Compare(ColumnRef("d"), Op.LT, 40), Compare(ColumnRef("s"), Op.GT, "text 0"))))),
    ]
    with ParquetDataFile(LocalFileIO(), str(paged)) as data:
        for group in data.row_groups:
            pages = pages_of(data, group)
            batch = columns().slice(group.first_row, group.num_rows)
            for predicate in predicates:

                def lookup(column, pages=pages, data=data):
                    return data.page_bounds(pages, column.name, types[column.name])

                possible = matching_rows(predicate, group.num_rows, lookup, column_types)
                actual = np.array(mask(predicate, batch, column_types).to_pylist())
                assert not (actual & ~possible).any(), predicate
        assert (
            matching_rows(
                predicates[0], 1700, lambda c: data.page_bounds(pages_of(data, data.row_groups[0]), c.name, types[c.name]), column_types
            ).sum()
            < 900
        )


@pytest.mark.parametrize("name", ["all_types", "edges", "evolved_append", "append_map", "pk_dv"])
def test_tables_of_the_java_engine_read_the_same_by_pages(name, pages_always):
    for known in json.loads((GOLDEN / name / "plans.json").read_text())[1::4]:
        path = str(GOLDEN / name / "table")
        schema = scan(path, limit=0).store.schema
        predicate = golden_predicate(known["filter"], schema)
        by_pages = golden_rows(scan(path, predicate).table, schema)
        with use_thresholds(paged_rows=2**40):
            assert golden_rows(scan(path, predicate).table, schema) == by_pages


def test_a_lookup_decodes_one_page_of_a_large_row_group(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL, v INT, s STRING", keys=["id"], bucket="1")
    count = 60_000
    write(path, {"id": list(range(count)), "v": list(range(count)), "s": [f"s{n}" for n in range(count)]})
    whole = scan(path).report.bytes_read
    result = scan(path, Compare(ColumnRef("id"), Op.EQ, 31_234))
    assert result.table.to_pylist() == [{"id": 31_234, "v": 31_234, "s": "s31234"}]
    assert 0 < result.report.bytes_read < whole


@settings(max_examples=some(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10**6), value=st.integers(0, 255))
def test_a_broken_page_index_is_no_worse_than_none(paged, at, value):
    """A changed byte among the indexes: the right values, whole chunks instead, or an error that names the file."""
    content = bytearray(paged.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    chunks = decode_struct(bytes(content[footer:-8]))[0][4][1][1]
    first = min(chunk[field][1] for group in chunks for chunk in group[1][1][1] for field in (4, 6) if field in chunk)
    content[first + at % (footer - first)] = value
    broken = paged.with_name("broken.parquet")
    broken.write_bytes(content)
    wanted = np.array([0, 700, 1299])
    with ParquetDataFile(LocalFileIO(), str(broken)) as data:
        pages = pages_of(data, data.row_groups[0])
        for name in ("l", "s", "after"):
            data.page_bounds(pages, name, DataType(Kind.BIGINT))
            try:
                (found,) = data.take(pages, [name], wanted)
            except CorruptFile as error:
                found = None
                named = str(error)
                assert "broken.parquet" in named
            assert found is None or len(found) == len(wanted)


STRUCTS = st.deferred(
    lambda: st.dictionaries(
        st.integers(1, 40),
        st.one_of(
            st.tuples(st.just(I64), st.integers(-(2**63), 2**63 - 1)),
            st.tuples(st.just(I32), st.integers(-(2**31), 2**31 - 1)),
            st.tuples(st.just(BINARY), odd_bytes | st.binary(max_size=20)),
            st.booleans().map(lambda value: (1 if value else 2, value)),
            st.tuples(st.just(LIST), st.tuples(st.just(I64), st.lists(st.integers(0, 2**40), max_size=20))),
            st.tuples(st.just(STRUCT), STRUCTS),
        ),
        max_size=4,
    )
)


@settings(max_examples=60)
@given(STRUCTS)
def test_structs_survive_thrifts_compact_protocol(fields):
    data = encode_struct(fields)
    assert decode_struct(data) == (fields, len(data))


@pytest.mark.parametrize("name", ["all_types", "edges", "pk_thin", "multiset", "evolved"])
def test_footers_of_the_java_engine_are_encoded_byte_for_byte(name):
    for file in (GOLDEN / name / "table").rglob("data-*.parquet"):
        content = file.read_bytes()
        footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
        fields, length = decode_struct(footer)
        assert length == len(footer)
        assert encode_struct(fields) == footer


@pytest.mark.parametrize("data", ["", "15", "1906ff", "18ff01", "29fc", "1c" * 100, "16ffffffffffffffffffff01"])
def test_metadata_that_does_not_hold_together_is_an_error(data):
    with pytest.raises(ValueError, match=r"early|exceed|deep|bits|expected"):
        decode_struct(bytes.fromhex(data))


PLACES = st.lists(st.tuples(st.integers(0, 2**50), st.integers(0, 2**31 - 1), st.integers(0, 2**40)), max_size=40)


@settings(max_examples=60)
@given(st.lists(st.tuples(PLACES, st.booleans()), min_size=1, max_size=5))
def test_offset_indexes_decoded_together_are_those_decoded_one_by_one(indexes):
    encoded = []
    for places, has_sizes in indexes:
        pages = [{1: (I64, offset), 2: (I32, size), 3: (I64, row)} for offset, size, row in places]
        more = {2: (LIST, (I64, [1, 2]))} if has_sizes else {}
        encoded.append(encode_struct({1: (LIST, (STRUCT, pages)), **more}))
    assert [found.tolist() for found in page_locations(encoded)] == [[list(place) for place in places] for places, _ in indexes]


@settings(max_examples=100)
@example([(0, 0, 0)], 1, 0x3C)  # more pages than there are bytes for
@example([(0, 0, 0)], 1, 0xFC)
@given(PLACES.filter(bool), st.integers(0, 10**6), st.integers(0, 255))
def test_an_offset_index_with_a_changed_byte_is_decoded_as_thrift_says_and_leaves_its_neighbour_alone(places, at, value):
    pages = [{1: (I64, offset), 2: (I32, size), 3: (I64, row)} for offset, size, row in places]
    index = encode_struct({1: (LIST, (STRUCT, pages))})
    broken = bytearray(index)
    broken[at % len(broken)] = value
    first, second = page_locations([bytes(broken), index])
    assert second.tolist() == [list(place) for place in places]
    try:
        fields, _ = decode_struct(bytes(broken))
        expected = [[page[1][1], page[2][1], page[3][1]] for page in fields[1][1][1]]
        np.array(expected, np.int64)
    except (ValueError, LookupError, TypeError, OverflowError):
        return
    assert first.tolist() == expected


def test_columns_that_break_their_pages_alike_are_decoded_from_one_small_file(tmp_path, monkeypatch, set_thresholds):
    set_thresholds(coded_rows=0)
    numbers = np.arange(50_000)
    rows = pa.table(
        {"a": numbers, "b": numbers % 10, "s": pa.array((numbers % 50).astype(str)), "wide": pa.array([f"{n:0200d}" for n in numbers])}
    )
    pq.write_table(rows, tmp_path / "f.parquet", write_page_index=True, data_page_size=1 << 20)
    opened = []
    reader = pq.ParquetFile
    monkeypatch.setattr(lsm.parquet.page_reader.pq, "ParquetFile", lambda *args, **options: opened.append(1) or reader(*args, **options))
    with ParquetDataFile(LocalFileIO(), str(tmp_path / "f.parquet")) as data:
        opened.clear()
        wanted = np.array([3, 20_001, 20_002])
        found = data.take(pages_of(data, data.row_groups[0]), rows.column_names, wanted)
    assert [array.to_pylist() for array in found] == [rows[name].take(pa.array(wanted)).to_pylist() for name in rows.column_names]
    assert [array.type for array in found] == [pa.int64(), pa.int64(), pa.string(), pa.string()]
    assert len(opened) == 2, "the wide texts break at other rows"


LINES = st.lists(st.tuples(st.integers(-9, 60), st.integers(-1, 20), st.integers(-1, 12)), min_size=1, max_size=3)


def in_a_row(lines, start, end, num_rows):
    """The same, page by page."""
    for at, (offset, size, row) in enumerate(lines):
        after = lines[at + 1] if at + 1 < len(lines) else (end, 0, num_rows)
        if size <= 0 or offset < start or offset + size > after[0] or row >= after[2] or (at == 0 and row != 0):
            return False
    return True


@given(st.lists(st.tuples(LINES, st.integers(0, 9), st.integers(10, 80)), max_size=4), st.integers(1, 14))
@example([([(0, 5, 0), (5, 5, 3)], 0, 10), ([(1, 5, 0), (6, 5, 3)], 1, 11), ([(1, 5, 0), (6, 6, 3)], 1, 11)], 5)
def test_pages_of_several_columns_are_checked_as_those_of_each(leaves, num_rows):
    pages = {leaf: np.array(lines, np.int64) for leaf, (lines, _, _) in enumerate(leaves)}
    found = layouts(pages, [(start, end) for _, start, end in leaves], num_rows)
    assert set(found) == {leaf for leaf, (lines, start, end) in enumerate(leaves) if in_a_row(lines, start, end, num_rows)}
    for leaf, (lines, starts) in found.items():
        assert lines.tolist() == pages[leaf].tolist()
        assert starts.tolist() == [*pages[leaf][:, 2].tolist(), num_rows]
    shared = {starts.tobytes(): starts for _, starts in found.values()}
    assert all(starts is shared[starts.tobytes()] for _, starts in found.values())


COUNTS = st.integers(0, 2**31 - 1)
CUTS = st.sets(st.integers(1, 19), max_size=5).map(lambda cuts: np.array([0, *sorted(cuts), 20]))
CONDITIONS = [Compare(ColumnRef("a"), Op.GT, 5), Compare(ColumnRef("b"), Op.EQ, 3), Compare(ColumnRef("c"), Op.LT, 0)]


@given(CUTS, CUTS, st.lists(st.integers(0, 9), min_size=12, max_size=12), st.sampled_from([And, Or]))
def test_pages_that_break_elsewhere_in_each_column_decide_row_by_row(cuts_a, cuts_b, values, joined):
    """Of a column without bounds (``c``) nothing is known."""
    pages = {
        name: ([ColumnBounds(value, value + 1, 0, 1) for value in values[6 * at : 6 * at + len(cuts) - 1]], cuts)
        for at, (name, cuts) in enumerate([("a", cuts_a), ("b", cuts_b)])
    }
    columns = {name: (BoundsColumn.of(bounds, DataType(Kind.INT)), cuts) for name, (bounds, cuts) in pages.items()}
    types = dict.fromkeys("abc", ColumnType(Kind.INT))
    predicate = joined(tuple(CONDITIONS))

    def of_row(row):
        def bounds(column):
            known = pages.get(column.name)
            return None if known is None else known[0][int(np.searchsorted(known[1], row, side="right")) - 1]

        return may_match(predicate, bounds, types)

    assert matching_rows(predicate, 20, lambda column: columns.get(column.name), types).tolist() == [of_row(row) for row in range(20)]


@given(STRUCTS, STRUCTS, st.integers(1, 40))
def test_fields_added_to_an_encoded_struct_are_those_of_the_whole(first, more, shift):
    last = max(first, default=0)
    added = {number + last + shift: value for number, value in more.items() if number > 0}
    assert with_fields(encode_struct(first), last, added) == encode_struct(first | added)


@given(COUNTS, st.tuples(COUNTS, COUNTS), st.integers(-(2**31), 2**31 - 1), st.sampled_from([5, 8]), st.booleans())
def test_values_size_and_checksum_of_a_page_are_what_its_header_says(values, sizes, checksum, version, checked):
    page = {1: (I32, 0 if version == 5 else 3), 2: (I32, sizes[0]), 3: (I32, sizes[1]), version: (STRUCT, {1: (I32, values), 2: (I32, 8)})}
    expected = values, sizes[1], checksum % 2**32 if checked else None
    assert data_page(encode_struct(page | {4: (I32, checksum)} if checked else page)) == expected


PAGES = st.tuples(COUNTS, COUNTS, COUNTS, st.none() | st.integers(-(2**31), 2**31 - 1), st.sampled_from([5, 8]), st.binary(max_size=9))


@given(st.lists(PAGES, min_size=1, max_size=6), st.integers(0, 50))
def test_headers_of_many_pages_are_read_as_one_by_one(pages, behind):
    headers, bodies = [], []
    for values, size, other, checksum, version, body in pages:
        crc = {} if checksum is None else {4: (I32, checksum)}
        fields = {1: (I32, 0 if version == 5 else 3), 2: (I32, other), 3: (I32, size), version: (STRUCT, {1: (I32, values), 2: (I32, 8)})}
        headers.append(encode_struct(fields | crc))
        bodies.append(headers[-1] + body)
    sizes = np.array([len(body) for body in bodies])
    found = data_pages(b"".join(bodies) + b"\xff" * behind, np.cumsum(sizes) - sizes, sizes)
    expected = [(values, size, -1 if crc is None else crc) for values, size, crc in map(data_page, headers)]
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected


def test_indexes_of_the_next_row_groups_are_decoded_along_up_to_a_size(tmp_path, set_thresholds):
    path = tmp_path / "f.parquet"
    rows = pa.table({"id": pa.array(range(4000)), "text": pa.array(map(str, range(4000)))})
    pq.write_table(rows, path, row_group_size=1000, data_page_size=512, write_page_index=True)
    for ahead, together in ((1 << 20, 4), (0, 1)):
        set_thresholds(offset_index_ahead_bytes=ahead)
        set_thresholds(paged_rows=1)
        with ParquetDataFile(LocalFileIO(), str(path)) as data:
            found = [data.pages(group).column("text").starts.tolist() for group in data.row_groups]
            footer = data.pages(data.row_groups[0]).indexes.footer
            assert found == [data.pages(group).column("text").starts.tolist() for group in data.row_groups]
        with ParquetDataFile(LocalFileIO(), str(path)) as data:
            assert len(data.pages(data.row_groups[0]).column("id").starts) > 1
            held = data.pages(data.row_groups[0]).indexes.footer.locations
            assert sorted(held) == list(range(together))
            assert [data.pages(group).column("text").starts.tolist() for group in data.row_groups] == found
        assert sorted(footer.locations) == [0, 1, 2, 3]


def test_a_page_of_our_files_has_ten_thousand_rows_at_most(tmp_path):
    table = create(tmp_path / "t", "id INT, text STRING")
    write(table, pa.table({"id": pa.array(range(45_000), pa.int32()), "text": pa.array(map(str, range(45_000)))}))
    (path,) = (tmp_path / "t").rglob("data-*.parquet")
    with ParquetDataFile(LocalFileIO(), str(path)) as data:
        pages = data.pages(data.row_groups[0])
        assert {int(np.diff(pages.column(name).starts).max()) for name in ("id", "text")} == {10_000}
