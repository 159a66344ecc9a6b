"""DELETE and UPDATE with subqueries: the rows are those that Spark's own SELECT finds."""

from __future__ import annotations

from itertools import count

import pytest

from paimon_base.errors import InvalidArgument
from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Table, sql

pytestmark = pytest.mark.spark

ROWS = [
    {"id": at, "k": None if at % 5 == 0 else at % 7, "s": None if at % 4 == 0 else f"x{at % 3}", "p": {"a": at % 3}} for at in range(40)
]
SOURCE = [{"k": 1, "s": "x1", "n": 3}, {"k": 2, "s": None, "n": 9}, {"k": 3, "s": "x2", "n": 5}, {"k": 99, "s": "zz", "n": 1}]
ALONE = [
    "k IN (SELECT k FROM u)",
    "k NOT IN (SELECT k FROM u)",
    "NOT k IN (SELECT k FROM u)",
    "s IN (SELECT s FROM u)",
    "s NOT IN (SELECT s FROM u)",
    "s NOT IN (SELECT s FROM u WHERE s IS NOT NULL)",
    "k NOT IN (SELECT k FROM u WHERE k > 1000)",
    "k IN (SELECT k FROM u WHERE k > 1000)",
    "k IN (SELECT CAST(NULL AS INT))",
    "k NOT IN (SELECT CAST(NULL AS INT)) OR id = 3",
    "(k IN (SELECT k FROM u)) IS NOT TRUE AND k IS NOT NULL OR id > 37",
    "EXISTS (SELECT 1 FROM u WHERE k = 99) AND id < 5",
    "NOT EXISTS (SELECT 1 FROM u WHERE k = 1000)",
    "NOT EXISTS (SELECT 1 FROM u)",
    "id > (SELECT max(n) FROM u) AND s IN (SELECT s FROM u)",
    "k = (SELECT k FROM u WHERE k = 1000)",
    "x.p.a IN (SELECT k FROM u) AND x.id NOT IN (SELECT n FROM u)",
    "k IN (WITH w AS (SELECT k + 1 AS k FROM u) SELECT k FROM w)",
    "id IN (SELECT DISTINCT id + 1 FROM {t} WHERE k = 2)",
]
WITH_ROW = [
    "EXISTS (SELECT 1 FROM u WHERE u.k = x.k)",
    "NOT EXISTS (SELECT 1 FROM u WHERE u.k = x.k AND u.s = x.s)",
    "(k, s) IN (SELECT k, s FROM u)",
    "id > (SELECT max(n) FROM u WHERE u.k = x.k)",
    "EXISTS (SELECT 1 FROM u WHERE u.n = id) OR s IN (SELECT s FROM u)",
]


@pytest.fixture(scope="module")
def make(spark, tmp_path_factory):
    root, numbers = tmp_path_factory.mktemp("subqueries"), count()
    spark.createDataFrame(SOURCE, "k INT, s STRING, n INT").createOrReplaceTempView("u")

    def made(*, keyed: bool) -> str:
        path = f"{root}/t{next(numbers)}"
        keys, options = (["id"], {"bucket": "1"}) if keyed else ([], {})
        Table.create(path, "id INT, k INT, s STRING, p STRUCT<a INT>", primary_keys=keys, options=options).write(ROWS)
        return path

    yield made
    spark.catalog.dropTempView("u")


def ids(path: str) -> list[int]:
    return sorted(Table.open(path).scan(columns=["id"]).to_arrow()["id"].to_pylist())


def matching(spark, path: str, condition: str) -> set[int]:
    found = sql(spark, f"SELECT id FROM paimon.`{path}` AS x WHERE {condition.format(t=f'paimon.`{path}`')}").collect()
    return {row.id for row in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keyed", "listed", "conditions"),
    [
        (False, 10**6, ALONE[::2]),
        (True, 10**6, ALONE[1::2]),
        (True, 1, ALONE[::3]),
        *(pytest.param(keyed, 10**6, ALONE, marks=pytest.mark.long) for keyed in (False, True)),
    ],
    ids=["append", "keyed", "keyed, joined", "append, every condition", "keyed, every condition"],
)
def test_deletes_find_the_rows_of_a_select(spark, make, keyed, listed, conditions) -> None:
    for condition in conditions:
        path = make(keyed=keyed)
        gone = matching(spark, path, condition)
        with use_thresholds(listed_subquery=listed):
            sql(spark, f"DELETE FROM paimon.`{path}` AS x WHERE {condition.format(t=f'paimon.`{path}`')}")
        assert ids(path) == [row["id"] for row in ROWS if row["id"] not in gone], condition


