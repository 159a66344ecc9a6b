"""Rows and bounds in columns are what they are one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import And, ColumnRef, Compare, In, IsNull, Op, Or, StartsWith, negate
from manifest.avro.columnar import Spans, optional_longs
from manifest.avro.container import WriterSchema, blocks_of, encode_records, read_container, write_avro
from manifest.avro.schemas import MANIFEST_ENTRY
from manifest.entry.bounds import BoundsColumn, key_bounds, may_match_each, value_bounds
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileKind, ManifestEntry
from manifest.row.binary_row import EMPTY_ROW, decode_row, encode_row
from manifest.row.columns import RowColumns
from manifest.stats.column_stats import ColumnBounds, SimpleStats, decode_bounds, may_match
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS, TIMESTAMPS, Kind
from sparkexpr.values.float_order import spark_order_key
from tests.odd_bytes import odd_bytes, odd_texts

TYPES = (
    DataType(Kind.BOOLEAN),
    DataType(Kind.TINYINT),
    DataType(Kind.SMALLINT),
    DataType(Kind.INT),
    DataType(Kind.BIGINT),
    DataType(Kind.FLOAT),
    DataType(Kind.DOUBLE),
    DataType(Kind.DATE),
    DataType(Kind.TIME),
    DataType(Kind.VARCHAR),
    DataType(Kind.VARBINARY),
    DataType(Kind.DECIMAL, precision=18, scale=2),
    DataType(Kind.DECIMAL, precision=38, scale=2),
    DataType(Kind.TIMESTAMP, precision=3),
    DataType(Kind.TIMESTAMP, precision=6),
    DataType(Kind.TIMESTAMP_LTZ, precision=9),
)
_RANGES = {Kind.TINYINT: 2**7, Kind.SMALLINT: 2**15, Kind.BIGINT: 2**63}


def values_of(data_type):
    kind = data_type.kind
    if kind is Kind.BOOLEAN:
        return st.booleans()
    if kind in FLOATS:
        return st.floats(width=32)
    if kind in STRINGS:
        return odd_texts | st.text(max_size=12)
    if kind in BINARIES:
        return odd_bytes | st.binary(max_size=12)
    limit = 10**data_type.precision if kind is Kind.DECIMAL else 2**62 if kind in TIMESTAMPS else _RANGES.get(kind, 2**31)
    return st.integers(-limit + 1, limit - 1)


ROWS = st.lists(st.tuples(*(st.none() | values_of(data_type) for data_type in TYPES)), max_size=8)


def plain(values, data_type):
    if data_type.kind in STRINGS:
        return [value.decode() for value in values.tolist()]
    return [bool(value) for value in values.tolist()] if data_type.kind is Kind.BOOLEAN else values.tolist()


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_fields_of_many_rows_are_the_fields_of_each(rows):
    encoded = [encode_row(row, TYPES) for row in rows]
    ends = np.cumsum([len(row) for row in encoded], dtype=np.int64)
    columns = RowColumns.of(b"".join(encoded), ends - np.array([len(row) for row in encoded], np.int64), ends, len(TYPES))
    decoded = [decode_row(row, TYPES) for row in encoded]
    for position, data_type in enumerate(TYPES):
        values, present = columns.field(position, data_type)
        assert present.tolist() == [row[position] is not None for row in rows]
        known = [value for value, here in zip(plain(values, data_type), present.tolist(), strict=True) if here]
        assert list(map(repr, known)) == [repr(row[position]) for row in decoded if row[position] is not None]


def test_nanoseconds_beyond_64_bits_are_not_cut():
    data_type = DataType(Kind.TIMESTAMP, precision=9)
    row = encode_row((32_503_680_000_000_000_001,), (data_type,))
    values, _ = RowColumns.of(row, np.array([0]), np.array([len(row)]), 1).field(0, data_type)
    assert values.tolist() == [32_503_680_000_000_000_001]


@pytest.mark.parametrize(
    "damage", [lambda row: row[:-9], lambda row: b"\0\0\0\7" + row[4:], lambda row: row[:12] + b"\xff\0\0\0" * 2 + row[20:]]
)
def test_a_damaged_row_is_an_error_and_no_value(damage):
    data_type = DataType(Kind.VARCHAR)
    row = damage(encode_row(("longer than seven",), (data_type,)))
    with pytest.raises(ValueError):
        RowColumns.of(row, np.array([0]), np.array([len(row)]), 1).field(0, data_type)


@given(st.lists(st.lists(st.none() | st.integers(0, 2**40), max_size=4), max_size=10), st.integers(0, 4))
def test_arrays_of_another_length_are_told_apart(arrays, items):
    files = [a_file(SimpleStats(EMPTY_ROW, EMPTY_ROW, tuple(counts))) for counts in arrays]
    entries = EntryColumns.of(files)
    found, fits = optional_longs(entries.payload, entries.columns.spans["_FILE._VALUE_STATS._NULL_COUNTS"], items)
    assert fits.tolist() == [len(counts) == items for counts in arrays]
    for row, counts in enumerate(arrays):
        assert not fits[row] or found[row].tolist() == [-1 if count is None else count for count in counts]


def test_an_array_that_runs_out_of_the_payload_fits_nothing():
    spans = Spans(np.array([0]), np.array([3]), np.array([True]))
    assert optional_longs(bytes([4, 2, 14]), spans, 2)[1].tolist() == [False]


def a_file(stats, rows=5, **fields):
    file = DataFileMeta(file_name="data-1", file_size=1, row_count=rows, value_stats=stats, creation_time=0, **fields)
    return ManifestEntry(kind=FileKind.ADD, partition=bytes(12), bucket=0, total_buckets=1, file=file)


ORDERED = TYPES


@st.composite
def bounds_and_filters(draw):
    data_type = draw(st.sampled_from(ORDERED))
    value = values_of(data_type)
    if data_type.kind in FLOATS:
        value = st.sampled_from([float("nan"), float("-inf"), -1.0, -0.0, 0.0, 1.0, float("inf")])
    files = []
    for _ in range(draw(st.integers(1, 8))):
        ends = sorted(draw(st.lists(value, min_size=2, max_size=2)), key=lambda one: (one != one, one))  # noqa: PLR0124 -- NaN is last
        low, high = draw(st.sampled_from([tuple(ends), tuple(ends), (None, None), (None, ends[1])]))
        files.append(ColumnBounds(low, high, draw(st.none() | st.integers(0, 5)), 5))
    column = ColumnRef("x")
    leaf = st.one_of(
        st.builds(Compare, st.just(column), st.sampled_from(list(Op)), value),
        st.builds(In, st.just(column), st.lists(value, min_size=1, max_size=3).map(tuple), st.booleans()),
        st.builds(IsNull, st.just(column), st.booleans()),
        *([st.builds(StartsWith, st.just(column), odd_texts, st.booleans())] if data_type.kind in STRINGS else []),
    )
    some = st.lists(leaf, min_size=2, max_size=3).map(tuple)
    return data_type, files, draw(st.one_of(leaf, some.map(And), some.map(Or)))


@settings(max_examples=150, deadline=None)
@given(bounds_and_filters())
def test_a_filter_over_many_bounds_is_the_filter_over_each(case):
    data_type, files, predicate = case
    types = {"x": data_type.column_type}
    column = BoundsColumn.of(files, data_type)
    found = may_match_each(predicate, lambda _: column, types, len(files))
    assert found.tolist() == [may_match(predicate, lambda _, one=one: one, types) for one in files]
    again = column.each(data_type)
    assert [may_match(predicate, lambda _, one=one: one, types) for one in again] == found.tolist()


@st.composite
def bounds_and_lists(draw):
    """Values and bounds of a few that are close to each other, so that many of them touch."""
    data_type = draw(st.sampled_from(ORDERED))
    pool = draw(st.lists(values_of(data_type), min_size=2, max_size=4))
    if data_type.kind is Kind.DECIMAL:
        pool = [near for value in pool for near in (value, value + 1 if value < 0 else value - 1)]
    value = st.sampled_from(pool)
    ends = [sorted(draw(st.tuples(value, value)), key=spark_order_key) for _ in range(draw(st.integers(1, 6)))]
    return data_type, [ColumnBounds(low, high, 0, 5) for low, high in ends], draw(st.lists(value, min_size=1, max_size=9))


@settings(max_examples=150, deadline=None)
@given(bounds_and_lists())
def test_a_list_may_match_where_one_of_its_equalities_may(case):
    data_type, files, values = case
    types, column = {"x": data_type.column_type}, BoundsColumn.of(files, data_type)
    equal = [Compare(ColumnRef("x"), Op.EQ, value) for value in values]
    for leaf, terms in (
        (In(ColumnRef("x"), tuple(values)), Or(tuple(equal))),
        (In(ColumnRef("x"), tuple(values), negated=True), negate(Or(tuple(equal)))),
    ):
        expected = [may_match(terms, lambda _, one=one: one, types) for one in files]
        assert [may_match(leaf, lambda _, one=one: one, types) for one in files] == expected
        assert may_match_each(leaf, lambda _: column, types, len(files)).tolist() == expected


def test_nothing_is_known_of_an_unknown_column_and_a_missing_one_is_all_null():
    types = {"x": TYPES[3].column_type}
    equal, null = Compare(ColumnRef("x"), Op.EQ, 1), IsNull(ColumnRef("x"))
    assert may_match_each(equal, lambda _: None, types, 2).tolist() == [True, True]
    nulls = BoundsColumn.all_null(np.array([3, 4]))
    assert may_match_each(equal, lambda _: nulls, types, 2).tolist() == [False, False]
    assert may_match_each(null, lambda _: nulls, types, 2).tolist() == [True, True]
    assert may_match_each(Compare(ColumnRef("x"), Op.EQ, "text"), lambda _: nulls, types, 2).tolist() == [False, False]


@settings(max_examples=40, deadline=None)
@given(ROWS, st.data())
def test_statistics_in_columns_are_those_of_each_file(rows, data):
    names = [f"c{at}" for at in range(len(TYPES))]
    files = []
    for row in rows:
        counts = tuple(data.draw(st.lists(st.none() | st.integers(0, 5), min_size=len(TYPES), max_size=len(TYPES))))
        broken = data.draw(st.sampled_from([False, False, True]))
        stats = SimpleStats(encode_row(row, TYPES), encode_row(row, TYPES), counts[:3] if broken else counts)
        files.append(a_file(stats))
    found = value_bounds(EntryColumns.of(files), names, TYPES, {"c3", "c9", "c12"})
    assert set(found) == {"c3", "c9", "c12"}
    for number, entry in enumerate(files):
        expected = decode_bounds(entry.file.value_stats, names, TYPES, 5, set(found))
        for name, column in found.items():
            (bounds,) = column.take(np.array([number])).each(TYPES[int(name[1:])])
            one = expected.get(name, ColumnBounds(None, None, None, 5))
            assert repr(bounds) == repr(ColumnBounds(one.min, one.max, one.null_count, 5))


def test_keys_are_bounded_by_exact_keys_and_then_by_their_statistics():
    types = (TYPES[3], TYPES[9])
    first, last = encode_row((1, "b"), types), encode_row((9, "c"), types)
    stats = SimpleStats(encode_row((1, "a"), types), encode_row((9, "z"), types), (0, 0))
    entries = EntryColumns.of([a_file(SimpleStats.EMPTY, min_key=first, max_key=last, key_stats=one) for one in (stats, SimpleStats.EMPTY)])
    found = key_bounds(entries, ["id", "sub"], types, {"id", "sub"})
    assert found["id"].each(types[0]) == [ColumnBounds(1, 9, 0, 5)] * 2
    assert found["sub"].each(types[1]) == [ColumnBounds("a", "z", 0, 5), ColumnBounds(None, None, None, 5)]
    assert list(key_bounds(entries, ["id", "sub"], types, {"sub"})) == ["sub"]


def container(entries, path="m"):
    records = encode_records(WriterSchema.of(MANIFEST_ENTRY), (entry.to_avro() for entry in entries))
    return read_container(path, write_avro(MANIFEST_ENTRY, blocks_of(records), codec="null", level=1))


@pytest.mark.sizes
@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_manifests_decoded_together_are_the_manifests(sizes):
    manifests = [[a_file(SimpleStats.EMPTY, rows=size * 10 + at) for at in range(size)] for size in sizes]
    containers = [container(entries, f"manifest-{at}") for at, entries in enumerate(manifests)]
    found, whole = EntryColumns.from_containers(containers)
    assert [columns.entries() for columns in found] == manifests
    joined = EntryColumns.concat(found)
    assert [joined.path_of(row) for row in range(len(joined))] == [f"manifest-{at}" for at, size in enumerate(sizes) for _ in range(size)]
    assert (whole is not None) == (len(sizes) > 1 and all(sizes))
    if whole is not None:
        assert whole.entries() == joined.entries()
        assert list(whole.records()) == list(joined.records())
        assert [whole.path_of(row) for row in range(len(whole))] == [joined.path_of(row) for row in range(len(joined))]
        assert all(one is other for one, other in zip(whole.files(), joined.files(), strict=True))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2), st.sampled_from([("_VERSION", 3), ("_KIND", 2)]), st.integers(0, 1))
def test_of_manifests_decoded_together_the_one_with_a_bad_entry_is_named(bad, change, at):
    field, value = change
    containers = []
    for number in range(3):
        records = [entry.to_avro() for entry in [a_file(SimpleStats.EMPTY)] * 2]
        if number == bad:
            records[at][field] = value
        data = write_avro(MANIFEST_ENTRY, blocks_of(encode_records(WriterSchema.of(MANIFEST_ENTRY), records)), codec="null", level=1)
        containers.append(read_container(f"manifest-{number}", data))
    with pytest.raises(CorruptFile, match=f"manifest-{bad}"):
        EntryColumns.from_containers(containers)


@pytest.mark.sizes
def test_file_objects_are_made_once_and_shared_by_every_selection():
    columns = EntryColumns.of([a_file(SimpleStats.EMPTY, rows=at) for at in range(6)])
    odd = columns.select(np.array([5, 1, 3]))
    again = EntryColumns.concat([columns.select(np.arange(2)), odd])
    assert [file.row_count for file in odd.files()] == [5, 1, 3]
    assert [one is other for one, other in zip(again.files()[2:], odd.files(), strict=True)] == [True] * 3
    assert columns.files()[5] is odd.files()[0]


@pytest.mark.parametrize(
    "change", [{"_FILE_NAME": "a/b"}, {"_FILE_NAME": ".."}, {"_FILE_NAME": ""}, {"_EXTRA_FILES": ["x\0y"]}, {"_FILE_SIZE": -1}]
)
def test_a_file_that_is_not_valid_names_its_manifest(change):
    good = a_file(SimpleStats.EMPTY)
    record = good.to_avro()
    record["_FILE"] |= change
    data = write_avro(MANIFEST_ENTRY, blocks_of(encode_records(WriterSchema.of(MANIFEST_ENTRY), [record])), codec="null", level=1)
    columns = EntryColumns.concat(EntryColumns.from_containers([container([good] * 2), read_container("manifest-bad", data)])[0])
    with pytest.raises(CorruptFile, match="manifest-bad"):
        columns.files()
    assert columns.select(np.arange(2)).files() == [good.file] * 2


def test_partitions_stay_grouped_through_selections_and_joins():
    partitions = [encode_row((value,), (TYPES[3],)) for value in (3, 1, 2)]
    parts = [
        EntryColumns.of([a_file(SimpleStats.EMPTY).model_copy(update={"partition": partitions[at % 3]}) for at in range(first, first + 40)])
        for first in (0, 40, 80)
    ]
    joined = EntryColumns.concat(parts)
    for entries in (joined, joined.select(np.arange(1, 120, 3)), joined.select(np.array([5, 4]))):
        codes, known = entries.partition_codes
        assert [known[code] for code in codes.tolist()] == entries.partition
        assert sorted(set(entries.partition)) == sorted(known)


CONTENTS = st.sampled_from([b"", b"\0", b"\0\0", b"a", b"aaaaaaaa", b"aaaaaaaa\0", b"\xff" * 20]) | st.binary(max_size=12)
ALIKE = st.sampled_from([1, 8, 20]).flatmap(lambda width: st.lists(st.binary(min_size=width, max_size=width), min_size=1, max_size=4))


@given(
    st.lists(CONTENTS, max_size=120) | ALIKE.flatmap(lambda known: st.lists(st.sampled_from([*known, bytes(len(known[0]))]), max_size=120)),
    st.binary(max_size=9),
)
def test_codes_of_a_field_group_equal_bytes_in_the_order_in_which_they_come(contents, behind):
    ends = np.cumsum([len(content) for content in contents], dtype=np.int64)
    starts = ends - np.array([len(content) for content in contents], np.int64)
    codes, known = Spans(starts, ends, np.ones(len(contents), np.bool_)).codes(b"".join(contents) + behind)
    assert known == list(dict.fromkeys(contents))
    assert [known[code] for code in codes.tolist()] == contents
