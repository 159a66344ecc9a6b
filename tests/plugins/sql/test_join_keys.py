"""Keys of a small, filtered table filter the large table of a join: only where no row of the result can be lost."""

from __future__ import annotations

import pytest

from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Table
from pyspark_paimon.plugins.sql.join_keys import TableScan, join_keys, prune_joins

DAYS = 10


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Ten partitions of flights, and the ten days with a name each: ``f`` and ``d``."""
    folder = tmp_path_factory.mktemp("joined")
    flights = Table.create(
        folder / "f", "day INT, id BIGINT, n INT, x DOUBLE", primary_keys=["day", "id"], partition_keys=["day"], options={"bucket": "1"}
    )
    flights.write([{"day": day, "id": at, "n": at, "x": float(day)} for day in range(DAYS) for at in range(20)])
    days = Table.create(folder / "d", "day INT, wide BIGINT, name STRING, x DOUBLE")
    days.write(
        [{"day": day, "wide": day, "name": f"day {day}", "x": float(day)} for day in [*range(DAYS), 3]]
        + [{"day": None, "wide": None, "name": "day 3", "x": None}]
    )
    return {"f": flights, "d": days}


def files(tables, text: str, condition: str | None = "name = 'day 3'") -> int:
    """The files that the scan of ``f`` reads for the query, with the condition on ``d``."""
    scans = {
        text.index(" f ") + 1: TableScan(tables["f"].scan(), filtered=False),
        text.index(" d ") + 1: TableScan(tables["d"].scan(condition), filtered=condition is not None),
    }
    pruned = prune_joins(text, scans)
    assert pruned[text.index(" d ") + 1] is scans[text.index(" d ") + 1]
    return pruned[text.index(" f ") + 1].scan.plan().file_count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM f JOIN d ON f.day = d.day", 1),
        ("SELECT * FROM d JOIN f ON d.DAY = F.Day AND f.n > d.wide", 1),
        ("SELECT * FROM f INNER JOIN d USING (day)", 1),
        ("SELECT * FROM f , d WHERE f.day = d.day AND f.n > 3", 1),
        ("SELECT * FROM f LEFT SEMI JOIN d ON f.day = d.day", 1),
        ("SELECT * FROM d LEFT SEMI JOIN f ON f.day = d.day", 1),
        ("SELECT * FROM f LEFT JOIN d ON f.day = d.day", DAYS),
        ("SELECT * FROM d RIGHT JOIN f ON f.day = d.day", DAYS),
        ("SELECT * FROM f LEFT ANTI JOIN d ON f.day = d.day", DAYS),
        ("SELECT * FROM f FULL JOIN d ON f.day = d.day", DAYS),
        ("SELECT * FROM f JOIN d ON f.day = d.day LEFT JOIN e ON e.a = d.day", DAYS),
        ("SELECT * FROM f JOIN d ON f.day = d.day OR f.n = 1", DAYS),
        ("SELECT * FROM f JOIN d ON f.day <=> d.day", DAYS),
        ("SELECT * FROM f JOIN d ON f.day = d.day + 1", DAYS),
        ("SELECT * FROM f JOIN d ON day = d.day", DAYS),
        ("SELECT * FROM f JOIN d ON f.day = d.wide", DAYS),  # other types
        ("SELECT * FROM f JOIN d ON f.n = d.day", DAYS),  # neither partition nor key
        ("SELECT * FROM f JOIN d ON f.x = d.x", DAYS),
        ("SELECT * FROM f TABLESAMPLE (5 ROWS) JOIN d ON f.day = d.day", DAYS),
        ("SELECT * FROM f AS f(day, id, n, x) JOIN d ON f.day = d.day", DAYS),
        ("SELECT * FROM f NATURAL JOIN d ", DAYS),
    ],
)
def test_a_large_table_reads_the_partitions_that_a_small_one_names(tables, text, expected):
    assert files(tables, text.replace("FROM f,", "FROM f ,") + " ") == expected


def test_an_unfiltered_or_large_table_names_no_partitions_and_an_empty_one_names_none(tables):
    text = "SELECT * FROM f JOIN d ON f.day = d.day"
    assert files(tables, text, None) == DAYS
    assert files(tables, text, "name = 'no day'") == 0
    assert files(tables, text, "day IN (2, 3, 4)") == 3
    with use_thresholds(join_keys=2):
        assert files(tables, text, "day IN (2, 3, 4)") == DAYS
        assert files(tables, text, "day IN (2, 3)") == 2
    with use_thresholds(broadcast_bytes=1):
        assert files(tables, text) == DAYS


def test_columns_of_subqueries_are_those_of_their_own_tables():
    text = "SELECT * FROM (SELECT f.day FROM f JOIN d ON f.day = d.day) q JOIN e ON q.day = e.day WHERE EXISTS (SELECT 1 FROM g WHERE g.a = e.a)"
    assert [(text[one.table], text[other.table]) for one, other in join_keys(text)] == [("f", "d")]
    assert join_keys("SELECT * FROM a JOIN a ON a.x = a.y") == []
    assert join_keys("not a query") == []
