"""Rows from and to the dataframes that people have: dicts, polars, DuckDB, Arrow datasets; scans and splits sent to other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from itertools import chain

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from manifest.io.errors import SchemaMismatch
from paimon_base.errors import InvalidArgument, UnknownColumn
from pyspark_paimon import Table

COLUMNS = "id BIGINT NOT NULL, s STRING, f DOUBLE, m MAP<STRING, INT>, d DATE"
ROWS = [
    {"id": 1, "s": "a", "f": 1.5, "m": {"x": 1}},
    {"id": 2, "s": None, "f": float("nan"), "m": None},
    {"id": 3, "s": "b'\0", "f": -0.0, "m": {}},
]


@pytest.fixture
def table(tmp_path):
    return Table.create(str(tmp_path / "t"), COLUMNS, primary_keys=["id"], options={"bucket": "2", "target-file-size": "1 mb"})


def read(table):
    return sorted(map(repr, table.scan(columns=["id", "s", "f", "m"]).to_arrow().to_pylist()))


def filled(table, rows=2000):
    table.write(
        {
            "id": range(rows),
            "s": [f"s{i % 7}" for i in range(rows)],
            "f": [i / 2 for i in range(rows)],
            "m": [None] * rows,
            "d": [None] * rows,
        }
    )
    return table


@pytest.mark.parametrize(
    "given",
    [
        lambda: [{**row, "d": None} for row in ROWS],
        lambda: ({**row, "d": None} for row in ROWS),
        lambda: [{**ROWS[0], "d": None}, *ROWS[1:]],
        lambda: {**{name: [row[name] for row in ROWS] for name in ROWS[0]}, "d": [None] * 3},
        lambda: ds.dataset(pa.Table.from_pylist(ROWS, WITH_MAP).append_column("d", pa.nulls(3))),
        lambda: (
            pl.DataFrame({name: [row[name] for row in ROWS] for name in ("id", "s", "f")}).lazy().select("id", "s", "f", m=None, d=None)
        ),
        lambda: pl.DataFrame({name: [row[name] for row in ROWS] for name in ("id", "s", "f")}).with_columns(
            pl.col("s").cast(pl.Categorical), m=None, d=None
        ),
    ],
)
def test_rows_are_written_from(table, given):
    table.write(given(), missing="null")
    expected = read(table)
    assert len(expected) == 3
    assert [row.split("'s': ")[1].split(", 'f'")[0] for row in expected] == ["'a'", "None", '"b\'\\x00"']
    assert "nan" in expected[1]


WITH_MAP = pa.schema([("id", pa.int64()), ("s", pa.string()), ("f", pa.float64()), ("m", pa.map_(pa.string(), pa.int32()))])


def test_maps_are_given_as_dicts(table):
    table.write([{**row, "d": None} for row in ROWS])
    assert table.scan("m['x'] = 1", columns=["id"]).to_arrow().to_pylist() == [{"id": 1}]


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ([{"id": 1}, 7], InvalidArgument, "has 7 of type int"),
        ({"id": ["x"]}, SchemaMismatch, r"column 'id', row 0: 'x' \(str\) does not fit int64"),
        ({"id": [1, 2], "s": ["a"]}, SchemaMismatch, "different lengths: id 2, s 1"),
        ({"id": 7}, InvalidArgument, "column 'id' is given as int"),
        ({"id": np.array(7)}, InvalidArgument, "column 'id' is given as ndarray"),
        ({"id": np.array([[7]])}, SchemaMismatch, "column 'id', row 0"),
        ({"id": np.array([7], dtype=">i8")}, SchemaMismatch, "column 'id' cannot be converted to an Arrow type"),
        ({7: [1]}, InvalidArgument, "not by 7"),
        ([{"id": 1, "s": object()}], SchemaMismatch, "column 's'"),
    ],
)
def test_what_is_no_rows_is_refused_by_name(table, given, error, told):
    with pytest.raises(error, match=told):
        table.write(given)
    assert table.scan().snapshot_id is None


def test_polars_plans_with_the_table(table):
    filled(table)
    lazy = table.scan_polars().filter((pl.col("id") >= 1990) & (pl.col("s") == "s3")).select("id", "s")
    assert sorted(lazy.collect()["id"].to_list()) == [i for i in range(1990, 2000) if i % 7 == 3]
    assert table.scan_polars().select(pl.len()).collect().item() == 2000
    assert table.scan_polars().head(5).collect().height == 5
    assert table.scan("id < 10").to_polars().height == 10
    assert table.scan_polars().filter(pl.col("s").str.ends_with("6")).collect().height == 2000 // 7


def test_duckdb_plans_with_the_table(table):
    filled(table)
    relation = table.to_duckdb()
    assert relation.filter("id < 5 and s <> 's1'").aggregate("count(*), min(f), max(id)").fetchall() == [(4, 0.0, 4)]
    assert relation.aggregate("count(*)").fetchall() == [(2000,)]
    with duckdb.connect() as connection:
        assert table.scan("id < 3").to_duckdb(connection).order("id").project("id, s").fetchall() == [(0, "s0"), (1, "s1"), (2, "s2")]
    t = table  # noqa: F841  # DuckDB finds it by its name
    assert duckdb.sql("select count(*), sum(id) from t where s = 's2'").fetchall()[0] == (286, sum(range(2, 2000, 7)))


def test_a_dataset_pushes_what_the_planner_understands(table, monkeypatch):
    dataset = filled(table).to_dataset()
    asked = []
    engine = type(table._engine)
    before = engine.read
    monkeypatch.setattr(engine, "read", lambda self, request, **options: asked.append(request) or before(self, request, **options))
    assert dataset.to_table(columns=["id"], filter=pc.field("id") == 7).to_pylist() == [{"id": 7}]
    assert asked[-1].columns == ("id",)
    assert asked[-1].predicate is not None
    wanted = pc.utf8_is_alnum(pc.field("s"))  # a function that filters do not have
    assert dataset.to_table(columns=["id"], filter=wanted & (pc.field("id") < 3)).sort_by("id")["id"].to_pylist() == [0, 1, 2]
    assert asked[-1].predicate is None  # Arrow's alone
    assert dataset.count_rows(filter=pc.field("id") < 3) == dataset.count_rows(filter=wanted & (pc.field("id") < 3)) == 3
    assert dataset.count_rows() == 2000
    assert dataset.head(3, columns=["s"]).num_rows == 3
    assert dataset.to_table(columns={"twice": pc.field("id") * 2}, filter=pc.field("id") == 4).to_pylist() == [{"twice": 8}]
    with pytest.raises(InvalidArgument, match="no column 'nope'"):
        dataset.to_table(columns=["nope"])


def test_a_scan_is_narrowed_projected_and_limited(table):
    scan = filled(table).scan("id >= 10", columns=["s", "id"])
    assert scan.narrowed("id < 12").count() == 2
    assert repr(scan.narrowed("id < 12")._request.predicate).count("Compare") == 2
    assert scan.projected(["id"]).schema.names == ["id"]
    assert scan.limited(4).limited(9).to_arrow().num_rows == 4
    assert scan.head(3).num_rows == 3
    assert table.count() == sum(batch.num_rows for batch in table) == table.to_reader().read_all().num_rows == 2000
    with pytest.raises(InvalidArgument, match="limit"):
        scan.limited(4).narrowed("id < 12")
    ordered = table.scan(order_by="id DESC", limit=3).to_dataset()
    assert [row["id"] for row in ordered.to_table(filter=pc.field("id") < 1999).to_pylist()] == [1998, 1997]


@pytest.mark.slow
def test_tables_scans_and_splits_are_read_in_other_processes(table):
    scan = filled(table).scan("id < 1000", columns=["id"])
    splits = scan.plan().splits
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        parts = pool.starmap(_ids, [(scan, split) for split in splits])
        assert pool.apply(Table.count, [table]) == 2000
    assert sorted(chain.from_iterable(parts)) == list(range(1000))
    for thing in (table, scan, scan.plan(), splits[0], table.to_dataset()):
        assert type(pickle.loads(pickle.dumps(thing))) is type(copy.copy(thing)) is type(copy.deepcopy(thing)) is type(thing)


def _ids(scan, split):
    return [row["id"] for batch in scan.read(split) for row in batch.to_pylist()]


def test_notebooks_show_what_is_escaped(tmp_path):
    hostile = Table.create(str(tmp_path / "t"), pa.schema([("<script>alert(1)</script>", pa.int64())]))
    for shown in (hostile._repr_html_(), hostile.scan()._repr_html_()):
        assert "<script>" not in shown
        assert "&lt;script&gt;" in shown


def test_texts_come_as_dictionaries_where_that_is_asked_for(table):
    filled(table).write(ROWS, missing="null")
    plain, coded = (table.scan(columns=["id", "s"]).to_arrow(dictionaries=wanted) for wanted in (False, ["s"]))
    assert coded.schema.field("s").type == pa.dictionary(pa.int32(), pa.string())
    assert coded.schema.field("id") == plain.schema.field("id")
    assert len({tuple(chunk.dictionary.to_pylist()) for chunk in coded["s"].chunks}) == 1
    assert sorted(map(repr, coded.to_pylist())) == sorted(map(repr, plain.to_pylist()))
    first = table.scan(columns=["s"], order_by="id DESC", limit=3)
    assert first.to_pandas(dictionaries=True)["s"].dtype == "category"
    assert list(first.to_pandas(dictionaries=True)["s"]) == list(first.to_pandas()["s"])
    assert table.to_polars(dictionaries=True)["s"].dtype == pl.Categorical
    assert table.scan("id < 0").to_arrow(dictionaries=True)["s"].type == coded.schema.field("s").type
    changes = table.scan(incremental=(1, 2)).to_arrow(dictionaries=True)
    assert set(changes["_row_kind"].to_pylist()) == {"+I"}


def test_dictionaries_of_other_columns_are_refused(table):
    with pytest.raises(InvalidArgument, match="column 'f' of type double is not text"):
        table.scan().to_arrow(dictionaries=["f"])
    with pytest.raises(UnknownColumn, match="'t'"):
        table.scan().to_arrow(dictionaries=["t"])
    with pytest.raises(InvalidArgument, match="True or a list"):
        table.scan().to_arrow(dictionaries="s")


@pytest.mark.slow
@pytest.mark.sizes
def test_only_texts_that_repeat_come_as_dictionaries_by_themselves(tmp_path):
    """Texts of which each row has its own would need more memory and time as a dictionary."""
    created = Table.create(str(tmp_path / "t"), "id BIGINT, city STRING, comment STRING, note STRING", options={"bucket": "-1"})
    count = 40_000
    rows = {
        "id": range(count),
        "city": [None if at % 11 == 0 else f"city {at % 300}" for at in range(count)],
        "comment": [f"comment {at}" for at in range(count)],
        "note": [None] * count,
    }
    created.write(rows)
    table = Table.open(created.path)
    coded = pa.dictionary(pa.int32(), pa.string())
    for scan in (table.scan(), table.scan("id >= 0"), table.scan("comment <> 'x'"), table.scan(order_by="id")):
        found = scan.to_arrow(dictionaries=True)
        assert [field.type for field in found.schema] == [pa.int64(), coded, pa.string(), coded]
        assert found.sort_by("id").to_pylist() == pa.table(rows).to_pylist()
    named = table.scan().to_arrow(dictionaries=["comment"])
    assert [field.type for field in named.schema] == [pa.int64(), pa.string(), coded, pa.string()]
    few = table.scan("id < 100").to_arrow(dictionaries=True)
    assert [field.type for field in few.schema] == [pa.int64(), coded, coded, coded]
