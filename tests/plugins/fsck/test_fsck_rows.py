"""A check of a table names every damage to its data files: footers, keys, sequence numbers, kinds, statistics, places of rows."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from manifest.entry.data_file import FileKind
from manifest.row.binary_row import encode_row
from manifest.stats.column_stats import SimpleStats
from paimon_base.errors import CorruptFile
from pyspark_paimon import Table
from pyspark_paimon.results.fsck_problem import ProblemKind as K
from tests.damage import damaged, footer_span
from tests.damaged_tables import Case, Damage, Surgeon, check, cut, flip

Edit = Callable[[pa.Table], pa.Table]


def _in_order(*order: int) -> Edit:
    """The first rows in another order, the rest as they are."""
    return lambda rows: rows.take(pa.array(np.concatenate([order, np.arange(len(order), rows.num_rows)])))


def _first(column: str, value: Any) -> Edit:
    """Another value in the first row of a column."""

    def edit(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(column)
        values = pa.array([value, *rows.column(at).to_pylist()[1:]], rows.column(at).type)
        return rows.set_column(at, rows.schema.field(at).with_nullable(True), values)

    return edit


def _rows(edit: Edit, **fields: Any) -> Damage:
    return lambda surgeon: surgeon.rewrite(edit, **fields)


def _file(**fields: Any) -> Damage:
    return lambda surgeon: surgeon.change(lambda _: True, **fields)


def _other_bucket(surgeon: Surgeon) -> Path:
    """The file of one bucket in another."""
    one, other = (next(entry for entry in surgeon.entries() if entry.bucket == bucket) for bucket in (0, 1))
    path = surgeon.path_of(other)
    path.write_bytes(surgeon.path_of(one).read_bytes())
    named = {**dict(one.file), "file_name": other.file.file_name}
    return surgeon.change(lambda entry: entry.file.file_name == other.file.file_name, **named)


def _min_key(surgeon: Surgeon) -> Path:
    return surgeon.change(lambda _: True, min_key=encode_row((-1,), surgeon.store.schema.key_types))


def _statistics(column: str, low: Any, high: Any, nulls: int) -> Damage:
    """Statistics of one column."""

    def damage(surgeon: Surgeon) -> Path:
        types = surgeon.store.schema.types_of([column])
        stats = SimpleStats(encode_row((low,), types), encode_row((high,), types), (nulls,))
        return surgeon.change(lambda entry: entry.bucket == 0, value_stats=stats, value_stats_cols=(column,))

    return damage


def _nulls(surgeon: Surgeon) -> int:
    entry = next(entry for entry in surgeon.entries() if entry.bucket == 0)
    import pyarrow.parquet as pq

    return int(pq.ParquetFile(surgeon.path_of(entry)).read(["n"]).column(0).null_count)


def _of_n(low: int, high: int) -> Damage:
    return lambda surgeon: _statistics("n", low, high, _nulls(surgeon))(surgeon)


def _key_statistics(surgeon: Surgeon) -> Path:
    types = surgeon.store.schema.key_types
    return surgeon.change(lambda _: True, key_stats=SimpleStats(encode_row((8,), types), encode_row((9,), types), (0,)))


def _null_key(surgeon: Surgeon) -> Path:
    null = encode_row((None,), surgeon.store.schema.key_types)
    rows = [_first("id", None), _first("_KEY_id", None)]
    return surgeon.rewrite(lambda table: rows[1](rows[0](table)), min_key=null, key_stats=SimpleStats.EMPTY)


def _page(surgeon: Surgeon) -> Path:
    return flip(surgeon.path_of(next(entry for entry in surgeon.entries() if entry.kind == FileKind.ADD)), 60)


def _without_footer(surgeon: Surgeon) -> Path:
    entry = next(entry for entry in surgeon.entries() if entry.kind == FileKind.ADD)
    path = cut(surgeon.path_of(entry))
    return surgeon.change(lambda other: other.file == entry.file, file_size=path.stat().st_size)


DAMAGES: dict[str, Case] = {
    "a data file has no footer": Case(K.DATA_FILE, "plain", "footers", _without_footer),
    "a column is missing": Case(K.DATA_FILE, "plain", "footers", _rows(lambda rows: rows.drop_columns(["n"]))),
    "rows are missing": Case(K.ROW_COUNT, "plain", "footers", _rows(lambda rows: rows.slice(1))),
    "a page is damaged": Case(K.DATA_FILE, "plain", "deep", _page),
    "rows are swapped": Case(K.KEY_ORDER, "plain", "deep", _rows(_in_order(0, 2, 1))),
    "a key is repeated": Case(K.DUPLICATE_KEY, "plain", "deep", _rows(_in_order(0, 1, 1))),
    "the smallest key is another": Case(K.KEY_RANGE, "plain", "deep", _min_key),
    "sequence numbers are others": Case(K.SEQUENCE_RANGE, "plain", "deep", _file(max_sequence_number=10**9)),
    "a row has no kind": Case(K.ROW_KIND, "plain", "deep", _rows(_first("_VALUE_KIND", 6))),
    "a deleted row is not counted": Case(K.DELETE_COUNT, "plain", "deep", _rows(_first("_VALUE_KIND", 3))),
    "a copy of a key differs": Case(K.DATA_FILE, "plain", "deep", _rows(_first("_KEY_id", -4))),
    "a minimum is too great": Case(K.COLUMN_STATISTICS, "plain", "deep", _of_n(20, 2**31 - 1)),
    "a maximum is too small": Case(K.COLUMN_STATISTICS, "plain", "deep", _of_n(-5, 7)),
    "nulls are not counted": Case(K.COLUMN_STATISTICS, "plain", "deep", _statistics("n", -5, 2**31 - 1, 0)),
    "a text lies outside": Case(K.COLUMN_STATISTICS, "plain", "deep", _statistics("city", "city 3", "d", 5)),
    "a key lies outside": Case(K.COLUMN_STATISTICS, "plain", "deep", _key_statistics),
    "a key is null": Case(K.NULL_VALUE, "plain", "deep", _null_key),
    "a row is of another partition": Case(K.PARTITION_VALUE, "plain", "deep", _rows(_first("part", "z"))),
    "rows are in another bucket": Case(K.WRONG_BUCKET, "plain", "deep", _other_bucket),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_data_files_are_named(copies, tmp_path, name) -> None:
    check(copies, tmp_path, DAMAGES[name])


def test_a_table_of_every_type_with_extreme_values_is_clean(create) -> None:
    table = create(
        "id INT, d DOUBLE, f FLOAT, s STRING, b BYTES, dec DECIMAL(30, 3), small DECIMAL(9, 2), t TIMESTAMP(6), day DATE, ok BOOLEAN",
        options={
            "file-index.range-bitmap.columns": "d,s,t,small",
            "file-index.bitmap.columns": "f,day,ok",
            "file-index.bsi.columns": "t,small",
        },
    )
    nan, inf = float("nan"), float("inf")
    rows = {
        "id": [3, 1, 2, 5, 4],
        "d": [nan, -0.0, 0.0, -inf, None],
        "f": [nan, nan, None, 1.5, -0.0],
        "s": ["", "\U0010ffff" * 40, None, "z" * 200, "\ud7ff"],
        "b": [b"", b"\xff" * 99, None, b"\0", b"x"],
        "dec": [Decimal(-(10**26)), Decimal(10**26), None, Decimal(0), Decimal("0.001")],
        "small": [Decimal(-9999999), Decimal(9999999), None, Decimal(0), Decimal("0.01")],
        "t": [-(2**62), 2**62, None, 0, -1],
        "day": [-(2**31), 2**31 - 1, None, 0, 1],
        "ok": [True, False, None, True, False],
    }
    for count in (5, 1):
        table.write(pa.table({name: pa.array(values[:count], table.schema.field(name).type) for name, values in rows.items()}))
    assert table.fsck("deep").problems == ()


def test_order_is_seen_across_batches() -> None:
    from manifest.stats.column_stats import PartitionType
    from manifest.types.data_type import DataType
    from pyspark_paimon.plugins.fsck.data_file import KeyOrder
    from sparkexpr.values.column_type import Kind

    def seen(*batches: list[str | None]) -> tuple[int | None, int | None]:
        order = KeyOrder(["k"], PartitionType(("k",), (DataType(Kind.VARCHAR),)))
        for batch in batches:
            order.write(pa.table({"k": pa.array(batch, pa.string())}))
        return order.unordered, order.repeated

    assert seen([None, "a", "ab"], ["b"]) == (None, None)
    assert seen(["a", "b"], ["b", "c"]) == (None, 2)
    assert seen(["a", "a long one, longer than a word"], ["a", "b"]) == (2, None)
    assert seen(["a\0", "a"], ["b"]) == (1, None)


def test_a_footer_that_no_scan_takes_is_named_by_a_check_of_footers(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, b BOOLEAN, s STRING")
    table.write(pa.table({"id": list(range(20)), "b": [at % 2 == 0 for at in range(20)], "s": list("abcdefghijklmnopqrst")}))
    (file,) = (tmp_path / "t").rglob("*.parquet")
    whole = file.read_bytes()
    refused = 0
    for seed in range(40):
        file.write_bytes(damaged(whole, seed, kinds=("flip",), span=footer_span(whole)))
        try:
            Table.open(tmp_path / "t").scan().to_arrow()
        except CorruptFile:
            refused += 1
            assert any(file.name in str(problem) for problem in table.fsck("footers").problems), seed
    assert refused > 10
