"""Damaged and crafted payloads: CorruptIndex or the right answer, never another error, a hang or a huge allocation."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from fileindex.predicate.tree import Compare, In, IsNull, Op, StartsWith
from fileindex.rowset.result import REMAIN
from fileindex.sorted_index.btree_writer import BTREE_MAGIC, FOOTER, BTreeIndexWriter
from fileindex.sorted_index.build_options import SortedIndexKind, SortedIndexOptions
from fileindex.sorted_index.index_blocks import COMPRESSIONS, pack_block, unpack_block
from fileindex.sorted_index.index_meta import MAX_ROWS, SortedIndexMeta
from fileindex.sorted_index.kinds import open_sorted_index, sorted_index_writer
from fileindex.sorted_index.row_sets import StoredSets, deserialize_set, serialize_set
from fileindex.sorted_index.varints import encode_varint
from paimon_base.errors import CorruptIndex
from sparkexpr.values.column_type import ColumnType, Kind
from tests.fileindex.sorted_index.payloads import A, BuiltPayload, build, matching_rows

BTREE, BITMAP = SortedIndexKind.BTREE, SortedIndexKind.BITMAP
INT, TEXT = ColumnType(Kind.INT), ColumnType(Kind.VARCHAR)
NUMBERS = [row % 7 if row % 5 else None for row in range(60)] + [3] * 20
TEXTS = [None if number is None else "ab" * number for number in NUMBERS]
LEAVES = {
    INT: [
        Compare(A, Op.EQ, 3),
        Compare(A, Op.NE, 3),
        Compare(A, Op.GE, 2),
        In(A, (1, 5)),
        IsNull(A),
        IsNull(A, negated=True),
    ],
    TEXT: [Compare(A, Op.EQ, "abab"), Compare(A, Op.LT, "abab"), StartsWith(A, "abab"), IsNull(A)],
}
PAYLOADS = [
    build(kind, column_type, values, block_size=40, compression=compression)
    for kind in SortedIndexKind
    for column_type, values in ((INT, NUMBERS), (TEXT, TEXTS))
    for compression in COMPRESSIONS
]
NAMES = [f"{built.kind}-{built.column_type.kind}-{compression}" for built, compression in zip(PAYLOADS, COMPRESSIONS * 4, strict=True)]


def ask_all(built: BuiltPayload, data: bytes, *, exact: bool) -> int:
    """Ask everything; the number of refusals."""
    values = NUMBERS if built.column_type is INT else TEXTS
    refused = 0
    for leaf in LEAVES[built.column_type]:
        try:
            answer = built.open(data).evaluate(leaf)
        except CorruptIndex:
            refused += 1
            continue
        assert answer is not REMAIN
        assert not answer.rows or answer.rows.max() < len(values)
        assert not exact or set(answer.rows) == matching_rows(leaf, values)
    how = {"ascending": True, "nulls_first": False, "strict": True, "candidates": BitMap(range(9, 50))}
    questions = [lambda reader: list(reader.walk(descending=True)), lambda reader: reader.top_n(3, **how)]
    questions.append(lambda reader: reader.value_counts(BitMap(range(7))))
    for question in questions:
        try:
            question(built.open(data))
        except CorruptIndex:
            refused += 1
    return refused


def damage(data: bytes, position: int, seed: int) -> bytes:
    return data[:position] + bytes([data[position] ^ (1 + seed % 255)]) + data[position + 1 :]


def check_damage(built: BuiltPayload, step: int) -> None:
    """Damage one byte in ``step``. Row sets of bitmaps have no checksum: a wrong answer may come of damage there."""
    ends_of_sets = built.data.rindex(b"\x3a\x30") + 200 if built.kind is BITMAP else 0
    for position in range(0, len(built.data), step):
        ask_all(built, damage(built.data, position, 37 * position), exact=position >= ends_of_sets)


@pytest.mark.parametrize("built", PAYLOADS, ids=NAMES)
def test_a_damaged_byte_is_noticed(built):
    check_damage(built, 11)


@pytest.mark.slow
@pytest.mark.parametrize("built", PAYLOADS, ids=NAMES)
def test_any_damaged_byte_is_noticed(built):
    check_damage(built, 1)


@pytest.mark.parametrize("built", PAYLOADS, ids=NAMES)
def test_a_truncated_payload_is_refused(built):
    for length in range(0, len(built.data), 7):
        assert ask_all(built, built.data[:length], exact=True) > 0


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PAYLOADS), st.data())
def test_damage_anywhere_raises_nothing_else(built, data):
    content = bytearray(built.data)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        absurd = data.draw(st.sampled_from([b"\xff" * 4, b"\xff\xff\xff\x7f", bytes(4), b"\x7f" * 8]) | st.binary(min_size=1, max_size=8))
        content[position : position + len(absurd)] = absurd
    ask_all(built, bytes(content), exact=False)


def resealed(body: bytes) -> bytes:
    """A block with a right checksum."""
    return pack_block(body, "none", 1)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=80), st.binary(max_size=60), st.sampled_from([INT, TEXT, ColumnType(Kind.TIMESTAMP, precision=9)]))
def test_blocks_of_noise_with_right_checksums_are_refused(block, index, column_type):
    data_block = resealed(block)
    index_block = resealed(index)
    footer = FOOTER.pack(0, 0, 0, len(data_block), len(index), 0, 0, 1, BTREE_MAGIC)
    content = data_block + index_block + footer
    bitmap_footer = struct.pack(">qiqiqiiii", 0, 8, 0, 8, len(data_block), len(index), 3, 1, 0x42474958)
    for kind, payload in ((BTREE, content), (BITMAP, data_block + index_block + bitmap_footer)):
        meta = SortedIndexMeta(b"aaaaaaaaa", b"zzzzzzzzz", has_nulls=False) if column_type is TEXT else SortedIndexMeta(None, None, False)
        reader = open_sorted_index(
            kind, lambda o, n, p=payload: p[o : o + n], len(payload), column_type=column_type, row_count=100, meta=meta
        )
        try:
            rows = [int(block.ordinals.max()) for block in reader.walk()]
        except CorruptIndex:
            continue
        assert max(rows, default=0) < 100


def crafted(groups, *, row_count=10, nulls=(), meta=None, kind=BTREE, block_size=20):
    """A payload whose values need not be in order: the writer's checks are passed over."""
    parts = []
    writer = sorted_index_writer(SortedIndexOptions(kind, block_size), INT, parts.append)
    writer.row_count = row_count
    writer._nulls = BitMap(nulls)
    for value, ordinals in groups:
        keys = pa.array([struct.pack("<i", value)], pa.large_binary())
        writer._write_groups(keys, np.array([0, len(ordinals)]), np.array(ordinals, np.uint32))
    writer._finish()
    values = [value for value, _ in groups]
    ends = (struct.pack("<i", values[0]), struct.pack("<i", values[-1]))
    return BuiltPayload(kind, INT, b"".join(parts), meta or SortedIndexMeta(*ends, has_nulls=bool(nulls)), row_count)


