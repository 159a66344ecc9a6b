"""Manifests are skipped by the ranges of their columns, and never one that holds a file which the plan needs."""

from __future__ import annotations

import math
import uuid
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import And, ColumnRef, Compare, In, IsNull, Op, Or, StartsWith
from lsm.scan.file_pruner import ManifestPruner
from lsm.scan.planner import ScanPlanner
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileKind, ManifestEntry
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.file_io import LocalFileIO
from manifest.row.binary_row import encode_row
from manifest.schema.manager import SchemaManager
from manifest.schema.validation import build_schema
from manifest.stats.column_stats import SimpleStats
from manifest.store import FileStore
from manifest.types.data_type import DataField, DataType
from paimon_base.thresholds import Thresholds, use_thresholds
from sparkexpr.values.column_type import Kind
from tests.examples import some
from tests.lsm.small_tables import compact, create, scan, write

TYPES = {
    "INT": DataType(Kind.INT),
    "BIGINT": DataType(Kind.BIGINT),
    "DOUBLE": DataType(Kind.DOUBLE),
    "STRING": DataType(Kind.VARCHAR, length=2**31 - 1),
}
EVOLUTION = (
    [(0, "a", "INT"), (1, "b", "DOUBLE"), (2, "c", "STRING")],
    [(0, "a2", "INT"), (1, "b", "DOUBLE"), (2, "c", "STRING"), (3, "a", "INT")],
    [(0, "a2", "BIGINT"), (1, "b", "DOUBLE"), (3, "a", "INT")],
    [(0, "a2", "STRING"), (1, "b", "DOUBLE"), (3, "a", "DOUBLE"), (4, "c", "STRING")],
)
VALUES = {
    "INT": st.integers(-3, 12),
    "BIGINT": st.integers(-3, 12),
    "DOUBLE": st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 2.0, 3.5, 7.0, math.inf, math.nan]),
    "STRING": st.sampled_from(["", "a", "ab", "abc", "b", "x" * 40, "x" * 40 + "y", "\ud7ff" * 40, "\U0010ffff" * 40, "é"]),
}


def ordered(values):
    return sorted(values, key=lambda v: (isinstance(v, float) and math.isnan(v), 0 if v != v else v))  # noqa: PLR0124 -- NaN


@st.composite
def a_file(draw, schemas):
    """A file of some schema with statistics of some columns, among them columns of nulls and columns without minima."""
    schema_id = draw(st.integers(0, len(schemas) - 1))
    rows = draw(st.integers(1, 4))
    low, high, nulls, names, types = [], [], [], [], []
    dense = draw(st.booleans())
    for _, name, kind in schemas[schema_id]:
        form = draw(st.sampled_from(["bounds", "bounds", "bounds", "null", "counts", "unknown"]))
        if form == "unknown" and dense:
            continue
        first, last = ordered(draw(st.lists(VALUES[kind], min_size=2, max_size=2))) if form == "bounds" else (None, None)
        count = {"bounds": st.integers(0, rows - 1), "null": st.just(rows), "counts": st.integers(0, rows), "unknown": st.none()}[form]
        low.append(first)
        high.append(last)
        nulls.append(draw(count))
        names.append(name)
        types.append(TYPES[kind])
    stats = SimpleStats(encode_row(low, types), encode_row(high, types), tuple(nulls))
    if draw(st.integers(0, 9)) == 0:
        stats, names = SimpleStats.EMPTY, []
    return DataFileMeta(
        file_name=f"data-{uuid.uuid4()}.parquet",
        file_size=10,
        row_count=rows,
        schema_id=schema_id,
        value_stats=stats,
        value_stats_cols=tuple(names) if dense or not names else None,
        creation_time=0,
        delete_row_count=0,
    )


@st.composite
def a_filter(draw, columns, depth=2):
    if depth and draw(st.integers(0, 2)) == 0:
        children = draw(st.lists(a_filter(columns, depth - 1), min_size=2, max_size=3))
        return draw(st.sampled_from([And, Or]))(tuple(children))
    name, kind = draw(st.sampled_from(columns))
    column, value = ColumnRef(name), VALUES[kind]
    form = draw(st.sampled_from(["compare", "compare", "in", "null", "starts"]))
    if form == "null":
        return IsNull(column, draw(st.booleans()))
    if form == "in":
        return In(column, tuple(draw(st.lists(value, min_size=1, max_size=3))), draw(st.booleans()))
    if form == "starts" and kind == "STRING":
        return StartsWith(column, draw(st.sampled_from(["", "a", "x" * 33, "xy"])), draw(st.booleans()))
    return Compare(column, draw(st.sampled_from(list(Op))), draw(value))


