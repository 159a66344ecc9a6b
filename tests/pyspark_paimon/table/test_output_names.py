"""Names of outputs that are names of stored columns, too: ORDER BY, top-n, aggregates, groups and splits mean the output."""

from __future__ import annotations

import polars as pl
import pyarrow.compute as pc
import pytest

from paimon_base.errors import InvalidFilter, PaimonError, UnknownColumn
from pyspark_paimon import Table
from tests.output_names import DDL, QUESTIONS, Question, groups, ordered, rows, summary

COMPUTED = {
    "w % 2 = 0 AND v >= 2": lambda row: row["w"] % 2 == 0 and (row["v"] or 0) >= 2,
    "r.x < 9 OR id + v > 12": lambda row: row["r"]["x"] < 9 or row["id"] + (row["v"] or -99) > 12,
    "v = 7 AND r.v = 0": lambda row: row["v"] == 7 and row["r"]["v"] == 0,
    "element_at(m, 'k') < -3 AND w IN (1, 2, 3)": lambda row: row["id"] > 3 and row["w"] in {1, 2, 3},
}
FUNCTIONS = ["count", "min", "max", "sum", "count_distinct"]


@pytest.fixture(scope="module", params=["append", "keyed"])
def table(request, tmp_path_factory) -> Table:
    keys = ["id"] if request.param == "keyed" else []
    options = {"file-index.bitmap.columns": "v,w", "file-index.range-bitmap.columns": "v"} | ({"bucket": "1"} if keys else {})
    made = Table.create(tmp_path_factory.mktemp(request.param) / "t", DDL, primary_keys=keys, options=options)
    stored = rows()
    made.write(stored[:5])
    made.write(stored[5:])
    return made


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_a_name_means_the_output_before_the_stored_column(table: Table, question: Question) -> None:
    stored = rows()
    scan = table.scan("id < 11", question.columns)
    kept = [row for row in stored if row["id"] < 11]
    if question.meaning is None:
        with pytest.raises(PaimonError):
            table.scan(columns=question.columns, order_by=question.name)
        with pytest.raises(PaimonError):
            scan.aggregate({question.name: "max"})
        return
    for descending in (False, True):
        order = [f"{question.name} {'DESC' if descending else 'ASC'}", "id DESC" if descending else "id"]
        expected = [shown(question, row) for row in ordered(question, kept, descending=descending)]
        for limit in (None, 0, 4):
            sorted_scan = table.scan("id < 11", question.columns, limit, order_by=order)
            assert found(sorted_scan) == expected[:limit], f"{order}, limit {limit}"
            assert sorted_scan.count() == len(expected[:limit])
            assert found(sorted_scan.limited(2)) == expected[:limit][:2]
            of_splits = [row for split in sorted_scan.plan().splits for batch in sorted_scan.read(split) for row in batch.to_pylist()]
            assert all(row in list(map(plain, of_splits)) for row in expected[:limit])
    by = scan.aggregate({"rows": "count"}, by=question.name)
    assert [dict(zip(("key", "n"), row.values(), strict=True)) for row in by.to_pylist()] == groups(question, kept)
    totals = scan.aggregate({question.name: FUNCTIONS})
    assert list(totals.to_pylist()[0].values()) == summary(question, kept)
    assert scan.aggregate({question.name: "count"}).column(0).to_pylist() == summary(question, kept)[:1]
    per_group = scan.aggregate({question.name: "max"}, by=question.name).to_pylist()
    assert [tuple(row.values()) for row in per_group] == [(row["key"], row["key"]) for row in groups(question, kept)]


def shown(question: Question, row):
    return plain(question.shown(row))


def plain(row):
    return {name: value for name, value in row.items() if not isinstance(value, list)}


def found(scan):
    return list(map(plain, scan.to_arrow().to_pylist()))


@pytest.mark.parametrize(
    "question", [each for each in QUESTIONS if each.name in {"v", "r.x", "`a.b`"} and each.meaning is not None], ids=str
)
@pytest.mark.parametrize("filter_", sorted(COMPUTED))
def test_computed_filters_choose_the_rows_before_order_and_limit(table: Table, filter_: str, question: Question) -> None:
    kept = [row for row in rows() if COMPUTED[filter_](row)]
    scan = table.scan(filter_, question.columns, 3, order_by=[f"{question.name} DESC", "id DESC"])
    assert found(scan) == [shown(question, row) for row in ordered(question, kept, descending=True)[:3]]
    unlimited = table.scan(filter_, question.columns)
    assert unlimited.count() == len(kept)
    by = unlimited.aggregate({"rows": "count"}, by=question.name).to_pylist()
    assert [dict(zip(("key", "n"), row.values(), strict=True)) for row in by] == groups(question, kept)


def test_filters_mean_stored_columns(table: Table) -> None:
    scan = table.scan("v = 7", columns={"v": "-v"})
    assert scan.to_arrow().to_pylist() == [{"v": -7}]
    assert scan.count() == 1
    assert scan.aggregate({"v": "min"}).to_pylist() == [{"v_min": -7}]


def test_other_readers_filter_outputs(table: Table) -> None:
    scan = table.scan(columns={"id": "id", "v": "-v"})
    expected = sorted(row["id"] for row in rows() if row["v"] is not None and -row["v"] < -5)
    assert sorted(scan.to_dataset().to_table(filter=pc.field("v") < -5)["id"].to_pylist()) == expected
    assert scan.to_dataset().count_rows(pc.field("v") < -5) == len(expected)
    assert sorted(scan.scan_polars().filter(pl.col("v") < -5).collect()["id"]) == expected
    assert sorted(row[0] for row in scan.to_duckdb().filter("v < -5").fetchall()) == expected


def test_groups_may_compute_with_outputs(table: Table) -> None:
    scan = table.scan(columns={"v": "-v", "w": "w"})
    assert scan.aggregate({"n": "count"}, by={"low": "v < -5"}).to_pylist() == [
        {"low": None, "n": 1},
        {"low": False, "n": 6},
        {"low": True, "n": 5},
    ]


def test_a_count_of_a_name_that_means_no_column_counts_rows(table: Table) -> None:
    assert table.scan().aggregate({"n": "count", "count(*)": "count", "n.rows": "count"}).to_pylist() == [
        {"n": 12, "count(*)": 12, "n.rows": 12}
    ]
    for name, error in (("r.nope", (InvalidFilter, UnknownColumn)), ("id.x", (InvalidFilter, UnknownColumn))):
        with pytest.raises(error):
            table.scan().aggregate({name: "count"})


def test_columns_that_differ_in_case_need_their_spelling(create) -> None:
    table = create("v INT, V INT", primary_keys=())
    table.write([{"v": 1, "V": 9}, {"v": 2, "V": 8}])
    for name, last in (("v", 8), ("V", 9)):
        assert table.scan(columns=["V"], order_by=name).to_arrow()["V"].to_pylist()[-1] == last
        assert table.scan(columns={"v": "v"}).aggregate({"V": "max"}).to_pylist() == [{"V_max": 9}]


def test_computed_outputs_keep_their_order_when_they_are_projected(table: Table) -> None:
    scan = table.scan(columns={"id": "id", "v": "-v"}, order_by="v", limit=3)
    assert scan.projected(["ID"]).to_arrow().to_pylist() == [{"id": row["id"]} for row in scan.to_arrow().to_pylist()]
    assert "order_by='v', limit=3" in repr(scan)
