"""Manifests and their lists: columns, foreign layouts, damage."""

import io
import itertools
import json
import uuid
import weakref
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.avro import container as avro
from manifest.avro.codecs import codec_name
from manifest.avro.container import WriterSchema, blocks_of, encode_records, read_container, write_avro
from manifest.avro.schemas import MANIFEST_ENTRY, MANIFEST_LIST
from manifest.entry import manifest_file
from manifest.entry.cache import EntryCache
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileKind, ManifestEntry, wall_clock_millis
from manifest.entry.index_manifest import DELETION_VECTORS, HASH, DeletionVectorRange, IndexManifestEntry
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.errors import UnsupportedTable
from manifest.io.file_cache import FileCache
from manifest.row.binary_row import encode_row
from manifest.stats.column_stats import SimpleStats
from paimon_base.errors import CorruptFile, UnsupportedOption
from paimon_base.thresholds import Thresholds
from tests.manifest.commit_kit import make_table, outcome

BYTES = st.binary(max_size=40)
LONGS = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, 2**62)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\\\0"), min_size=1, max_size=12).filter(lambda n: n not in {".", ".."})
STATS = st.builds(SimpleStats, BYTES, BYTES, st.lists(st.none() | COUNTS, max_size=4).map(tuple))
FILES = st.builds(
    DataFileMeta,
    file_name=NAMES,
    file_size=COUNTS,
    row_count=COUNTS,
    min_key=BYTES,
    max_key=BYTES,
    key_stats=STATS,
    value_stats=STATS,
    min_sequence_number=LONGS,
    max_sequence_number=LONGS,
    schema_id=COUNTS,
    level=st.integers(0, 100),
    extra_files=st.lists(NAMES, max_size=3).map(tuple),
    creation_time=COUNTS,
    delete_row_count=st.none() | COUNTS,
    embedded_index=st.none() | BYTES,
    file_source=st.sampled_from([None, 0, 1]),
    value_stats_cols=st.none() | st.lists(NAMES, max_size=3).map(tuple),
    external_path=st.none() | NAMES,
    first_row_id=st.none() | COUNTS,
    write_cols=st.none() | st.lists(NAMES, max_size=2).map(tuple),
    write_cols_sequences=st.none() | st.lists(LONGS, max_size=2).map(tuple),
)
ENTRIES = st.builds(
    ManifestEntry,
    kind=st.sampled_from(FileKind),
    partition=st.binary(min_size=4, max_size=120).map(lambda b: b"\0\0\0\1" + b),
    bucket=st.integers(-2, 2**31 - 1),
    total_buckets=st.integers(-2, 2**31 - 1),
    file=FILES,
)


LISTED = ManifestFileMeta(
    file_name="m",
    file_size=9,
    num_added_files=1,
    num_deleted_files=2,
    partition_stats=SimpleStats(),
    schema_id=3,
    min_bucket=0,
    max_bucket=7,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_table(tmp_path_factory.mktemp("manifests") / "t")


def encoded(entries, schema=MANIFEST_ENTRY, codec="zstandard"):
    """The same bytes at every call."""
    with patch("os.urandom", side_effect=lambda size: b"sixteen sync-ing"[:size]):
        return write_avro(schema, blocks_of(encode_records(WriterSchema.of(schema), (e.to_avro() for e in entries))), codec=codec, level=1)


def entry(number, **fields):
    file = DataFileMeta(file_name=f"data-{number}.parquet", file_size=9, row_count=number, creation_time=0, **fields)
    return ManifestEntry(kind=FileKind.ADD, partition=bytes(12), bucket=number % 3, total_buckets=3, file=file)


@settings(max_examples=40, deadline=None)
@given(st.lists(ENTRIES, max_size=12), st.sampled_from(["zstandard", "deflate", "snappy", "bzip2", "xz", "null"]))
def test_columns_are_the_entries(entries, codec):
    columns = EntryColumns.from_container(read_container("m", encoded(entries, codec=codec)))
    assert columns.entries() == entries
    assert columns.kind.tolist() == [e.kind for e in entries]
    assert columns.partition == [e.partition for e in entries]
    assert columns.bucket.tolist() == [e.bucket for e in entries]
    assert columns.level.tolist() == [e.file.level for e in entries]
    assert columns.file_name == [e.file.file_name for e in entries]
    assert columns.max_sequence_number.tolist() == [e.file.max_sequence_number for e in entries]
    assert columns.delete_row_count.tolist() == [-1 if e.file.delete_row_count is None else e.file.delete_row_count for e in entries]
    assert columns.physical_names() == {name for e in entries for name in e.file.file_names}
    for a, b in itertools.combinations(range(len(entries)), 2):
        same = entries[a].identity == entries[b].identity
        assert not same or columns.identities()[a] == columns.identities()[b]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(ENTRIES, max_size=5), max_size=4), st.data())
