"""Reads with cached columns answer as reads without them; the cache takes what scattered reads repeat, and stays within its bytes."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import And, ColumnRef, Compare, Op, Or
from lsm.parquet.reader import ParquetDataFile
from lsm.read.column_cache import ColumnCache
from manifest.io import file_cache
from manifest.io.file_cache import SHARED
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import Thresholds, use_thresholds
from pyspark_paimon import Table, cache_clear, cache_info
from sparkexpr.values.column_type import ColumnType, Kind
from tests.examples import some
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, leaves_on, trees, type_name
from tests.lsm.small_tables import scan

INT = ColumnType(Kind.INT)
TEXT = ColumnType(Kind.VARCHAR)
CHANGES = {
    Kind.TINYINT: ColumnType(Kind.BIGINT),
    Kind.INT: ColumnType(Kind.DECIMAL, precision=12, scale=1),
    Kind.FLOAT: ColumnType(Kind.DOUBLE),
    Kind.CHAR: TEXT,
    Kind.DATE: TEXT,
}


@pytest.fixture(autouse=True)
def _empty_cache():
    SHARED.clear()
    yield
    SHARED.clear()


@contextmanager
def no_columns():
    """Read everything without cached columns."""
    with patch.object(ColumnCache, "read", lambda *_: {}), patch.object(ColumnCache, "cached", lambda *_: {}):
        yield


@contextmanager
def decoding():
    """Count the columns that are decoded, however that is done."""
    counts: Counter[str] = Counter()

    def counted(method):
        inner = getattr(ParquetDataFile, method)

        def run(self, *arguments, **options):
            names = arguments[0] if method == "batches" else arguments[1]
            counts.update(names)
            return inner(self, *arguments, **options)

        return patch.object(ParquetDataFile, method, run)

    with counted("batches"), counted("take"), counted("take_masked"):
        yield counts


def cached_columns() -> set[tuple[int, str]]:
    """Row group and name of each cached column."""
    return {key[0][1:] for key, _ in SHARED.uses() if isinstance(key[0], tuple) and key[0][0] == "narrow column"}


def bits(table: pa.Table) -> list[tuple]:
    """The rows, with the bytes of numbers: equal NaNs and zeros may differ in them."""
    named = []
    for column in table.columns:
        array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        is_number = (pa.types.is_primitive(array.type) or pa.types.is_decimal(array.type)) and not pa.types.is_boolean(array.type)
        named.append((array.view(pa.binary(array.type.bit_width // 8)) if is_number else array).to_pylist())
    return sorted(zip(*named, strict=True), key=repr)


def ddl(kind: ColumnType) -> str:
    match kind.kind:
        case Kind.DECIMAL:
            return f"DECIMAL({kind.precision}, {kind.scale})"
        case Kind.CHAR | Kind.BINARY:
            return f"{kind.kind}({kind.length})"
        case Kind.VARCHAR:
            return "STRING"
        case Kind.VARBINARY:
            return "BYTES"
        case Kind.TIMESTAMP:
            return f"TIMESTAMP({kind.precision})"
        case Kind.TIMESTAMP_LTZ:
            return f"TIMESTAMP({kind.precision}) WITH LOCAL TIME ZONE"
        case _:
            return str(kind.kind)


def fitting(kind: ColumnType) -> st.SearchStrategy[list]:
    """Values of a column that repeat, so that texts get a dictionary, or not."""
    few = columns(kind, 3).filter(bool).flatmap(lambda pool: st.lists(st.sampled_from(pool), min_size=20, max_size=20))
    return few | columns(kind, 20).map(lambda values: (values + [None] * 20)[:20])


KINDS = {
    "append": {"options": {"bucket": "-1"}},
    "vectors": {"primary_keys": ["id"], "options": {"bucket": "1", "deletion-vectors.enabled": "true"}},
    "merged": {"primary_keys": ["id"], "options": {"bucket": "1"}},
}


@pytest.mark.slow
@pytest.mark.sizes
@pytest.mark.parametrize("kind", KINDS)
def test_cached_columns_change_no_answer(tmp_path, kind):
    cached: set[str] = set()

    @settings(max_examples=some(25), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(st.data())
    def check(data):
        column_type = data.draw(st.sampled_from(ATOMIC_TYPES) | st.sampled_from([each for each in ATOMIC_TYPES if each.kind in CHANGES]))
        values = data.draw(fitting(column_type))
        path = tmp_path / uuid4().hex
        definition = f"id INT NOT NULL, a {ddl(column_type)}, n INT, l ARRAY<INT>"
        with use_thresholds(Thresholds.tiny()), use_thresholds(paged_rows=1, coded_rows=0, fewest_rows=1, held_file_bytes=0):
            try:
                table = Table.create(path, definition, **KINDS[kind])
                rows = pa.table(
                    {
                        "id": pa.array(range(20), pa.int32()),
                        "a": arrow_column(values, column_type).cast(table.schema.field("a").type),
                        "n": pa.array([None if at % 5 == 3 else at % 4 for at in range(20)], pa.int32()),
                        "l": pa.array([[at] * (at % 3) for at in range(20)], pa.list_(pa.int32())),
                    }
                )
                table.write(rows)
            except Exception as error:  # noqa: BLE001  # a value that the table refuses is not of this test
                event(f"refused: {type(error).__name__}")
                return
            for _ in range(3):
                assert scan(str(path), Compare(ColumnRef("n"), Op.EQ, 1), columns=["id", "a"]).table["id"].to_pylist() == [1, 5, 9, 17]
            cached.update(name for _, name in cached_columns())
            if data.draw(st.booleans()) and kind != "append":
                table.compact(full=True)
                table.delete(f"id % {data.draw(st.integers(2, 5))} = 1")
            read_type = column_type
            if column_type.kind in CHANGES and data.draw(st.booleans()):
                read_type = CHANGES[column_type.kind]
                table.change_type("a", ddl(read_type), force=True)
            table.rename_column("n", "m")
            names = data.draw(st.permutations(["id", "a", "m", "l"]))[: data.draw(st.integers(1, 4))]
            leaves = [leaves_on(ColumnRef("m"), INT), leaves_on(ColumnRef("id"), INT), leaves_on(ColumnRef("a"), read_type)]
            for predicate in data.draw(st.lists(st.none() | trees(st.one_of(leaves)), min_size=1, max_size=3)):
                with no_columns():
                    expected = bits(scan(str(path), predicate, columns=names).table)
                for _ in range(3):
                    assert bits(scan(str(path), predicate, columns=names).table) == expected

    check()
    assert {"n", "id"} <= cached, "the cache took some columns"


@pytest.mark.sizes
@pytest.mark.parametrize(
    "column_type", [each for each in ATOMIC_TYPES if each.kind in CHANGES and each.kind is not Kind.CHAR], ids=type_name
)
def test_columns_of_an_older_type_are_cached_and_cast(tmp_path, column_type):
    """A condition whose part on the file's columns is weaker is still evaluated on values."""
    table = Table.create(tmp_path / "t", f"a {ddl(column_type)}, n INT", options={"bucket": "-1"})
    values = [float(at % 3) if column_type.kind is Kind.FLOAT else at % 3 for at in range(20)]
    with use_thresholds(Thresholds.tiny()), use_thresholds(paged_rows=1, coded_rows=0, fewest_rows=1, held_file_bytes=0):
        table.write(pa.table({"a": arrow_column(values, column_type), "n": pa.array(range(20), pa.int32())}))
        table.change_type("a", ddl(CHANGES[column_type.kind]), force=True)
        kept = scan(str(table.path), columns=["a"]).table["a"].to_pylist()
        n = ColumnRef("n")
        changed = {Kind.TINYINT: 1, Kind.INT: 10, Kind.FLOAT: 1.0, Kind.DATE: "1970-01-02"}[column_type.kind]
        strict = And((Compare(ColumnRef("a"), Op.EQ, changed), Compare(n, Op.LT, 15)))
        predicate = Or((strict, Compare(n, Op.EQ, 17)))
        for _ in range(4):
            found = scan(str(table.path), predicate, columns=["n", "a"]).table
            rows = [at for at in range(20) if (values[at] == 1 and at < 15) or at == 17]
            assert found.to_pydict() == {"n": rows, "a": [kept[at] for at in rows]}
        assert {name for _, name in cached_columns()} >= {"a", "n"}


