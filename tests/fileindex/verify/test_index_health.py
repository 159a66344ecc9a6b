"""What the health of an index says of its size, its values and what is wrong with it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fileindex.build.options import FileIndexOptions
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.bloom_filter import BloomFilterBuilder, BloomSize
from fileindex.format.container import ContainerReader, Payload, write_index_container
from fileindex.verify.health import payload_health
from sparkexpr.values.column_type import ColumnType, Kind

LONG = ColumnType(Kind.BIGINT)
ROWS = 20_000
RANDOM = np.random.default_rng(5)


def health(values, index_type, column_bytes=None, row_count=None, **options):
    types = {"a": LONG}
    raw = {f"file-index.{index_type}.columns": "a"} | {f"file-index.{index_type}.a.{name}": text for name, text in options.items()}
    writer = DataFileIndexWriter.create(FileIndexOptions.parse(raw, types), types)
    writer.write(pa.record_batch({"a": pa.array(values)}))
    reader = ContainerReader.of(write_index_container(writer.finish()))
    payload = reader.payload(reader.entries()[0])
    return payload_health(index_type, payload, LONG, len(values) if row_count is None else row_count, column_bytes)


@pytest.mark.parametrize("index_type", ["bitmap", "range-bitmap"])
def test_distinct_values_and_bits_per_row(index_type):
    found = health(np.arange(ROWS) % 500, index_type)
    assert (found.rows, found.distinct, found.false_positive_rate, found.note) == (ROWS, 500, None, "")
    assert found.bits_per_row == 8 * found.bytes / ROWS > 0


def test_a_bit_sliced_index_does_not_know_its_distinct_values():
    assert health(np.arange(ROWS), "bsi").distinct is None


@pytest.mark.parametrize(("items", "fpp"), [(ROWS, 0.1), (ROWS, 0.01), (2 * ROWS, 0.1)])
def test_the_false_positive_rate_is_the_one_that_strangers_meet(items, fpp):
    values = RANDOM.choice(2**40, ROWS, replace=False)
    found = health(values, "bloom-filter", items=str(items), fpp=str(fpp))
    assert found.distinct == pytest.approx(ROWS, rel=0.03)
    assert found.false_positive_rate == pytest.approx(fpp, rel=0.3)
    assert found.note == ""


def test_a_bloom_filter_for_too_few_items_is_said_to_let_everything_through():
    found = health(np.arange(ROWS), "bloom-filter", items=str(ROWS // 10))
    assert found.false_positive_rate > 0.9
    assert "raise 'items'" in found.note
    assert health(np.arange(ROWS), "bloom-filter", items="10").false_positive_rate == 1


def test_a_bloom_filter_for_far_too_many_items_is_said_to_be_large():
    builder = BloomFilterBuilder(LONG, BloomSize.of(1_000_000, 0.1))  # as Java's writer sizes it
    builder.add(pa.array(np.arange(1000)))
    found = payload_health("bloom-filter", Payload.of(builder.finish()), LONG, 1000, 1400)
    assert "lower 'items'" in found.note
    assert "larger than the column (599,071 of 1,400 bytes)" in found.note


def test_an_index_larger_than_its_column_is_said_to_be():
    values = RANDOM.permutation(ROWS)
    assert "larger than the column" in health(values, "bitmap", column_bytes=8 * ROWS).note
    assert "a bloom filter would be smaller" in health(values, "bitmap").note
    assert health(values % 3, "bitmap", column_bytes=8 * ROWS).note == ""


def test_an_index_that_cannot_be_used_says_why():
    assert "it has 3 rows, the file 4" in health([1, 2, 3], "bitmap", row_count=4).note
    assert payload_health("bitmap", None, LONG, 4).note == "was built from no values"
    assert "is not supported" in payload_health("full-text", Payload.of(b"x"), LONG, 4).note
    for index_type in ("bitmap", "bsi", "range-bitmap", "bloom-filter"):
        broken = payload_health(index_type, Payload.of(b"x"), LONG, 4)
        assert broken.note.startswith("unusable: ")
        assert (broken.rows, broken.bytes, broken.bits_per_row) == (4, 1, 2.0)


def test_a_file_without_rows():
    assert health(np.zeros(0, np.int64), "bitmap").bits_per_row == 0
