"""Statistics files: Paimon's JSON, its spelling of values, and how commits carry them."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.expire.orphans import list_orphans
from manifest.expire.rollback import rollback_to
from manifest.expire.snapshots import expire_snapshots
from manifest.io.errors import CommitConflict
from manifest.schema.change import ChangeOptions
from manifest.snapshot.commit_info import OPERATION
from manifest.snapshot.snapshot import CommitKind
from manifest.stats.table_stats import EXACT, MAX_TEXT, ColumnStatistics, Statistics, parse_value, value_text
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from sparkexpr.values.column_type import Kind
from tests.manifest.commit_kit import committer, data_file, make_table, message

SPELLED_BY_THE_ENGINE = [
    (DataType(Kind.BOOLEAN), True, "true"),
    (DataType(Kind.TINYINT), -3, "-3"),
    (DataType(Kind.BIGINT), 1 << 40, "1099511627776"),
    (DataType(Kind.FLOAT), 1.5, "1.5"),
    (DataType(Kind.DOUBLE), math.nan, "NaN"),
    (DataType(Kind.DOUBLE), -math.inf, "-Infinity"),
    (DataType(Kind.DOUBLE), -0.0, "-0.0"),
    (DataType(Kind.DATE), 20454, "20454"),
    (DataType(Kind.TIME), 3600123, "3600123"),
    (DataType(Kind.DECIMAL, precision=10, scale=2), -120, "-1.20"),
    (DataType(Kind.DECIMAL, precision=38, scale=10), 1, "0.0000000001"),
    (DataType(Kind.VARCHAR), 'aé"x', 'aé"x'),
    (DataType(Kind.TIMESTAMP, precision=0), 1_700_000_000_000, "2023-11-14 22:13:20"),
    (DataType(Kind.TIMESTAMP, precision=3), -1, "1969-12-31 23:59:59.999"),
    (DataType(Kind.TIMESTAMP, precision=6), 1_700_000_000_000_000, "2023-11-14 22:13:20.000000"),
    (DataType(Kind.TIMESTAMP_LTZ, precision=6), 1_700_000_000_123_456, "2023-11-14 22:13:20.123456"),
    (DataType(Kind.TIMESTAMP, precision=9), 1_700_000_000_123_456_789, "2023-11-14 22:13:20.123456789"),
]


@pytest.mark.parametrize(("data_type", "value", "text"), SPELLED_BY_THE_ENGINE)
def test_values_are_spelled_as_the_engine_does_and_read_back(data_type, value, text):
    assert value_text(value, data_type) == text
    back = parse_value(text, data_type)
    assert repr(back) == repr(value)


@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_no_digit_of_a_decimal_is_lost(unscaled):
    data_type = DataType(Kind.DECIMAL, precision=38, scale=7)
    assert parse_value(value_text(unscaled, data_type), data_type) == unscaled


@given(st.floats(width=32, allow_nan=False))
def test_a_float_reads_back_as_the_number_that_the_column_holds(value):
    data_type = DataType(Kind.FLOAT)
    assert parse_value(value_text(value, data_type), data_type) == value


@given(st.integers(-62_135_596_800 * 10**6, 253_402_300_799 * 10**6))
def test_timestamps_of_four_digit_years_read_back(value):
    data_type = DataType(Kind.TIMESTAMP, precision=6)
    assert parse_value(value_text(value, data_type), data_type) == value


def test_what_has_no_spelling_is_left_out():
    assert value_text(b"x", DataType(Kind.VARBINARY)) is None
    assert value_text(None, DataType(Kind.INT)) is None
    assert value_text("x" * (MAX_TEXT + 1), DataType(Kind.VARCHAR)) is None
    assert value_text(253_402_300_800_000, DataType(Kind.TIMESTAMP, precision=3)) is None


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        (DataType(Kind.INT), "1.5"),
        (DataType(Kind.BOOLEAN), "yes"),
        (DataType(Kind.DECIMAL, precision=5, scale=1), "0.25"),
        (DataType(Kind.DECIMAL, precision=5, scale=1), "NaN"),
        (DataType(Kind.DECIMAL, precision=5, scale=1), "one"),
        (DataType(Kind.TIMESTAMP, precision=3), "2023-11-14"),
        (DataType(Kind.TIMESTAMP, precision=3), "2023-13-14 00:00:00"),
        (DataType(Kind.VARBINARY), "x"),
    ],
)
def test_a_text_that_is_no_value_is_refused(data_type, text):
    with pytest.raises(ValueError):
        parse_value(text, data_type)


def test_the_file_has_paimons_keys_and_leaves_out_what_is_unknown():
    column = ColumnStatistics(col_id=4, distinct_count=2, null_count=1)
    statistics = Statistics(snapshot_id=3, schema_id=1, merged_record_count=5, merged_record_size=90, col_stats={"a": column})
    assert json.loads(statistics.to_json()) == {
        "snapshotId": 3,
        "schemaId": 1,
        "mergedRecordCount": 5,
        "mergedRecordSize": 90,
        "colStats": {"a": {"colId": 4, "distinctCount": 2, "nullCount": 1}},
    }
    assert Statistics.from_json(statistics.to_json(), "x") == statistics
    assert Statistics.from_json('{"snapshotId": 3, "schemaId": 1, "colStats": {}, "later": 1}', "x").merged_record_count is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"snapshotId": 0, "schemaId": 0}', '{"snapshotId": 1, "schemaId": 0, "colStats": {"a": {}}}']
)
def test_a_damaged_file_is_named(text):
    with pytest.raises(CorruptFile, match="statistics/stat-1"):
        Statistics.from_json(text, "t/statistics/stat-1")


def analyzed(store, user="analyst"):
    snapshot = store.snapshots.latest()
    statistics = Statistics(snapshot_id=snapshot.id, schema_id=store.schema.id, merged_record_count=snapshot.total_record_count)
    return committer(store, user).analyze(statistics, snapshot)


@pytest.mark.parametrize("later", [0, 1, 2])
def test_statistics_of_rows_that_were_rolled_back_are_refused(tmp_path, later):
    store = make_table(tmp_path / "t", keys=())
    for number in range(2):
        committer(store).commit([message(store, [data_file(store, seq=(number, number))])])
    counted = store.snapshots.latest()
    rollback_to(store, store.snapshots.get(1))
    for number in range(later):
        committer(store).commit([message(store, [data_file(store, seq=(number + 2, number + 2))])])
    statistics = Statistics(snapshot_id=counted.id, schema_id=store.schema.id, merged_record_count=counted.total_record_count)
    with pytest.raises(CommitConflict, match="snapshot 2 was rolled back"):
        committer(store).analyze(statistics, counted)


def test_analyze_commits_a_snapshot_without_changes_that_later_ones_carry_on(tmp_path):
    store = make_table(tmp_path / "t", keys=())
    committer(store).commit([message(store, [data_file(store)])])
    snapshot = store.snapshots.get(analyzed(store))
    assert (snapshot.id, snapshot.commit_kind, snapshot.total_record_count, snapshot.delta_record_count) == (2, CommitKind.ANALYZE, 10, 0)
    assert snapshot.properties == {EXACT: "exact", OPERATION: "analyze"}
    assert store.statistics_files.read(snapshot.statistics).describes(snapshot)
    committer(store).commit([message(store, [data_file(store)])])
    later = store.snapshots.latest()
    assert later.statistics == snapshot.statistics
    assert not store.statistics_files.read(later.statistics).describes(later)
    assert len(store.live_entries(later)) == 2


def test_statistics_of_another_schema_conflict(tmp_path):
    store = make_table(tmp_path / "t", keys=())
    committer(store).commit([message(store, [data_file(store)])])
    store.schemas.alter([ChangeOptions(options={"target-file-size": "1 mb"})])
    with pytest.raises(CommitConflict, match="schema changed"):
        analyzed(store)
    assert store.snapshots.latest().id == 1
    assert not (tmp_path / "t" / "statistics").exists() or not list((tmp_path / "t" / "statistics").iterdir())


def test_expiry_and_orphan_removal_know_statistics(tmp_path):
    store = make_table(tmp_path / "t", keys=())
    committer(store).commit([message(store, [data_file(store)])])
    analyzed(store)
    committer(store).commit([message(store, [data_file(store)])])
    first, folder = store.snapshots.latest().statistics, tmp_path / "t" / "statistics"
    assert [orphan.path for orphan in list_orphans(store, 2**62)] == []
    analyzed(store, "again")
    assert len(list(folder.iterdir())) == 2
    expire_snapshots(store, retain_min=1, retain_max=1)
    assert [path.name for path in folder.iterdir()] == [store.snapshots.latest().statistics] != [first]


def test_decimal_scale_is_kept_in_the_text():
    assert Decimal(value_text(300, DataType(Kind.DECIMAL, precision=30, scale=3))) == Decimal("0.300")