@st.composite
def histories(draw):
    """Schemas, commits (new files, deleted ones, lists of files described anew), how many manifests to merge, and filters."""
    schemas = EVOLUTION[: draw(st.integers(1, len(EVOLUTION)))]
    commits, alive = [], []
    for number in range(draw(st.integers(1, 5))):
        upto = max(1, math.ceil(len(schemas) * (number + 1) / 5)) if draw(st.booleans()) else len(schemas)
        new = draw(st.lists(a_file(schemas[:upto]), max_size=3))
        gone = [file for file in alive if draw(st.integers(0, 3)) == 0]
        alive = [file for file in alive if file not in gone] + new
        anew = [[file.file_name for file in alive if draw(st.booleans())] for _ in range(draw(st.integers(0, 2)))]
        commits.append((new, gone, anew))
    read = [(name, kind) for _, name, kind in schemas[-1]]
    return schemas, commits, draw(st.sampled_from([1, 2, 30])), draw(st.lists(a_filter(read), min_size=4, max_size=8))


def evolving_table(path, schemas, merge_min_count):
    """A table whose schema files are ``schemas``, (id, name, type) per column."""
    options = {"bucket": "-1", "write-only": "true", "manifest.merge-min-count": str(merge_min_count)}
    base = build_schema("a INT, b DOUBLE, c STRING", options=options)
    manager = SchemaManager(LocalFileIO(), str(path))
    for schema_id, columns in enumerate(schemas):
        fields = tuple(DataField(field_id, name, TYPES[kind]) for field_id, name, kind in columns)
        highest = max(field_id for columns in schemas[: schema_id + 1] for field_id, _, _ in columns)
        schema = base.model_copy(update={"id": schema_id, "fields": fields, "highest_field_id": highest})
        manager._put(schema)
    return FileStore.open(path)


