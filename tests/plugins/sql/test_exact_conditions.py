"""Which conditions a scan and Spark evaluate alike, and which plain selects need no Spark."""

from __future__ import annotations

import pytest

from manifest.schema.validation import build_schema
from pyspark_paimon.plugins.sql.exact_conditions import is_exact
from pyspark_paimon.plugins.sql.pushdown import usages
from pyspark_paimon.plugins.sql.small_scans import _selected_columns

SCHEMA = build_schema(
    "id BIGINT, n INT, flag BOOLEAN, f FLOAT, d DOUBLE, price DECIMAL(10, 2), s STRING, day DATE, at TIMESTAMP(6), zoned TIMESTAMP_LTZ(6), b BYTES"
)


@pytest.mark.parametrize(
    "text",
    [
        "n = 1",
        "n <> -1 AND id >= 123456789012345678",
        "1 < n",
        "n IN (1, 2)",
        "n BETWEEN 1 AND 2",
        "(n = 1 OR NOT s = 'a')",
        "n IS NOT NULL AND b IS NULL AND f IS NULL",
        "flag AND NOT flag OR flag = TRUE",
        "d > 0.5 AND price <= 1.005",
        "s LIKE 'a%' AND s <=> ''",
        "day = DATE '2024-01-31' AND day < '2024-01-31'",
        "at > '2024-01-31' AND at <= '2024-01-31 10:00:00.123456'",
        "zoned > TIMESTAMP '2024-01-31 10:00:00'",
        "at > TIMESTAMP_NTZ '2024-01-31 10:00:00'",
        "`n` = 1",
    ],
)
def test_a_literal_of_the_kind_of_its_column_is_compared_alike(text: str) -> None:
    assert is_exact(text, SCHEMA.column_types)


@pytest.mark.parametrize(
    "text",
    [
        "n = '1'",
        "n = '1_0'",
        "n IN ('1.0')",
        "n IN (1, NULL)",
        "n < 1.5",
        "n = 1e0",
        "n = NULL",
        "n = 1234567890123456789",
        "N = 1",
        "missing = 1",
        "n = id",
        "n + 1 = 2",
        "n",
        "f <> 16777217",
        "d < 1e309",
        "d = '1'",
        "price = 0.1234567890123456789",
        "s = 1",
        "upper(s) = 'A'",
        "s LIKE 'a!%' ESCAPE '!'",
        "s RLIKE 'a'",
        "flag = 'true'",
        "flag = 1",
        "day = '2024-1-31'",
        "day = TIMESTAMP '2024-01-31 00:00:00'",
        "at = '2024-01-01T'",
        "at <> '2024-01-01 00:00:00.0000001'",
        "at > TIMESTAMP '2024-01-31 10:00:00'",
        "zoned > TIMESTAMP_NTZ '2024-01-31 10:00:00'",
        "b = 'a'",
        "n IN (SELECT 1)",
        "n = (SELECT 1)",
        "CASE WHEN n = 1 THEN TRUE END",
    ],
)
def test_spark_decides_about_other_conditions(text: str) -> None:
    assert not is_exact(text, SCHEMA.column_types)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT * FROM t WHERE n = 1", []),
        ("SELECT t.`a b`, n AS m, d x FROM db.t", [("a b", "a b"), ("n", "m"), ("d", "x")]),
        ("SELECT x.n FROM t AS x", [("n", "n")]),
        ("SELECT x.n FROM t X", None),
        ("SELECT n, FROM t", None),
        ("SELECT *, FROM t", None),
        ("SELECT +n FROM t", None),
        ("SELECT n AS 'm' FROM t", None),
        ("SELECT user FROM t", None),
        ("SELECT current_date FROM t", None),
        ("SELECT s.x.y FROM t AS s", None),
        ("SELECT n.* FROM t", None),
        ("FROM t SELECT n WHERE n = 1", None),
        ("TABLE t", None),
        ("SELECT n FROM t, u", None),
        ("SELECT DISTINCT n FROM t", None),
    ],
)
def test_the_columns_of_a_plain_select_are_read_as_spark_reads_them(text: str, columns: list[tuple[str, str]] | None) -> None:
    assert _selected_columns(text) == columns


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id $x FROM t",
        "SELECT é FROM t",
        "SELECT n FROM t@1",
        "SELECT n FROM t WITH (NOLOCK)",
        "SELECT n FROM t WITH ORDINALITY",
        "SELECT n FROM t AT (TIMESTAMP => 1)",
        "SELECT n FROM t pivot",
        "SELECT n FROM t WHERE n ISNULL",
        "SELECT n FROM t WHERE n NOTNULL",
        "SELECT n FROM t /*+ x */",
        "SELECT n FROM t WHERE s = 'it''s'",
        "SELECT n FROM t WHERE s = '${spark.app.name}'",
        "SELECT n FROM t WHERE s = r'a'",
        "SELECT n FROM t x WHERE X.n = 1",
    ],
)
def test_a_text_that_spark_may_read_otherwise_is_left_to_spark(text: str) -> None:
    assert not any(usage.is_whole for usage in usages(text).values())


@pytest.mark.parametrize("value", ["'it''s'", "'${spark.sql.session.timeZone}'", '"a"', "'a\\n'"])
def test_a_text_that_settings_change_filters_no_file(value: str) -> None:
    assert usages(f"SELECT n FROM t WHERE s = {value}") == {}
    assert [usage.conditions for usage in usages("SELECT n FROM t WHERE s = ''").values()] == [("s = ''",)]
