"""Statements as words, and queries whose tables are found in the text; no session takes part."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_paimon import Catalog, InvalidArgument
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.queries import run_query
from pyspark_paimon.plugins.sql.run import sql
from pyspark_paimon.plugins.sql.text.words import TokenCursor
from sparkexpr.values.column_type import ColumnType, Kind


def test_names_literals_and_spans_are_read_as_they_stand() -> None:
    words = TokenCursor("db . `a``b`$files = -1.5e1, 'it''s' TRUE CASE WHEN x, y THEN f(a, b) END z, rest -- said\n;")
    assert words.name() == ("db", "a`b$files")
    assert words.take("=")
    assert [words.literal(), words.take(","), words.literal(), words.literal()] == [Decimal(-15), True, "it's", True]
    assert (words.until((",",)), words.take(","), words.rest(), words.done) == ("CASE WHEN x, y THEN f(a, b) END z", True, "rest", True)
    properties = TokenCursor("TBLPROPERTIES ('a.b' = '1', file.format='orc', x = true)")
    assert properties.take("TBLPROPERTIES")
    assert properties.properties() == {"a.b": "1", "file.format": "orc", "x": "true"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT", "'SELECT' at line 1, column 1, where FROM is expected"),
        ("", "its end at line 1, column 1"),
        ("\n  x 'y", "cannot be read"),
    ],
)
def test_a_wrong_word_is_shown_in_its_place(text: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        TokenCursor(text).expect("FROM")


@pytest.fixture(autouse=True)
def _read_by_tasks(set_thresholds: Any) -> None:
    """No session reads rows here."""
    set_thresholds(driver_bytes=0, sent_bytes=0)


class Recorded:
    """A session that notes what it is asked."""

    def sql(self, text: str, **frames: Any) -> tuple[str, tuple[str, ...]]:
        return text, tuple(frames)


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    catalog = Catalog(tmp_path_factory.mktemp("warehouse"))
    catalog.create_table("default.t", "id INT")
    catalog.create_database("db")
    catalog.create_table("db.u", "id INT")
    return KnownTables(Recorded(), catalog)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT * FROM t", "SELECT * FROM {0} AS `t`"),
        ("SELECT * FROM db.u AS x JOIN t ON x.id = t.id", "SELECT * FROM {0} AS x JOIN {1} AS `t` ON x.id = t.id"),
        ("SELECT '{t}' FROM paimon.db.u x, t WHERE t.id IN (1, 2)", "SELECT '{{t}}' FROM {0} x, {1} AS `t` WHERE t.id IN (1, 2)"),
        ("WITH t AS (SELECT 1 AS id) SELECT * FROM t", None),
        ("WITH t(n, m) AS (SELECT 1, 2) SELECT * FROM t", None),
        ("WITH RECURSIVE a AS (SELECT 1), `T` (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t) SELECT n FROM t, a", None),
        (
            "WITH a AS (SELECT 1), b(t) AS (SELECT 2) SELECT b.t FROM b, t",
            "WITH a AS (SELECT 1), b(t) AS (SELECT 2) SELECT b.t FROM b, {0} AS `t`",
        ),
        ("SELECT extract(YEAR FROM t), a IS DISTINCT FROM t FROM other", None),
        ("SELECT t, t FROM other GROUP BY t, t", None),
        ("ANALYZE TABLE other COMPUTE STATISTICS FOR COLUMNS id, t", None),
        ("SELECT * FROM (SELECT id FROM t), (SELECT 1), db.u", "SELECT * FROM (SELECT id FROM {0} AS `t`), (SELECT 1), {1} AS `u`"),
        ("SELECT f(id, t) FROM t LEFT JOIN db.u USING (id)", "SELECT f(id, t) FROM {0} AS `t` LEFT JOIN {1} AS `u` USING (id)"),
        ("INSERT INTO elsewhere SELECT * FROM t VERSION AS OF 1 LIMIT 3", "INSERT INTO elsewhere SELECT * FROM {0} AS `t` LIMIT 3"),
        ("SELECT * FROM t$snapshots s", "SELECT * FROM {0} s"),
    ],
)
def test_tables_of_a_query_are_put_in_their_places(names, monkeypatch, text, wanted):
    class Scanned:
        table_schema = SimpleNamespace(names=("id",), column_types={"id": ColumnType(Kind.BIGINT)})

        def scan(self, **travel: Any) -> Any:
            return self

        def projected(self, columns: list[str]) -> Any:
            return self

        def narrowed(self, condition: Any) -> Any:
            return self

        def to_spark(self, *, exact: bool) -> str:
            assert not exact, "Spark filters again"
            return "frame"

    monkeypatch.setattr(Catalog, "table", lambda self, name, spark: Scanned())
    asked, frames = run_query(names, text)
    assert asked == (text if wanted is None else wanted.format("{paimon_0}", "{paimon_1}").replace("{t}", "{{t}}"))
    assert len(frames) == (0 if wanted is None else wanted.count("{0}") + wanted.count("{1}"))


class Computing(Recorded):
    """Computes every value as one second after 1970."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def sql(self, text: str, **frames: Any) -> Any:
        if frames:
            return text
        self.asked.append(text)
        return SimpleNamespace(first=lambda: [1000])


@pytest.mark.parametrize(
    "value",
    [
        "TIMESTAMP '2024-01-31 10:00:00' - INTERVAL '1' DAY",
        "DATE '2024-01-31' + INTERVAL 1 HOUR",
        "current_timestamp() - INTERVAL 2 DAYS",
        "now()",
        "'2024-01-31' + INTERVAL 1 HOUR",
    ],
)
def test_a_time_to_travel_to_may_be_computed(names, monkeypatch, value):
    given: list[dict[str, Any]] = []
    frame = SimpleNamespace(to_spark=lambda **_: "frame", table_schema=None)
    monkeypatch.setattr(
        Catalog, "table", lambda self, name, spark: SimpleNamespace(scan=lambda *_, **travel: given.append(travel) or frame)
    )
    spark = Computing()
    assert run_query(KnownTables(spark, names.catalog), f"SELECT * FROM t TIMESTAMP AS OF {value} x") == "SELECT * FROM {paimon_0} x"
    assert (spark.asked, given) == ([f"SELECT unix_millis(CAST({value} AS TIMESTAMP))"], [{"timestamp": 1000}])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CREATE TABLE x (id INT) USING paimon TBLPROPERTIES ('primary-key' = 'id')", r"not a name in a catalog.*catalog=Catalog"),
        ("CREATE TABLE x USING paimon TBLPROPERTIES ('primary-key' = 'id')", r"not a name in a catalog.*catalog=Catalog"),
        ("DROP TABLE paimon.`/warehouse/t`", "needs the name of a catalog table"),
        ("CALL sys.compact()", "needs a table"),
        ("CALL sys.compact('t', 1, 2, 3, 4, 5, 6, 7)", "takes 7 arguments"),
    ],
)
def test_what_would_be_taken_silently_or_mean_nothing_is_refused_with_the_way(text, words):
    with pytest.raises(InvalidArgument, match=words):
        sql(Recorded(), text)


@pytest.mark.parametrize("text", ["CREATE TABLE x (id INT) USING parquet", "CREATE TABLE x (id INT) STORED AS orc", "CALL other.proc(1)"])
def test_other_tables_are_sparks(names, text):
    assert sql(Recorded(), text, catalog=names.catalog) == (text, ())


def test_what_no_tokenizer_reads_is_sparks(names):
    assert sql(Recorded(), "SELECT 'open") == ("SELECT 'open", ())
