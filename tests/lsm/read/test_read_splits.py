"""Reading splits: exact rows whatever the road, bounded memory, and damage that names the file."""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import And, ColumnRef, Compare, In, IsNull, Op, Or, all_of, any_of
from lsm.parquet.reader import ParquetDataFile
from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from manifest.io.errors import UnsupportedTable
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, UnknownColumn
from sparkexpr.values.column_type import Kind
from tests.examples import some
from tests.golden_rows import GOLDEN
from tests.lsm.small_tables import compact, create, matching, replace_file, resize_files, scan, write

ID, V, S = ColumnRef("id"), ColumnRef("v"), ColumnRef("s")


def eq(column, value):
    return Compare(column, Op.EQ, value)


def data_files(path):
    return sorted(Path(path).rglob("data-*.parquet"), key=lambda file: file.stat().st_mtime_ns)


@pytest.fixture
def merged(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL, v INT, s STRING", keys=["id"], bucket="1")
    write(path, {"id": [1, 2, 3, 4], "v": [10, 20, 30, 40], "s": ["a", "b", "c", "d"]})
    write(path, {"id": [2, 3], "v": [21, 0], "s": ["B", "-"]}, kinds=[0, 3])
    return path


def test_columns_come_in_the_order_asked_for(merged):
    assert scan(merged, columns=["s", "id"]).table.column_names == ["s", "id"]
    assert scan(merged, eq(V, 21), columns=["s"]).table.to_pylist() == [{"s": "B"}]


def test_rows_without_columns_can_be_counted(merged):
    assert scan(merged, columns=[]).rows == 3
    assert scan(merged, Compare(V, Op.GE, 21), columns=[]).rows == 2
    compact(merged)
    assert scan(merged, columns=[]).rows == 3
    assert scan(merged, Compare(V, Op.GE, 21), columns=[]).rows == 2


def test_the_last_version_decides_and_deleted_keys_are_gone(merged):
    assert scan(merged).table.to_pylist() == [{"id": 1, "v": 10, "s": "a"}, {"id": 2, "v": 21, "s": "B"}, {"id": 4, "v": 40, "s": "d"}]
    assert scan(merged, eq(V, 20)).rows == 0
    assert scan(merged, eq(ID, 3)).rows == 0


def test_a_limit_is_exact(merged):
    assert [scan(merged, limit=n).rows for n in (0, 1, 2, 99)] == [0, 1, 2, 3]


def test_only_versions_of_wanted_keys_are_merged(merged):
    assert scan(merged, eq(ID, 2)).report.rows_merged == 2
    assert scan(merged, eq(V, 21)).report.rows_merged == 6


def test_batches_have_the_tables_types(merged):
    result = scan(merged)
    assert result.table.schema.equals(result.store.schema.arrow)


def test_unknown_columns_are_named(merged):
    store = FileStore.open(merged)
    (split,) = ScanPlanner(store).plan(snapshot=store.snapshots.latest()).splits
    with pytest.raises(UnknownColumn, match="nope"):
        list(read_split(store, split, columns=["nope"]))
    with pytest.raises(UnknownColumn, match="nope"):
        list(read_split(store, split, columns=["id"], predicate=eq(ColumnRef("nope"), 1)))


def test_row_groups_are_skipped_by_their_statistics(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL, v INT", keys=["id"], bucket="1")
    rows = {"id": list(range(1000)), "v": list(range(1000))}
    write(path, rows)
    file = data_files(path)[0]
    regroup(path, file, 100)
    for predicate in (eq(ID, 555), eq(V, 555), In(V, (501, 599))):
        report = scan(path, predicate).report
        assert (report.row_groups, report.row_groups_skipped) == (10, 9)
    assert scan(path, Compare(V, Op.GE, 250)).table["v"].to_pylist() == rows["v"][250:]


def regroup(path, file, rows):
    """Write a data file again with row groups of ``rows`` rows, and tell the manifest its new size."""
    table = pq.read_table(file)
    pq.write_table(table, file, row_group_size=rows)
    replace_file(path, file_size=file.stat().st_size)


@pytest.mark.parametrize("recorded", [0, None, 1])
def test_deletes_that_a_writer_did_not_count_stay_deleted(tmp_path, recorded):
    path = create(tmp_path / "t", "id INT NOT NULL, v INT", keys=["id"], bucket="1")
    write(path, {"id": [1, 2], "v": [1, 2]}, kinds=[0, 3])
    replace_file(path, delete_row_count=recorded)
    for predicate, columns in ((None, ["id", "v"]), (Compare(V, Op.GE, 0), ["id"]), (None, [])):
        assert scan(path, predicate, columns=columns).rows == 1


def test_an_index_file_that_is_missing_or_broken_costs_a_warning_not_a_row(tmp_path):
    path = create(tmp_path / "t", "v INT, s STRING", bucket="-1", file_index__bitmap__columns="s", file_index__in_manifest_threshold="1b")
    write(path, {"v": list(range(100)), "s": [f"s{i % 5}" for i in range(100)]})
    sound = scan(path, eq(S, "s3"))
    assert (sound.rows, sound.report.rows_indexed, sound.report.index.warnings.total()) == (20, 20, 0)
    (index,) = Path(path).rglob("*.index")
    content = index.read_bytes()
    for damaged in (content[:10], b"", bytes(len(content))):
        index.write_bytes(damaged)
        assert scan(path, eq(S, "s3")).rows == 20
        assert scan(path, eq(S, "s3")).report.index.warnings.total() == 1
    index.unlink()
    missing = scan(path, eq(S, "s3"))
    assert (missing.rows, missing.report.index.warnings.total()) == (20, 1)


def test_a_file_that_its_index_excludes_is_not_opened(tmp_path):
    path = create(
        tmp_path / "t", "v INT, s STRING", bucket="-1", file_index__bloom_filter__columns="s", file_index__in_manifest_threshold="1b"
    )
    write(path, {"v": [1, 2, 3], "s": ["a", "m", "z"]})
    data_files(path)[0].unlink()
    result = scan(path, eq(S, "q"))
    assert (result.rows, result.report.files_skipped) == (0, 1)


class CountingFileIO(WrappedFileIO):
    opened = 0

    def open_input(self, path, size=None):
        type(self).opened += path.endswith(".parquet")
        return super().open_input(path, size)


def test_a_footer_is_read_once_per_file(merged):
    CountingFileIO.opened = 0
    scan(merged, file_io=CountingFileIO(LocalFileIO()))
    assert CountingFileIO.opened == 2


@pytest.mark.parametrize("damage", ["missing", "empty", "truncated", "no magic", "other rows"])
def test_a_damaged_data_file_is_named(merged, damage):
    file = data_files(merged)[0]
    content = file.read_bytes()
    match damage:
        case "missing":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case "truncated":
            file.write_bytes(content[: len(content) // 2])
        case "no magic":
            file.write_bytes(content[:-4] + b"XXXX")
        case "other rows":
            shutil.copy(data_files(merged)[1], file)
    with pytest.raises(CorruptFile, match=file.name):
        scan(merged)


@settings(max_examples=some(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_flipped_bit_of_a_page_gives_the_right_rows_or_an_error_that_names_the_file(tmp_path_factory, at, bit):
    """Pages only: what Parquet keeps behind them has no checksum, and Arrow ends the process over some of its damage."""
    path = tmp_path_factory.getbasetemp() / "flipped"
    columns = {"id": list(range(50)), "v": list(range(50)), "s": [f"ab{i % 7}" for i in range(50)]}
    if not path.exists():
        create(path, "id INT NOT NULL, v INT, s STRING", keys=["id"], bucket="1")
        write(str(path), columns)
    file = data_files(path)[0]
    content = file.read_bytes()
    group = pq.ParquetFile(file).metadata.row_group(0)
    end = group.column(0).data_page_offset + sum(group.column(i).total_compressed_size for i in range(group.num_columns))
    changed = bytearray(content)
    changed[at % end] ^= 1 << bit
    file.write_bytes(changed)
    told = file.name
    try:
        assert scan(str(path)).table.to_pydict() == columns
    except (CorruptFile, UnsupportedTable) as error:
        told = str(error)
    finally:
        file.write_bytes(content)
    assert file.name in told


def test_a_data_file_of_another_format_is_refused_by_name(merged):
    store = FileStore.open(merged)
    (split,) = ScanPlanner(store).plan(snapshot=store.snapshots.latest()).splits
    lance = split.model_copy(update={"files": (split.files[0].model_copy(update={"file_name": "data-1.lance"}),)})
    with pytest.raises(UnsupportedTable, match=r"data-1\.lance.*'lance'"):
        list(read_split(store, lance, columns=["id"]))


def test_a_file_without_system_columns_is_no_file_of_a_keyed_table(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL, v INT", keys=["id"], bucket="1")
    write(path, {"id": [1, 2], "v": [1, 2]})
    (file,) = data_files(path)
    pq.write_table(pq.read_table(file).select(["id", "v"]), file)
    replace_file(path, file_size=file.stat().st_size)
    with pytest.raises(CorruptFile, match="_SEQUENCE_NUMBER"):
        scan(path)


def test_a_column_that_the_file_lacks_is_a_corrupt_file(tmp_path):
    path = create(tmp_path / "t", "v INT, w INT", bucket="-1", metadata__stats_mode="none")
    write(path, {"v": [1, 2], "w": [3, 4]})
    (file,) = data_files(path)
    pq.write_table(pq.read_table(file).select(["v"]), file)
    replace_file(path, file_size=file.stat().st_size)
    with pytest.raises(CorruptFile, match="has no column 'w'"):
        scan(path)
    replace_file(path, write_cols=("v",))
    assert scan(path).table.to_pylist() == [{"v": 1, "w": None}, {"v": 2, "w": None}]
    assert scan(path, IsNull(ColumnRef("w"))).rows == 2


def test_a_column_stored_as_another_type_is_a_corrupt_file(tmp_path):
    path = create(tmp_path / "t", "v INT", bucket="-1")
    write(path, {"v": [1, 2]})
    (file,) = data_files(path)
    pq.write_table(pa.table({"v": ["x", "y"]}), file)
    replace_file(path, file_size=file.stat().st_size)
    with pytest.raises(CorruptFile, match="'v' is stored as another type than INT"):
        scan(path)


def test_batches_stay_small_whatever_the_row_group(tmp_path):
    file = tmp_path / "f.parquet"
    pq.write_table(pa.table({"s": ["x" * 1000] * 60_000, "i": range(60_000)}), file, use_dictionary=False)
    with ParquetDataFile(LocalFileIO(), str(file)) as data:
        wide = [batch.num_rows for batch in data.batches(["s", "i"], data.row_groups)]
        assert sum(wide) == 60_000
        assert max(wide) * 1000 < 20_000_000
        assert len(list(data.batches(["i"], data.row_groups))) == 1


def test_partition_values_come_from_the_manifest_not_from_the_file(tmp_path):
    path = create(tmp_path / "t", "p STRING, v INT", partitions=["p"], bucket="-1")
    write(path, {"p": ["a", "a", "b", None], "v": [1, 2, 3, 4]})
    for file in data_files(path):
        table = pq.ParquetFile(file).read()
        pq.write_table(table.set_column(0, "p", pa.array(["lie"] * table.num_rows)), file)
    resize_files(path)
    assert Counter(scan(path).table["p"].to_pylist()) == {"a": 2, "b": 1, None: 1}
    assert scan(path, eq(ColumnRef("p"), "a")).rows == 2
    assert scan(path, IsNull(ColumnRef("p"))).table["v"].to_pylist() == [4]


def test_texts_of_few_values_stay_plain_at_the_edge(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL, s STRING", keys=["id"], bucket="1")
    write(path, {"id": list(range(5000)), "s": [f"s{i % 3}" for i in range(5000)]})
    result = scan(path, And((eq(S, "s1"), Compare(ID, Op.LT, 100))))
    assert result.table["s"].type == pa.string()
    assert result.rows == 33
    with ParquetDataFile(LocalFileIO(), str(data_files(path)[0])) as data:
        (batch,) = data.batches(["s"], data.row_groups, dictionaries=["s"])
        assert pa.types.is_dictionary(batch.column(0).type)


def test_a_raw_split_of_a_golden_table_reads_in_pieces_as_a_whole():
    store = FileStore.open(GOLDEN / "pk_full" / "table")
    plan = ScanPlanner(store).plan(snapshot=store.snapshots.latest())
    assert all(split.raw_convertible for split in plan.splits)
    names = store.schema.names
    whole = [pa.Table.from_batches(read_split(store, split, columns=names)) for split in plan.splits]
    for table, split in zip(whole, plan.splits, strict=True):
        low = table["id"].to_pylist()[0]
        halves = [Compare(ID, Op.LE, low), Compare(ID, Op.GT, low)]
        parts = [pa.Table.from_batches(read_split(store, split, columns=names, predicate=half)) for half in halves]
        assert pa.concat_tables(parts).equals(table)


KEYS = st.integers(0, 12)
ROWS = st.lists(
    st.tuples(KEYS, st.none() | st.integers(0, 4), st.sampled_from(["a", "b", None]), st.sampled_from([0, 0, 0, 3])), max_size=8
)
LEAVES = st.one_of(
    st.builds(Compare, st.just(ID), st.sampled_from(list(Op)), KEYS),
    st.builds(Compare, st.just(V), st.sampled_from(list(Op)), st.integers(0, 4)),
    st.builds(In, st.just(S), st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2).map(tuple), st.booleans()),
    st.builds(IsNull, st.sampled_from([V, S]), st.booleans()),
)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(lambda c: st.sampled_from([all_of(*c), any_of(*c)])), max_leaves=4
)


@settings(max_examples=some(5), deadline=None)
@given(
    writes=st.lists(ROWS, min_size=1, max_size=4),
    compact_after=st.integers(0, 3),
    predicates=st.lists(TREES, max_size=4),
    index=st.booleans(),
)
def test_any_scan_equals_a_dict_filtered_row_by_row(tmp_path_factory, writes, compact_after, predicates, index):
    indexes = {"file_index__bitmap__columns": "s,v", "file_index__bloom_filter__columns": "v"} if index else {}
    path = create(
        tmp_path_factory.mktemp("model"),
        "id INT NOT NULL, v INT, s STRING",
        keys=["id"],
        bucket="2",
        metadata__stats_mode="full",
        **indexes,
    )
    model = {}
    for number, rows in enumerate(writes):
        if rows:
            write(path, {"id": [r[0] for r in rows], "v": [r[1] for r in rows], "s": [r[2] for r in rows]}, kinds=[r[3] for r in rows])
        for key, v, s, kind in rows:
            model[key] = {"id": key, "v": v, "s": s}
            if kind == 3:
                del model[key]
        if number == compact_after:
            compact(path)
    store = FileStore.open(path)
    for predicate in (None, *predicates, Or((eq(ID, 3), eq(V, 1)))):
        expected = matching(list(model.values()), predicate, store)
        found = scan(path, predicate)
        assert found.table.sort_by("id").to_pylist() == expected.sort_by("id").to_pylist(), predicate
        assert scan(path, predicate, columns=[]).rows == expected.num_rows


def test_timestamps_of_any_precision_read_back(tmp_path):
    path = create(tmp_path / "t", "a TIMESTAMP(3), b TIMESTAMP(9), c TIMESTAMP(6)", bucket="-1")
    rows = {"a": [-1, 1_000, None], "b": [-1, 1_700_000_000_123_456_789, None], "c": [253_402_300_799_999_999, -62_135_596_800_000_000, 0]}
    write(path, rows)
    result = scan(path)
    assert [column.cast(pa.int64()).to_pylist() for column in result.table.columns] == list(rows.values())
    assert FileStore.open(path).schema.field("b").type.kind is Kind.TIMESTAMP


@pytest.mark.parametrize("year", [1500, 2300, 9999])
def test_a_timestamp_beyond_the_range_of_nanoseconds_is_refused_not_wrapped(tmp_path, year):
    path = create(tmp_path / "t", "b TIMESTAMP(9)", bucket="-1")
    write(path, {"b": [1, None]})
    (file,) = data_files(path)
    far = pa.table({"b": pa.array([dt.datetime(year, 1, 1), None], pa.timestamp("us"))})  # noqa: DTZ001 -- a zoneless type
    pq.write_table(far, file, use_deprecated_int96_timestamps=True)
    replace_file(path, file_size=file.stat().st_size)
    with pytest.raises(UnsupportedTable, match=r"'b'.*nanoseconds"):
        scan(path)
