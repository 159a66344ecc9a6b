"""``Table.merge``: what becomes of every row is what a model says that goes row by row; races, repetitions, mistakes."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_paimon import InvalidArgument, InvalidFilter, PaimonError, SchemaMismatch, Table, UnknownColumn
from pyspark_paimon.jobs import merge_rows as merging
from pyspark_paimon.results.results import MergeResult
from tests.build import keyed
from tests.examples import some
from tests.merged_rows import CONDITIONS, DDL, INSERTS, JOINS, SOURCE, UPDATES, Refused, Row, comparable, model, said

VALUES = {
    "part": st.sampled_from(["p", "q"]),
    "n": st.none() | st.integers(0, 5),
    "f": st.sampled_from([None, math.nan, 0.0, -0.0, 1.5, math.inf]),
    "s": st.none() | st.sampled_from(["", "a", "a\0", "é'"]),
}


def rows_of(ids: st.SearchStrategy[int], unique: bool) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.fixed_dictionaries({"id": ids, **VALUES}), max_size=7, unique_by=(lambda row: row["id"]) if unique else None)


KINDS = {
    "keyed": (["id"], {"bucket": "2"}),
    "rewritten": ((), {}),
    "marked": ((), {"deletion-vectors.enabled": "true"}),
    "in buckets": ((), {"bucket": "2", "bucket-key": "id", "deletion-vectors.enabled": "true"}),
}


@st.composite
def clauses_of(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    found = []
    for _ in range(draw(st.integers(1, 4))):
        when = draw(st.sampled_from(list(CONDITIONS)))
        condition = draw(st.sampled_from(list(CONDITIONS[when])))
        if when == "not matched":
            given_values, values = draw(st.sampled_from(INSERTS))
            found.append((when, "insert", condition, values, given_values))
        elif draw(st.booleans()):
            given_values, values = draw(st.sampled_from(UPDATES[when]))
            found.append((when, "update", condition, values, given_values))
        else:
            found.append((when, "delete", condition, None, None))
    return found


@settings(max_examples=some(10), deadline=None)
@given(
    before=rows_of(st.integers(0, 5), unique=True),
    source=rows_of(st.integers(0, 8), unique=False),
    on=st.sampled_from(list(JOINS)),
    clauses=clauses_of(),
    kind=st.sampled_from(list(KINDS)),
)
def test_a_merge_is_the_models(tmp_path_factory, before, source, on, clauses, kind) -> None:  # noqa: PLR0917
    keys, options = KINDS[kind]
    table = Table.create(tmp_path_factory.mktemp("merge") / "t", DDL, primary_keys=keys, options=options)
    for part in (before[::2], before[1::2]):
        if part:
            table.write(part)
    merge = table.merge(pa.Table.from_pylist(source, SOURCE), on)
    for clause in clauses:
        merge = said(merge, clause)
    try:
        expected = model(before, source, on, [clause[:4] for clause in clauses], keyed=bool(keys))
    except Refused:
        with pytest.raises(InvalidArgument, match=r"rows? of the source|a source row matches no table row"):
            merge.execute()
        assert comparable(table.scan().to_arrow().to_pylist()) == comparable(before)
        return
    done = merge.execute()
    assert comparable(table.scan().to_arrow().to_pylist()) == comparable(expected)
    assert done.rows == done.updated + done.deleted + done.inserted
    assert done.inserted - done.deleted == len(expected) - len(before)


@pytest.fixture
def table(create):
    made = create("id BIGINT, city STRING, n INT", options={"bucket": "2"})
    made.write([{"id": number, "city": "c", "n": number} for number in range(6)])
    return made


def upsert(table: Table, rows: list[Row], **options: Any) -> MergeResult:
    return table.merge(rows, "id", **options).when_matched_update({"n": "t.n + s.n"}).when_not_matched_insert_all().execute()


def numbers(table: Table) -> dict[int, int]:
    return {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}


def test_a_merge_that_loses_its_rows_to_another_commit_is_computed_again(table, monkeypatch):
    real, rivals = merging.MergeRows.inserts, [lambda: table.write([{"id": 3, "city": "x", "n": 100}, {"id": 9, "city": "y", "n": 100}])]

    def raced(self):
        if rivals:
            rivals.pop()()
        return real(self)

    monkeypatch.setattr(merging.MergeRows, "inserts", raced)
    done = upsert(table, [{"id": 3, "city": "m", "n": 1}, {"id": 9, "city": "m", "n": 1}])
    assert (done.updated, done.inserted) == (2, 0)
    assert (numbers(table)[3], numbers(table)[9]) == (101, 101)


def test_expressions_of_arrow_and_columns_of_spark_say_what_text_says(table):
    connect = pytest.importorskip("pyspark.sql.connect.functions", reason="pyspark[connect] is not installed")
    col, lit = connect.col, connect.lit
    source = [{"id": 3, "city": "m", "n": 1}, {"id": 4, "city": "x", "n": 9}, {"id": 9, "city": "m", "n": 1}]
    merge = table.merge(source, "id").when_matched_delete((pc.field("s.n") > 5) & (pc.field("target.n") == 4))
    merge = merge.when_matched_update({"n": col("t.n") + col("s.n") * lit(10), "city": pc.utf8_upper(pc.field("s.city"))})
    merge = merge.when_not_matched_insert({"id": col("id"), "n": col("`s`.`n`").cast("int"), "city": None}, col("source.city") == "m")
    assert merge.execute().rows == 3
    expected = {**{number: number for number in range(6)}, 3: 13, 9: 1}
    del expected[4]
    assert numbers(table) == expected
    assert table.scan("id = 3", columns=["city"]).to_arrow()["city"].to_pylist() == ["M"]
    for wrong in (col("x.n") > 1, pc.field("n") > 1, connect.expr("t.n > 1"), connect.hash(col("t.n")) > 1):
        with pytest.raises(InvalidFilter):
            table.merge(source, "id").when_matched_delete(wrong)


def test_rows_match_by_a_condition_of_arrow_or_of_spark(table):
    connect = pytest.importorskip("pyspark.sql.connect.functions", reason="pyspark[connect] is not installed")
    source = [{"key": 1, "n": 10}, {"key": 3, "n": 30}]
    for on in (
        (pc.field("t.id") == pc.field("s.key")) & (pc.field("t.n") < 3),
        (connect.col("s.key") == connect.col("id")) & (connect.col("t.n") < 3),
        "(s.key = t.id AND t.n < 3)",
    ):
        merge = table.merge(source, on)
        assert merge._merge.join.pairs == (("id", "key"),)
        assert merge.when_matched_update({"n": "t.n"}).execute().updated == 1
    for wrong in (pc.field("t.id") < pc.field("s.key"), connect.col("t.id") == 1, connect.col("key")):
        with pytest.raises((InvalidArgument, InvalidFilter), match=r"has no equality|not a condition"):
            table.merge(source, wrong)


def test_a_repetition_is_answered_and_not_done_again(table):
    rows = [{"id": 3, "city": "m", "n": 1}, {"id": 9, "city": "m", "n": 1}]
    first = upsert(table, rows, commit_id="nightly")
    second = upsert(table, rows, commit_id="nightly")
    assert (second.snapshot_id, second.replayed, second.rows) == (first.snapshot_id, True, 0)
    assert numbers(table)[3] == 4


def test_an_empty_table_and_an_empty_source(create):
    table = create("id BIGINT, n INT", options={"bucket": "-1"})
    assert upsert(table, [{"id": 1, "n": 1}]).inserted == 1
    assert upsert(table, [{"id": 1, "n": 1}, {"id": 2, "n": 2}]).updated == 1
    nothing = upsert(table, pa.schema([("id", pa.int64()), ("n", pa.int32())]).empty_table())
    assert (nothing.rows, nothing.snapshot_id, numbers(table)) == (0, None, {1: 2, 2: 2})


def test_a_merge_into_an_append_table_loses_a_race_and_is_computed_again(create, monkeypatch):
    table = create("id BIGINT, n INT", primary_keys=())
    table.write([{"id": number, "n": number} for number in range(6)])
    real, rivals = merging.MergeRows.inserts, [lambda: table.update("id = 3", set={"n": 100})]

    def raced(self):
        if rivals:
            rivals.pop()()
        return real(self)

    monkeypatch.setattr(merging.MergeRows, "inserts", raced)
    done = upsert(table, [{"id": 3, "n": 1}, {"id": 9, "n": 1}], commit_id="nightly")
    assert (done.updated, done.inserted, done.rows) == (1, 1, 2)
    assert upsert(table, [{"id": 3, "n": 1}, {"id": 9, "n": 1}], commit_id="nightly").replayed
    assert numbers(table) == {**{number: number for number in range(6)}, 3: 101, 9: 1}
    assert table.fsck().problems == ()
    assert table.list_orphan_files(older_than=2**62) == []


def test_partitions_are_pruned_by_what_can_match(create):
    table = create("p STRING, id BIGINT, n INT", primary_keys=("p", "id"), partition_keys=["p"])
    table.write([{"p": part, "id": 1, "n": 0} for part in "abc"])
    merge = table.merge([{"p": "b", "id": 1, "n": 5}, {"p": "d", "id": 1, "n": 6}], ["p", "id"])
    merge = merge.when_matched_update_all().when_not_matched_insert_all().when_not_matched_by_source_delete("t.p = 'c'")
    assert repr(merge).endswith("2 rows of the source, update matched, insert not matched, delete not matched by source)")
    assert merge.execute().rows == 3
    assert table.scan(order_by="p").to_arrow().to_pylist() == [{"p": p, "id": 1, "n": n} for p, n in (("a", 0), ("b", 5), ("d", 6))]


def test_tables_without_a_key_take_inserts(create):
    table = create("id BIGINT, n INT", primary_keys=())
    table.write([{"id": 1, "n": 1}])
    assert table.merge([{"id": 1, "n": 9}, {"id": 2, "n": 9}], "id").when_not_matched_insert_all().execute().inserted == 1
    assert numbers(table) == {1: 1, 2: 9}


@pytest.mark.parametrize(
    ("say", "error", "words"),
    [
        (lambda t: t.merge([{"id": 1}], "id").execute(), InvalidArgument, "merge has no clause"),
        (lambda t: t.merge([{"id": 1}], "t.id > s.id"), InvalidArgument, "has no equality"),
        (lambda t: t.merge([{"id": 1}], "x.id = s.id"), InvalidFilter, "the table is called t"),
        (lambda t: t.merge([{"id": 1}], ["idd"]), UnknownColumn, "did you mean 'id'"),
        (lambda t: t.merge([{"id": 1}], 7), InvalidArgument, "on is"),
        (lambda t: t.merge([{"id": "x"}], "id").when_matched_delete().execute(), SchemaMismatch, "'id'"),
        (lambda t: t.merge([{"id": 1, "n": 1}], "id").when_matched_update({"id": "s.id + 1"}), InvalidArgument, "part of the primary key"),
        (lambda t: t.merge([{"id": 1, "n": 1}], "id").when_matched_update({"n": "n"}), InvalidFilter, "t.n for the table"),
        (lambda t: t.merge([{"id": 1, "n": 1}], "id").when_not_matched_insert({"id": "t.id"}), InvalidFilter, "no row of the table"),
        (lambda t: t.merge([{"id": 1}], "id").when_matched_update_all(), UnknownColumn, "city"),
        (lambda t: t.merge([{"id": 1}], "id").when_matched_delete("s.id + 1"), InvalidFilter, "is not a condition"),
        (
            lambda t: t.merge([{"id": 1}], "id").when_matched_delete("s.id ="),
            InvalidFilter,
            r"the expression cannot be read at line 1(.|\n)*\^",
        ),
        (lambda t: t.merge([{"id": 1}], "id").when_matched_update({"n": [1]}), SchemaMismatch, "'n'"),
        (lambda t: t.merge([{"id": 1}], "id").when_matched_update({}), InvalidArgument, "update sets columns"),
        (
            lambda t: t.merge([{"id": 9, "city": "m"}], "city").when_not_matched_insert({"id": 3}).execute(),
            InvalidArgument,
            "match by the key",
        ),
    ],
)
def test_mistakes_are_named_and_change_nothing(table, say, error, words):
    with pytest.raises(error, match=words):
        say(table)
    assert numbers(table) == {number: number for number in range(6)}


ODD = "id BIGINT, x INT, X INT, `a``b` STRING, `c.d` STRING, `e f` STRING"


def odd_row(number: int) -> dict:
    return {"id": number, "x": number + 10, "X": number + 20, "a`b": f"a{number}", "c.d": f"c{number}", "e f": f"e{number}"}


@pytest.mark.parametrize("bucket", ["1", "-1"])
def test_all_columns_are_matched_by_their_exact_names(tmp_path, bucket):
    table = Table.create(tmp_path / "t", ODD, primary_keys=["id"], options={"bucket": bucket})
    table.write([odd_row(1)])
    source = [{**odd_row(2), "id": 1}, odd_row(3)]
    table.merge(source, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == source


@pytest.mark.parametrize(
    ("ddl", "source", "told"),
    [
        ("id BIGINT, x INT, X INT", {"id": [1], "x": [5]}, "unknown column 'X'"),
        ("id BIGINT, xy INT, XY INT", {"id": [1], "Xy": [5]}, "XY, Xy, xy of source and table differ only in case"),
        ("id BIGINT, xy INT", {"id": [1], "Xy": [5], "XY": [6]}, "XY, Xy, xy of source and table differ only in case"),
    ],
)
def test_columns_that_only_case_tells_apart_are_not_guessed(tmp_path, ddl, source, told):
    table = keyed(tmp_path / "t", ddl)
    merge = table.merge(source, on="id")
    with pytest.raises(PaimonError, match=told):
        merge.when_matched_update_all()
    if "unknown" not in told:
        with pytest.raises(PaimonError, match=told):
            merge.when_not_matched_insert_all()


def test_a_name_in_another_case_is_matched_where_it_is_the_only_one(tmp_path):
    table = keyed(tmp_path / "t", "id BIGINT, x INT, X INT, City STRING")
    table.merge({"ID": [1], "x": [5], "X": [6], "city": ["Oslo"]}, on="id").when_not_matched_insert_all().execute()
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "x": 5, "X": 6, "City": "Oslo"}]
    table.merge({"id": [2], "X": [7]}, on="id").when_not_matched_insert_all().execute()
    assert table.scan("id = 2").to_arrow().to_pylist() == [{"id": 2, "x": None, "X": 7, "City": None}]