def commit(store, total_buckets=-1, **files):
    """Commit files that are there, but empty."""
    message = CommitMessage(partition=bytes(12), bucket=0, total_buckets=total_buckets, **files)
    for file in (*message.new_files, *message.compact_after):
        for path in map(Path, store.physical_files(message.partition, message.bucket, file)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    FileStoreCommit(store, str(uuid.uuid4())).commit([message])


def planned(store, predicate):
    plan = ScanPlanner(store).plan(predicate, snapshot=store.snapshots.latest())
    return {file.file_name for split in plan.splits for file in split.files}


@settings(max_examples=some(12), deadline=None)
@given(history=histories(), few=st.sampled_from([0, 2, 16]))
def test_a_plan_with_ranges_is_the_full_plan(tmp_path_factory, history, few):
    """Whether a manifest's files are looked at one by one (``few``) or in columns."""
    schemas, commits, merge_min_count, filters = history
    store = evolving_table(tmp_path_factory.mktemp("ranges") / "t", schemas, merge_min_count)
    with use_thresholds(ranges_one_by_one=few):
        described = {}
        for new, gone, anew in commits:
            commit(store, new_files=tuple(new))
            commit(store, compact_before=tuple(described.get(file.file_name, file) for file in gone))
            described |= {file.file_name: file for file in new}
            for names in anew:
                before = tuple(described[name] for name in names)
                index = str(uuid.uuid4()).encode()
                described |= {file.file_name: file.model_copy(update={"embedded_index": index}) for file in before}
                commit(store, compact_before=before, compact_after=tuple(described[name] for name in names))
    if store.snapshots.latest() is None:
        return
    for predicate in filters:
        with patch.object(ManifestPruner, "select", lambda _, metas: list(metas)):
            full = planned(store, predicate)
        assert planned(store, predicate) == full


def skipped(path, predicate):
    stage = next(stage for stage in scan(path, predicate).plan.report if stage.name == "manifest ranges")
    return stage.dropped


def skipped_at(store, predicate):
    plan = ScanPlanner(store).plan(predicate, snapshot=store.snapshots.latest())
    return next(stage.dropped for stage in plan.report if stage.name == "manifest ranges")


def eq(name, value):
    return Compare(ColumnRef(name), Op.EQ, value)


def keyed_file(store, key, value, *, level):
    """A file with one row of a table with two integer columns, the first of them the key."""
    types = [field.type for field in store.schema.fields]
    low, row = encode_row((key,), types[:1]), encode_row((key, value), types)
    return DataFileMeta(
        file_name=f"data-{key}.parquet",
        file_size=9,
        row_count=1,
        min_key=low,
        max_key=low,
        value_stats=SimpleStats(row, row, (0, 0)),
        level=level,
        min_sequence_number=key,
        max_sequence_number=key,
        creation_time=0,
        delete_row_count=0,
    )


def test_an_append_table_skips_manifests_by_any_column(tmp_path):
    path = create(tmp_path / "t", "id INT, city STRING, price DOUBLE", bucket="-1")
    for n in range(4):
        write(path, {"id": [n * 10, n * 10 + 9], "city": [f"c{n}", None], "price": [n / 2, n / 2 + 0.25]})
    assert [skipped(path, eq("id", 15)), skipped(path, eq("city", "c2")), skipped(path, Compare(ColumnRef("price"), Op.GT, 1.4))] == [
        3,
        3,
        3,
    ]
    assert skipped(path, Or((eq("id", 5), eq("city", "c3")))) == 2
    assert skipped(path, IsNull(ColumnRef("id"))) == 4
    assert scan(path, eq("id", 19)).table.num_rows == 1


def test_a_primary_key_table_skips_manifests_by_its_key_only(tmp_path):
    path = create(
        tmp_path / "t",
        "day INT NOT NULL, id INT NOT NULL, sub STRING NOT NULL, v INT",
        keys=["day", "id", "sub"],
        partitions=["day"],
        bucket="1",
    )
    write(path, {"day": [1, 1], "id": [1, 2], "sub": ["a", "b"], "v": [1, 1]})
    write(path, {"day": [2, 2], "id": [1, 2], "sub": ["c", "d"], "v": [2, 2]})
    write(path, {"day": [1, 1], "id": [2, 9], "sub": ["b", "z"], "v": [3, 3]})
    assert [skipped(path, eq("id", 9)), skipped(path, eq("sub", "c")), skipped(path, eq("v", 1))] == [2, 1, 0]
    assert scan(path, And((eq("id", 2), eq("v", 1)))).table.num_rows == 0
    assert skipped(path, Or((And((eq("day", 1), eq("id", 9))), And((eq("day", 2), eq("sub", "c")))))) == 1


def test_rows_that_deletion_vectors_keep_single_let_any_column_skip_manifests(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL, v INT", keys=["id"], bucket="1")
    store = FileStore.open(path).with_options({"deletion-vectors.enabled": "true"})
    assert store.range_policy.values
    for n in (1, 5):
        commit(store, new_files=(keyed_file(store, n, n * 100, level=5),), total_buckets=1)
    assert planned(store, eq("v", 500)) == {"data-5.parquet"}
    assert skipped_at(store, eq("v", 500)) == 1


def test_a_deleted_file_stays_dead_when_the_manifest_of_its_deletion_is_skipped(tmp_path):
    path = create(tmp_path / "t", "id INT", bucket="-1")
    write(path, {"id": [1, 2]})
    write(path, {"id": [1, 2]})
    compact(path)
    assert scan(path, eq("id", 1)).table.num_rows == 2
    assert scan(path, eq("id", 7)).plan.file_count == 0


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}])
def test_a_file_described_anew_is_no_duplicate_when_the_manifest_of_its_deletion_is_skipped(tmp_path, options):
    """The first manifest adds keys 2 and 9, the second moves the file of key 2 to another level, the third has other indexes of both."""
    path = create(tmp_path / "t", "id INT NOT NULL, v INT", keys=["id"], bucket="1", manifest__merge_min_count="100")
    store = FileStore.open(path).with_options(options)
    first, second = keyed_file(store, 2, 200, level=0), keyed_file(store, 9, 900, level=5)
    moved = first.model_copy(update={"level": 4})
    anew = [file.model_copy(update={"embedded_index": b"other"}) for file in (moved, second)]
    commit(store, new_files=(first, second), total_buckets=1)
    for before, after in (((first,), (moved,)), ((moved, second), anew)):
        commit(store, compact_before=tuple(before), compact_after=tuple(after), total_buckets=1)
    for key in range(12):
        assert planned(store, eq("id", key)) == ({f"data-{key}.parquet"} if key in {2, 9} else set())
    assert skipped_at(store, eq("id", 5)) == 1


def test_an_entry_without_statistics_takes_the_range_from_its_manifest(tmp_path):
    path = create(tmp_path / "t", "id INT", bucket="-1", metadata__stats_mode="none")
    write(path, {"id": [1, 2]})
    store = FileStore.open(path)
    assert [meta.column_ranges for meta in store.manifest_metas(store.snapshots.latest())] == [None]
    assert skipped(path, eq("id", 77)) == 0