ROWS, GROUP = 4000, 1000


@pytest.fixture
def table(tmp_path, set_thresholds):
    """A file of 4 row groups of 1,000 rows, in pages of 100."""
    set_thresholds(group_rows=GROUP, route_rows=GROUP, page_rows=100, paged_rows=GROUP, fewest_rows=10, sample_rows=64, held_file_bytes=0)
    table = Table.create(tmp_path / "t", "id INT, n INT, d DOUBLE, s STRING, text STRING", options={"bucket": "-1"})
    at = np.arange(ROWS)
    rows = {
        "id": pa.array(at, pa.int32()),
        "n": pa.array((at * 7919) % 1000, pa.int32()),
        "d": pa.array(at / 7, mask=at % 11 == 5),
        "s": [f"s {number % 5}" for number in at],
        "text": [f"text {number * 7919}" for number in at],
    }
    table.write(pa.table(rows).to_batches(max_chunksize=GROUP))
    SHARED.clear()
    return table


def expected(low, high, names):
    at = np.arange(ROWS)
    hits = at[((at * 7919) % 1000 >= low) & ((at * 7919) % 1000 < high)]
    rows = {"id": hits.tolist(), "s": [f"s {number % 5}" for number in hits], "text": [f"text {number * 7919}" for number in hits]}
    return [dict(zip(names, row, strict=True)) for row in zip(*(rows[name] for name in names), strict=True)]