@pytest.mark.slow
def test_conditions_on_the_row_need_a_primary_key(spark, make) -> None:
    for condition in WITH_ROW:
        path = make(keyed=True)
        gone = matching(spark, path, condition)
        assert gone
        done = sql(spark, f"DELETE FROM paimon.`{path}` x WHERE {condition}").collect()[0]
        assert done.rows == len(gone)
        assert ids(path) == [row["id"] for row in ROWS if row["id"] not in gone], condition
    path = make(keyed=False)
    with pytest.raises(InvalidArgument, match="needs a table with a primary key"):
        sql(spark, f"DELETE FROM paimon.`{path}` x WHERE {WITH_ROW[0]}")
    with pytest.raises(InvalidArgument, match="at most one row"):
        sql(spark, f"DELETE FROM paimon.`{path}` x WHERE id = (SELECT k FROM u)")
    assert ids(path) == list(range(40))


@pytest.mark.parametrize(("keyed", "condition"), [(False, ALONE[1]), (True, ALONE[3]), (True, WITH_ROW[0])])
def test_updates_change_the_rows_of_a_select(spark, make, keyed, condition) -> None:
    path = make(keyed=keyed)
    changed = matching(spark, path, condition)
    sql(spark, f"UPDATE paimon.`{path}` x SET s = concat('new ', CAST(x.id AS STRING)), k = x.k + id WHERE {condition}")
    for before, after in zip(ROWS, Table.open(path).scan(order_by="id").to_arrow().to_pylist(), strict=True):
        wanted = {**before, "s": f"new {before['id']}", "k": None if before["k"] is None else before["k"] + before["id"]}
        assert after == (wanted if before["id"] in changed else before)


@pytest.mark.parametrize("keyed", [False, True])
def test_fields_of_structs_are_updated(spark, make, keyed) -> None:
    path = make(keyed=keyed)
    sql(spark, f"UPDATE paimon.`{path}` AS x SET x.p.a = x.p.a * 10 + k, s = NULL WHERE p.a = 2")
    Table.open(path, spark=spark).update("id = 1", set={"p.a": "NULL"})
    for before, after in zip(ROWS, Table.open(path).scan(order_by="id").to_arrow().to_pylist(), strict=True):
        wanted = before
        if before["p"]["a"] == 2:
            wanted = {**before, "s": None, "p": {"a": None if before["k"] is None else 20 + before["k"]}}
        assert after == ({**before, "p": {"a": None}} if before["id"] == 1 else wanted)


def test_updates_by_the_row_read_structs_named_like_the_sides_of_a_merge(spark, make, tmp_path) -> None:  # make: the view u
    table = Table.create(
        tmp_path / "keyed", "id INT, n INT, t STRUCT<id INT>, s STRUCT<a INT>", primary_keys=["id"], options={"bucket": "1"}
    )
    table.write([{"id": at, "n": 0, "t": {"id": 100 + at}, "s": {"a": 10 * at}} for at in range(1, 4)])
    where = "EXISTS (SELECT 1 FROM u WHERE u.k = id AND u.k < 3)"
    sql(spark, f"UPDATE paimon.`{table.path}` SET n = t.id + s.a WHERE {where}")
    assert table.scan(order_by="id").to_arrow()["n"].to_pylist() == [111, 122, 0]
    with pytest.raises(InvalidArgument, match="a field of a column cannot be set where Spark finds the rows"):
        sql(spark, f"UPDATE paimon.`{table.path}` SET s.a = 1 WHERE {where}")
