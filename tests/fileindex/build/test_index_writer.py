"""Building a file's container batch by batch, and that its answers never miss a row that the exact filter finds."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from fileindex.build.options import FileIndexOptions, option_key
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ContainerReader, write_index_container
from fileindex.format.registry import INDEX_TYPES
from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import And, ColumnRef, Compare, In, IsNull, Op, Or
from fileindex.query.evaluate import evaluate
from fileindex.query.metrics import IndexMetrics
from fileindex.rowset.result import REMAIN, SKIP, RowSet
from paimon_base.errors import UnknownColumn
from sparkexpr.values.column_type import ColumnType, Kind
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, leaves_on, literals, trees, type_name

A, B, K = ColumnRef("a"), ColumnRef("b"), ColumnRef("m", "k")
TEXT, LONG = ColumnType(Kind.VARCHAR), ColumnType(Kind.BIGINT)
MAP = ColumnType(Kind.MAP, key=TEXT, value=LONG)


def options_of(types, **declared):
    raw = {option_key(index_type.replace("_", "-"), "columns"): names for index_type, names in declared.items()}
    raw |= {f"file-index.bloom-filter.{name}.items": "50" for name in declared.get("bloom_filter", "").split(",") if name}
    return FileIndexOptions.parse(raw, types)


def container_of(table, types, options, batch_rows=1000):
    writer = DataFileIndexWriter.create(options, types)
    for batch in table.to_batches(max_chunksize=batch_rows):
        writer.write(batch)
    return ContainerReader.of(write_index_container(writer.finish()))


def answer(predicate, container, types, row_count):
    notes = IndexMetrics()
    result = evaluate(predicate, container, types, row_count, notes)
    assert not notes.warnings
    return result


def allowed(result, row_count):
    if result is REMAIN:
        return set(range(row_count))
    return set(result.rows) if isinstance(result, RowSet) else set()


def check_superset(predicate, table, types, container):
    exact = set(np.flatnonzero(mask(predicate, table, types).to_numpy()).tolist())
    result = answer(predicate, container, types, table.num_rows)
    found = allowed(result, table.num_rows)
    assert found >= exact
    if result.exact:
        assert found == exact


@pytest.mark.parametrize("column_type", ATOMIC_TYPES, ids=type_name)
@pytest.mark.sampled(3)
def test_indexes_of_every_type_allow_all_rows_that_match(column_type):
    names = [name for name, index_type in INDEX_TYPES.items() if index_type.supports(column_type)]
    if not names:
        pytest.skip("no index supports the type")
    types = {"a": column_type}
    options = options_of(types, **{name.replace("-", "_"): "a" for name in names})

    @settings(max_examples=25, deadline=None)
    @given(columns(column_type), trees(leaves_on(A, column_type)), st.integers(1, 9))
    def check(values, predicate, batch_rows):
        table = pa.table({"a": arrow_column(values, column_type)})
        check_superset(predicate, table, types, container_of(table, types, options, batch_rows))

    check()


ENTRIES = st.lists(st.tuples(st.sampled_from(["k", "j", "other"]), st.none() | st.integers(-2, 2)), max_size=4)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.none() | ENTRIES, max_size=25), trees(leaves_on(K, LONG) | leaves_on(ColumnRef("m", "j"), LONG)), st.integers(1, 9))
def test_map_entries_are_indexed_by_row_whatever_the_maps_repeat(maps, predicate, batch_rows):
    types = {"m": MAP}
    options = options_of(types, bitmap="m[k],m[j]", bloom_filter="m[k]")
    table = pa.table({"m": pa.array(maps, MAP.arrow)})
    check_superset(predicate, table, types, container_of(table, types, options, batch_rows))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.none() | literals(LONG), st.none() | literals(TEXT)), max_size=30), trees(leaves_on(A, LONG) | leaves_on(B, TEXT))
)
def test_conditions_on_several_columns_combine(rows, predicate):
    types = {"a": LONG, "b": TEXT}
    table = pa.table({"a": arrow_column([row[0] for row in rows], LONG), "b": arrow_column([row[1] for row in rows], TEXT)})
    container = container_of(table, types, options_of(types, bitmap="a,b", bloom_filter="b"))
    check_superset(predicate, table, types, container)


def test_a_repeated_map_key_does_not_shift_the_rows_after_it():
    types = {"m": MAP}
    table = pa.table({"m": pa.array([[("k", 1), ("k", 2)], [("k", 3)], None, [("j", 3)]], MAP.arrow)})
    container = container_of(table, types, options_of(types, bitmap="m[k]"))
    assert answer(Compare(K, Op.EQ, 3), container, types, 4) == RowSet(BitMap([1]), exact=True)
    assert allowed(answer(Compare(K, Op.EQ, 2), container, types, 4), 4) == {0}
    assert not answer(Compare(K, Op.EQ, 1), container, types, 4).remains
    assert allowed(answer(IsNull(K), container, types, 4), 4) == {2, 3}


def test_null_map_keys_are_passed_over():
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["k", None]))
    struct = pa.StructArray.from_arrays([keys, pa.array([1, 2])], names=["key", "value"])
    array = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), struct)
    types = {"m": MAP}
    writer = DataFileIndexWriter.create(options_of(types, bitmap="m[k]"), types)
    writer.write(pa.record_batch({"m": array}))
    assert allowed(answer(Compare(K, Op.EQ, 1), ContainerReader.of(write_index_container(writer.finish())), types, 1), 1) == {0}


def test_all_indexes_of_a_file_stand_in_the_order_of_their_declaration():
    types = {"a": LONG, "b": TEXT, "m": MAP}
    options = FileIndexOptions.parse({"file-index.bitmap.columns": "b,m[k],a", "file-index.bloom-filter.columns": "a"}, types)
    table = pa.table({"a": [1], "b": ["x"], "m": pa.array([[("k", 1)]], MAP.arrow)})
    entries = container_of(table, types, options).entries()
    assert {(entry.column, entry.index_type) for entry in entries} == {
        ("b", "bitmap"),
        ("m[k]", "bitmap"),
        ("a", "bitmap"),
        ("a", "bloom-filter"),
    }
    assert container_of(table, types, options).entries() == entries


@pytest.mark.parametrize("form", ["plain", "dictionary", "unused dictionary", "null in dictionary", "large", "view"])
def test_texts_give_the_same_container_however_arrow_holds_them(form):
    types = {"b": TEXT}
    options = options_of(types, bitmap="b", bloom_filter="b")
    text = pa.array(["x", None, "y", "x", "é", "x"])
    forms = {
        "plain": text,
        "dictionary": text.dictionary_encode(),
        "unused dictionary": pa.concat_arrays([pa.array(["never", "x", "z"]), text]).dictionary_encode()[3:],
        "null in dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, 3, 0]), pa.array(["x", None, "y", "é"])),
        "large": text.cast(pa.large_string()),
        "view": text.cast(pa.string_view()),
    }
    container = container_of(pa.table({"b": forms[form]}), types, options)
    expected = container_of(pa.table({"b": text}), types, options)
    assert container.read(0, container.size) == expected.read(0, expected.size)


def test_texts_that_repeat_are_hashed_like_others():
    types = {"b": TEXT}
    options = options_of(types, bloom_filter="b")
    few = pa.array([f"city-{number % 7}" if number % 5 else None for number in range(20_000)])
    whole, pieces = (container_of(pa.table({"b": few}), types, options, rows) for rows in (20_000, 100))
    assert whole.read(0, whole.size) == pieces.read(0, pieces.size)


def test_several_indexes_on_a_column_take_it_out_and_group_it_once(monkeypatch):
    calls = Counter()

    def counting(name):
        module, function = name.rsplit(".", 1)
        original = getattr(import_module(module), function)

        def counted(*args):
            calls[function] += 1
            return original(*args)

        monkeypatch.setattr(name, counted)

    for name in (
        "fileindex.build.writer.plain_array",
        "fileindex.keys.group_by.to_keys",
        "fileindex.keys.group_by.group_rows",
        "fileindex.format.bloom_filter.hash_keys",
    ):
        counting(name)
    types = {"a": LONG}
    options = options_of(types, bitmap="a", bsi="a", range_bitmap="a", bloom_filter="a")
    container_of(pa.table({"a": pa.array(range(0, 3_000_000, 1000))}), types, options, 1000)
    assert calls == {"plain_array": 3, "to_keys": 3, "group_rows": 1, "hash_keys": 1}


@pytest.mark.sizes
@pytest.mark.parametrize(("index", "bytes_per_row"), [("bitmap", 100), ("range_bitmap", 95), ("bsi", 45), ("bloom_filter", 25)])
def test_memory_grows_by_a_few_words_a_row_even_if_every_value_is_another(index, bytes_per_row):
    rows, types = 300_000, {"a": LONG}
    options = options_of(types, **{index: "a"})
    table = pa.table({"a": pa.array(np.random.default_rng(3).permutation(rows) * 7919)})
    tracemalloc.start()
    container_of(table, types, options, 50_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < bytes_per_row * rows


def test_batches_do_not_show_in_the_container():
    types = {"a": LONG, "b": TEXT}
    numbers = np.random.default_rng(1).integers(0, 500, 5000)
    table = pa.table({"a": pa.array(numbers), "b": pa.array(numbers).cast(pa.string())})
    options = options_of(types, bitmap="a,b", bloom_filter="a,b")
    whole, pieces = (container_of(table, types, options, rows) for rows in (10_000, 77))
    assert whole.read(0, whole.size) == pieces.read(0, pieces.size)


def test_a_file_without_rows_answers_nothing_matches():
    types = {"a": LONG}
    container = container_of(pa.table({"a": pa.array([], pa.int64())}), types, options_of(types, bitmap="a"))
    assert not answer(Compare(A, Op.EQ, 1), container, types, 0).remains
    assert not answer(IsNull(A), container, types, 0).remains


def test_no_writer_where_nothing_written_is_indexed():
    types = {"a": LONG, "b": TEXT}
    assert DataFileIndexWriter.create(FileIndexOptions(), types) is None
    options = options_of(types, bitmap="b")
    assert DataFileIndexWriter.create(options, {"a": LONG}) is None


def test_a_batch_without_an_indexed_column_is_refused():
    types = {"a": LONG, "b": TEXT}
    writer = DataFileIndexWriter.create(options_of(types, bitmap="a"), types)
    with pytest.raises(UnknownColumn, match="'a'"):
        writer.write(pa.record_batch({"b": ["x"]}))


def test_an_index_that_would_exceed_its_format_is_left_out_and_said(monkeypatch):
    def refuse(what: str, size: int) -> None:
        raise OverflowError(f"{what} of {size} bytes exceeds 2 GiB")

    monkeypatch.setattr("fileindex.format.bitmap_writer.check_size", refuse)
    types = {"a": LONG}
    writer = DataFileIndexWriter.create(options_of(types, bitmap="a", bloom_filter="a"), types)
    writer.write(pa.record_batch({"a": pa.array([1, 1, 2])}))
    container = ContainerReader.of(write_index_container(writer.finish()))
    assert [entry.index_type for entry in container.entries()] == ["bloom-filter"]
    assert writer.omitted[0].startswith("bitmap of 'a'")


def test_and_stops_at_the_first_that_cannot_match_and_or_unites():
    types = {"a": LONG, "b": TEXT}
    table = pa.table({"a": [1, 2, 3, None], "b": ["x", "y", "x", "z"]})
    container = container_of(table, types, options_of(types, bitmap="a,b"))
    one, x, nine = Compare(A, Op.EQ, 1), Compare(B, Op.EQ, "x"), Compare(A, Op.EQ, 9)
    assert answer(And((nine, x)), container, types, 4) is SKIP
    assert allowed(answer(And((one, x)), container, types, 4), 4) == {0}
    assert allowed(answer(Or((one, x)), container, types, 4), 4) == {0, 2}
    assert answer(Or((one, Compare(B, Op.LT, "x"))), container, types, 4) is REMAIN
    assert answer(And(()), container, types, 4) is REMAIN
    assert answer(Or(()), container, types, 4) is SKIP
    assert allowed(answer(In(A, (), negated=True), container, types, 4), 4) == {0, 1, 2}
