"""N-gram filters: no row that contains a text lies outside the blocks that they answer, whatever the batches, and other blocks are left out."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from fileindex.build.options import FileIndexOptions
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ContainerReader, Payload, write_index_container
from fileindex.format.ngram_filter import NgramFilterBuilder, NgramFilterReader
from fileindex.format.same_options import has_same_options
from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import ColumnRef, Compare, ComputedPredicate, In, IsNull, Op, StartsWith
from fileindex.query.evaluate import evaluate
from fileindex.query.metrics import IndexMetrics
from fileindex.rowset.result import REMAIN, SKIP, RowSet
from fileindex.verify.health import payload_health
from fileindex.verify.rebuild import rebuild_index
from paimon_base.errors import CorruptIndex, InvalidFilter, UnsupportedOption
from paimon_base.thresholds import Thresholds, use_thresholds
from sparkexpr.expression.functions import call
from sparkexpr.expression.tree import ColumnValue, LiteralValue
from sparkexpr.expression.types import TEXT_TYPE
from sparkexpr.values.column_type import ColumnType, Kind
from tests.fileindex.predicate.test_required_texts import LETTERS, patterns
from tests.odd_bytes import odd_texts

A = ColumnRef("a")
TEXT = ColumnType(Kind.VARCHAR)
PIECES = st.text("abAB😀é\0", max_size=5)
TEXTS = st.lists(
    st.none() | st.sampled_from(["", "a", "ab", "abc" * 9, "ABC", "中文字", "😀" * 3, "\0\0\0"]) | odd_texts | PIECES, max_size=40
)


def built(array, *, size=3, block_rows=100, batch=None):
    builder = NgramFilterBuilder(size, 0.1, block_rows)
    for first in range(0, len(array), batch or len(array) or 1):
        builder.add(array.slice(first, batch or len(array)))
    return builder.finish()


def opened(data):
    return NgramFilterReader(Payload.of(data), TEXT)


def rows_of(result, row_count):
    return result.rows if isinstance(result, RowSet) else BitMap(range(row_count)) if result.remains else BitMap()


def containing(values, part: bytes):
    return BitMap(row for row, value in enumerate(values) if value is not None and part.lower() in value.encode().lower())


FORMS = [(kind, coded, tiny) for kind in (pa.string(), pa.large_string()) for coded in (False, True) for tiny in (False, True)]


@settings(max_examples=150, deadline=None)
@given(
    TEXTS,
    st.lists(PIECES, min_size=1, max_size=3),
    st.tuples(st.integers(2, 8), st.integers(1, 9), st.integers(1, 50)),
    st.sampled_from(FORMS),
)
def test_no_row_with_a_text_is_lost(values, parts, sizes, form):
    size, block_rows, batch = sizes
    kind, coded, tiny = form
    array = pa.array(["unused", *values], kind).slice(1)
    array = array.dictionary_encode() if coded else array
    with use_thresholds(Thresholds.tiny() if tiny else None):
        data = built(array, size=size, block_rows=block_rows, batch=batch)
        reader = opened(data)
        inside = [value[at : at + 4] for value in values if value for at in range(0, len(value), 3)]
        for part in (*parts, *inside, *(value for value in values if value is not None)):
            right, found = containing(values, part.encode()), rows_of(reader.candidates([part.encode()]), len(values))
            assert right <= found <= BitMap(range(len(values)))
        for value in (value for value in values if value is not None):
            same = BitMap(row for row, other in enumerate(values) if other == value)
            assert same <= rows_of(reader.evaluate(Compare(A, Op.EQ, value)), len(values))
            assert same <= rows_of(reader.evaluate(In(A, (value, "nothing"))), len(values))
            assert same <= rows_of(reader.evaluate(StartsWith(A, value[:3])), len(values))
        assert reader.row_count == len(values)
        rebuilt = rebuild_index(A, "ngram-filter", Payload.of(data), TEXT, {})
        rebuilt.write(pa.array(values, pa.string()))
        assert rebuilt.mismatch() is None


def lines(count: int) -> pa.Array:
    return pa.array(
        [f"request {row * 7919 % 100_003} of user {row % 100}" + (" Checksum mismatch" if row == 4321 else "") for row in range(count)]
    )


@pytest.mark.sizes
def test_blocks_without_a_text_are_left_out():
    reader = opened(built(lines(20_000), block_rows=1000))
    for part in (b"mismatch", b"CHECKSUM", b"sum mis"):
        assert rows_of(reader.candidates([part]), 20_000) == BitMap(range(4000, 5000))
    assert reader.candidates([b"mismatch", b"request"]) == reader.candidates([b"mismatch"])
    assert reader.candidates([b"timeout"]) is SKIP
    assert reader.candidates([b"xy"]) is REMAIN
    assert reader.candidates([b"request"]) is REMAIN
    assert reader.false_positive_rate() < 0.1


WRITTEN_BEFORE = (
    "eNp9UUESwjAIXGiccnCUGS/V6Qwv8Tc+t/7GB0gIaerFPaQLYRdIaZoA0MePVyXPbXujwpAwrODMFIOqwNi5tOvrjTovIF6DKQrP"
    "2FHlCyhKIIoQSHOFLk1/6e2gQ+kNrepswl/UZqewrw6W40hEzc65kh9U/bnrpqwsGp9zz3uVmWGR8RJzW6yuQzqeJ5k1UTzSoxe2"
    "eZLcY0TxKt01vHdrsY9jnNP+wrqXQXjchxH1NnpIltxt7HqA8uje/22ohT38AqGDCt0="
)
"""A filter of 500 texts, "number 7 of 500" and so on, in blocks of 100, compressed."""


def golden_rows() -> pa.Array:
    return pa.array([f"number {row // 100 * 1111 + row % 3} of 500" if row % 7 else None for row in range(500)])


def test_filters_that_were_written_before_are_read():
    data = zlib.decompress(base64.b64decode(WRITTEN_BEFORE))
    reader = opened(data)
    assert (reader.size, reader.block_rows, reader.row_count, reader.segments) == (3, 100, 500, 1)
    for block in range(1, 5):
        found = rows_of(reader.candidates([f"{block * 1111}"[:3].encode()]), 500)
        assert found >= BitMap(range(block * 100, block * 100 + 100))
        assert len(found) < 500
    assert reader.candidates([b"nothing"]) is SKIP
    assert built(golden_rows()) == data


@pytest.mark.sizes
def test_blocks_are_joined_and_filters_shrink_where_they_are_many():
    values = lines(6400)
    with use_thresholds(ngram_blocks=8, ngram_bytes=2000):
        data = built(values, block_rows=100, batch=333)
    reader = opened(data)
    assert (reader.block_rows, reader.blocks) == (800, 8)
    assert len(data) < 2500
    assert 4321 in rows_of(reader.candidates([b"mismatch"]), 6400)
    assert has_same_options("ngram-filter", Payload.of(data), TEXT, {"block-rows": "100"}, 6400)
    for options in ({"block-rows": "150"}, {"block-rows": "100", "size": "4"}, {"block-rows": "100", "fpp": "0.2"}):
        assert not has_same_options("ngram-filter", Payload.of(data), TEXT, options, 6400)
    assert not has_same_options("ngram-filter", Payload.of(data), TEXT, {"block-rows": "100"}, 6399)


@pytest.mark.sizes
def test_one_block_of_many_ngrams_does_not_enlarge_the_others():
    letters = np.random.default_rng(1).integers(97, 123, 400_000).astype(np.uint8).tobytes().decode()
    values = pa.array([f"row {row}" if row != 777 else letters for row in range(3000)])
    data = built(values)
    assert len(data) < 10_000
    reader = opened(data)
    assert 777 in rows_of(reader.candidates([letters[1000:1010].encode()]), 3000)
    assert len(rows_of(reader.candidates([b"row 29"]), 3000)) == 400


@pytest.mark.sizes
def test_a_search_reads_the_segments_of_its_ngrams():
    rows = np.random.default_rng(2).integers(10**11, 10**12, 60_000)
    data = built(pa.array([str(row) for row in rows]), size=5, block_rows=2000)
    read: list[int] = []
    container = ContainerReader.of(write_index_container([("a", "ngram-filter", data)]))
    payload = Payload(lambda offset, length: read.append(length) or container.read(offset, length), container.entries()[0].start, len(data))
    reader = NgramFilterReader(payload, TEXT)
    read.clear()
    assert 5 in rows_of(reader.candidates([str(rows[5]).encode()]), 60_000)
    assert read == [512 * 4] * 8


def test_what_ngrams_do_not_tell_remains():
    reader = opened(built(lines(1000)))
    for leaf in (
        Compare(A, Op.NE, "request"),
        Compare(A, Op.LT, "nothing"),
        In(A, ("nothing",), negated=True),
        StartsWith(A, "nothing", negated=True),
        IsNull(A),
        In(A, tuple(map(str, range(Thresholds().block_literals + 1)))),
        Compare(A, Op.EQ, "\ud83d\ud83d\ud83d"),
    ):
        assert reader.evaluate(leaf) is REMAIN
    assert reader.evaluate(In(A, ())) is SKIP
    assert reader.evaluate(Compare(A, Op.EQ, "nothing")) is SKIP


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:10],
        lambda data: b"\2" + data[1:],
        lambda data: data[:1] + b"\1" + data[2:],
        lambda data: data[:2] + b"\4" + data[3:],
        lambda data: data[:8] + bytes(4) + data[12:],
        lambda data: data[:12] + bytes(4) + data[16:],
        lambda data: data[:12] + b"\0\0\0\3" + data[16:],
        lambda data: data[:16] + b"\xff" * 4 + data[20:],
    ],
)
def test_broken_filters_are_named_and_cost_only_time(damage):
    data = damage(built(lines(1000)))
    with pytest.raises(CorruptIndex):
        opened(data)
    notes = IndexMetrics()
    container = ContainerReader.of(write_index_container([("a", "ngram-filter", data)]))
    assert evaluate(contains("nothing"), container, {"a": TEXT_TYPE}, 1000, notes) is REMAIN
    assert notes.warnings.total() == 1


def contains(part: str, column: str = "a", key: str | None = None) -> ComputedPredicate:
    return ComputedPredicate(call("contains", [ColumnValue(column, key, TEXT_TYPE), LiteralValue(part, TEXT_TYPE)]))


def container_of(values, others=(), **options):
    raw = {"ngram-filter.columns": "a", **{f"ngram-filter.a.{name.replace('_', '-')}": text for name, text in options.items()}}
    raw |= {f"file-index.{other}.columns": "a" for other in others}
    types = {"a": TEXT_TYPE}
    writer = DataFileIndexWriter.create(FileIndexOptions.parse(raw, types), types)
    for first in range(0, len(values), 700):
        writer.write(pa.record_batch({"a": values.slice(first, 700)}))
    return ContainerReader.of(write_index_container(writer.finish()))


@pytest.mark.parametrize("others", [(), ("bloom-filter",), ("bitmap",), ("bloom-filter", "range-bitmap")])
def test_a_condition_is_answered_beside_other_indexes(others):
    container = container_of(lines(5000), others, block_rows="500")
    assert b"a#ngrams" in container.read(0, 300)
    notes = IndexMetrics()
    assert rows_of(evaluate(contains("mismatch"), container, {"a": TEXT_TYPE}, 5000, notes), 5000) == BitMap(range(4000, 4500))
    assert list(notes.used) == ["a: ngram-filter"]
    assert evaluate(contains("mismatch"), container, {"a": TEXT_TYPE}, 4999, notes) is REMAIN
    assert notes.warnings["ngram-filter of 'a': it has 5000 rows, the file 4999"] == 1
    found = evaluate(Compare(A, Op.EQ, lines(5000)[4321].as_py()), container, {"a": TEXT_TYPE}, 5000, notes)
    assert 4321 in rows_of(found, 5000)
    assert len(rows_of(found, 5000)) <= 500


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"ngram-filter.columns": "n"}, "type INT is not supported by 'ngram-filter' index"),
        ({"ngram-filter.a.size": "1"}, "an n-gram has 2 to 8 bytes, not 1"),
        ({"ngram-filter.a.size": "9"}, "an n-gram has 2 to 8 bytes, not 9"),
        ({"ngram-filter.a.fpp": "0.6"}, "0.6 is above 0.5"),
        ({"ngram-filter.a.fpp": "0"}, "is not a false positive rate"),
        ({"ngram-filter.a.block-rows": "99"}, "99 rows are too few for a block; write 100 or more"),
        ({"ngram-filter.a.items": "9"}, "index type 'ngram-filter' has no option 'items'; it has: size, fpp, block-rows"),
        ({"ngram-filter.b.size": "3"}, "column 'b' is not declared in 'ngram-filter.columns'"),
        ({"ngram-filter.size": "3"}, "is not a file index option; write 'ngram-filter.<column>.<option>'"),
        ({"file-index.ngram-filter.columns": "a"}, "stops writes of Paimon's engine; write 'ngram-filter.columns'"),
        ({"file-index.ngram-filter.a.size": "3"}, "is not a file index option; write 'ngram-filter.<column>.<option>'"),
        ({"ngram-filter.columns": "b"}, "its index would be stored under the name of the column 'b#ngrams'; rename that"),
    ],
)
def test_options_are_checked(options, reason):
    types = {"a": TEXT, "n": ColumnType(Kind.INT), "b": TEXT, "b#ngrams": TEXT}
    with pytest.raises(UnsupportedOption) as raised:
        FileIndexOptions.parse({"ngram-filter.columns": "a", **options}, types)
    assert reason in str(raised.value)


@pytest.mark.sizes
def test_a_twin_finds_texts_that_the_filter_does_not_have():
    payload = Payload.of(built(lines(1000)))
    others = pa.array([f"{text} and more" for text in lines(1000).to_pylist()])
    for rows, lie in ((lines(1000), None), (others, "bits of values"), (lines(500), "another number of rows")):
        rebuilt = rebuild_index(A, "ngram-filter", payload, TEXT, {})
        rebuilt.write(rows)
        said = rebuilt.mismatch()
        assert said is None if lie is None else lie in said


def test_health_tells_of_full_filters():
    health = payload_health("ngram-filter", Payload.of(built(lines(1000))), TEXT, 1000)
    assert 0 < health.false_positive_rate < 0.1
    assert (health.distinct, health.note) == (None, "")
    letters = np.random.default_rng(1).integers(97, 123, 30_000).astype(np.uint8).tobytes().decode()
    with use_thresholds(ngram_segments=2):
        full = payload_health("ngram-filter", Payload.of(built(pa.array([letters] * 120))), TEXT, 120)
    assert full.false_positive_rate > 0.99
    assert "lower 'block-rows'" in full.note


@settings(max_examples=200, deadline=None)
@given(st.data(), st.lists(st.none() | st.text(LETTERS, max_size=8), min_size=1, max_size=30), st.integers(2, 4))
def test_conditions_keep_all_rows_that_match(data, values, size):
    try:
        test = data.draw(patterns())
    except InvalidFilter:
        return
    predicate = ComputedPredicate(test)
    near = [str(one.value) for one in test.arguments[1:] if isinstance(one, LiteralValue) and isinstance(one.value, str)]
    texts = pa.array([*values, *near, *(value.upper() for value in near)], pa.string())
    builder = NgramFilterBuilder(size, 0.1, 3)
    builder.add(texts)
    container = ContainerReader.of(write_index_container([("s", "ngram-filter", builder.finish())]))
    notes = IndexMetrics()
    found = rows_of(evaluate(predicate, container, {"s": TEXT_TYPE}, len(texts), notes), len(texts))
    matching = mask(predicate, pa.record_batch({"s": texts}), {"s": TEXT_TYPE})
    assert BitMap(np.flatnonzero(np.asarray(matching)).tolist()) <= found
    assert notes.warnings == {}
