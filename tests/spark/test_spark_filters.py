"""What a filter computes is what Spark computes: every condition is asked of both, about the same rows."""

from __future__ import annotations

import random
from contextlib import suppress

import pyarrow as pa
import pytest

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.json import from_json, to_json
from paimon_base.errors import FilterFailed, InvalidFilter
from pyspark_paimon.filter.joined_sql import bind_condition
from pyspark_paimon.filter.parse import bind_filter, bind_value, parse_filter
from pyspark_paimon.spark.client.expression_sql import row_sql, spark_sql
from sparkexpr.expression.compute import compute
from sparkexpr.expression.java_regex import matches, translate
from sparkexpr.values.column_type import WITH_PARTS, ColumnType, Kind
from sparkexpr.values.time_zone import time_zone
from tests.computed_filters import FAILING, SAFE, TABLE, TYPES, VALUES, pairs_of_columns

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_expressions_written_for_spark_mean_the_same(frame) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    texts = [text for text in SAFE[1::4] if "TIME'" not in text]
    conditions = [spark_sql(bind_condition(text, {"t": TYPES})) for text in texts]
    kinds = [F.collect_list(F.when(F.expr(condition), F.expr("t.id"))).alias(f"c{at}") for at, condition in enumerate(conditions)]
    theirs = frame.select(F.struct("*").alias("t")).agg(*kinds).collect()[0]
    assert [text for at, text in enumerate(texts) if sorted(theirs[at]) != ours(parse_filter(text, TYPES))] == []


@pytest.mark.slow
def test_every_value_is_the_one_that_spark_computes(frame) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    wrong = []
    for start in range(0, len(VALUES), 40):
        part = VALUES[start : start + 40]
        bound = [bind_value(text, TYPES) for text in part]
        ours = [compute(one, lambda column: BATCH.column(column.name), BATCH.num_rows) for one in bound]
        for texts in (part, list(map(row_sql, bound))):
            kinds = [F.expr(text).alias(f"c{at}") for at, text in enumerate(texts)]
            theirs = frame.alias("t").orderBy("id").select(kinds).toArrow()
            for at, text in enumerate(texts):
                kind = bound[at].type
                pairs = zip(map(_shown, theirs.column(at).to_pylist()), map(_shown, ours[at].to_pylist()), strict=True)
                if different := [(one, other) for one, other in pairs if one != other]:
                    wrong.append((text, different[:4]))
                elif kind.kind not in WITH_PARTS and "ntz" not in text and kind.arrow != theirs.column(at).type:
                    wrong.append((text, theirs.column(at).type, kind))
    assert wrong == []


def _shown(value: object) -> str:
    # Wall clocks of the frame are instants in UTC.
    return repr(value).replace(", tzinfo=zoneinfo.ZoneInfo(key='UTC')", "").replace(", tzinfo=<UTC>", "")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_intervals_follow_the_calendar_of_the_session(spark, zone) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    hour = 3600 * 10**6
    around = [
        start + step * hour // 2
        for start in (1_711_846_800_000_000, 1_729_990_800_000_000, 1_709_168_400_000_000)
        for step in range(-60, 60)
    ]
    rows = pa.table({"at": pa.array(around).cast(pa.timestamp("us", tz="UTC"))})
    texts = [f"at {sign} INTERVAL {amount}" for sign in "+-" for amount in ("1 DAY", "1 MONTH", "2 WEEKS", "1 YEAR", "3 HOURS")]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        theirs = spark.createDataFrame(rows).select([F.unix_micros(F.expr(text)) for text in texts]).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    with time_zone(zone):
        bound = [bind_value(text, {"at": ColumnType(Kind.TIMESTAMP_LTZ, precision=6)}) for text in texts]
    found = [compute(one, lambda column: rows.column(column.name).combine_chunks(), len(around)).cast(pa.int64()) for one in bound]
    assert [text for at, text in enumerate(texts) if theirs.column(at).to_pylist() != found[at].to_pylist()] == []


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


@pytest.mark.slow
def test_where_spark_fails_we_fail(frame) -> None:
    for text in FAILING:
        with pytest.raises(Exception, match=r"OVERFLOW|ZERO|CAST_INVALID|OUT_OF_RANGE|overflow|INVALID_ARRAY_INDEX"):
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
