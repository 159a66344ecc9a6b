"""Statistics: collected from footers, truncated as Paimon does, equal to the engine's, and never a reason to lose a row."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op, Predicate, StartsWith, all_of, any_of, negate
from lsm.parquet.write.writer import ParquetFileWriter
from manifest.io.file_io import LocalFileIO
from manifest.options.core_options import CoreOptions
from manifest.options.parquet_options import Keep, StatsMode, truncate_up
from manifest.stats.collector import StatsCollector
from manifest.stats.column_stats import ColumnBounds, PartitionType, SimpleStats, decode_bounds, may_match
from manifest.types.data_type import DataType, from_arrow
from paimon_base.errors import UnsupportedOption
from paimon_base.thresholds import use_thresholds
from sparkexpr.values.column_type import BINARIES, FLOATS, ColumnType, Kind
from sparkexpr.values.float_order import total_order_key
from tests.examples import some
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, type_name

X = ColumnRef("x")
PQ = (ColumnRef("p"), ColumnRef("q"))


def collect(table: pa.Table, path: Path, **options: str) -> tuple[dict[str, ColumnBounds], SimpleStats, tuple[str, ...] | None]:
    core = CoreOptions.of({key.replace("__", ".").replace("_", "-"): value for key, value in options.items()})
    fields = from_arrow(table.schema)
    collector = StatsCollector(fields, core.stats_modes(tuple(table.column_names)), dense=core.stats_dense_store)
    collector.update(table)
    if any(pa.types.is_timestamp(kind) and kind.unit == "ns" for kind in table.schema.types):
        with use_thresholds(group_rows=4):
            writer = ParquetFileWriter(LocalFileIO(), str(path), table.schema, int96=True)
            for batch in table.to_batches(max_chunksize=4):
                writer.write(batch)
            footer, _ = writer.close()
    else:
        pq.write_table(table, path, store_decimal_as_integer=True, row_group_size=4)
        footer = pq.read_metadata(path)
    stats, names = collector.value_stats(footer)
    covered = names if names is not None else tuple(table.column_names)
    types = {field.name: field.type for field in fields}
    return decode_bounds(stats, covered, [types[name] for name in covered], len(table)), stats, names


def test_nested_columns_have_no_statistics_and_leave_the_dense_form(tmp_path: Path) -> None:
    table = pa.table({"id": [3, 1, 2], "tags": [["a"], [], None], "m": pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int32()))})
    bounds, stats, names = collect(table, tmp_path / "f")
    assert names == ("id",)
    assert bounds["id"] == ColumnBounds(1, 3, 0, 3)
    assert stats.null_counts == (0,)


def test_without_dense_storage_every_column_has_a_slot(tmp_path: Path) -> None:
    bounds, stats, names = collect(pa.table({"id": [3, 1], "tags": [["a"], []]}), tmp_path / "f", metadata__stats_dense_store="false")
    assert names is None
    assert stats.null_counts == (0, None)
    assert bounds["tags"] == ColumnBounds(None, None, None, 2)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("none", {}),
        ("counts", {"x": ColumnBounds(None, None, 1, 3)}),
        ("truncate(2)", {"x": ColumnBounds("aa", "zz", 1, 3)}),
        ("full", {"x": ColumnBounds("aaaa", "zyxw", 1, 3)}),
    ],
)
def test_modes_decide_what_is_kept(tmp_path: Path, mode: str, expected: dict[str, ColumnBounds]) -> None:
    bounds, _, _ = collect(pa.table({"x": ["zyxw", None, "aaaa"]}), tmp_path / "f", metadata__stats_mode=mode)
    assert bounds == expected


def test_modes_by_column_level_and_position() -> None:
    core = CoreOptions.of(
        {
            "metadata.stats-mode": "counts",
            "metadata.stats-mode.per.level": "0:none,5:full",
            "fields.b.stats-mode": "truncate(3)",
            "metadata.stats-keep-first-n-columns": "2",
        }
    )
    assert [str(mode.keep) for mode in core.stats_modes(("a", "b", "c"), 1).values()] == ["counts", "truncate", "none"]
    assert [str(mode.keep) for mode in core.stats_modes(("a", "b", "c"), 5).values()] == ["full", "truncate", "none"]


def test_unknown_modes_are_refused() -> None:
    for text in ("truncate", "truncate(0)", "all"):
        with pytest.raises(UnsupportedOption, match="stats-mode"):
            StatsMode.parse(text, "metadata.stats-mode")


def test_nan_is_the_maximum_and_zeros_stay_bounds(tmp_path: Path) -> None:
    table = pa.table({"x": [math.nan, 1.0, -5.0], "y": [math.nan] * 3, "z": [0.0, 0.0, None]})
    bounds, _, _ = collect(table, tmp_path / "f")
    assert bounds["x"].min == -5.0
    assert isinstance(bounds["x"].max, float)
    assert math.isnan(bounds["x"].max)
    assert may_match(Compare(ColumnRef("y"), Op.EQ, math.nan), lambda ref: bounds[ref.name], {"y": ColumnType(Kind.DOUBLE)})
    assert may_match(Compare(ColumnRef("z"), Op.EQ, -0.0), lambda ref: bounds[ref.name], {"z": ColumnType(Kind.DOUBLE)})


@pytest.mark.parametrize("values", [[math.nan] * 4 + [1.0, 2.0], [1.0, 2.0, None, 3.0] + [math.nan] * 3])
def test_a_row_group_of_nothing_but_nan_leaves_the_others_findable(tmp_path: Path, values: list[float | None]) -> None:
    bounds, _, _ = collect(pa.table({"x": values}), tmp_path / "f")
    for wanted in (1.0, 2.0, math.nan):
        assert may_match(Compare(X, Op.EQ, wanted), lambda ref: bounds[ref.name], {"x": ColumnType(Kind.DOUBLE)})


def test_fine_timestamps_have_bounds_though_footers_have_none_as_those_beside_them_do(tmp_path: Path) -> None:
    nanos, micros = [None, 5, -(10**18), 7, 3, None], [2, None, None, 9, 1, 4]
    table = pa.table({"x": pa.array(nanos, pa.timestamp("ns")), "y": pa.array(micros, pa.timestamp("us", "UTC"))})
    bounds, _, _ = collect(table, tmp_path / "f")
    assert bounds == {"x": ColumnBounds(-(10**18), 7, 2, 6), "y": ColumnBounds(1, 9, 2, 6)}


def test_binaries_have_null_counts_only(tmp_path: Path) -> None:
    bounds, _, _ = collect(pa.table({"x": [b"\xff", None]}), tmp_path / "f")
    assert bounds["x"] == ColumnBounds(None, None, 1, 2)


@pytest.mark.parametrize("column_type", [kind for kind in ATOMIC_TYPES if kind.kind not in BINARIES], ids=type_name)
def test_bounds_of_rows_in_any_batches_are_those_of_all_rows(column_type: ColumnType) -> None:
    @settings(max_examples=some(8), deadline=None)
    @given(st.lists(columns(column_type, 4), min_size=2, max_size=4))
    def check(batches: list[list[Any]]) -> None:
        arrays = [arrow_column(values, column_type) for values in batches]
        fields = from_arrow(pa.schema([("x", column_type.arrow)]))
        collector = StatsCollector(fields, {"x": StatsMode(Keep.FULL)}, rows=True)
        for array in arrays:
            collector.update(pa.table({"x": array}))
        stats, _ = collector.value_stats(None)
        bounds = decode_bounds(stats, ("x",), [fields[0].type], sum(map(len, batches)))["x"]
        every = [value for values in batches for value in values]
        assert bounds.null_count == every.count(None)
        for value in every:
            if value is not None:
                assert may_match(Compare(X, Op.EQ, value), lambda _: bounds, {"x": column_type})
        ends = [value for value in every if value is not None]
        if ends and not any(value != value for value in ends):  # noqa: PLR0124  # NaN
            low, high = min(ends, key=total_order_key), max(ends, key=total_order_key)
            zeros = (low or -0.0, high or 0.0) if column_type.kind in FLOATS else (low, high)
            assert repr((bounds.min, bounds.max)) == repr(zeros)

    check()


@given(st.lists(st.tuples(st.none() | st.integers(-2, 2), st.none() | st.sampled_from(["", "a", "b"])), max_size=6))
def test_statistics_of_partitions_count_nulls_and_keep_each_partition(partitions: list[tuple[int | None, str | None]]) -> None:
    partition = PartitionType(("p", "q"), (DataType(Kind.INT), DataType(Kind.VARCHAR, length=9)))
    stats = partition.stats(map(partition.encode, partitions))
    assert stats.null_counts == tuple([row[column] for row in partitions].count(None) for column in range(2))
    values = [[row[column] for row in partitions if row[column] is not None] for column in range(2)]
    assert [partition.decode(row) for row in (stats.min_values, stats.max_values)] == [
        tuple(end(column, default=None) for column in values) for end in (min, max)
    ]
    for row in partitions:
        leaves = [IsNull(name) if value is None else Compare(name, Op.EQ, value) for name, value in zip(PQ, row, strict=True)]
        assert partition.may_hold(all_of(*leaves), stats, len(partitions), "manifest")
        assert partition.spanning([partition.encode(row)])(stats, "manifest")


@pytest.mark.parametrize(
    ("value", "length", "expected"),
    [
        ("aaaaaaaaaaaaaaaaX", 16, "aaaaaaaaaaaaaaab"),
        (bytes.fromhex("ffffff01ffff"), 4, bytes.fromhex("ffffff02")),
        (b"\xff" * 9, 4, None),
        ("a\ud7ffz", 2, "a\ue000"),
        ("a\U0010ffffz", 2, "b"),
        ("ab", 2, "ab"),
    ],
)
def test_truncated_maxima_are_raised(value: Any, length: int, expected: Any) -> None:
    assert truncate_up(value, length) == expected


@given(st.text(max_size=30), st.integers(1, 8))
def test_a_truncated_maximum_is_never_below_the_text(text: str, length: int) -> None:
    raised = truncate_up(text, length)
    assert raised is None or (isinstance(raised, str) and raised.encode() >= text.encode() and len(raised) <= length)


COLUMNS: dict[Kind, tuple[ColumnType, st.SearchStrategy[Any]]] = {
    Kind.INT: (ColumnType(Kind.INT), st.integers(-4, 4)),
    Kind.DOUBLE: (ColumnType(Kind.DOUBLE), st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -2.0])),
    Kind.VARCHAR: (ColumnType(Kind.VARCHAR), st.text("\0ab\ud7ff\ue000\U0010ffff", max_size=5)),
    Kind.BOOLEAN: (ColumnType(Kind.BOOLEAN), st.booleans()),
}


@st.composite
def filtered_columns(draw: st.DrawFn) -> tuple[ColumnType, list[Any], Predicate]:
    column_type, values = COLUMNS[draw(st.sampled_from(sorted(COLUMNS)))]
    compare = st.builds(Compare, st.just(X), st.sampled_from(list(Op)), values)
    leaf = (
        compare
        | st.builds(In, st.just(X), st.lists(values, max_size=3).map(tuple), st.booleans())
        | st.builds(IsNull, st.just(X), st.booleans())
    )
    if column_type.kind is Kind.VARCHAR:
        leaf |= st.builds(StartsWith, st.just(X), st.text("\0ab", max_size=2), st.booleans())
    tree = st.recursive(
        leaf,
        lambda inner: (
            st.lists(inner, max_size=3).map(lambda c: all_of(*c))
            | st.lists(inner, max_size=3).map(lambda c: any_of(*c))
            | inner.map(negate)
        ),
        max_leaves=5,
    )
    return column_type, draw(st.lists(st.none() | values, min_size=1, max_size=12)), draw(tree)


@settings(max_examples=some(40), deadline=None)
@given(filtered_columns(), st.sampled_from(["full", "truncate(2)", "counts"]))
def test_statistics_never_drop_a_matching_row(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[ColumnType, list[Any], Predicate], mode: str
) -> None:
    column_type, values, predicate = case
    table = pa.table({"x": pa.array(values, column_type.arrow)})
    bounds, _, _ = collect(table, tmp_path_factory.getbasetemp() / "stats.parquet", metadata__stats_mode=mode)
    matching = mask(predicate, table, {"x": column_type})
    if any(matching.to_pylist()):
        assert may_match(predicate, lambda ref: bounds.get(ref.name), {"x": column_type})


def test_unknown_columns_keep_the_file() -> None:
    assert may_match(Compare(X, Op.EQ, 1), lambda _: None, {})
    assert may_match(Compare(X, Op.EQ, 1), lambda _: ColumnBounds(None, None, 3, 9), {"x": ColumnType(Kind.INT)})
    assert not may_match(Compare(X, Op.EQ, 1), lambda _: ColumnBounds(None, None, 9, 9), {"x": ColumnType(Kind.INT)})
    assert may_match(IsNull(X), lambda _: ColumnBounds(None, None, None, 9), {"x": ColumnType(Kind.INT)})


def test_stats_over_other_columns_say_nothing() -> None:
    assert decode_bounds(SimpleStats.EMPTY, ["x"], [], 3) == {}
