"""Metadata of payloads: strict in what they read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.sorted_index.index_meta import SortedIndexMeta, SourceFile, SourceMeta
from paimon_base.errors import CorruptIndex

SOURCE = bytes.fromhex("00000001000000050000000100" + "10646174612d612d302e706172717565740000000000000005")
FILES = SourceMeta(3, (SourceFile("a", 2), SourceFile("b", 0), SourceFile("é\U0001f600\uffff", 7)))


def test_source_files_have_the_bytes_of_the_engine():
    meta = SourceMeta(5, (SourceFile("data-a-0.parquet", 5),))
    assert meta.encode() == SOURCE
    assert SourceMeta.parse(SOURCE) == meta
    assert meta.row_count == 5


def test_source_files_with_any_names_are_read_as_written():
    assert SourceMeta.parse(FILES.encode()) == FILES
    assert FILES.row_count == 9


@pytest.mark.parametrize(
    "data",
    [
        b"",
        SOURCE[:-1],
        SOURCE + b"\0",
        b"DEIX" + SOURCE[4:],
        bytes.fromhex("00000002") + SOURCE[4:],
        SOURCE[:4] + bytes(4) + SOURCE[8:],
        SOURCE[:8] + bytes(4),
        SOURCE[:8] + b"\xff\xff\xff\xff" + SOURCE[12:],
        SOURCE[:8] + b"\x7f\xff\xff\xff" + SOURCE[12:],
        SOURCE[:-8] + b"\xff" * 8,
        SOURCE[:14] + b"\xff" + SOURCE[15:],
        SourceMeta(1, (SourceFile("b", 1), SourceFile("a", 1))).encode(),
        SourceMeta(1, (SourceFile("a", 1), SourceFile("a", 1))).encode(),
    ],
)
def test_other_source_files_are_no_payload(data):
    with pytest.raises(CorruptIndex):
        SourceMeta.parse(data)


def test_names_are_in_the_order_of_java():
    astral, private = SourceFile("\U0001f600", 1), SourceFile("\uffff", 1)
    assert SourceMeta.parse(SourceMeta(1, (astral, private)).encode()).files == (astral, private)
    with pytest.raises(CorruptIndex, match="order"):
        SourceMeta.parse(SourceMeta(1, (private, astral)).encode())


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        (SortedIndexMeta(b"\1", b"\2\3", has_nulls=False), "01000000010200000002030001" + "00"),
        (SortedIndexMeta(b"", b"", has_nulls=True), "0000000000000000010100"),
        (SortedIndexMeta(None, None, has_nulls=True), "0000000000000000010103"),
    ],
)
def test_first_and_last_key_are_read_as_written(meta, text):
    assert meta.encode().hex() == text
    assert SortedIndexMeta.parse(bytes.fromhex(text)) == meta


@pytest.mark.parametrize(
    ("text", "meta"),
    [
        ("010000000102000000020300", SortedIndexMeta(b"\1", b"\2\3", has_nulls=False)),
        ("000000000000000001", SortedIndexMeta(None, None, has_nulls=True)),
        ("000000000000000000", SortedIndexMeta(b"", b"", has_nulls=False)),
        ("00000000010000000201", SortedIndexMeta(b"", b"\2", has_nulls=True)),
    ],
)
def test_keys_without_flags_are_those_of_older_engines(text, meta):
    assert SortedIndexMeta.parse(bytes.fromhex(text)) == meta


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00000000",
        "0000000000000000",
        "ffffffff0000000001",
        "ffffff7f0000000001",
        "0000000000000000010200",
        "00000000000000000101",
        "000000000000000001010000",
        "0000000000000000020100",
        "0000000000000000010101",
        "0000000000000000010104",
        "010000000100000000010103",
    ],
)
def test_other_first_and_last_keys_are_refused(text):
    with pytest.raises(CorruptIndex):
        SortedIndexMeta.parse(bytes.fromhex(text))


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=60) | st.binary(max_size=40).map(lambda noise: SOURCE[:12] + noise), st.sampled_from([SourceMeta, SortedIndexMeta])
)
def test_noise_is_refused_or_read_as_what_it_says(noise, codec):
    try:
        meta = codec.parse(noise)
    except CorruptIndex:
        return
    assert codec.parse(meta.encode()) == meta
