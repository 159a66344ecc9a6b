"""How columns are stored: what a sample decides, what the table's options decide, and that every reader gets the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lsm.parquet.write import column_layout as chosen
from lsm.parquet.write.column_layout import column_layout
from paimon_base.thresholds import Thresholds
from pyspark_paimon import Table
from tests.lsm import packed_columns

pytestmark = pytest.mark.sizes

N = 20_000
DRAW = np.random.default_rng(7)
DIFFERENCES = {
    "ids": np.arange(N),
    "sorted with gaps": np.cumsum(DRAW.integers(1, 50, N)),
    "a range": DRAW.integers(0, 10**6, N),
}
PLAIN = {
    "any 64 bits": DRAW.integers(-(2**63), 2**63 - 1, N),
    "rare outliers": np.where(DRAW.random(N) < 0.01, 2**60, DRAW.integers(0, 20, N) * 7919),
}


def layout(**columns):
    return column_layout(pa.table(columns), frozenset(columns), "zstd", 1, by_sample=True)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_numbers_that_are_smaller_so_are_stored_as_differences_without_a_codec(name):
    found = layout(n=DIFFERENCES[name])
    assert (found.differences, found.compressed) == ({"n"}, [])


@pytest.mark.parametrize("name", PLAIN)
def test_other_numbers_stay_plain_and_have_the_codec_where_it_saves(name):
    found = layout(n=PLAIN[name])
    assert (found.differences, found.compressed) == (set(), ["n"] if name == "rare outliers" else [])


def test_only_what_the_codec_shrinks_is_compressed():
    text = pa.array([f"value {n} of many" for n in range(N)])
    found = layout(noise=pa.array([DRAW.bytes(20) for _ in range(N)]), text=text, list=pa.array([[n % 3] * 4 for n in range(N)]))
    assert found.compressed == ["text", "list.list.element"]
    assert found.dictionary == ["list.list.element"]


def test_a_small_file_is_not_sampled():
    found = column_layout(pa.table({"n": range(1000)}), frozenset("n"), "zstd", 1, by_sample=True)
    assert (found.differences, found.compressed) == ((), None)


def asked(monkeypatch) -> list[int]:
    """How many rows those had that were sampled, from now on."""
    rows, sampled = [], chosen._choose_by_sample

    def noted(given, *rest):
        rows.append(given.num_rows)
        return sampled(given, *rest)

    monkeypatch.setattr(chosen, "_choose_by_sample", noted)
    return rows


def of_table(rows: pa.Table, table: str | None, plain: frozenset[str] = frozenset()) -> chosen.ColumnLayout:
    return column_layout(rows, plain, "zstd", 1, by_sample=True, table=table)


def test_a_choice_holds_for_the_next_files_of_the_table_until_these_have_so_many_rows(monkeypatch, tmp_path):
    rows, sampled = pa.table({"n": DIFFERENCES["ids"]}), asked(monkeypatch)
    found = {repr(of_table(rows, str(tmp_path))) for _ in range(Thresholds().kept_rows // N)}
    assert (len(found), len(sampled)) == (1, 1)
    of_table(rows, str(tmp_path))
    assert len(sampled) == 2


def test_so_does_what_was_counted_in_tiny_files(monkeypatch, tmp_path):
    counted: list[int] = []
    original = chosen.dictionary_columns
    monkeypatch.setattr(chosen, "dictionary_columns", lambda rows, plain: counted.append(rows.num_rows) or original(rows, plain))
    few = pa.table({"id": range(100), "city": ["Oslo"] * 100})
    layouts = [of_table(few.slice(at), str(tmp_path)) for at in range(30)]
    assert [layout.dictionary for layout in layouts] == [["city"]] * 30
    assert counted == [100]
    of_table(few.slice(60), str(tmp_path))
    of_table(few.slice(60), None)
    assert counted == [100, 40, 40]


@pytest.mark.parametrize("other", ["table", "columns", "plain", "rows", "no table"])
def test_what_is_another_matter_is_sampled_for_itself(monkeypatch, tmp_path, other):
    rows, sampled = pa.table({"n": DIFFERENCES["ids"]}), asked(monkeypatch)
    table, plain = str(tmp_path), frozenset[str]()
    of_table(rows, table)
    match other:
        case "table":
            table += "2"
        case "columns":
            rows = rows.append_column("m", rows["n"])
        case "plain":
            plain = frozenset("n")
        case "rows":
            rows = rows.slice(0, N // 4)
        case "no table":
            table = None
    assert of_table(rows, table, plain) == of_table(rows, None, plain)
    assert len(sampled) == 3


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
def test_a_column_without_values_decides_nothing_for_one_that_has_some(tmp_path, kind):
    filled = pa.array([f"value {n} of many" for n in range(N)] if kind == pa.string() else DIFFERENCES["a range"], kind)
    of_table(pa.table({"c": pa.nulls(N, kind)}), str(tmp_path))
    rows = pa.table({"c": filled})
    assert of_table(rows, str(tmp_path)) == of_table(rows, None)


def test_rows_unlike_those_that_were_sampled_come_back(tmp_path, monkeypatch):
    """Other values in columns as wide: texts that repeated and then do not, numbers in a row and then any of 64 bits."""
    sampled = asked(monkeypatch)
    table = Table.create(tmp_path / "t", "id BIGINT, n BIGINT, s STRING", ["id"], options={"bucket": "1", "write-only": "true"})
    like = pa.table({"id": range(N), "n": range(N), "s": [f"text {at % 10:06}" for at in range(N)]}, table.schema)
    far = [2**63 - 1, -(2**63)]
    unlike = pa.table({"id": range(N, 2 * N), "n": far * (N // 2), "s": [f"text {at:06}" for at in range(N)]}, table.schema)
    table.write(like)
    table.write(unlike)
    assert len(sampled) == 1
    assert table.scan().to_arrow().sort_by("id").equals(pa.concat_tables([like, unlike]).combine_chunks())
    assert table.scan(f"n = {far[0]} AND s > 'text 019990'").count() == sum(at % 2 == 0 for at in range(19_991, N))
    assert not table.fsck("deep").problems


def test_pages_of_codes_are_judged_without_the_dictionary():
    """Values of a large dictionary compress well, and are there once; the codes of all rows do not compress."""
    rows = pa.table({"n": DRAW.integers(0, 3000, 400_000) * 10**9})
    assert column_layout(rows, frozenset(), "zstd", 1, by_sample=True).compressed == []


def encodings(table: Table) -> dict[str, tuple[set[str], str]]:
    (path,) = Path(table.path).glob("bucket-0/*.parquet")
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    return {column.path_in_schema: (set(column.encodings), column.compression) for column in columns}


@pytest.mark.parametrize(
    "options",
    [
        {"file.compression": "zstd"},
        {"file.compression": "none"},
        {"file.compression.per.level": "0:snappy,1:snappy,2:snappy,3:snappy,4:snappy,5:snappy"},
    ],
)
def test_a_codec_that_the_table_names_is_the_codec_of_every_column(tmp_path, options):
    table = Table.create(tmp_path / "t", "id BIGINT, n BIGINT", ["id"], options={"bucket": "1", **options})
    table.write(pa.table({"id": range(N), "n": DRAW.integers(-(2**63), 2**63 - 1, N)}))
    codec = {"none": "UNCOMPRESSED", "zstd": "ZSTD"}.get(options.get("file.compression"), "SNAPPY")
    found = encodings(table)
    assert {used for _, used in found.values()} == {codec}
    assert not any("DELTA_BINARY_PACKED" in kinds for kinds, _ in found.values())


def test_a_table_without_a_word_on_it_has_both(tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, s STRING", ["id"], options={"bucket": "1"})
    table.write(pa.table({"id": range(N), "s": [f"value {n} of many" for n in range(N)]}))
    found = encodings(table)
    assert found["id"] == ({"RLE", "DELTA_BINARY_PACKED"}, "UNCOMPRESSED")
    assert found["s"] == ({"RLE", "PLAIN"}, "ZSTD")


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Table:
    return packed_columns.packed_table(tmp_path_factory.mktemp("packed") / "t")


def test_all_of_them_are_stored_as_differences(packed):
    kinds = encodings(packed)
    assert all(used == ({"RLE", "DELTA_BINARY_PACKED"}, "UNCOMPRESSED") for name, used in kinds.items() if not name.startswith("_"))
    (path,) = Path(packed.path).glob("bucket-0/*.parquet")
    assert pq.read_metadata(path).num_row_groups > 3


def test_every_type_and_pattern_of_nulls_comes_back(packed):
    expected = packed_columns.rows()
    assert packed.scan().to_arrow().sort_by("id").equals(expected)
    (path,) = Path(packed.path).glob("bucket-0/*.parquet")
    found = pl.read_parquet(path).select(expected.column_names).sort("id")
    assert found.to_arrow().cast(expected.schema).equals(expected)


@pytest.mark.parametrize("spread", [1, 97, 1400])
def test_few_rows_are_decoded_from_their_pages(packed, spread):
    wanted = list(range(695, packed_columns.ROWS, spread))[:300]
    expected = packed_columns.rows().take(pa.array(wanted))
    assert packed.lookup({"id": wanted}).equals(expected)
    value = expected["big_none"][0].as_py()
    assert packed.scan(f"big_none = {value}").count() == packed_columns.rows()["big_none"].to_pylist().count(value)


def test_duckdb_reads_them(packed):
    duckdb = pytest.importorskip("duckdb")
    (path,) = Path(packed.path).glob("bucket-0/*.parquet")
    expected = packed_columns.rows()
    names = ", ".join(f'"{name}"' for name in expected.column_names)
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        found = connection.sql(f"SELECT {names} FROM '{path}' ORDER BY id").to_arrow_table()
    assert found.cast(expected.schema).equals(expected)


def test_columns_with_very_large_values_have_neither_dictionary_nor_bounds_and_every_row_comes_back(tmp_path, set_thresholds):
    """The limit is lowered, so that a value of 300 bytes is what one of megabytes is."""
    set_thresholds(bulky=200)
    table = Table.create(tmp_path / "t", "id BIGINT, t STRING, b BYTES, l ARRAY<STRING>, s STRING", ["id"], options={"bucket": "1"})
    rows = pa.table(
        {
            "id": range(5000),
            "t": ["x" * 300 if at == 7 else None if at % 5 == 0 else "t" for at in range(5000)],
            "b": [b"y" * 300 if at == 9 else b"b" for at in range(5000)],
            "l": [["z" * 500] if at % 2 else None for at in range(5000)],
            "s": [f"{at % 3}" for at in range(5000)],
        },
        table.schema,
    )
    table.write(rows)
    table.write(rows.slice(0, 10))
    table.compact(full=True)
    assert table.scan("t = 't' AND s >= '1'").count() == sum(at % 5 != 0 and at != 7 and at % 3 >= 1 for at in range(5000))
    assert table.scan().to_arrow().sort_by("id").equals(rows)
    assert not table.fsck().problems
    (name,) = table.files()["file_name"].to_pylist()
    group = pq.read_metadata(f"{table.path}/bucket-0/{name}").row_group(0)
    found = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
    assert {path for path, column in found.items() if column.statistics is None} == {"t", "b", "l.list.element"}
    assert found["s"].has_dictionary_page
    assert not found["t"].has_dictionary_page
    assert found["t"].compression == "ZSTD"


def test_a_table_of_bulky_texts_alone_is_written(tmp_path: Path) -> None:
    """No column is left to be tried with a codec."""
    texts = [*map(str, range(4_999)), "x" * (2**20 + 1)]
    assert layout(text=pa.array(texts)).compressed is None
    table = Table.create(tmp_path / "t", "text STRING")
    table.write(pa.table({"text": texts}))
    assert table.scan().to_arrow()["text"].to_pylist() == texts