def test_parts_join_and_rows_are_selected(parts, data):
    joined = EntryColumns.concat([EntryColumns.of(part) for part in parts])
    everything = [e for part in parts for e in part]
    assert joined.entries() == everything
    rows = np.array(data.draw(st.lists(st.integers(0, len(everything) - 1), max_size=6)) if everything else [], np.int64)
    assert joined.select(rows).entries() == [everything[row] for row in rows]
    assert joined.select(rows).deleted().entries() == [everything[row].deleted() for row in rows]


@pytest.mark.slow
def test_ten_thousand_entries_keep_their_order():
    entries = [entry(number, min_key=b"\4\0\x18" + bytes(14), max_key=b"\4\2\x18" + bytes(20)) for number in range(10_000)]
    container = read_container("m", encoded(entries))
    columns = EntryColumns.from_container(container)
    assert columns.row_count.tolist() == list(range(10_000))
    assert columns.select(columns.bucket == 2).entries() == entries[2::3]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([None, 0, 1, 5, 63, 64, 127, 128, -1, 2**62]), max_size=3), min_size=1, max_size=5),
    st.sampled_from([1, 2, 40, 300]),
)
def test_long_arrays_of_few_entries_are_passed_as_they_are(counts, times):
    """Null counts of wide tables: numbers of one byte and others, nulls, none at all."""
    stats = [SimpleStats(b"a" * 12, b"b" * 12, tuple(some * times)) for some in counts]
    made = [entry(number, value_stats=each, extra_files=("x.index",)) for number, each in enumerate(stats)]
    columns = EntryColumns.from_container(read_container("m", encoded(made)))
    assert columns.entries() == made
    assert [file.value_stats.null_counts for file in columns.files()] == [each.null_counts for each in stats]


def foreign(*, without=(), extra=(), rename="Entry"):
    """The schema of another writer: other record names, other nested fields, in another order."""
    schema = json.loads(json.dumps(MANIFEST_ENTRY).replace("org.apache.paimon.avro.generated.record", rename))
    fields = [field for field in schema["fields"][-1]["type"]["fields"] if field["name"] not in without]
    schema["fields"][-1]["type"]["fields"] = [*reversed(fields), *extra]
    return schema


def test_nested_fields_in_any_order_unknown_or_missing_are_read(store):
    schema = foreign(
        without={"_WRITE_COLS", "_EXTERNAL_PATH", "_WRITE_COLS_SEQUENCES"},
        extra=[{"name": "_NEW", "type": ["null", {"type": "map", "values": "double"}], "default": None}],
    )
    entries = [entry(number, extra_files=("x.index",)) for number in range(5)]
    buffer = io.BytesIO()
    records = [e.to_avro() for e in entries]
    records[2]["_FILE"]["_NEW"] = {"a": 1.5}
    fastavro.writer(buffer, fastavro.parse_schema(schema), records, codec="null")
    columns = EntryColumns.from_container(read_container("m", buffer.getvalue()))
    assert columns.entries() == entries
    assert EntryColumns.concat([columns, EntryColumns.of(entries)]).entries() == entries * 2


