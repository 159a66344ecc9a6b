"""What a filter computes is what Spark computes: every condition is asked of both, about the same rows."""

from __future__ import annotations

import random
from contextlib import suppress

import pyarrow as pa
import pytest

from fileindex.base.errors import FilterFailed, InvalidFilter
from fileindex.expression.java_regex import matches, translate
from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.json import from_json, to_json
from pyspark_paimon.filter.joined_sql import bind_condition
from pyspark_paimon.filter.parse import bind_filter, parse_filter
from pyspark_paimon.spark.client.expression_sql import spark_sql
from tests.computed_filters import FAILING, SAFE, TABLE, TYPES, pairs_of_columns

pytestmark = pytest.mark.spark

BATCH = TABLE.combine_chunks().to_batches()[0]


@pytest.fixture(scope="module")
def frame(spark):
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    made = spark.createDataFrame(TABLE.drop_columns(["ntz", "ltz"]))
    instants = spark.createDataFrame(TABLE.select(["id", "ntz", "ltz"]))
    return made.join(instants, "id").cache()


def ours(predicate) -> list[int]:
    again = from_json(to_json(predicate))
    found = mask(again, BATCH, TYPES)
    return BATCH.column("id").filter(found).to_pylist()


def test_every_condition_selects_the_rows_that_spark_selects(frame) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    texts = [*SAFE, *pairs_of_columns()]
    wrong = []
    for start in range(0, len(texts), 40):
        part = texts[start : start + 40]
        kinds = [F.collect_list(F.when(F.expr(text), F.col("id"))).alias(f"c{at}") for at, text in enumerate(part)]
        theirs = frame.agg(*kinds).collect()[0]
        for at, text in enumerate(part):
            if sorted(theirs[at]) != ours(parse_filter(text, TYPES)):
                wrong.append((text, sorted(set(theirs[at]) ^ set(ours(parse_filter(text, TYPES))))[:5]))
    assert wrong == []


def test_expressions_written_for_spark_mean_the_same(frame) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    texts = [text for text in SAFE[1::4] if "TIME'" not in text]
    conditions = [spark_sql(bind_condition(text, {"t": TYPES})) for text in texts]
    kinds = [F.collect_list(F.when(F.expr(condition), F.expr("t.id"))).alias(f"c{at}") for at, condition in enumerate(conditions)]
    theirs = frame.select(F.struct("*").alias("t")).agg(*kinds).collect()[0]
    assert [text for at, text in enumerate(texts) if sorted(theirs[at]) != ours(parse_filter(text, TYPES))] == []


PIECES = [
    *"aabA1 .$^|()[]*+?-_",
    "\\s",
    "\\S",
    "\\d",
    "\\W",
    "[^a]",
    "[a-c]",
    "(?:",
    "{1,2}",
    "\\.",
    "\n",
    "\r",
    "é",
    "\\z",
    "\\A",
    "\\Qa.\\E",
]
LINES = [
    "",
    "a",
    "ab",
    "A",
    "a\n",
    "a\r\n",
    "b\ra",
    "\n",
    "\r\n",
    "\u2028a",
    "a\u0085",
    "é",
    "a\x0b1",
    "1 a",
    "a\n\n",
    "ab\r\n",
    "a.b",
    "]a-",
    "k\u212a",
    "_",
]


def test_a_pattern_matches_as_java_matches_it(spark) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    chosen = random.Random(11)
    patterns: set[str] = set()
    while len(patterns) < 600:
        text = chosen.choice(["", "", "(?i)", "(?s)"]) + "".join(chosen.choices(PIECES, k=chosen.randint(1, 7)))
        with suppress(InvalidFilter):
            translate(text)
            patterns.add(text)
    lines = spark.createDataFrame(pa.table({"line": LINES}))
    theirs = (
        lines.crossJoin(spark.createDataFrame(pa.table({"pattern": sorted(patterns)})))
        .where(F.expr("regexp_like(line, pattern)"))
        .groupBy("pattern")
        .agg(F.collect_set("line").alias("lines"))
        .collect()
    )
    found = {row.pattern: set(row.lines) for row in theirs}
    texts = pa.array(LINES, pa.large_string())
    wrong = [
        (pattern, found.get(pattern, set()) ^ ours)
        for pattern in sorted(patterns)
        if (ours := set(texts.filter(matches(texts, pattern)).to_pylist())) != found.get(pattern, set())
    ]
    assert wrong == []


def test_where_spark_fails_we_fail(frame) -> None:
    for text in FAILING:
        with pytest.raises(Exception, match=r"OVERFLOW|ZERO|CAST_INVALID|overflow|INVALID_ARRAY_INDEX"):
            frame.where(text).count()
        with pytest.raises(FilterFailed):
            ours(parse_filter(text, TYPES))


def test_columns_of_spark_are_computed_as_text_is(spark) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    for column, text in (
        (F.lower(F.col("s")) == "oslo", "lower(s) = 'oslo'"),
        (F.col("k") + F.col("t") > 3, "k + t > 3"),
        (F.col("s").contains("o") & ~F.col("s").endswith("o"), "contains(s, 'o') AND NOT endswith(s, 'o')"),
        (F.col("k").between(F.col("t"), F.col("l")), "k BETWEEN t AND l"),
        (F.when(F.col("k") > 0, "a").otherwise("b") == "a", "CASE WHEN k > 0 THEN 'a' ELSE 'b' END = 'a'"),
        (F.col("ntz").cast("date") == F.col("day"), "CAST(ntz AS DATE) = day"),
        (F.substring("s", 2, 2) == "sl", "substring(s, 2, 2) = 'sl'"),
        (F.coalesce(F.col("k"), F.col("t")).isNull(), "coalesce(k, t) IS NULL"),
        (F.col("s").like("%o%"), "s LIKE '%o%'"),
        (F.year("day") == 2024, "year(day) = 2024"),
    ):
        assert ours(bind_filter(column, TYPES)) == ours(parse_filter(text, TYPES)), text
