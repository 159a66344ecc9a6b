"""Counting a table: exact where it can be, close where it cannot, and of use to plans only while it is true."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import And, ColumnRef, Compare, IsNull, Op
from lsm.scan.planner import ScanPlanner
from lsm.scan.table_statistics import DistinctCounter, collect_statistics, counted_rows, own_statistics
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.stats.table_stats import Statistics
from manifest.store import FileStore
from manifest.types.data_type import DataField, DataType, from_arrow
from paimon_base.thresholds import Thresholds
from sparkexpr.values.column_type import Kind
from tests.lsm.small_tables import create, scan, write
from tests.odd_bytes import odd_texts


def counted(table):
    return collect_statistics(table.to_batches(max_chunksize=3), from_arrow(table.schema))


def test_texts_are_measured_in_characters_and_binaries_in_bytes():
    table = pa.table({"s": ["é", None, "abcd", ""], "b": [b"12", b"", None, b"123"]})
    rows, found = counted(table)
    assert rows == 4
    text, binary = found["s"], found["b"]
    assert (text.avg_len, text.max_len, text.min, text.max, text.null_count, text.distinct_count) == (2, 4, "", "é", 1, 3)
    assert (binary.avg_len, binary.max_len, binary.min, binary.max, binary.distinct_count) == (2, 3, None, None, 3)


def test_nan_is_one_value_and_the_greatest_and_zeros_are_equal():
    table = pa.table({"d": [math.nan, 0.0, -0.0, 1.0, math.nan, None], "n": pa.array([math.nan] * 6, pa.float32())})
    _, found = counted(table)
    assert (found["d"].distinct_count, found["d"].max, float(found["d"].min)) == (3, "NaN", 0.0)
    assert (found["n"].distinct_count, found["n"].min, found["n"].max) == (1, "NaN", "NaN")


def test_nested_columns_have_null_counts_only_and_empty_ones_no_extremes():
    table = pa.table({"a": pa.array([[1], None, []], pa.list_(pa.int32())), "i": pa.array([None] * 3, pa.int64())})
    _, found = counted(table)
    assert found["a"].model_dump(exclude={"col_id"}, exclude_none=True) == {"null_count": 1}
    assert (found["i"].min, found["i"].max, found["i"].null_count, found["i"].distinct_count) == (None, None, 3, 0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.none() | st.integers(-50, 50), max_size=40), st.lists(st.none() | odd_texts, max_size=40))
def test_small_columns_are_counted_exactly(numbers, texts):
    size = min(len(numbers), len(texts))
    numbers, texts = numbers[:size], texts[:size]
    rows, found = counted(pa.table({"n": pa.array(numbers, pa.int32()), "t": pa.array(texts, pa.string())}))
    assert rows == size
    for column, values in ((found["n"], numbers), (found["t"], texts)):
        known = [value for value in values if value is not None]
        assert column.distinct_count == len(Counter(known))
        assert column.null_count == size - len(known)
        assert column.min == (str(min(known)) if known else None)
        assert column.max == (str(max(known)) if known else None)


@pytest.mark.parametrize("distinct", [Thresholds().exact_distinct, Thresholds().exact_distinct + 1, 300_000])
def test_many_values_are_counted_within_three_percent(distinct):
    counter = DistinctCounter()
    values = np.arange(distinct, dtype=np.uint64)
    for part in np.array_split(np.concatenate([values, values[::-1]]), 7):
        counter.add(part)
    assert counter.count == pytest.approx(distinct, rel=0.03)
    assert counter.count == distinct or distinct > Thresholds().exact_distinct


def analyze(path):
    store = FileStore.open(path)
    snapshot = store.snapshots.latest()
    result = scan(path)
    rows, found = collect_statistics(result.table.to_batches(), store.schema.fields)
    FileStoreCommit(store, "analyst").analyze(
        Statistics(snapshot_id=snapshot.id, schema_id=store.schema.id, merged_record_count=rows, merged_record_size=1, col_stats=found),
        snapshot,
    )
    return FileStore.open(path)


@pytest.fixture
def table(tmp_path):
    path = create(tmp_path / "t", "id INT NOT NULL, v DOUBLE, name STRING", keys=["id"], bucket="1")
    write(path, {"id": [1, 2, 3], "v": [1.0, 2.0, None], "name": ["a", "b", "c"]})
    write(path, {"id": [2, 4], "v": [7.0, 8.0], "name": ["b2", "d"]})
    return path


def stages(path, predicate):
    return {stage.name: stage for stage in scan(path, predicate).plan.report}


def test_a_filter_that_statistics_refute_reads_no_manifest(table):
    analyze(table)
    v, name = ColumnRef("v"), ColumnRef("name")
    for predicate in (Compare(v, Op.GT, 8.0), Compare(name, Op.LT, "a"), IsNull(name), And((IsNull(v), Compare(name, Op.GT, "x")))):
        found = stages(table, predicate)
        assert found["table statistics"].dropped == 1
        assert "manifest list" not in found
    for predicate in (Compare(v, Op.GE, 8.0), IsNull(v), Compare(name, Op.EQ, "b")):
        assert stages(table, predicate)["table statistics"].dropped == 0
    assert "table statistics" not in stages(table, None)


def test_statistics_count_nothing_any_more_after_the_next_write(table):
    store = analyze(table)
    assert counted_rows(store, store.snapshots.latest()) == 4
    write(table, {"id": [9], "v": [100.0], "name": ["z"]})
    latest = store.snapshots.latest()
    assert latest.statistics is not None
    assert counted_rows(store, latest) is None
    assert scan(table, Compare(ColumnRef("v"), Op.GT, 8.0)).table.num_rows == 1


def test_statistics_of_others_may_be_estimates_and_decide_nothing(table):
    store = analyze(table)
    snapshot = store.snapshots.latest().model_copy(update={"properties": None})
    assert own_statistics(store, snapshot) is None
    assert counted_rows(store, snapshot) is None


def test_a_damaged_statistics_file_is_only_a_loss_of_advice(table, tmp_path):
    store = analyze(table)
    (file,) = (tmp_path / "t" / "statistics").iterdir()
    for damage in (lambda: file.write_text("{"), file.unlink):
        damage()
        assert scan(table, Compare(ColumnRef("v"), Op.EQ, 8.0)).table.num_rows == 1
        assert counted_rows(store, store.snapshots.latest()) is None


def test_statistics_of_a_column_whose_type_changed_say_nothing(table):
    store = analyze(table)
    snapshot = store.snapshots.latest()
    text = DataType(Kind.VARCHAR)
    fields = tuple(DataField(field.id, field.name, text) if field.name == "v" else field for field in store.schema.fields)
    changed = store.with_schema(store.schema.model_copy(update={"id": 1, "fields": fields}))
    plan = ScanPlanner(changed).plan(Compare(ColumnRef("v"), Op.GT, "9"), snapshot=snapshot)
    (stage,) = (stage for stage in plan.report if stage.name == "table statistics")
    assert stage.dropped == 0
