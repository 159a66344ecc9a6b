"""A Spark Column becomes the filter that the same SQL text becomes; no server is asked."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from fileindex.predicate.json import to_json
from manifest.schema.validation import build_schema
from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter.parse import bind_filter, parse_filter
from sparkexpr.values.column_type import ColumnType, Kind

ROOT = Path(__file__).parents[3]
STRING = ColumnType(Kind.VARCHAR, length=2**31 - 1)
TYPES = {
    "k": ColumnType(Kind.INT),
    "d": ColumnType(Kind.DOUBLE),
    "dec": ColumnType(Kind.DECIMAL, precision=9, scale=2),
    "wide": ColumnType(Kind.DECIMAL, precision=38, scale=10),
    "s": STRING,
    "b": ColumnType(Kind.BOOLEAN),
    "bin": ColumnType(Kind.VARBINARY, length=9),
    "day": ColumnType(Kind.DATE),
    "ts": ColumnType(Kind.TIMESTAMP_LTZ, precision=6),
    "m": ColumnType(Kind.MAP, key=STRING, value=ColumnType(Kind.BIGINT)),
    "x.y": ColumnType(Kind.INT),
    **build_schema("st STRUCT<a INT, n STRUCT<`b.c` INT>>, ar ARRAY<INT>").column_types,
}

SAME = {
    "sf.col('k') > 3": "k > 3",
    "3 < sf.col('k')": "k > 3",
    "sf.col('k') > 2.5": "k > 2.5",
    "(sf.col('k') == 1) & ~(sf.col('s') == \"it's\") | sf.col('k').isNull()": "(k = 1 AND NOT s = 'it''s') OR k IS NULL",
    "sf.col('k').isin(1, 2, None)": "k IN (1, 2, NULL)",
    "~sf.col('k').isin([1, 2])": "k NOT IN (1, 2)",
    "sf.col('k').between(1, 3)": "k BETWEEN 1 AND 3",
    "sf.col('k') != 1": "k <> 1",
    "sf.col('k').eqNullSafe(None)": "k IS NULL",
    "sf.col('k').eqNullSafe(4)": "k = 4",
    "sf.lit(None) == sf.col('k')": "FALSE",
    "-sf.lit(3) < sf.col('k')": "k > -3",
    "sf.lit(3).cast('smallint') == sf.col('k')": "k = 3",
    "sf.col('k').isNotNull()": "k IS NOT NULL",
    "sf.col('b')": "b",
    "sf.lit(True)": "TRUE",
    "sf.col('s').startswith('Os')": "s LIKE 'Os%'",
    "sf.startswith(sf.col('s'), sf.lit('Os'))": "s LIKE 'Os%'",
    "sf.col('s').like('Os%')": "s LIKE 'Os%'",
    "sf.isnan('d')": "isnan(d)",
    "sf.col('d') == float('nan')": "d = CAST('NaN' AS DOUBLE)",
    "sf.col('dec') == Decimal('-1.50')": "dec = -1.5",
    "sf.col('bin') == sf.lit(b'ab')": "bin = X'6162'",
    "sf.col('day') >= dt.date(2020, 1, 2)": "day >= DATE '2020-01-02'",
    "sf.col('day') == sf.lit('2020-01-02').cast('date')": "day = DATE '2020-01-02'",
    "sf.col('ts') < dt.datetime(2020, 1, 2, 3, tzinfo=dt.timezone.utc)": "ts < TIMESTAMP '2020-01-02 03:00:00'",
    "sf.col('m')['clicks'] == 3": "m['clicks'] = 3",
    "sf.col('m').getItem('clicks').isNull()": "m['clicks'] IS NULL",
    "sf.element_at('m', sf.lit('clicks')) > 1": "m['clicks'] > 1",
    "sf.col('wide') == Decimal('-9999999999999999999999999999.9999999999')": f"wide = -{'9' * 28}.{'9' * 10}",
    "sf.col('`x.y`') == 1": "`x.y` = 1",
    "sf.expr(\"m['a'] = 3 AND k IN (1, 2)\")": "m['a'] = 3 AND k IN (1, 2)",
    "(sf.col('k') > 3).alias('big')": "k > 3",
    "sf.col('k') == sf.col('dec')": "k = dec",
    "sf.col('k') + 1 == 3": "k + 1 = 3",
    "sf.col('k').cast('bigint') > 1": "CAST(k AS BIGINT) > 1",
    "sf.col('s').contains('x')": "contains(s, 'x')",
    "sf.upper('s') == 'X'": "upper(s) = 'X'",
    "sf.when(sf.col('k') > 0, 'a').otherwise('b') == sf.col('s')": "CASE WHEN k > 0 THEN 'a' ELSE 'b' END = s",
    "sf.col('s').like('%x_')": "s LIKE '%x_'",
    "sf.col('k').isin(sf.col('dec'), 3)": "k IN (dec, 3)",
    "sf.col('st.a') == 1": "st.a = 1",
    "sf.col('st.n.`b.c`') > 1": "st.n.`b.c` > 1",
    "sf.col('st').getField('a').isin(1, 2)": "st.a IN (1, 2)",
    "sf.col('st')['n']['b.c'].isNull()": "st.n.`b.c` IS NULL",
    "sf.col('ar')[0] == 1": "ar[0] = 1",
    "sf.element_at('ar', sf.lit(1)) == 1": "element_at(ar, 1) = 1",
    "sf.array_contains('ar', 1)": "array_contains(ar, 1)",
    "sf.size('ar') > 1": "size(ar) > 1",
    "sf.get('ar', sf.lit(0)) > 1": "get(ar, 0) > 1",
    "sf.col('s').rlike('^x')": "s RLIKE '^x'",
    "sf.regexp_like('s', sf.lit('^x'))": "regexp_like(s, '^x')",
}
REFUSED = [
    "sf.col('dec') / 3 == sf.col('dec')",
    "sf.col('s').cast('timestamp') > sf.col('ts')",
    "sf.col('s').rlike('(?=x)')",
    "sf.col('st.`b') == 1",
    "sf.col('x.y') == 1",
    "sf.md5('s') == 'X'",
]


def json_of(column) -> str:
    try:
        tree = bind_filter(column, TYPES)
    except InvalidFilter as error:
        return f"refused: {error}"
    assert tree is not None
    return to_json(tree)


def connect_column(text: str):
    from pyspark.sql.connect import functions as sf

    return eval(text, {"sf": sf, "dt": dt, "Decimal": Decimal})


@pytest.mark.parametrize("text", SAME)
def test_a_connect_column_says_what_sql_says(text: str) -> None:
    assert json_of(connect_column(text)) == to_json(parse_filter(SAME[text], TYPES))


@pytest.mark.parametrize("text", REFUSED)
def test_a_connect_column_that_files_cannot_answer_is_refused(text: str) -> None:
    with pytest.raises(InvalidFilter):
        bind_filter(connect_column(text), TYPES)
