"""Few records are decoded one after the other exactly as many are in columns, damaged ones included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.avro.columnar import RecordColumns, decode_columns
from manifest.avro.container import Container, WriterSchema, encode_records
from manifest.avro.schemas import MANIFEST_ENTRY, layout
from manifest.avro.sequential import decode_dicts, decode_few
from manifest.avro.wire import BytesCursor
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import use_thresholds

LONG = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.none() | st.lists(st.none() | LONG, max_size=4)
TEXTS = st.lists(st.text(max_size=4), max_size=3)
STATS = st.fixed_dictionaries({"_MIN_VALUES": st.binary(max_size=200), "_MAX_VALUES": st.binary(max_size=9), "_NULL_COUNTS": COUNTS})
INT = st.integers(-(2**31), 2**31 - 1)
FILES = st.fixed_dictionaries(
    {
        "_FILE_NAME": st.text(max_size=20),
        **dict.fromkeys(["_FILE_SIZE", "_ROW_COUNT", "_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER", "_SCHEMA_ID"], LONG),
        **dict.fromkeys(["_MIN_KEY", "_MAX_KEY"], st.binary(max_size=8)),
        **dict.fromkeys(["_KEY_STATS", "_VALUE_STATS"], STATS),
        "_LEVEL": INT,
        "_EXTRA_FILES": TEXTS,
        **dict.fromkeys(["_CREATION_TIME", "_DELETE_ROW_COUNT", "_FIRST_ROW_ID"], st.none() | LONG),
        "_EMBEDDED_FILE_INDEX": st.none() | st.binary(max_size=5),
        "_FILE_SOURCE": st.none() | INT,
        **dict.fromkeys(["_VALUE_STATS_COLS", "_WRITE_COLS"], st.none() | TEXTS),
        "_EXTERNAL_PATH": st.none() | st.text(max_size=5),
        "_WRITE_COLS_SEQUENCES": st.none() | st.lists(LONG, max_size=3),
    }
)
ENTRIES = st.fixed_dictionaries(
    {**dict.fromkeys(["_VERSION", "_KIND", "_BUCKET", "_TOTAL_BUCKETS"], INT), "_PARTITION": st.binary(max_size=12), "_FILE": FILES}
)
LAYOUT = layout(MANIFEST_ENTRY)


def encoded(entries: list[dict[str, Any]]) -> list[bytes]:
    return encode_records(WriterSchema.of(MANIFEST_ENTRY), entries)


def told(found: RecordColumns | None) -> Any:
    if found is None:
        return None
    numbers = {path: (column.values.tolist(), column.present.tolist()) for path, column in found.numbers.items()}
    spans = {}
    for path, column in found.spans.items():
        kept = column.present
        spans[path] = column.start[kept].tolist(), column.end[kept].tolist(), kept.tolist(), (column.end == column.start)[~kept].all()
    return found.start.tolist(), found.end.tolist(), numbers, spans


def both_ways(payload: bytes, count: int, starts: Any) -> tuple[Any, Any]:
    with use_thresholds(records_one_by_one=0):
        in_columns = told(decode_columns(LAYOUT, payload, count, starts))
    with use_thresholds(records_one_by_one=100):
        return in_columns, told(decode_columns(LAYOUT, payload, count, starts))


@settings(max_examples=60)
@given(st.lists(ENTRIES, min_size=1, max_size=4))
def test_few_records_are_those_decoded_in_columns(entries: list[dict[str, Any]]) -> None:
    records = encoded(entries)
    starts = np.cumsum([0, *map(len, records[:-1])], dtype=np.int64)
    in_columns, in_turn = both_ways(b"".join(records), len(records), starts)
    assert in_turn == in_columns
    assert in_turn is not None


@settings(max_examples=100)
@given(ENTRIES, st.data())
def test_damaged_records_are_refused_in_both_ways(entry: dict[str, Any], data: st.DataObject) -> None:
    (record,) = encoded([entry])
    at = data.draw(st.integers(0, len(record) - 1))
    damaged = bytearray(record)
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    cut = bytes(damaged[: data.draw(st.integers(at + 1, len(record)))])
    in_columns, in_turn = both_ways(cut, 1, np.zeros(1, np.int64))
    assert in_turn == in_columns


def test_layouts_of_other_metadata_are_left_to_the_decoder_of_columns() -> None:
    assert decode_few(("union", "null", (("a", "long"),)), b"\x02\x02", 1) is None
    assert decode_few((("a", ("array", ("array", "long"))),), b"\x00", 1) is None


@settings(max_examples=60)
@given(st.lists(ENTRIES, max_size=3), st.data())
def test_few_records_are_those_of_the_library_or_both_refuse(entries: list[dict[str, Any]], data: st.DataObject) -> None:
    payload = bytearray(b"".join(encoded(entries)))
    assert decode_dicts(LAYOUT, bytes(payload), len(entries)) == entries
    if payload:
        for position in data.draw(st.lists(st.integers(0, len(payload) - 1), max_size=3)):
            payload[position] = data.draw(st.integers(0, 255))
    own, of_library = (records_of(bytes(payload), len(entries), one_by_one) for one_by_one in (100, -1))
    assert own == of_library


@given(st.binary(min_size=9, max_size=9), st.integers(0, 127))
def test_numbers_of_ten_bytes_fit_64_bits_or_are_refused(head: bytes, last: int) -> None:
    payload = bytes(byte | 0x80 for byte in head) + bytes([last])
    (of_library,) = records_of_longs(payload, -1)
    if last < 2:
        assert BytesCursor(payload).long() == of_library["a"]
    else:
        with pytest.raises(ValueError, match="64 bits"):
            BytesCursor(payload).long()
    assert records_of_longs(payload, 100) == [of_library]


def records_of_longs(payload: bytes, one_by_one: int) -> list[dict[str, Any]]:
    schema = WriterSchema.of({"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]})
    with use_thresholds(records_one_by_one=one_by_one):
        return Container("manifest-1", schema, 1, payload).records()


def records_of(payload: bytes, count: int, one_by_one: int) -> list[dict[str, Any]] | None:
    with use_thresholds(records_one_by_one=one_by_one):
        try:
            return Container("manifest-1", WriterSchema.of(MANIFEST_ENTRY), count, payload).records()
        except CorruptFile:
            return None