def test_merged_manifests_have_the_range_of_all_their_entries(tmp_path):
    path = create(tmp_path / "t", "id INT, name STRING", bucket="-1", manifest__merge_min_count="2")
    for n in range(3):
        write(path, {"id": [n], "name": [f"n{n}"]})
    store = FileStore.open(path)
    first, _ = store.manifest_metas(store.snapshots.latest())
    found = first.column_ranges.bounds(store.schema.fields)
    assert [(b.min, b.max, b.null_count, b.row_count) for b in found.values()] == [(0, 1, 0, 2), ("n0", "n1", 0, 2)]


def test_ranges_are_bounded_in_bytes_and_long_texts_are_cut(tmp_path):
    columns = {f"c{n:03}": ["x" * 500 + str(n)] for n in range(300)}
    path = create(tmp_path / "t", ", ".join(f"{name} STRING" for name in columns), bucket="-1", metadata__stats_mode="full")
    write(path, columns)
    store = FileStore.open(path)
    (meta,) = store.manifest_metas(store.snapshots.latest())
    stats = meta.column_ranges.stats
    assert 10 < len(meta.column_ranges.field_ids) < 300
    assert len(stats.min_values) + len(stats.max_values) < Thresholds().range_bytes + 24
    assert skipped(path, Compare(ColumnRef("c000"), Op.GT, "x" * 600)) == 0
    assert skipped(path, eq("c000", "y")) == 1


@pytest.mark.parametrize("change", [{"field_ids": (0, 99)}, {"field_ids": ()}, {"stats": SimpleStats(b"x", b"y", (0,))}])
def test_ranges_that_make_no_sense_keep_the_manifest(tmp_path, change):
    path = create(tmp_path / "t", "id INT", bucket="-1")
    write(path, {"id": [1, 2]})
    store = FileStore.open(path)
    (meta,) = store.manifest_metas(store.snapshots.latest())
    broken = meta.model_copy(update={"column_ranges": replace(meta.column_ranges, **change)})
    assert ManifestPruner(store, eq("id", 50)).select([meta, broken]) == [broken]
    assert ManifestFileMeta.from_avro(broken.to_avro()) == broken


def test_a_list_of_another_engine_has_no_ranges_and_is_read_whole(tmp_path):
    path = create(tmp_path / "t", "id INT", bucket="-1")
    write(path, {"id": [1, 2]})
    store = FileStore.open(path)
    (meta,) = store.manifest_metas(store.snapshots.latest())
    record = meta.to_avro()
    del record["_COLUMN_RANGES"]
    assert ManifestFileMeta.from_avro(record).column_ranges is None
    assert ManifestFileMeta.from_avro(record | {"_COLUMN_RANGES": b"something else"}).column_ranges is None


def test_files_of_an_unknown_schema_give_no_range(tmp_path):
    path = create(tmp_path / "t", "id INT", bucket="-1")
    store = FileStore.open(path)
    file = DataFileMeta(file_name="data-1.parquet", file_size=1, row_count=1, schema_id=7, creation_time=0)
    entry = ManifestEntry(kind=FileKind.ADD, partition=bytes(12), bucket=0, total_buckets=-1, file=file)
    assert store.range_policy.ranges(EntryColumns.of([entry])) is None


@settings(max_examples=30, deadline=None)
@given(files=st.lists(a_file(EVOLUTION), min_size=1, max_size=12))
def test_the_range_of_many_files_is_that_of_each_looked_at(tmp_path_factory, files):
    store = evolving_table(tmp_path_factory.mktemp("ranges") / "t", EVOLUTION, 30)
    entries = EntryColumns.of(
        [ManifestEntry(kind=FileKind.ADD, partition=bytes(12), bucket=0, total_buckets=-1, file=file) for file in files]
    )
    with use_thresholds(ranges_one_by_one=0):
        together = store.range_policy.ranges(entries)
    assert repr(store.range_policy.ranges(entries)) == repr(together)


def test_a_narrower_integer_keeps_no_bounds_of_the_wider_one(tmp_path):
    """Values that do not fit wrap around when they are cast, so that a range of large numbers says nothing of the small ones."""
    store = evolving_table(tmp_path / "t", [[(0, "a", "BIGINT")], [(0, "a", "INT")]], 30)
    low, high = (encode_row((value,), [TYPES["BIGINT"]]) for value in (2**32, 2**32 + 9))
    file = DataFileMeta(
        file_name="data-1.parquet", file_size=1, row_count=5, value_stats=SimpleStats(low, high, (0,)), creation_time=0, delete_row_count=0
    )
    FileStoreCommit(store, "u").commit([CommitMessage(partition=bytes(12), bucket=0, total_buckets=-1, new_files=(file,))])
    assert planned(store, eq("a", 3)) == {"data-1.parquet"}