OTHERS = [(9, [3]), (11, [4]), (13, [5])]


def int_meta(first: int, last: int, *, has_nulls: bool = False) -> SortedIndexMeta:
    return SortedIndexMeta(struct.pack("<i", first), struct.pack("<i", last), has_nulls)


REFUSED = {
    "values out of order": ([(7, [0]), (5, [1])], {}),
    "values in the order of their bytes": ([(0, [0]), (256, [1]), (5, [2])], {"block_size": 1000}),
    "a value twice": ([(5, [0]), (5, [1])], {"block_size": 1000}),
    "an ordinal beyond the rows": ([(5, [0]), (7, [10])], {}),
    "an ordinal of two values": ([(5, [0]), (7, [0])], {}),
    "a value with a null row": ([(5, [0]), (7, [1])], {"nulls": [1]}),
    "another first key": ([(5, [0]), (7, [1])], {"meta": int_meta(4, 13)}),
    "another last key": ([(5, [0]), (7, [1])], {"meta": int_meta(5, 14), "block_size": 1000}),
    "no nulls": ([(5, [0]), (7, [1])], {"meta": int_meta(5, 13, has_nulls=True)}),
}
QUESTIONS = [Compare(A, Op.EQ, 5), In(A, (5, 7)), Compare(A, Op.NE, 7), IsNull(A)]


@pytest.mark.parametrize("kind", SortedIndexKind)
@pytest.mark.parametrize("name", REFUSED)
def test_crafted_payloads_are_refused(kind, name):
    groups, how = REFUSED[name]
    built = crafted(groups + OTHERS, kind=kind, **how)
    assert any(is_refused(built, leaf) for leaf in QUESTIONS)


def is_refused(built, leaf):
    try:
        built.open().evaluate(leaf)
    except CorruptIndex:
        return True
    return False


@pytest.mark.parametrize("kind", SortedIndexKind)
def test_ordinals_of_a_value_may_come_in_any_order(kind):
    if kind is BTREE:
        assert set(crafted([(5, [3, 1, 2]), (7, [0])]).open().evaluate(Compare(A, Op.EQ, 5)).rows) == {1, 2, 3}


def test_a_payload_of_more_rows_than_ordinals_is_refused():
    with pytest.raises(CorruptIndex, match="rows"):
        open_sorted_index(BTREE, lambda o, n: b"", 9, column_type=INT, row_count=MAX_ROWS + 1, meta=SortedIndexMeta(None, None, True))