def read(table, low=100, high=150, names=("id", "s")):
    """Read five per cent of the rows, which lie in every page."""
    return table.scan(f"n >= {low} AND n < {high}", columns=list(names)).to_arrow().to_pylist()


@pytest.mark.sizes
def test_the_second_scattered_read_caches_and_the_third_decodes_no_page(table):
    assert read(table) == expected(100, 150, ["id", "s"])
    assert SHARED.column_bytes == 0
    with decoding() as second:
        assert read(table, 200, 250) == expected(200, 250, ["id", "s"])
    assert second == {"n": 4, "id": 4, "s": 4}, "each column of each row group was decoded once"
    # n: 2 bytes for each row, id: 2, s: 1, and a dictionary
    assert 5 * ROWS < SHARED.column_bytes < 6 * ROWS + 12 * 700
    with decoding() as third:
        assert read(table, 300, 350) == expected(300, 350, ["id", "s"])
    assert not third
    with decoding() as fourth:
        names = ("text", "id")
        assert read(table, 300, 350, names) == expected(300, 350, names)
    assert fourth.keys() == {"text"}
    for _ in range(3):
        read(table, names=names)
    with decoding() as longest:
        assert read(table, names=names) == expected(100, 150, names)
    assert longest.keys() == {"text"}, "texts without a dictionary are not cached"


@pytest.mark.sizes
def test_full_reads_lookups_and_reads_of_single_pages_fill_no_cache(table):
    for _ in range(3):
        assert table.scan().to_arrow().num_rows == ROWS
        assert table.scan("id = 77").to_arrow()["text"].to_pylist() == [f"text {77 * 7919}"]
        assert table.scan("n >= 10", columns=["id", "s"]).to_arrow().num_rows == ROWS - ROWS // 100
    kept = {name for _, name in cached_columns()}
    assert kept == {"n"}, "only the column of the filter that was read as a whole"
    for _ in range(6):  # a page of ten, like that of row 77: after ten reads all of the row group was decoded once
        assert table.scan("id >= 100 AND id < 150", columns=["id", "d"]).to_arrow().num_rows == 50
    assert {name for _, name in cached_columns()} == {"n"}
    for _ in range(20):
        assert table.scan("id >= 100 AND id < 150", columns=["id", "d"]).to_arrow().num_rows == 50
    kept = {(group, name) for group, name in cached_columns() if name != "n"}
    assert kept == {(0, "id"), (0, "d")}