@pytest.mark.parametrize("change", [{"_VERSION": 3}, {"_KIND": 2}, {"_KIND": -1}])
def test_entries_of_another_version_or_kind_are_refused(change):
    record = entry(1).to_avro() | change
    data = write_avro(MANIFEST_ENTRY, blocks_of(encode_records(WriterSchema.of(MANIFEST_ENTRY), [record])), codec="null", level=1)
    with pytest.raises(CorruptFile, match=r"^m: "):
        EntryColumns.from_container(read_container("m", data))


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".."])
def test_an_entry_cannot_point_out_of_its_directory(name):
    record = entry(1).to_avro()
    record["_FILE"]["_FILE_NAME"] = name
    other = encode_records(WriterSchema.of(MANIFEST_ENTRY), [entry(0).to_avro(), record])
    columns = EntryColumns.from_container(read_container("bad", write_avro(MANIFEST_ENTRY, blocks_of(other), codec="null", level=1)))
    with pytest.raises(CorruptFile, match=r"^bad: "):
        EntryColumns.concat([EntryColumns.of([entry(3)]), columns]).entries()


def test_a_file_name_that_is_no_text_is_refused_by_the_name_of_the_manifest():
    records = [record.replace(b"data-1", b"data-\xff") for record in encode_records(WriterSchema.of(MANIFEST_ENTRY), [entry(1).to_avro()])]
    columns = EntryColumns.from_container(read_container("bad", write_avro(MANIFEST_ENTRY, blocks_of(records), codec="null", level=1)))
    with pytest.raises(CorruptFile, match=r"^bad: a file name is not UTF-8"):
        _ = columns.file_name


def test_a_file_without_a_key_has_the_row_of_no_columns_as_its_bounds():
    file = entry(1).file
    assert (file.min_key, file.max_key) == (encode_row((), ()), encode_row((), ()))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_manifest_reads_right_or_is_refused_by_name(data):
    entries = [entry(number, embedded_index=bytes(30), extra_files=("a.index",)) for number in range(40)]
    original = encoded(entries)
    raw = bytearray(original)
    match data.draw(st.sampled_from(["flip", "cut", "insert", "zero"])):
        case "flip":
            for position in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=3)):
                raw[position] ^= 1 << data.draw(st.integers(0, 7))
        case "cut":
            del raw[data.draw(st.integers(0, len(raw) - 1)) :]
        case "insert":
            position = data.draw(st.integers(0, len(raw)))
            raw[position:position] = data.draw(st.binary(min_size=1, max_size=20))
        case "zero":
            start = data.draw(st.integers(0, len(raw) - 1))
            raw[start : start + 50] = bytes(len(raw[start : start + 50]))
    found, error = outcome(lambda: EntryColumns.from_container(read_container("m", bytes(raw))).entries())
    if error is not None:
        assert str(error).startswith("m: ")
    else:
        assert found in (entries, []) if len(raw) < len(original) else found == entries


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_records_without_a_checksum_end_in_entries_or_a_typed_error(data):
    raw = bytearray(encoded([entry(number) for number in range(20)], codec="null"))
    for position in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=3)):
        raw[position] = data.draw(st.integers(0, 255))
    found, error = outcome(lambda: EntryColumns.from_container(read_container("m", bytes(raw))).entries())
    assert len(found) <= 20 if error is None else str(error).startswith("m: ")


def container_of(schema, payload, *, count=1, codec="null"):
    return write_avro(schema, [(count, payload)], codec=codec, level=1)


def test_lengths_are_bounded_before_anything_is_allocated():
    huge = bytes([0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F])
    for payload in (huge * 3, b"\4\0" + huge, b"\4\0\x18" + bytes(12) + b"\0\0" + huge):
        with pytest.raises(CorruptFile):
            EntryColumns.from_container(read_container("m", container_of(MANIFEST_ENTRY, payload)))


@pytest.mark.parametrize("data", [b"", b"x", b"Obk" + bytes(40)])
def test_bytes_of_no_format_are_told_as_such(data):
    with pytest.raises(CorruptFile, match=r"^m: .*magic bytes"):
        read_container("m", data)


def test_a_claim_of_many_records_in_few_bytes_is_refused():
    with pytest.raises(CorruptFile, match="claims"):
        read_container("m", container_of(MANIFEST_ENTRY, b"\0" * 10, count=2**40))


