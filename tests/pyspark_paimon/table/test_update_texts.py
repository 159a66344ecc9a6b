"""Texts in updates are expressions, and constants in ``values``; filters without a column are refused."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_paimon import InvalidArgument, InvalidFilter, SchemaMismatch, Table, UnknownColumn
from tests.build import keyed, tuples
from tests.examples import some

DDL = "id BIGINT, n INT, s STRING, d DATE, m MAP<STRING, STRING>"


def rows(table: Table) -> list[tuple]:
    return tuples(table.scan(columns=["id", "n", "s", "d"]))


@pytest.fixture(params=["keyed", "append"])
def table(request, tmp_path) -> Table:
    keys = {"primary_keys": ["id"], "options": {"bucket": "1"}} if request.param == "keyed" else {}
    made = Table.create(tmp_path / "t", DDL, **keys)
    day = dt.date(2024, 1, 31)
    data = {"id": [1, 2], "n": pa.array([10, 20], pa.int32()), "s": ["a", "b"], "d": [day, day], "m": [[("k", "v")], None]}
    made.write(data)
    return made


def test_a_text_in_set_is_an_expression(table):
    day = dt.date(2024, 1, 31)
    table.update("id = 1", set={"s": "upper(s)", "n": "n * 2 + 1"})
    assert rows(table) == [(1, 21, "A", day), (2, 20, "b", day)]
    table.update("TRUE", set={"s": "concat(t.s, '-', CAST(`n` AS STRING))", "d": "date_add(d, 1)", "n": "NULL"})
    assert rows(table) == [(1, None, "A-21", dt.date(2024, 2, 1)), (2, None, "b-20", dt.date(2024, 2, 1))]
    table.update("id = 1", set={"s": "m['k']", "n": 7, "d": None})
    table.update("id = 2", set={"s": "'Anna'", "n": pc.scalar(8)})
    assert rows(table) == [(1, 7, "v", None), (2, 8, "Anna", dt.date(2024, 2, 1))]


def test_a_text_in_values_is_itself(table):
    day = dt.date(2024, 1, 31)
    table.update("id = 1", values={"s": "upper(s)", "n": 5})
    table.update("id = 2", set={"n": "n + 1"}, values={"s": "'q'"})
    assert rows(table) == [(1, 5, "upper(s)", day), (2, 21, "'q'", day)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Anna", UnknownColumn),
        ("New York", InvalidFilter),
        ("", InvalidFilter),
        ("it's", InvalidFilter),
        ("no_such(s)", InvalidFilter),
        ("n", SchemaMismatch),
    ],
)
def test_a_plain_text_in_set_shows_values(table, text, kind):
    before = rows(table)
    with pytest.raises(kind) as refused:
        table.update("id = 1", set={"s": text})
    assert f"values={{'s': {text!r}}}" in str(refused.value)
    assert rows(table) == before


def test_set_and_values_are_told_apart(table):
    for arguments, message in (
        ({"set": {"s": "n"}, "values": {"s": "n"}}, "both"),
        ({"set": {"s": "lower(s)"}, "values": {"S": "n"}}, "set twice"),
        ({"values": {"s": pc.field("s")}}, "give the expression in set="),
        ({}, "update sets no column"),
        ({"set": {}, "values": {}}, "update sets no column"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            table.update("id = 1", **arguments)


@pytest.mark.parametrize(
    "text", ["1 = 1", "2 > 3", "NULL", "NOT FALSE", "1 = 1 OR 2 = 2", "DATE '2024-01-01' > DATE '2020-01-01'", "TRUE AND TRUE"]
)
def test_changes_without_a_column_in_the_filter_are_refused(table, text):
    for change in (lambda: table.delete(text), lambda: table.update(text, values={"s": "x"}), lambda: table.delete(text, dry_run=True)):
        with pytest.raises(InvalidArgument, match=r"has no column.*'TRUE'"):
            change()
    assert len(rows(table)) == 2


def test_filters_with_a_column_or_true_are_accepted(table):
    assert table.delete("id > 99999999999999999999").rows == 0
    assert table.delete("FALSE").rows == 0
    assert table.delete("1 = 1 AND id = 1").rows == 1
    assert table.update("`ID` = 2 OR 1 = 1", values={"s": "x"}).rows == 1
    assert table.delete(" true ").rows == 1


def test_a_column_in_double_quotes_is_refused_with_backticks(table):
    with pytest.raises(InvalidFilter, match="write `s` for the column"):
        table.delete("\"s\" = 'a'")
    with pytest.raises(InvalidFilter, match="write `n` for the column"):
        table.update("id = 1", set={"s": 'concat("n", s)'})
    assert len(rows(table)) == 2


@settings(deadline=None, max_examples=some(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=30).filter(lambda text: "\0" not in text))
def test_any_text_is_stored_by_values(tmp_path_factory, text):
    made = keyed(tmp_path_factory.mktemp("texts") / "t", "id INT, s STRING")
    made.write({"id": [1], "s": [None]})
    made.update("id = 1", values={"s": text})
    assert made.scan().to_arrow()["s"].to_pylist() == [text]
    quoted = "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
    made.update("id = 1", values={"s": None})
    made.update("id = 1", set={"s": quoted})
    assert made.scan().to_arrow()["s"].to_pylist() == [text]
