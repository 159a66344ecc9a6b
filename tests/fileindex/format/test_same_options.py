"""Which options a payload was built with, told from its first bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.build.options import FileIndexOptions, IndexSpec
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ContainerReader, Payload, write_index_container
from fileindex.format.same_options import has_same_options
from fileindex.predicate.tree import ColumnRef
from sparkexpr.values.column_type import ColumnType, Kind
from tests.odd_bytes import odd_texts

INT, TEXT, SMALL = ColumnType(Kind.INT), ColumnType(Kind.VARCHAR), ColumnType(Kind.SMALLINT)
COLUMN = ColumnRef("a")


def build(index_type, column_type, values, options):
    writer = DataFileIndexWriter.create(FileIndexOptions((IndexSpec(COLUMN, index_type, options),)), {"a": column_type})
    writer.write(pa.record_batch({"a": pa.array(values, column_type.arrow)}))
    container = ContainerReader.of(write_index_container(writer.finish()))
    (entry,) = container.entries()
    return None if entry.is_empty else container.payload(entry)


OPTIONS = {
    "bitmap": st.one_of(
        st.just({"version": "1"}),
        st.fixed_dictionaries({}, optional={"version": st.just("2"), "index-block-size": st.sampled_from(["20b", "64b", "1 kb", "16kb"])}),
    ),
    "range-bitmap": st.fixed_dictionaries({}, optional={"chunk-size": st.sampled_from(["0b", "8b", "30b", "128b", "16kb"])}),
    "bloom-filter": st.fixed_dictionaries(
        {"items": st.integers(1, 3000).map(str)}, optional={"fpp": st.sampled_from(["0.5", "0.1", "0.001"])}
    ),
    "bsi": st.just({}),
}
COLUMNS = st.one_of(
    st.tuples(st.just(INT), st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=60)),
    st.tuples(st.just(SMALL), st.lists(st.none() | st.integers(-99, 99), max_size=60)),
    st.tuples(st.just(TEXT), st.lists(st.none() | odd_texts, max_size=60)),
)


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(sorted(OPTIONS)).flatmap(lambda name: st.tuples(st.just(name), OPTIONS[name])), COLUMNS)
def test_what_we_build_is_known_by_its_options(index, column):
    (index_type, options), (column_type, values) = index, column
    if index_type == "bsi" and column_type is TEXT:
        return
    payload = build(index_type, column_type, values, options)
    assert has_same_options(index_type, payload, column_type, options, len(values))
    tells_rows = payload is not None and index_type != "bloom-filter"
    assert not tells_rows or not has_same_options(index_type, payload, column_type, options, len(values) + 1)


@pytest.mark.parametrize("room", [28, 33, 48])
@pytest.mark.parametrize("value", ["{}", "text-{:03}"])
def test_chunks_that_are_full_to_the_last_byte_are_known_by_their_size(room, value):
    options = {"chunk-size": f"{room}b"}
    values = [value.format(chr(ord("a") + number % 26) if value == "{}" else number) for number in range(60)]
    payload = build("range-bitmap", TEXT, values, options)
    assert has_same_options("range-bitmap", payload, TEXT, options, len(values))
    others = [other for other in range(28, 60, 4) if has_same_options("range-bitmap", payload, TEXT, {"chunk-size": f"{other}b"}, 60)]
    assert all(build("range-bitmap", TEXT, values, {"chunk-size": f"{other}b"}).whole() == payload.whole() for other in others)


def test_a_range_bitmap_of_nulls_is_left_empty():
    """Paimon's reader would find only the first and the last of its rows."""
    assert build("range-bitmap", INT, [None] * 5, {}) is None
    assert build("range-bitmap", INT, [None, 1], {}) is not None
    assert build("bitmap", INT, [None] * 5, {}) is not None


@pytest.mark.parametrize(
    ("index_type", "column_type", "built", "wanted"),
    [
        ("bitmap", INT, {}, {"version": "1"}),
        ("bitmap", INT, {"version": "1"}, {}),
        ("bitmap", INT, {"index-block-size": "64b"}, {}),
        ("bitmap", INT, {}, {"index-block-size": "64b"}),
        ("bitmap", TEXT, {"index-block-size": "1kb"}, {"index-block-size": "2kb"}),
        ("range-bitmap", INT, {}, {"chunk-size": "128b"}),
        ("range-bitmap", INT, {"chunk-size": "128b"}, {}),
        ("range-bitmap", TEXT, {"chunk-size": "1kb"}, {"chunk-size": "2kb"}),
        ("range-bitmap", TEXT, {"chunk-size": "0b"}, {"chunk-size": "2kb"}),
        ("bloom-filter", INT, {"items": "100"}, {"items": "200"}),
        ("bloom-filter", INT, {"items": "100"}, {"items": "100", "fpp": "0.01"}),
        ("bloom-filter", INT, {"items": "100"}, {}),
        ("bloom-filter", TEXT, {}, {"items": "500"}),
    ],
)
def test_other_options_show(index_type, column_type, built, wanted):
    values = [value if column_type is INT else f"text-{value:05}" for value in range(1000)]
    payload = build(index_type, column_type, values, built)
    assert has_same_options(index_type, payload, column_type, built, 1000)
    assert not has_same_options(index_type, payload, column_type, wanted, 1000)


def test_one_large_text_fills_a_block_or_chunk_of_its_own():
    values = ["a", "b" * 100, "c"]
    for index_type, options in (("bitmap", {"index-block-size": "40b"}), ("range-bitmap", {"chunk-size": "40b"})):
        assert has_same_options(index_type, build(index_type, TEXT, values, options), TEXT, options, 3)


def test_the_marker_of_an_index_that_was_fed_nothing_fits_a_file_without_rows():
    assert has_same_options("bitmap", None, INT, {}, 0)
    assert not has_same_options("bitmap", None, INT, {}, 1)


def test_unknown_types_and_broken_payloads_were_built_with_nothing():
    payload = build("range-bitmap", TEXT, [f"text-{value}" for value in range(300)], {"chunk-size": "64b"})
    assert not has_same_options("inverted", payload, TEXT, {}, 300)
    whole = payload.whole()
    for end in range(0, 200, 7):
        for index_type in ("bitmap", "range-bitmap", "bloom-filter", "bsi"):
            assert not has_same_options(
                index_type, Payload.of(whole[:end]), TEXT, {"chunk-size": "64b"} if index_type == "range-bitmap" else {}, 300
            )


@settings(deadline=None, max_examples=80)
@given(st.binary(max_size=300), st.sampled_from(["bitmap", "range-bitmap", "bloom-filter", "bsi"]), st.sampled_from([INT, TEXT]))
def test_any_bytes_get_an_answer(data, index_type, column_type):
    assert has_same_options(index_type, Payload.of(data), column_type, {}, 5) in {True, False}


def test_of_a_large_index_only_its_beginning_is_read():
    payload = build("bitmap", INT, list(range(200_000)), {})
    read = []

    def reading(offset, length):
        read.append(length)
        return payload.read(offset, length)

    container = ContainerReader(reading, payload.length)
    assert has_same_options("bitmap", Payload(container.read, 0, payload.length), INT, {}, 200_000)
    assert sum(read) < 70_000 < payload.length / 10