@pytest.mark.sizes
def test_two_threads_decode_a_column_once(table):
    read(table)
    together = threading.Barrier(4)
    loads = ColumnCache._load

    def load(self, column, group, touch):
        together.wait(10)
        return loads(self, column, group, touch)

    with decoding() as counts, patch.object(ColumnCache, "_load", load), ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: read(Table.open(table.path), 200, 250, ("id",)), range(4)))
    assert answers == [expected(200, 250, ["id"])] * 4
    assert counts == {"n": 4, "id": 4}


@pytest.mark.sizes
def test_columns_that_a_loop_reads_in_turn_never_evict_one_another(table, monkeypatch):
    read(table)
    read(table)
    one_group = SHARED.column_bytes // 4
    SHARED.clear()
    monkeypatch.setattr(SHARED, "column_capacity", 2 * one_group + 10)
    for _ in range(2):
        assert read(table) == expected(100, 150, ["id", "s"])
    cached = cached_columns()
    assert 0 < len(cached) < 12
    with patch.object(ColumnCache, "_decode", side_effect=AssertionError("decoded as a whole")):
        for _ in range(4):
            assert read(table, 200, 250) == expected(200, 250, ["id", "s"])
            assert cached_columns() == cached
            assert SHARED.column_bytes <= SHARED.column_capacity
    for _ in range(3):  # another filter takes the room of columns that are not read any more
        table.scan("d < 20", columns=["text"]).to_arrow()
    assert {name for _, name in cached_columns()} >= {"d"}
    assert SHARED.column_bytes <= SHARED.column_capacity


@pytest.mark.sizes
@pytest.mark.parametrize("capacity", [0, 1, 3000, 20_000])
def test_a_cache_of_few_bytes_stays_within_them_and_answers(table, monkeypatch, capacity):
    monkeypatch.setattr(SHARED, "capacity", capacity)
    monkeypatch.setattr(SHARED, "column_capacity", capacity // 2)
    for low in (100, 200, 300, 100):
        assert read(table, low, low + 50) == expected(low, low + 50, ["id", "s"])
        assert SHARED.held_bytes <= capacity
        assert SHARED.column_bytes <= capacity // 2


@pytest.mark.sizes
def test_damage_in_rows_that_are_not_read_stays_unnoticed_and_other_damage_is_an_error(table):
    (path,) = Path(table.path).glob("bucket-0/*.parquet")
    chunk = pq.read_metadata(path).row_group(0).column(0)
    with path.open("r+b") as file:
        file.seek(chunk.data_page_offset + chunk.total_compressed_size - 20)  # the last page
        file.write(b"\xff" * 12)
    SHARED.clear()
    for _ in range(14):
        assert table.scan("id >= 100 AND id < 150", columns=["id"]).to_arrow()["id"].to_pylist() == list(range(100, 150))
    assert (0, "id") not in cached_columns()
    for _ in range(3):
        with pytest.raises(CorruptFile, match=path.name):
            read(table, names=("id",))


@pytest.mark.sizes
def test_cache_info_shows_the_columns_of_a_table_and_clear_frees_them(table):
    for _ in range(2):
        read(table)
    (columns,) = [use for use in cache_info().uses if use.kind == "columns"]
    assert (columns.table, columns.values, columns.bytes) == (str(table.path), 12, SHARED.column_bytes)
    assert cache_info().bytes == SHARED.held_bytes <= cache_info().capacity
    assert cache_info().column_capacity <= cache_info().capacity
    cache_clear()
    assert cache_info().uses == ()
    assert read(table) == expected(100, 150, ["id", "s"])


def test_the_default_is_a_share_of_the_memory_and_less_in_workers_of_spark(monkeypatch):
    monkeypatch.setattr(file_cache, "machine_memory", lambda: 64 << 30)
    assert file_cache.default_capacity() == 4 << 30
    monkeypatch.setattr(file_cache, "is_spark_worker", lambda: True)
    assert file_cache.default_capacity() == 256 << 20
    monkeypatch.setattr(file_cache, "is_spark_worker", lambda: False)
    monkeypatch.setattr(file_cache, "machine_memory", lambda: 0)
    assert file_cache.default_capacity() == 256 << 20