@pytest.mark.parametrize(
    "field",
    [
        {"type": "array", "items": "null"},
        {"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}},
        "record",
        {"type": "array"},
        {"type": "map", "values": {"type": "array", "items": "null"}},
    ],
)
def test_a_schema_of_values_without_bytes_is_refused(field):
    schema = {"type": "record", "name": "record", "fields": [{"name": "a", "type": field}]}
    with pytest.raises(CorruptFile):
        read_container("m", container_of(schema, b"\0" * 10))


@pytest.mark.parametrize("codec", ["zstandard", "deflate", "snappy", "bzip2", "xz", "null"])
def test_decompression_is_bounded(monkeypatch, codec):
    data = write_avro(MANIFEST_ENTRY, [(1, bytes(3_000_000))], codec=codec, level=1)
    monkeypatch.setattr(avro, "MAX_PAYLOAD", 2_000_000)
    with pytest.raises(CorruptFile):
        read_container("m", data)


def test_an_unknown_codec_is_named():
    buffer = io.BytesIO()
    fastavro.writer(buffer, WriterSchema.of(MANIFEST_ENTRY).prepared, [], codec="null")
    data = buffer.getvalue().replace(b"\x08null", b"\x08lzma", 1)
    with pytest.raises(UnsupportedTable, match="lzma"):
        read_container("m", data)
    assert codec_name("ZSTD") == "zstandard"
    with pytest.raises(UnsupportedOption, match=r"manifest\.compression"):
        codec_name("lz4")


def test_a_manifest_is_checked_against_its_list(store):
    (meta,) = store.manifests.write([entry(1), entry(2)])
    fresh = replace(store.manifests, cache=type(store.cache)())
    assert len(fresh.read_meta(meta)) == 2
    for wrong in ({"num_added_files": 1}, {"num_deleted_files": 1}, {"file_size": meta.file_size + 1}):
        fresh = replace(store.manifests, cache=type(store.cache)())
        with pytest.raises(CorruptFile, match=meta.file_name):
            fresh.read_meta(meta.model_copy(update=wrong))


def test_manifests_roll_at_their_target_size(store):
    # random names do not compress, so 5000 entries outgrow 64 KB
    entries = [entry(number, embedded_index=uuid.uuid4().bytes) for number in range(5000)]
    metas = replace(store.manifests, target_size=1 << 16).write(entries)
    assert len(metas) > 1
    assert all(meta.file_size < 3 << 16 for meta in metas)
    assert [e for meta in metas for e in store.manifests.read_meta(meta).entries()] == entries


@pytest.mark.sizes
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 120), st.integers(0, 400)), max_size=12))
def test_blocks_are_whole_buckets_or_parts_of_one(groups):
    """A bucket of half a block or more shares none; blocks are neither tiny, but where a bucket ends, nor much too large."""
    made = [
        entry(0, embedded_index=bytes(width)).model_copy(update={"partition": bytes([group]) + bytes(11), "bucket": bucket})
        for group, (bucket, count, width) in enumerate(groups)
        for _ in range(count)
    ]
    columns = EntryColumns.of(made)
    sizes = [len(record) for record in columns.records()]
    ends = list(manifest_file._block_ends(columns))
    assert ends == sorted(set(ends))
    assert ends[-1:] == ([len(made)] if made else [])
    full = Thresholds().manifest_block_bytes
    of_bucket = Counter()
    for one, size in zip(made, sizes, strict=True):
        of_bucket[one.partition] += size
    spans = list(itertools.pairwise([0, *ends]))
    for first, last in spans:
        inside = {one.partition for one in made[first:last]}
        assert len(inside) == 1 or all(of_bucket[one] < full / 2 for one in inside)
        assert sum(sizes[first:last]) < 2 * full
    small = [one for one in spans if sum(sizes[slice(*one)]) < full / 2]
    large = sum(size >= full / 2 for size in of_bucket.values())
    assert len(small) <= large + 1


