"""Merge engines and row kinds as users of ``Table`` meet them."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from pyspark_paimon import InvalidArgument, SchemaMismatch, UnmergeableRows, UnsupportedOption, UnsupportedTable
from tests.build import tuples

AGGREGATION = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
PARTIAL = {"merge-engine": "partial-update"}


def rows(*values, kinds=None) -> pa.Table:
    ids, cities, numbers = zip(*values, strict=True)
    table = pa.table({"id": pa.array(ids, pa.int64()), "city": pa.array(cities, pa.string()), "n": pa.array(numbers, pa.int32())})
    return table if kinds is None else table.append_column("_row_kind", pa.array(kinds))


def test_aggregation_sums_what_is_written(create) -> None:
    table = create(options=AGGREGATION)
    table.write(rows((1, "a", 1), (1, None, 2), (2, "b", 5)))
    table.write(rows((1, "c", 10), (2, None, None)))
    assert tuples(table) == [(1, "c", 13), (2, "b", 5)]
    table.write(rows((1, "c", 3), kinds=["-U"]))
    assert tuples(table) == [(1, None, 10), (2, "b", 5)]
    table.compact(full=True)
    assert tuples(table) == [(1, None, 10), (2, "b", 5)]


def test_a_filter_sees_folded_rows_only(create) -> None:
    table = create(
        options={**AGGREGATION, "write-only": "true", "file-index.bitmap.columns": "n", "file-index.in-manifest-threshold": "1 mb"}
    )
    for number in (1, 2, 4):
        table.write(rows((1, "a", number)))
    assert table.scan("n = 7").count() == 1
    assert [table.scan(f"n = {number}").count() for number in (1, 2, 4)] == [0, 0, 0]
    assert table.scan("n = 7", columns=["city"]).to_arrow().to_pylist() == [{"city": "a"}]


def test_partial_update_fills_gaps_and_refuses_deletes(create) -> None:
    table = create(options=PARTIAL)
    table.write(rows((1, "a", None)))
    table.write(rows((1, None, 7)))
    assert tuples(table) == [(1, "a", 7)]
    with pytest.raises(UnmergeableRows, match="ignore-delete"):
        table.write(rows((1, None, None), kinds=["-D"]))
    with pytest.raises(UnsupportedTable, match=r"partial-update\.remove-record-on-delete"):
        table.delete("id = 1")
    assert tuples(table) == [(1, "a", 7)]


def test_rows_may_say_nothing_about_columns_of_a_partial_update_table(create) -> None:
    table = create("id BIGINT, city STRING, n INT NOT NULL, tags ARRAY<STRING>", options=PARTIAL)
    table.write(pa.table({"id": [1, 2], "city": ["a", "b"], "n": [1, 2]}))
    table.write(pa.table({"n": [5], "id": [1], "tags": [["x"]]}))
    assert tuples(table) == [(1, "a", 5, ["x"]), (2, "b", 2, None)]
    with pytest.raises(SchemaMismatch, match="'n' is missing"):
        table.write(pa.table({"id": [1], "city": ["c"]}))


def test_columns_that_are_left_out_are_null_on_demand(create) -> None:
    table = create("id BIGINT, city STRING")
    table.write(pa.table({"id": [1], "city": ["a"]}))
    table.write(pa.table({"id": [1, 2]}), missing="null")
    assert tuples(table) == [(1, None), (2, None)]
    with pytest.raises(SchemaMismatch, match="'id' is missing, and it places rows"):
        table.write(pa.table({"city": ["a"]}))


def test_a_sequence_group_orders_its_columns_alone(create) -> None:
    table = create("id BIGINT, a INT, at INT, b INT", options={**PARTIAL, "fields.at.sequence-group": "a"})
    table.write(pa.table({"id": [1], "a": [1], "at": [5], "b": [1]}))
    table.write(pa.table({"id": [1], "a": [2], "at": [4], "b": [2]}))
    assert tuples(table) == [(1, 1, 5, 2)]
    assert table.scan(columns=["a"]).to_arrow().to_pylist() == [{"a": 1}]


@pytest.mark.parametrize(
    "options",
    [{**PARTIAL, "partial-update.remove-record-on-delete": "true"}, {**AGGREGATION, "aggregation.remove-record-on-delete": "true"}],
)
def test_rows_are_deleted_where_an_option_says_how(create, options) -> None:
    table = create(options=options)
    table.write(rows((1, "a", 1), (2, "b", 2)))
    assert table.delete("id = 1").rows == 1
    assert tuples(table) == [(2, "b", 2)]
    table.compact(full=True)
    assert tuples(table) == [(2, "b", 2)]


@pytest.mark.parametrize("options", [{"ignore-delete": "true"}, {"merge-engine": "first-row"}, AGGREGATION])
def test_delete_is_refused_where_rows_would_stay(create, options) -> None:
    table = create(options=options)
    table.write(rows((1, "a", 1)))
    with pytest.raises(UnsupportedTable):
        table.delete("id = 1")
    assert tuples(table) == [(1, "a", 1)]


def test_first_row_keeps_what_came_first_and_shows_it_at_once(create) -> None:
    table = create(options={"merge-engine": "first-row"})
    table.write(rows((1, "a", 1)))
    table.write(rows((1, "b", 2), (2, "c", 3)))
    assert tuples(table) == [(1, "a", 1), (2, "c", 3)]
    with pytest.raises(UnmergeableRows, match="first-row"):
        table.write(rows((1, "a", 1), kinds=["-D"]))


def test_a_sum_that_leaves_its_type_is_an_error_and_writes_nothing(create) -> None:
    table = create(options=AGGREGATION)
    table.write(rows((1, "a", 2**31 - 1)))
    with pytest.raises(UnmergeableRows, match=r"column 'n'.*sum"):
        table.write(rows((2, "a", 2**31 - 1), (2, "a", 1)))
    assert tuples(table) == [(1, "a", 2**31 - 1)]


def test_kinds_come_from_a_column_of_the_table(create) -> None:
    table = create("id BIGINT, op STRING", options={"rowkind.field": "op"})
    table.write(pd.DataFrame({"id": [1, 2, 3], "op": ["+I", "+U", "+I"]}))
    table.write(pa.table({"id": [1, 4], "op": ["-D", "+I"]}))
    assert tuples(table) == [(2, "+U"), (3, "+I"), (4, "+I")]
    assert table.delete("id = 2").rows == 1
    assert tuples(table) == [(3, "+I"), (4, "+I")]
    for wrong in ("x", None):
        with pytest.raises(SchemaMismatch, match=r"rowkind\.field"):
            table.write(pa.table({"id": [1], "op": pa.array([wrong], pa.string())}))
    with pytest.raises(InvalidArgument, match=r"rowkind\.field"):
        table.write(pa.table({"id": [1], "op": ["+I"], "_row_kind": ["+I"]}))


def test_update_before_can_be_ignored(create) -> None:
    table = create(options={**PARTIAL, "ignore-update-before": "true", "partial-update.remove-record-on-delete": "true"})
    table.write(rows((1, "a", 1), (1, "b", None), (1, None, 2), kinds=["+I", "-U", "+U"]))
    assert tuples(table) == [(1, "a", 2)]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"merge-engine": "last-row"}, "merge-engine"),
        ({**AGGREGATION, "fields.city.aggregate-function": "sum"}, r"fields\.city\.aggregate-function"),
        ({**AGGREGATION, "fields.city.aggregate-function": "rbm64"}, r"fields\.city\.aggregate-function.*not supported"),
        ({**AGGREGATION, "fields.town.aggregate-function": "max"}, r"fields\.town\.aggregate-function"),
        ({**AGGREGATION, "fields.city.agregate": "max"}, r"fields\.city\.agregate"),
        ({**AGGREGATION, "fields.default-aggregate-function": "maximum"}, r"fields\.default-aggregate-function"),
        ({**AGGREGATION, "sequence.field": "n"}, r"fields\.n\.aggregate-function"),
        (
            {**AGGREGATION, "aggregation.remove-record-on-delete": "true", "fields.n.ignore-retract": "true"},
            r"fields\.n\.ignore-retract",
        ),
        ({"merge-engine": "first-row", "sequence.field": "n"}, r"sequence\.field"),
        ({"merge-engine": "first-row", "deletion-vectors.enabled": "true"}, r"deletion-vectors\.enabled"),
        ({"merge-engine": "first-row", "changelog-producer": "input"}, "changelog-producer"),
        ({**PARTIAL, "fields.n.aggregate-function": "sum"}, r"fields\.n\.aggregate-function"),
        ({**PARTIAL, "fields.n.sequence-group": "id"}, r"fields\.n\.sequence-group"),
        ({**PARTIAL, "fields.n.sequence-group": "town"}, r"fields\.n\.sequence-group"),
        ({**PARTIAL, "fields.n.sequence-group": "n"}, r"fields\.n\.sequence-group"),
        ({**PARTIAL, "ignore-delete": "true", "partial-update.remove-record-on-delete": "true"}, "ignore-delete"),
        (
            {**PARTIAL, "fields.n.sequence-group": "city", "partial-update.remove-record-on-delete": "true"},
            r"partial-update\.remove-record-on-delete",
        ),
        ({**PARTIAL, "partial-update.remove-record-on-sequence-group": "n"}, r"partial-update\.remove-record-on-sequence-group"),
        ({"rowkind.field": "n"}, r"rowkind\.field"),
        ({"rowkind.field": "kind"}, r"rowkind\.field"),
    ],
)
def test_options_that_contradict_each_other_are_refused_by_name(create, options, named) -> None:
    with pytest.raises(UnsupportedOption, match=named):
        create(options=options)


def test_merge_options_are_checked_again_when_they_are_altered(create) -> None:
    table = create(options=AGGREGATION)
    table.alter_options({"fields.city.aggregate-function": "max"})
    with pytest.raises(UnsupportedOption, match=r"fields\.city\.aggregate-function"):
        table.alter_options({"fields.city.aggregate-function": "sum"})
    table.write(rows((1, "a", 1), (1, "b", 1)))
    table.write(rows((1, "a", 1)))
    assert tuples(table) == [(1, "b", 3)]


GROUPED = {**PARTIAL, "fields.at.sequence-group": "city,n", "fields.n.aggregate-function": "sum"}
ORDERED = "id BIGINT, city STRING, n INT, at INT, other STRING"


@pytest.mark.parametrize("merges", [False, True], ids=["update", "merge"])
def test_an_update_sets_columns_and_leaves_the_others_whatever_folds_them(create, merges) -> None:
    def change(table, values):
        if not merges:
            return table.update("id = 1", values=values)
        texts = {name: "null" if value is None else repr(value) for name, value in values.items()}
        return table.merge([{"id": 1}], "id").when_matched_update(texts).execute()

    table = create(ORDERED, options=GROUPED)
    table.write([{"id": 1, "city": "Oslo", "n": 5, "at": 2, "other": "x"}, {"id": 2, "city": "Rome", "n": 1}], missing="null")
    table.write([{"id": 1, "n": 4, "at": 3}], missing="null")
    expected = {"id": 1, "city": None, "n": 9, "at": 3, "other": "x"}
    for values in ({"n": 7}, {"city": "Lima"}, {"other": "y"}, {"city": None, "at": 4}):
        change(table, values)
        expected |= values
        assert table.scan("id = 1").to_arrow().to_pylist() == [expected]
    table.compact(full=True)
    assert table.scan("id = 1").to_arrow().to_pylist() == [expected]
    last = table.snapshots().num_rows
    for values, told in (({"other": None}, "'other' cannot be set to null"), ({"at": 3, "n": 0}, "'at' orders the versions of a row")):
        with pytest.raises(InvalidArgument, match=told):
            change(table, values)
    with pytest.raises(InvalidArgument, match=r"'at' is null but orders .*fields\.at\.sequence-group"):
        table.update("id = 2", values={"city": "Bonn"})
    with pytest.raises(
        InvalidArgument, match=r"'city, n' has values where 'at'.* is null: the next version loses them. Set 'at' in the same update"
    ):
        table.update("id = 2", values={"other": "y"})
    assert table.snapshots().num_rows == last
    for values in ({"at": 1, "other": "y"}, {"n": 8}):
        table.update("id = 2", values=values)
    assert table.scan("id = 2").to_arrow().to_pylist() == [{"id": 2, "city": "Rome", "n": 8, "at": 1, "other": "y"}]


def test_a_first_row_is_not_updated(create) -> None:
    table = create(options={"merge-engine": "first-row"})
    with pytest.raises(UnsupportedTable, match="merge-engine 'first-row' keeps the first version"):
        table.merge([{"id": 1, "n": 1}], "id").when_matched_update({"n": "s.n"}).execute()
