"""Advice on indexes: what it measures is what the indexes do once they are built."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyspark_paimon import InvalidArgument, InvalidFilter

ROWS = 30_000
SCHEMA = "id BIGINT, part STRING, name STRING, kind STRING, n INT, attrs MAP<STRING, INT>"


def rows(part: str, first: int = 0) -> pa.Table:
    numbers = np.random.default_rng(5).permutation(ROWS)
    names = [f"name {number}" if at != 12_345 else "Checksum mismatch" for at, number in enumerate(numbers)]
    return pa.table(
        {
            "id": range(first, first + ROWS),
            "part": [part] * ROWS,
            "name": names,
            "kind": ["rare" if at == 99 else "abc"[at % 3] for at in range(ROWS)],
            "n": pa.array(numbers % 1000, pa.int32()),
            "attrs": pa.array([[("k", at % 50)] for at in range(ROWS)], pa.map_(pa.string(), pa.int32())),
        }
    )


@pytest.fixture
def table(create):
    made = create(SCHEMA, primary_keys=(), partition_keys=["part"])
    made.write(pa.concat_tables([rows("x"), rows("y", ROWS)]))
    return made


def advice(table, filters, **options):
    found: dict[tuple[str, str | None, str | None], dict] = {}
    for row in table.index_advice(filters, **options).to_pylist():
        found[row["filter"], row["column_name"], row["index_type"]] = row
    return found


@pytest.mark.slow
@pytest.mark.sizes
def test_each_index_that_may_serve_is_measured(table) -> None:
    equal, text, between, entry, nothing = (
        "kind = 'rare'",
        "lower(name) LIKE '%mismatch%'",
        "n BETWEEN 5 AND 14",
        "attrs['k'] = 7",
        "reverse(name) = 'x'",
    )
    found = advice(table, [equal, text, between, entry, nothing])
    assert {key[1:] for key in found if key[0] == equal} == {("kind", kind) for kind in ("bitmap", "range-bitmap", "ngram-filter")}
    assert [key[1:] for key in found if key[0] == text] == [("name", "ngram-filter")]
    assert {key[1:] for key in found if key[0] == between} == {("n", "bsi"), ("n", "range-bitmap")}
    assert ("attrs[k]", "bitmap") in {key[1:] for key in found if key[0] == entry}
    assert [key[1:] for key in found if key[0] == nothing] == [(None, None)]
    bitmap = found[equal, "kind", "bitmap"]
    assert (bitmap["rows_skipped"], bitmap["pages_skipped"], bitmap["files_skipped"]) == (1 - 1 / ROWS, 2 / 3, 0)
    assert (bitmap["is_exact"], bitmap["is_declared"], bitmap["option"]) == (True, False, "file-index.bitmap.columns")
    assert (bitmap["sampled_files"], bitmap["sampled_rows"]) == (2, 2 * ROWS)
    assert found[text, "name", "ngram-filter"]["rows_skipped"] == 1 - 2000 / ROWS
    assert found[text, "name", "ngram-filter"]["option"] == "ngram-filter.columns"
    assert (
        found[between, "n", "bsi"]["rows_skipped"]
        == 1 - pc.sum(pc.and_(pc.greater_equal(rows("x")["n"], 5), pc.less_equal(rows("x")["n"], 14))).as_py() / ROWS
    )
    shares = [row["rows_skipped"] for key, row in found.items() if key[0] == equal]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.slow
@pytest.mark.sizes
def test_estimates_are_the_bytes_of_the_indexes_when_they_are_built(table) -> None:
    found = advice(table, ["kind = 'rare'", "name LIKE '%mismatch%'", "name = 'name 77'"], most_bytes=0)
    assert {row["sampled_files"] for row in found.values()} == {1}
    options = {"file-index.bitmap.columns": "kind", "ngram-filter.columns": "name", "file-index.bloom-filter.columns": "name"}
    table.alter_options(options).rewrite_file_index()
    built: dict[tuple[str, str], int] = {}
    for row in table.file_indexes().to_pylist():
        key = (row["column_name"], row["index_type"].removesuffix("-blocks"))
        built[key] = built.get(key, 0) + row["index_size_in_bytes"]
    for (_, column, kind), row in found.items():
        if (column, kind) in built:
            assert row["estimated_bytes"] == pytest.approx(built.pop((column, kind)), rel=0.02)
    assert built == {}
    again = advice(table, ["kind = 'rare'", "name LIKE '%mismatch%'", "kind = 'no such kind' OR kind = 'a'"])
    assert {key[1:] for key, row in again.items() if row["is_declared"]} == {("kind", "bitmap"), ("name", "ngram-filter")}
    assert again["kind = 'rare'", "kind", "bitmap"]["rows_skipped"] == 1 - 1 / ROWS


def test_partitions_and_statistics_choose_the_files(table) -> None:
    found = advice(table, ["part = 'x' AND kind = 'rare'", "part = 'none' AND kind = 'rare'", "id < 0 AND kind = 'rare'"])
    assert found["part = 'x' AND kind = 'rare'", "kind", "bitmap"]["sampled_rows"] == ROWS
    for condition in ("part = 'none' AND kind = 'rare'", "id < 0 AND kind = 'rare'"):
        row = found[condition, None, None]
        assert (row["sampled_files"], row["rows_skipped"]) == (0, None)


def test_columns_of_older_schemas_have_their_names_of_now(table) -> None:
    table.rename_column("kind", "sort")
    table.add_column("kind", "STRING")
    table.alter_options({"file-index.bitmap.columns": "sort"})
    found = advice(table, ["sort = 'rare'", "kind = 'rare'"])
    assert found["sort = 'rare'", "sort", "bitmap"]["is_declared"] is True
    assert ("kind = 'rare'", None, None) in found


def test_keyed_tables_predicates_and_empty_tables_are_advised(create) -> None:
    table = create("id BIGINT, city STRING")
    assert table.index_advice("city = 'Oslo'").to_pylist()[0]["sampled_files"] == 0
    table.write(pa.table({"id": [1, 2], "city": ["Oslo", "Lima"]}))
    table.write(pa.table({"id": [2], "city": ["Rome"]}))
    found = advice(table, [pc.field("city") == "Oslo"])
    assert {key[1:] for key in found} >= {("city", "bitmap")}
    assert found.keys() == advice(table, pc.field("city") == "Oslo").keys()
    assert advice(table, ["city = 'Oslo'"], snapshot=1)["city = 'Oslo'", "city", "bitmap"]["sampled_files"] == 1


def test_bad_arguments_are_refused(table) -> None:
    with pytest.raises(InvalidArgument, match="there is no filter"):
        table.index_advice([])
    with pytest.raises(InvalidArgument, match="most_bytes is -1"):
        table.index_advice("n = 1", most_bytes=-1)
    with pytest.raises(InvalidFilter):
        table.index_advice("n ==== 1")
