"""An index is advice: damaged or foreign bytes mean REMAIN and a note, or right rows; never an exception, never a lost hour."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.build.options import FileIndexOptions, option_key
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ContainerReader, write_index_container
from fileindex.format.registry import INDEX_TYPES
from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op, StartsWith
from fileindex.query.evaluate import evaluate
from fileindex.query.metrics import IndexMetrics
from fileindex.query.reader import MAX_ROWS
from fileindex.rowset.result import REMAIN, SKIP, RowSet
from paimon_base.errors import CorruptIndex
from sparkexpr.values.column_type import ColumnType, Kind
from tests.damage import damaged

A, B = ColumnRef("a"), ColumnRef("b")
TYPES = {"a": ColumnType(Kind.INT), "b": ColumnType(Kind.VARCHAR)}
ROWS = 200
ROOT = Path(__file__).parents[3]
NAMES = sorted(INDEX_TYPES)


def containers():
    numbers = np.random.default_rng(9).integers(-20, 20, ROWS).astype(np.int32)
    table = pa.table({"a": pa.array(numbers, mask=numbers == 7), "b": pa.array(numbers).cast(pa.string())})
    for name in NAMES:
        columns = [column for column in TYPES if INDEX_TYPES[name].supports(TYPES[column])]
        raw = {option_key(name, "columns"): ",".join(columns)}
        if name == "bloom-filter":
            raw |= {f"file-index.{name}.{column}.items": "60" for column in columns}
        if name == "bitmap":
            raw |= {"file-index.bitmap.a.index-block-size": "100b", "file-index.bitmap.b.version": "1"}
        writer = DataFileIndexWriter.create(FileIndexOptions.parse(raw, TYPES), TYPES)
        writer.write(table)
        yield write_index_container(writer.finish())


CONTAINERS = list(containers())
LEAVES = [
    Compare(A, Op.EQ, 3),
    Compare(A, Op.NE, 3),
    Compare(A, Op.GE, -5),
    In(A, (1, 2, 3)),
    IsNull(A),
    IsNull(A, negated=True),
    Compare(B, Op.EQ, "3"),
    Compare(B, Op.LT, "2"),
    In(B, ("1", "-1"), negated=True),
    StartsWith(B, "1"),
]


def sound(result):
    return result in (REMAIN, SKIP) or (isinstance(result, RowSet) and (not result.rows or result.rows.max() < ROWS))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CONTAINERS), st.sampled_from(LEAVES), st.data())
def test_damaged_bytes_never_raise(original, leaf, data):
    damaged = bytearray(original)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        width = data.draw(st.sampled_from([1, 4]))
        damaged[at : at + width] = data.draw(
            st.sampled_from([b"\xff" * width, b"\x7f" + b"\xff" * (width - 1), b"\0" * width]) | st.binary(min_size=width, max_size=width)
        )
    damaged = bytes(damaged[: data.draw(st.integers(0, len(damaged)) | st.just(len(damaged)))])
    notes = IndexMetrics()
    assert sound(evaluate(leaf, ContainerReader.of(damaged), TYPES, ROWS, notes))
    assert notes.bytes_read <= 50 * max(1, len(damaged))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(NAMES),
    st.sampled_from(LEAVES),
    st.binary(max_size=120),
    st.sampled_from([b"", b"\1", b"\2", struct.pack(">bi", 2, ROWS)]),
)
def test_payloads_of_noise_never_raise(name, leaf, noise, start):
    container = ContainerReader.of(write_index_container([("a", name, start + noise), ("b", name, start + noise)]))
    assert sound(evaluate(leaf, container, TYPES, ROWS, IndexMetrics()))


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_every_cut_of_a_container_is_survived(number):
    original = CONTAINERS[number]
    for cut in range(0, len(original), max(1, len(original) // 150)):
        for leaf in LEAVES:
            assert sound(evaluate(leaf, ContainerReader.of(original[:cut]), TYPES, ROWS, IndexMetrics()))


@pytest.mark.slow
def test_no_damage_crashes_hangs_or_grows_the_process():
    child = [sys.executable, str(Path(__file__).with_name("index_fuzz_child.py")), "1", "20"]
    done = subprocess.run(child, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    asked, warned, grown = map(int, done.stdout.split())
    assert warned > asked // 3
    assert grown < 64 * 1024 * 1024


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(CONTAINERS), st.sampled_from(LEAVES), st.integers(0, 2**32), st.sampled_from(["cut", "double", "end"]))
def test_a_container_of_another_length_says_nothing(original, leaf, seed, kind):
    assert evaluate(leaf, ContainerReader.of(damaged(original, seed, kinds=(kind,))), TYPES, ROWS, IndexMetrics()) is REMAIN


def test_payloads_that_do_not_fill_their_container_say_nothing():
    for original in CONTAINERS:
        for bytes_ in (original + b"\0", original[:-1], original[:-4] + original[-8:-4] + original[-4:]):
            container = ContainerReader.of(bytes_)
            with pytest.raises(CorruptIndex, match="index container"):
                container.entries()


def noted(predicate, container, row_count=ROWS, types=TYPES):
    notes = IndexMetrics()
    assert evaluate(predicate, container, types, row_count, notes) is REMAIN
    return " ".join(notes.warnings)


def test_an_unknown_index_type_is_passed_over_with_a_note():
    container = ContainerReader.of(write_index_container([("a", "full-text", b"abc")]))
    assert "'full-text' is not supported" in noted(Compare(A, Op.EQ, 1), container)


def test_an_index_on_a_type_it_cannot_have_is_passed_over_with_a_note():
    container = ContainerReader.of(write_index_container([("a", "bitmap", b"abc")]))
    assert "cannot have this index" in noted(Compare(A, Op.EQ, b""), container, types={"a": ColumnType(Kind.VARBINARY)})


def test_an_index_of_another_number_of_rows_says_nothing():
    container = ContainerReader.of(CONTAINERS[NAMES.index("bitmap")])
    assert "it has 200 rows, the file 201" in noted(Compare(A, Op.EQ, 99), container, ROWS + 1)


def test_a_broken_index_leaves_the_others():
    good = ContainerReader.of(CONTAINERS[NAMES.index("bitmap")])
    payload = good.payload(good.of_column("a")[0]).whole()
    container = ContainerReader.of(write_index_container([("a", "bloom-filter", b"x"), ("a", "bitmap", payload)]))
    notes = IndexMetrics()
    assert not evaluate(Compare(A, Op.EQ, 99), container, TYPES, ROWS, notes).remains
    assert notes.warnings.total() == 1
    assert notes.used["a: bitmap"] == 1


def test_a_store_that_fails_is_noted():
    def read(offset, length):
        raise OSError("gone")

    assert "gone" in noted(Compare(A, Op.EQ, 1), ContainerReader(read, 1000))


def test_a_literal_of_another_type_says_nothing():
    container = ContainerReader.of(CONTAINERS[0])
    for literal in ("x", 2**40, True, 1.0):
        assert "literal" in noted(Compare(A, Op.EQ, literal), container)


def test_a_column_the_file_does_not_have_says_nothing():
    assert noted(Compare(ColumnRef("gone"), Op.EQ, 1), ContainerReader.of(CONTAINERS[0]))
    assert noted(Compare(ColumnRef("a", "k"), Op.EQ, 1), ContainerReader.of(CONTAINERS[0]))


def test_files_beyond_32_bit_positions_are_not_judged():
    assert evaluate(Compare(A, Op.EQ, 99), ContainerReader.of(CONTAINERS[0]), TYPES, MAX_ROWS + 1, IndexMetrics()) is REMAIN


@pytest.mark.parametrize(
    ("leaf", "skips"),
    [
        (Compare(A, Op.EQ, 1), True),
        (In(A, (1,)), True),
        (Compare(A, Op.LT, 1), True),
        (IsNull(A, negated=True), True),
        (StartsWith(B, "x"), True),
        (Compare(A, Op.NE, 1), False),
        (In(A, (1,), negated=True), False),
        (IsNull(A), False),
    ],
)
def test_an_index_that_was_fed_nothing_holds_no_value(leaf, skips):
    container = ContainerReader.of(write_index_container([("a", "bitmap", None), ("b", "bitmap", None)]))
    assert evaluate(leaf, container, TYPES, ROWS, IndexMetrics()) is (SKIP if skips else REMAIN)


def test_notes_say_what_was_used_and_read():
    container = ContainerReader.of(CONTAINERS[NAMES.index("bloom-filter")])
    notes, total = IndexMetrics(), IndexMetrics()
    evaluate(Compare(A, Op.EQ, 3), container, TYPES, ROWS, notes)
    total.merge(notes)
    total.merge(notes)
    assert total.used == {"a: bloom-filter": 2}
    assert total.bytes_read == 2 * notes.bytes_read > 0
