"""Rewritten manifests hold entries of one partition, bucket and range of keys side by side."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileKind, ManifestEntry
from manifest.entry.manifest_file import cluster
from manifest.row.binary_row import decode_row, encode_row
from manifest.stats.column_stats import PartitionType
from manifest.types.data_type import DataType
from sparkexpr.values.column_type import Kind

INT, TEXT = DataType(Kind.INT), DataType(Kind.VARCHAR, length=20)
PART = PartitionType(("p",), (INT,))


def columns(rows, types):
    made = []
    for at, (part, bucket, key) in enumerate(rows):
        low = encode_row(key, types) if types else bytes(12)
        file = DataFileMeta(file_name=f"data-{at}", file_size=1, row_count=1, creation_time=0, min_key=low, max_key=low)
        made.append(ManifestEntry(kind=FileKind.ADD, partition=encode_row((part,), [INT]), bucket=bucket, total_buckets=3, file=file))
    return EntryColumns.of(made)


def places(entries, types):
    keys = [decode_row(entry.file.min_key, types) if types else () for entry in entries.entries()]
    return [(PART.decode(part)[0], bucket, key) for part, bucket, key in zip(entries.partition, entries.bucket.tolist(), keys, strict=True)]


@pytest.mark.parametrize("key_type", [INT, TEXT], ids=["int", "text"])
@given(st.data())
def test_entries_go_by_partition_bucket_and_first_key(key_type, data):
    value = st.integers(-300, 300) if key_type is INT else st.text("aeiou", max_size=12)
    rows = data.draw(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.tuples(value, st.integers(0, 3))), max_size=12))
    types = (key_type, INT)
    found = places(cluster(columns(rows, types), PART, [(0, key_type), (1, INT)]), types)
    assert sorted(found) == sorted(rows)
    first = [(part, bucket, key[0].encode() if key_type is TEXT else key[0]) for part, bucket, key in found]
    assert first == sorted(first)


def test_entries_that_agree_stay_in_order():
    rows = [(part, bucket, ()) for part in (1, 0) for bucket in (0, 1)] * 3
    random.Random(1).shuffle(rows)
    found = cluster(columns(rows, ()), PART, ())
    assert places(found, ()) == sorted(rows)
    numbers = [int(name.removeprefix("data-")) for name in found.file_name]
    assert numbers == sorted(range(len(rows)), key=lambda at: rows[at])


def test_entries_that_cannot_be_decoded_stay_as_they_are():
    rows = [(1, 0, ("b", 0)), (0, 0, ("a", 0))]
    entries = columns(rows, (TEXT, INT))
    short = EntryColumns.of(
        [entry.model_copy(update={"file": entry.file.model_copy(update={"min_key": b"\0\0"})}) for entry in entries.entries()]
    )
    assert cluster(short, PART, [(0, TEXT), (1, INT)]).file_name == ["data-0", "data-1"]