def test_row_ids_have_a_range_only_if_every_file_has_one(store):
    tracked = [entry(5, first_row_id=100), entry(7, first_row_id=10)]
    (meta,) = store.manifests.write(tracked)
    assert (meta.min_row_id, meta.max_row_id) == (10, 104)
    (meta,) = store.manifests.write([*tracked, entry(1)])
    assert (meta.min_row_id, meta.max_row_id) == (None, None)


def test_an_empty_list_is_a_file_and_no_entries_are_none(store):
    name, size = store.manifest_lists.write([])
    assert store.manifest_lists.read(name, size) == []
    assert store.manifests.write([]) == []
    with pytest.raises(CorruptFile, match=name):
        store.manifest_lists.read(name, size - 1)


@settings(max_examples=150, deadline=None)
@given(position=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_damaged_list_reads_right_or_is_refused_by_name(store, position, bit):
    metas = [LISTED.model_copy(update={"file_name": f"manifest-{number}"}) for number in range(3)]
    raw = bytearray(encoded(metas, MANIFEST_LIST))
    raw[position % len(raw)] ^= 1 << bit
    store.file_io.write(store.paths.manifest("manifest-list-bad"), bytes(raw), overwrite=True, durable=False)
    found, error = outcome(lambda: store.manifest_lists.read("manifest-list-bad", len(raw)))
    assert found == metas if error is None else "manifest-list-bad" in str(error)


def test_a_list_of_another_version_is_refused(store):
    record = store.manifests.write([entry(1)])[0].to_avro() | {"_VERSION": 1}
    data = write_avro(MANIFEST_LIST, blocks_of(encode_records(WriterSchema.of(MANIFEST_LIST), [record])), codec="null", level=1)
    store.file_io.write(store.paths.manifest("manifest-list-old"), data)
    with pytest.raises(CorruptFile, match="manifest-list-old"):
        store.manifest_lists.read("manifest-list-old")


def test_an_index_manifest_survives_a_round_trip(store):
    entries = [
        IndexManifestEntry(partition=bytes(12), bucket=0, index_type=HASH, file_name="index-1", file_size=8, row_count=2),
        IndexManifestEntry(
            partition=bytes(12),
            bucket=1,
            index_type=DELETION_VECTORS,
            file_name="index-2",
            file_size=35,
            row_count=1,
            vectors=(DeletionVectorRange(data_file="data-1", offset=1, length=26, cardinality=3),),
        ),
    ]
    name = store.index_manifests.write(entries)
    assert store.index_manifests.read(name) == entries
    assert store.index_manifests.read(None) == []
    assert store.index_manifests.write([]) is None


def test_creation_time_is_the_local_wall_clock(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert round((wall_clock_millis() / 1000 - time.time()) / 3600) == 9
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_manifest_in_the_place_of_another_is_no_manifest(store):
    (first,) = store.manifests.write([entry(1)])
    (second,) = store.manifests.write([entry(2)])
    here, there = (Path(store.paths.manifest(meta.file_name)) for meta in (first, second))
    assert first.file_size == second.file_size
    here.write_bytes(there.read_bytes())
    with pytest.raises(CorruptFile, match=f"{here.name}.* checksum .*is wrong"):
        read_container(str(here), here.read_bytes())
    read_container(str(there), there.read_bytes())


def test_parts_of_an_iterator_are_let_go_once_they_are_copied():
    alive: list[weakref.ref] = []

    def parts():
        for first in range(0, 40, 10):
            part = EntryColumns.of([entry(number) for number in range(first, first + 10)])
            alive.append(weakref.ref(part))
            yield part
            del part
            assert not any(one() for one in alive[1:-1])

    joined = EntryColumns.concat(parts())
    assert joined.entries() == [entry(number) for number in range(40)]
    assert [one() for one in alive] == [None] * 4


@pytest.mark.parametrize("capacity", [0, 100, 10**6])
def test_parts_are_joined_in_order_whether_or_not_they_can_be_held(capacity):
    cache = EntryCache(FileCache(capacity))
    for _ in range(2):
        parts = [EntryColumns.of([entry(number) for number in range(first, first + 5)]) for first in (0, 5, 10)]
        assert cache.join(("a", "b", "c"), parts).entries() == [entry(number) for number in range(15)]