def test_a_read_that_fails_is_no_damage():
    def read(offset, length):
        raise OSError("gone")

    reader = open_sorted_index(BTREE, read, 1000, column_type=INT, row_count=1, meta=SortedIndexMeta(None, None, has_nulls=True))
    with pytest.raises(OSError, match="gone"):
        reader.evaluate(IsNull(A))


def sealed(code: int, stored: bytes) -> bytes:
    return stored + bytes([code]) + struct.pack("<I", zlib.crc32(bytes([code]), zlib.crc32(stored)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"abcd",
        sealed(3, b"abc"),
        sealed(9, b"abc"),
        sealed(1, b"\x05abc"),
        sealed(1, b"\xff\xff\xff\xff\x7fabc"),
        sealed(1, b"\xff" * 9),
        sealed(1, b""),
        sealed(2, b"\x05" + struct.pack("<ii", 3, 5) + b"abc"),
        sealed(2, b"\x05" + struct.pack("<ii", 9, 5) + b"abc"),
        sealed(2, b"\x05abc"),
    ],
)
def test_blocks_that_cannot_be_unpacked_are_refused(data):
    with pytest.raises((CorruptIndex, struct.error)):
        unpack_block(data)


def test_a_block_is_at_most_so_much_larger_than_its_stored_bytes():
    body = bytes(8 << 20)
    assert unpack_block(pack_block(body, "zstd", 1)) == body
    assert pack_block(body, "zstd", 1)[-5] == 0
    compressed = pa.Codec("zstd").compress(body, asbytes=True)
    with pytest.raises(CorruptIndex, match="states 8388608 bytes"):
        unpack_block(sealed(1, encode_varint(len(body)) + compressed))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sets(st.integers(0, 300) | st.integers(0, 200_000), max_size=40), max_size=8), st.data())
def test_sets_are_decoded_together_as_each_alone(groups, data):
    dense = data.draw(st.booleans())
    sets = [BitMap(group) for group in groups] + ([BitMap(range(100, 9000)), BitMap(range(0, 90_000, 7))] if dense else [])
    parts = [serialize_set(rows) for rows in sets]
    content = np.frombuffer(b"".join(parts), np.uint8)
    lengths = np.array(list(map(len, parts)), np.int64)
    stored = StoredSets(content, np.cumsum(lengths) - lengths, lengths, 200_001)
    assert stored.sizes.tolist() == list(map(len, sets))
    assert stored.ordinals().tolist() == [row for rows in sets for row in rows]
    assert stored.rows() == BitMap.union(BitMap(), *sets)
    if len(content):
        damaged = content.copy()
        damaged[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        try:
            assert int(StoredSets(damaged, np.cumsum(lengths) - lengths, lengths, 200_001).ordinals().max(initial=0)) <= 200_000
        except (CorruptIndex, ValueError):
            return


@pytest.mark.parametrize(
    "text", ["", "02" + "00" * 11, "01" + "00" * 10 + "01", "0000000000000001", "01" + "00" * 11 + "3a30000000000000ff"]
)
def test_other_sets_are_refused(text):
    with pytest.raises(CorruptIndex):
        deserialize_set(bytes.fromhex(text), 10)


def writer_of(values, ordinals, counts=None, kind=BTREE):
    writer = sorted_index_writer(SortedIndexOptions(kind, 100), INT, lambda data: None)
    writer.add(pa.array(values, pa.int32()), np.array(ordinals, np.uint32), None if counts is None else np.array(counts))
    return writer


@pytest.mark.parametrize(
    ("values", "ordinals", "counts"),
    [
        ([2, 1], [0, 1], None),
        ([1, 1], [1, 0], None),
        ([1], [0, 0], [2]),
        ([1, 2], [0], [1, 0]),
        ([1], [0, 1], None),
        ([1, 2], [0, 1], [3, 1]),
    ],
)
def test_a_writer_refuses_rows_out_of_order(values, ordinals, counts):
    with pytest.raises((ValueError, IndexError)):
        writer_of(values, ordinals, counts)


@pytest.mark.parametrize(("value", "ordinal"), [(1, 9), (2, 5), (2, 3)])
def test_a_writer_refuses_batches_out_of_order(value, ordinal):
    writer = writer_of([1, 2], [4, 5])
    with pytest.raises(ValueError, match="not in order"):
        writer.add(pa.array([value], pa.int32()), np.array([ordinal], np.uint32))


@pytest.mark.parametrize("ordinals", [[0, 2], [1, 2], [0, 0]])
def test_a_writer_refuses_lost_and_repeated_rows(ordinals):
    writer = writer_of([1, 2], ordinals)
    with pytest.raises(ValueError, match="not those of its rows"):
        writer.finish()


def test_a_writer_refuses_more_rows_than_ordinals():
    writer = writer_of([], [])
    writer.row_count = MAX_ROWS
    with pytest.raises(OverflowError):
        writer.add_nulls(np.array([1], np.uint32))
    assert isinstance(writer, BTreeIndexWriter)
