"""Filters and columns that ``sql`` gives to the scans of its tables: same rows as Spark's own, fewer of them read."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest

import pyspark_paimon
from fileindex.predicate.tree import And, ColumnRef, Compare, In, IsNull, Op, Or, StartsWith
from manifest.schema.validation import build_schema
from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Catalog, Table
from pyspark_paimon.filter.parse import parse_filter
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.plugins.sql.pushdown import Usage, usages
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.request.scan_questions import GroupCheaply
from pyspark_paimon.spark.client.scan_engine import SparkScans
from pyspark_paimon.spark.read.native_files import filter_text, finds_by_index
from sparkexpr.values.column_type import ColumnType, Kind
from tests.build import keyed

DDL = (
    "id BIGINT, day DATE, n INT, f DOUBLE, d DECIMAL(10, 2), s STRING, b BOOLEAN, at TIMESTAMP(6), "
    "zoned TIMESTAMP_LTZ(6), wide STRING, m MAP<STRING, INT>"
)
OPTIONS = {"bucket": "2", "file-index.bloom-filter.columns": "s", "file-index.range-bitmap.columns": "n", "ngram-filter.columns": "s"}
DAYS = [dt.date(2024, 1, 1), dt.date(2024, 2, 29), dt.date(1969, 12, 31)]
NUMBERS = [None, 0, -1, 5, 2**31 - 1]
FLOATS = [None, float("nan"), 0.0, -0.0, 1.5, float("inf")]
TEXTS = [None, "", "Oslo", "oslo", "it's", "Ünï", "a%b", "a_b", "5"]
TIMES = [None, 1_704_110_400_000_000, -1]
"""Microseconds."""

BY_TASKS = {"driver_bytes": 0, "sent_bytes": 0}
"""Thresholds with which Spark's tasks read each table; rows of small ones would be part of the plan."""


@pytest.fixture(autouse=True)
def _by_tasks(set_thresholds):
    set_thresholds(**BY_TASKS)


def rows(count: int) -> pa.Table:
    def pick(values: list, step: int) -> list:
        return [values[number * step % len(values)] for number in range(count)]

    return pa.table(
        {
            "id": list(range(count)),
            "day": pa.array(pick(DAYS, 1), pa.date32()),
            "n": pa.array(pick(NUMBERS, 1), pa.int32()),
            "f": pick(FLOATS, 1),
            "d": pa.array([None if number % 7 == 0 else Decimal(number) / 4 for number in range(count)], pa.decimal128(10, 2)),
            "s": pick(TEXTS, 1),
            "b": pick([None, True, False], 1),
            "at": pa.array(pick(TIMES, 1), pa.timestamp("us")),
            "zoned": pa.array(pick(TIMES, 1), pa.timestamp("us", "UTC")),
            "wide": ["x" * 50] * count,
            "m": pa.array([[("a", number)] for number in range(count)], pa.map_(pa.string(), pa.int32())),
        }
    )


CONDITIONS = [
    "id = 5", "id IN (1, 7, 99)", "id < 10 AND n = 5", "day = DATE'2024-02-29'", "day > '2024-01-01'", "n > 0", "n <=> NULL", "NOT (n = 5)",
    "n IS NULL OR s = 'Oslo'", "n BETWEEN -1 AND 5", "n <> 5", "f = 0", "f > 1", "f = double('NaN')", "f <> 0.0", "d = 2.5", "d > 10", "d IN (1.25, 3)",
    "s = ''", "s = 'it''s'", "s LIKE 'O%'", "s LIKE '%s%'", "s LIKE '%sl_'", "s NOT LIKE '%s%'", "s NOT LIKE 'a%'", "s LIKE 'a$_b' ESCAPE '$'", "s > 'a'", "s = 5", "lower(s) = 'oslo'",
    "b", "NOT b", "b IS NOT NULL", "b = true", "at > TIMESTAMP_NTZ'2024-01-01 00:00:00'", "at = '2024-01-01 12:00:00'",
    "zoned >= TIMESTAMP'2024-01-01 12:00:00'", "zoned < '2024-01-01'", "m['a'] = 5", "n + 1 = 6", "id % 2 = 0", "id = n", "1 = 1", "1 = 2", "n = NULL",
    "(id = 5 OR id = 6) AND (n > 0 OR n IS NULL)", "s IN ('Oslo', NULL)", "s NOT IN ('Oslo', '')", "id = 5.0", "id > 4.5", "id = '5'",
]  # fmt: skip
SHAPES = [
    "SELECT id, s FROM {t} WHERE {c}",
    "SELECT * FROM {t} AS x WHERE {c}",
    "SELECT count(*), sum(id) FROM {t} WHERE {c}",
    "WITH q AS (SELECT id, n FROM {t} WHERE {c}) SELECT q.id, u.s FROM q JOIN {t} u ON q.id = u.id WHERE u.id < 50",
]
JOINED = [
    "SELECT a.id, b.id FROM {t} a LEFT JOIN {t} b ON a.id = b.n WHERE b.id IS NULL AND a.id < 20",
    "SELECT a.id, b.id FROM {t} a LEFT JOIN {t} b ON a.id = b.n AND b.id > 3 WHERE a.n = 5",
    "SELECT a.id, b.id FROM {t} a RIGHT JOIN {t} b ON a.id = b.n WHERE a.id IS NULL AND b.id < 9",
    "SELECT a.id, b.id FROM {t} a FULL JOIN {t} b ON a.id = b.n WHERE a.n = 5 OR b.n = 0",
    "SELECT a.id FROM {t} a LEFT ANTI JOIN {t} b ON a.id = b.n WHERE a.id < 9",
    "SELECT a.id, b.s FROM {t} a, {t} b WHERE a.id = b.id AND a.s = 'Oslo' AND b.n > 0",
    "SELECT id FROM {t} WHERE id IN (SELECT n FROM {t} WHERE s = 'Oslo') AND n IS NULL",
    "SELECT id FROM {t} a WHERE EXISTS (SELECT 1 FROM {t} b WHERE b.n = a.id AND b.s <> '')",
    "SELECT id, row_number() OVER (PARTITION BY day ORDER BY id) AS r FROM {t} WHERE n > 0",
    "SELECT day, count(*) FROM {t} WHERE s LIKE 'O%' GROUP BY day HAVING count(*) > 1",
    "SELECT id FROM {t} WHERE n = 5 UNION ALL SELECT n FROM {t} WHERE id = 5",
    "SELECT x.id FROM (SELECT * FROM {t} WHERE n = 5) x WHERE x.id > 3",
    "SELECT count(t.id) FROM {t} t CROSS JOIN (SELECT 1 AS one) WHERE t.n > 0",
    "SELECT id FROM {t} NATURAL JOIN (SELECT id FROM {t} WHERE id < 5)",
    "SELECT IDENTIFIER('s') FROM {t} WHERE id = 2",
    "FROM {t} SELECT id WHERE n = 5",
    "SELECT id, e FROM {t} LATERAL VIEW explode(map_keys(m)) AS e WHERE id < 3 AND e = 'a'",
    "SELECT * FROM (SELECT day, n FROM {t} WHERE id < 40) PIVOT (count(*) FOR n IN (0, 5))",
    "SELECT Id, S FROM {t} T WHERE t.N = 5 AND T.ID < 30",
    "SELECT 1 AS one FROM {t} WHERE n = 5",
    "SELECT id AS n FROM {t} WHERE n = 5",
    "SELECT a.id, a.s FROM {t} a JOIN {t} b ON a.day = b.day AND a.id = b.id WHERE b.s = 'Oslo' AND b.n > 0",
    "SELECT count(*) FROM {t} a LEFT SEMI JOIN {t} b ON a.day = b.day WHERE a.id < 50",
    "SELECT count(*) FROM {t} a JOIN (SELECT b.id FROM {t} b JOIN {t} c ON b.id = c.id WHERE c.s = 'Oslo') q ON a.id = q.id",
    "SELECT count(*) FROM {t} a JOIN {t} b ON a.day = b.day WHERE b.day = DATE'1999-01-01'",
    "SELECT a.id, b.n FROM {t} a JOIN {t} b USING (day, id) WHERE b.id = 7",
    "SELECT id FROM ({t}) WHERE n = 5",
    "SELECT x.id FROM ({t}) AS x WHERE x.n = 5",
    "SELECT x.id, y.s FROM ({t} AS x JOIN {t} y ON x.id = y.id) WHERE x.n = 5",
    "SELECT a.id, b.id FROM (({t}) a LEFT JOIN ({t}) b ON a.id = b.n) WHERE a.id < 9",
    "SELECT a.id FROM ({t} a), ({t} b) WHERE a.id = b.n",
    "SELECT a.id, r.id FROM ({t} a JOIN range(3) r ON a.id = r.id)",
    "SELECT n FROM {t} AS x(n, day, id, f, d, s, b, at, zoned, wide, m) WHERE n = 5",
]

EACH = [shape.replace("{c}", condition) for condition, shape in product(CONDITIONS, SHAPES)]
MIXED = [shape.replace("{c}", condition) for condition, shape in zip(CONDITIONS, SHAPES * len(CONDITIONS), strict=False)]
OF_CLOCKS = [text for text in MIXED if any(word in text for word in ("at >", "at =", "zoned", "day"))]
"""Queries whose answer may depend on the session's time zone."""


@pytest.fixture(scope="module")
def database(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("warehouse")
    catalog = Catalog(folder)
    table = Table.create(folder / "db.db" / "t", DDL, primary_keys=["day", "id"], partition_keys=["day"], options=OPTIONS)
    table.write(rows(200))
    table.compact(full=True)
    parquet = folder / "copy.parquet"
    table.scan().to_spark(spark).write.parquet(str(parquet))
    spark.read.parquet(str(parquet)).createOrReplaceTempView("pushdown_copy")
    return catalog


def answers(frame) -> list[str]:
    return sorted(map(repr, frame.collect()))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("zone", "texts"),
    [
        ("UTC", [*(text for text in MIXED if text not in OF_CLOCKS), *JOINED]),
        ("America/New_York", OF_CLOCKS),
        pytest.param("America/New_York", [*EACH, *MIXED, *JOINED], marks=pytest.mark.long),
    ],
    ids=["UTC", "New York", "every condition"],
)
def test_queries_have_the_rows_of_spark(spark, database, zone, texts, set_thresholds):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    # Spark's reader skips row groups whose dictionary has -0.0 but not 0.0, although both are equal.
    spark.conf.set("parquet.filter.dictionary.enabled", "false")
    wrong = []
    try:
        for number, text in enumerate(texts):
            set_thresholds(**({"driver_bytes": 1 << 20, "sent_bytes": 1 << 20} if number % 2 else BY_TASKS))
            try:
                expected = answers(spark.sql(text.replace("{t}", "pushdown_copy")))
            except Exception as error:  # noqa: BLE001  # Spark refuses the comparison
                with pytest.raises(type(error)):
                    answers(pyspark_paimon.sql(spark, text.replace("{t}", "db.t"), catalog=database))
                continue
            if answers(pyspark_paimon.sql(spark, text.replace("{t}", "db.t"), catalog=database)) != expected:
                wrong.append(text)
        assert wrong == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
        spark.conf.unset("parquet.filter.dictionary.enabled")


KNOWN = [
    "SELECT count(*) FROM {t}",
    "SELECT COUNT(1) AS many, MIN(id) low, max(x.N) FROM {t} AS x",
    "SELECT min(s), max(s), count(s), count(wide) FROM {t}",
    "SELECT min(day), max(day), count(*) FROM {t} WHERE day > '2024-01-01'",
    "SELECT min(d), max(d), min(at), max(at), min(zoned), max(zoned) FROM {t}",
    "SELECT count(*) + 0 AS n FROM {t} WHERE FALSE",
    "SELECT count(*), max(id) FROM {t} WHERE day = DATE'1999-01-01'",
    "SELECT min(id), MIN(id) FROM {t}",
    "SELECT max(f) FROM {t}",
    "SELECT min(b), max(b) FROM {t}",
    "SELECT count(*), max(n) FROM {t} WHERE upper(s) = 'OSLO'",
    "SELECT count(*), min(n) FROM {t} WHERE s = 'Oslo' AND id > 3",
    "SELECT count(DISTINCT n), max(n) FROM {t}",
    "SELECT max(n) FILTER (WHERE n < 5) FROM {t}",
    "SELECT max(n + 1), max(struct(n, s)) FROM {t}",
    "SELECT n, count(*) FROM {t} GROUP BY n",
    "SELECT count(*) FROM {t} WHERE s = 5",
    "SELECT count(*) FROM {t} HAVING count(*) > 1000",
    "SELECT DISTINCT count(*) FROM {t} LIMIT 0",
    "SELECT max(nowhere) FROM {t}",
    "SELECT count(*), max(n) FROM {t} x(n, day, id, f, d, s, b, at, zoned, wide, m)",
]


def result(spark, run, text: str) -> object:
    try:
        frame = run(text)
        return sorted(map(repr, frame.collect())), frame.schema
    except Exception as error:  # noqa: BLE001  # both must refuse it
        return type(error)


@pytest.mark.slow
@pytest.mark.spark
def test_metadata_answers_counts_and_bounds_as_spark_does(spark, database):
    wrong = []
    for text in KNOWN:
        own = result(spark, lambda text: pyspark_paimon.sql(spark, text.replace("{t}", "db.t"), catalog=database), text)
        if own != result(spark, lambda text: spark.sql(text.replace("{t}", "pushdown_copy")), text):
            wrong.append((text, own))
    assert wrong == []
    frame = pyspark_paimon.sql(spark, "SELECT count(*), min(id), max(at) FROM db.t WHERE day = '2024-02-29'", catalog=database)
    assert "LocalTableScan" in (plan := frame._explain_string()), plan
    assert "Aggregate" not in plan, plan


GROUPED_DDL = (
    "p STRING, n INT, s STRING, b BOOLEAN, day DATE, wide DECIMAL(20, 3), f DOUBLE, at TIMESTAMP(3), zoned TIMESTAMP_LTZ(6), "
    "nano TIMESTAMP(9), code CHAR(4), `a b` BIGINT, `1` INT"
)
GROUPED = {  # query: whether indexes answer it
    "SELECT s, count(*) FROM {t} GROUP BY s": True,
    "SELECT count(*) AS many, x.S, S AS again FROM {t} x GROUP BY x.s": True,
    "SELECT n FROM {t} GROUP BY n": True,
    "SELECT count(*) FROM {t} GROUP BY n, n": True,
    "SELECT n, count(n), count(*) FROM {t} GROUP BY n": True,
    "SELECT n, count(DISTINCT n) FROM {t} GROUP BY n": False,
    "SELECT b, count(1) FROM {t} GROUP BY b": True,
    "SELECT day, count(*) FROM {t} GROUP BY day": True,
    "SELECT wide, count(*) FROM {t} WHERE p = 'x' GROUP BY wide": False,
    "SELECT at, count(*), count(at) FROM {t} GROUP BY at": True,
    "SELECT zoned, count(*) FROM {t} GROUP BY zoned": True,
    "SELECT code, count(*) FROM {t} GROUP BY code": True,
    "SELECT `a b`, count(*) FROM {t} GROUP BY `a b`": True,
    "SELECT `1`, count(*) FROM {t} GROUP BY `1`": True,
    "SELECT p, count(*), min(n), max(n) FROM {t} GROUP BY p": True,
    "SELECT p, s, count(*) FROM {t} GROUP BY p, s": True,
    "SELECT p, count(DISTINCT s), count(DISTINCT n), max(n) FROM {t} GROUP BY p": False,
    "SELECT p, count(DISTINCT s), count(DISTINCT n) FROM {t} GROUP BY p": True,
    "SELECT s, count(*) FROM {t} WHERE s IN ('Oslo', '') OR s IS NULL GROUP BY s": True,
    "SELECT s, count(*) FROM {t} WHERE n = 3 AND b GROUP BY s": True,
    "SELECT s, count(*) FROM {t} WHERE s = 'nowhere' GROUP BY s": True,
    "SELECT count(DISTINCT s) FROM {t}": True,
    "SELECT count(DISTINCT S) d, count(*), count(DISTINCT b) FROM {t} WHERE n = 3": True,
    "SELECT count(DISTINCT s) FROM {t} WHERE s = 'nowhere'": True,
    "SELECT count(DISTINCT p) FROM {t}": True,
    "SELECT f, count(*) FROM {t} GROUP BY f": False,
    "SELECT count(DISTINCT f) FROM {t}": False,
    "SELECT nano, count(*) FROM {t} GROUP BY nano": False,
    "SELECT count(DISTINCT nano) FROM {t}": False,
    "SELECT n, s, count(*) FROM {t} GROUP BY n, s": False,
    "SELECT s, sum(n) FROM {t} GROUP BY s": False,
    "SELECT s, max(n) FROM {t} GROUP BY s": False,
    "SELECT s, count(*) FROM {t} GROUP BY 1": False,
    "SELECT upper(s), count(*) FROM {t} GROUP BY upper(s)": False,
    "SELECT n AS s, count(*) FROM {t} GROUP BY s": False,
    "SELECT n, count(*) FROM {t} GROUP BY s": False,
    "SELECT s, count(*) FROM {t} GROUP BY s HAVING count(*) > 2": False,
    "SELECT s, count(*) AS c FROM {t} GROUP BY s ORDER BY s LIMIT 2": False,
    "SELECT s, count(*) FROM {t} GROUP BY s WITH ROLLUP": False,
    "SELECT s, count(*) FROM {t} GROUP BY CUBE (s)": False,
    "SELECT s, count(*) FROM {t} GROUP BY GROUPING SETS ((s), ())": False,
    "SELECT count(DISTINCT s, n) FROM {t}": False,
    "SELECT count(DISTINCT s) FILTER (WHERE n > 2) FROM {t}": False,
    "SELECT DISTINCT s, count(*) FROM {t} GROUP BY s": False,
    "SELECT s, count(*) FROM {t}": False,
    "SELECT nowhere, count(*) FROM {t} GROUP BY nowhere": False,
}


@pytest.fixture(scope="module")
def grouped(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("grouped")
    names = "n,s,b,day,f,at,zoned,code,a b,1"
    table = Table.create(
        folder / "db.db" / "g", GROUPED_DDL, partition_keys=["p"], options={"bucket": "-1", "file-index.bitmap.columns": names}
    )
    texts = ["Oslo", "oslo", "Oslo ", "", None, "\u00e5", "a\u030a", "\U0001f600", "x\x00y"]
    millis = [0, -1, 1_700_000_000_123, 1_710_054_000_000, None]  # the last one is an hour that New York skips
    for start in range(0, 60, 20):
        ids = range(start, start + 20)
        floats = [0.0, -0.0, float("nan"), None, float("-inf"), 1.5]
        columns = {
            "p": [("x", "", None)[at % 3] for at in ids],
            "n": [(3, -(2**31), 2**31 - 1, None)[at % 4] for at in ids],
            "s": [texts[at % 9] for at in ids],
            "b": [(True, False, None)[at % 3] for at in ids],
            "day": [(-719_162, 0, 2_932_896, None)[at % 4] for at in ids],
            "wide": [(Decimal("0.000"), Decimal("-0.001"), Decimal("12345678901234567.891"), None)[at % 4] for at in ids],
            "f": [floats[at % 6] for at in ids],
            "at": [millis[at % 5] for at in ids],
            "zoned": [None if millis[at % 5] is None else millis[at % 5] * 1000 + at % 2 for at in ids],
            "nano": [at % 4 for at in ids],
            "code": [("ab", "ab  ", "", None)[at % 4] for at in ids],
            "a b": [(2**63 - 1, -1, None)[at % 3] for at in ids],
            "1": [at % 2 for at in ids],
        }
        table.write(pa.table({name: pa.array(values, table.schema.field(name).type) for name, values in columns.items()}))
    parquet = folder / "copy.parquet"
    table.scan().to_spark(spark).write.parquet(str(parquet))
    spark.read.parquet(str(parquet)).createOrReplaceTempView("grouped_copy")
    return Catalog(folder)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_indexes_answer_groups_and_distinct_counts_as_spark_does(spark, grouped, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    wrong = []
    try:
        for text, answered in GROUPED.items():
            frames = []

            def run(text, frames=frames):
                frames.append(pyspark_paimon.sql(spark, text.replace("{t}", "db.g"), catalog=grouped))
                return frames[0]

            own = result(spark, run, text)
            if own != result(spark, lambda text: spark.sql(text.replace("{t}", "grouped_copy")), text):
                wrong.append((text, own))
            plan = frames[0]._explain_string() if frames and not isinstance(own, type) else ""
            if answered != ("LocalTableScan" in plan and "Aggregate" not in plan):
                wrong.append((text, plan or "not answered"))
        assert wrong == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.spark
def test_groups_whose_files_lack_indexes_or_merge_are_read(spark, tmp_path):
    catalog = Catalog(tmp_path)
    options = {"bucket": "1", "file-index.bitmap.columns": "s", "write-only": "true"}
    table = Table.create(tmp_path / "db.db" / "t", "id INT, s STRING", primary_keys=["id"], options=options)
    text = "SELECT s, count(*) FROM db.t GROUP BY s"

    def found() -> tuple[list[tuple], bool]:
        frame = pyspark_paimon.sql(spark, text, catalog=catalog)
        return sorted(tuple(row) for row in frame.collect()), "LocalTableScan" in frame._explain_string()

    assert found() == ([], True)
    table.write([{"id": 1, "s": "a"}, {"id": 2, "s": "b"}, {"id": 3, "s": "b"}])
    assert found() == ([("a", 1), ("b", 2)], True)
    table.write([{"id": 2, "s": "a"}])
    assert found() == ([("a", 2), ("b", 1)], False)
    table.compact(full=True)
    assert found() == ([("a", 2), ("b", 1)], True)
    with use_thresholds(counted_files=0):
        engine = LocalEngine(table.path)
        scan = table.scan()
        request = ScanRequest(columns=("s",), snapshot_id=scan.snapshot_id)
        assert engine.ask(GroupCheaply(request=request, by=("s",))) is None
    with use_thresholds(answer_bytes=1):
        assert engine.ask(GroupCheaply(request=request, by=("s",))) is None
    assert engine.ask(GroupCheaply(request=request, by=("s",))).num_rows == 2


@pytest.mark.spark
def test_clauses_behind_a_table_name_its_columns_by_the_table(spark, tmp_path):
    options = {"file-index.bitmap.columns": "s"}
    Table.create(tmp_path / "db.db" / "t", "id INT, s STRING", options=options).write([{"id": 1, "s": "a"}, {"id": 2, "s": "a"}])
    for text, expected in (
        ("SELECT t.s, count(*) FROM db.t GROUP BY t.s", [("a", 2)]),
        ("SELECT t.s, sum(t.id) FROM db.t GROUP BY t.s", [("a", 3)]),
        ("SELECT t.* FROM db.t ORDER BY t.id DESC", [(2, "a"), (1, "a")]),
    ):
        assert [tuple(row) for row in pyspark_paimon.sql(spark, text, catalog=Catalog(tmp_path)).collect()] == expected


@pytest.mark.spark
def test_metadata_of_another_snapshot_answers_and_rows_to_merge_are_read(spark, tmp_path):
    catalog = Catalog(tmp_path)
    table = keyed(tmp_path / "db.db" / "t", "id INT, n INT", {"write-only": "true"})
    table.write([{"id": 1, "n": 5}, {"id": 2, "n": 9}])
    table.write([{"id": 2, "n": 1}])
    text = "SELECT count(*) AS c, max(n) AS m FROM db.t{version}"
    for version, expected in (("", (2, 5)), (" VERSION AS OF 1", (2, 9)), (" VERSION AS OF 2 AS x WHERE x.id > 1", (1, 1))):
        assert [tuple(row) for row in pyspark_paimon.sql(spark, text.replace("{version}", version), catalog=catalog).collect()] == [
            expected
        ]


@pytest.mark.spark
def test_conditions_on_nanoseconds_keep_rows_with_the_truncated_value(spark, tmp_path):
    catalog = Catalog(tmp_path)
    table = Table.create(tmp_path / "db.db" / "t", "id INT, at TIMESTAMP(9), zoned TIMESTAMP_LTZ(9)")
    nanos = [1_577_836_800_123_456_789, 1_577_836_800_123_456_000, -1]
    table.write(
        pa.table(
            {
                "id": pa.array([1, 2, 3], pa.int32()),
                "at": pa.array(nanos, pa.timestamp("ns")),
                "zoned": pa.array(nanos, pa.timestamp("ns", "UTC")),
            }
        )
    )
    for condition in (
        "at = TIMESTAMP_NTZ'2020-01-01 00:00:00.123456'",
        "year(at) > 2000 AND zoned <= TIMESTAMP'2020-01-01 00:00:00.123456Z'",
    ):
        rows = pyspark_paimon.sql(spark, f"SELECT id FROM db.t WHERE {condition}", catalog=catalog).collect()
        count = pyspark_paimon.sql(spark, f"SELECT count(*) FROM db.t WHERE {condition}", catalog=catalog).first()[0]
        assert (sorted(row.id for row in rows), count) == ([1, 2], 2), condition


@pytest.mark.spark
def test_queries_of_another_version_have_its_columns(spark, tmp_path):
    catalog = Catalog(tmp_path)
    table = Table.create(tmp_path / "db.db" / "t", "a INT, gone INT, s INT")
    table.write([{"a": 1, "gone": 2, "s": 3}, {"a": 4, "gone": 5, "s": 6}])
    table.drop_column("gone")
    table.change_type("s", "STRING")
    table.add_column("added", "INT")
    for text, expected in (
        ("SELECT gone FROM db.t VERSION AS OF 1 WHERE gone > 2", [(5,)]),
        ("SELECT a FROM db.t VERSION AS OF 1 WHERE s = '3'", [(1,)]),
        ("SELECT count(*) FROM db.t VERSION AS OF 1 WHERE s = '3'", [(1,)]),
        ("SELECT x.a FROM db.t VERSION AS OF 1 AS x JOIN db.t AS y ON x.a = y.a WHERE y.added IS NULL AND y.s = '6'", [(4,)]),
    ):
        assert [tuple(row) for row in pyspark_paimon.sql(spark, text, catalog=catalog).collect()] == expected, text


@pytest.mark.spark
def test_samples_of_tables(spark, database):
    for sample in ("(100 PERCENT)", "(500 ROWS)", "(100 PERCENT) REPEATABLE (7)"):
        for text in (
            f"SELECT count(*) FROM db.t TABLESAMPLE {sample} WHERE t.id > 9",
            f"SELECT count(*) FROM db.t TABLESAMPLE {sample} x WHERE x.id > 9",
        ):
            assert pyspark_paimon.sql(spark, text, catalog=database).first()[0] == 190, text


@pytest.mark.spark
def test_a_small_table_is_sent_to_all_tasks_of_a_join(spark, database):
    table = database.table("db.t", spark)
    large = spark.range(10**9)
    native, own = table.scan().to_spark(), table.scan("s = 'Oslo'").to_spark()
    try:
        for frame in (native, own):
            assert "BroadcastHashJoin" in large.join(frame, "id")._explain_string()
        with use_thresholds(broadcast_bytes=100):
            assert "BroadcastHashJoin" not in large.join(table.scan("s = 'Oslo'").to_spark(), "id")._explain_string()
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "100b")
        assert "BroadcastHashJoin" not in large.join(table.scan("s = 'Oslo'").to_spark(), "id")._explain_string()
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        assert "BroadcastHashJoin" not in large.join(table.scan("s = 'Oslo'").to_spark(), "id")._explain_string()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    answer = pyspark_paimon.sql(spark, "SELECT count(*) FROM range(300) AS r JOIN db.t AS t ON r.id = t.id", catalog=database)
    assert answer.collect()[0][0] == 200


@pytest.mark.spark
def test_a_filter_that_an_index_finds_is_applied_by_the_scan(spark, database):
    table = database.table("db.t", spark)
    for condition, expected in (("s = 'Oslo'", 22), ("n = 5", 40), ("id = 5", 1), ("s LIKE '%slo'", 44)):
        (usage,) = usages(f"SELECT id, s FROM db.t WHERE {condition}").values()
        frame = usage.scan(table, {}, lambda: "UTC")[0].to_spark(exact=False)
        assert set(frame.columns) == {"id", "s", condition.split()[0]}
        assert frame.count() == expected, "Spark gets only the rows that match"


@pytest.mark.spark
def test_a_join_reads_the_partitions_that_the_filtered_table_has(spark, database, monkeypatch):
    asked, frame = [], SparkScans.frame

    def asking(self, request, session, *, native=False):
        asked.append(str(request.predicate))
        return frame(self, request, session, native=native)

    monkeypatch.setattr(SparkScans, "frame", asking)
    text = "SELECT count(*) FROM db.t f JOIN db.t d ON f.day = d.day WHERE d.id IN (3, 6) AND d.n = 5"
    for most, pruned in ((10, True), (0, False)):
        asked.clear()
        with use_thresholds(join_keys=most):
            assert pyspark_paimon.sql(spark, text, catalog=database).collect()[0][0] == 67
        assert ("'day'" in asked[0]) is pruned, asked
    assert pyspark_paimon.sql(spark, text.replace("d.n = 5", "d.n IS NULL"), catalog=database).collect()[0][0] == 0


@pytest.mark.spark
def test_other_filters_reach_spark_s_reader_through_not_null_columns(spark, database):
    (usage,) = usages("SELECT id FROM db.t WHERE id > 150 AND n >= 5").values()
    scan, filtered = Usage(("id > 150",), usage.names).scan(database.table("db.t", spark), {}, lambda: "UTC")
    assert filtered
    plan = scan.to_spark(exact=False)._explain_string()
    assert "GreaterThan(id,150)" in plan.replace("`", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM db.t WHERE a = 1 AND b > 2", ("a = 1", "b > 2")),
        ("SELECT * FROM db.t AS x WHERE x.a = 1 AND X.b > 2", ("a = 1", "b > 2")),
        ("SELECT * FROM db.t WHERE t.a = 1", ("a = 1",)),
        ("SELECT * FROM db.t WHERE (a = 1 OR b = 2) AND (c = 3)", ("a = 1 OR b = 2", "c = 3")),
        ("SELECT * FROM db.t WHERE a = b", ("a = b",)),
        ("SELECT * FROM db.t WHERE a IN (SELECT a FROM u) AND b = 1", ("b = 1",)),
        ("SELECT * FROM db.t WHERE upper(a) = 'X' AND b = DATE'2024-01-01'", ("b = CAST('2024-01-01' AS DATE)",)),
        ("SELECT * FROM db.t WHERE rand() < 0.5", ()),
        ("SELECT * FROM db.t WHERE 1 = 1", ()),
        ("SELECT * FROM db.t TABLESAMPLE (10 ROWS) WHERE a = 1", ()),
        ("SELECT * FROM db.t AS x(b, a) WHERE a = 1", ()),
        ("SELECT * FROM db.t JOIN u ON t.id = u.id WHERE a = 1 AND t.b = 2 AND t.c = u.c", ("b = 2",)),
        ("SELECT * FROM db.t LEFT JOIN u ON t.id = u.id WHERE t.b = 2", ("b = 2",)),
        ("SELECT * FROM db.t RIGHT JOIN u ON t.id = u.id WHERE t.b = 2", ()),
        ("SELECT * FROM db.t FULL JOIN u ON t.id = u.id WHERE t.b = 2", ()),
        ("SELECT * FROM db.t JOIN u ON t.id = u.id FULL JOIN v ON t.id = v.id WHERE t.b = 2", ()),
        ('SELECT * FROM db.t WHERE a = "x"', None),
        (r"SELECT * FROM db.t WHERE a = '\n'", None),
        ("SELECT * FROM db.t WHERE", None),
    ],
)
def test_conditions_of_one_table_alone_are_found(text, expected):
    found = usages(text)
    assert (found.get(14).conditions if found else None) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT u.a FROM u LEFT JOIN db.t ON u.id = t.id WHERE t.b = 2", ()),
        ("SELECT u.a FROM u RIGHT JOIN db.t ON u.id = t.id WHERE t.b = 2", ("b = 2",)),
        ("SELECT u.a FROM u LEFT SEMI JOIN db.t ON u.id = t.id WHERE t.b = 2", ()),
        ("SELECT u.a FROM u, db.t WHERE t.b = 2 AND u.a = 1", ("b = 2",)),
    ],
)
def test_conditions_of_a_joined_table_are_found_unless_the_join_adds_nulls(text, expected):
    assert usages(text)[text.index("db.t")].conditions == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT a FROM db.t WHERE b = 1", {"A", "B"}),
        ("SELECT count(*) FROM db.t", set()),
        ("SELECT s.x, m['k'] FROM db.t ORDER BY c", {"S", "M", "C"}),
        ("SELECT IDENTIFIER('t.a') FROM db.t", {"A"}),
        ("SELECT * FROM db.t", None),
        ("SELECT t.* FROM db.t", None),
        ("SELECT struct(*) FROM db.t", None),
        ("SELECT count(t.*) FROM db.t", None),
        ("SELECT a FROM db.t NATURAL JOIN u", None),
        ("SELECT a FROM (SELECT a, b FROM db.t) PIVOT (count(*) FOR b IN (1))", None),
    ],
)
def test_columns_that_a_query_does_not_name_are_not_read(text, names):
    columns = {"A", "B", "C", "S", "M", "WIDE"}
    found = usages(text)[text.index("db.t")].names
    assert (None if found is None else found & columns) == names


def test_conditions_as_texts_for_spark_keep_every_row():
    types = {"n": ColumnType(Kind.INT), "s": ColumnType(Kind.VARCHAR), "day": ColumnType(Kind.DATE), "f": ColumnType(Kind.DOUBLE)}
    columns = {name: f"`{name}`" for name in types}
    n, f = Compare(ColumnRef("n"), Op.GT, 5), Compare(ColumnRef("f"), Op.EQ, 1.5)
    for predicate, expected in (
        (n, "`n` > 5"),
        (f, None),
        (And((n, f)), "(`n` > 5)"),
        (Or((n, f)), None),
        (Or((n, n)), "(`n` > 5) OR (`n` > 5)"),
        (And(()), None),
        (Or(()), None),
        (In(ColumnRef("n"), (1, 2)), "`n` IN (1, 2)"),
        (In(ColumnRef("n"), (1, 2), negated=True), None),
        (In(ColumnRef("n"), tuple(range(101))), None),
        (Compare(ColumnRef("s"), Op.EQ, "a'b"), "`s` = CAST(X'612762' AS STRING)"),
        (Compare(ColumnRef("day"), Op.LE, -1), "`day` <= date_from_unix_date(-1)"),
        (Compare(ColumnRef("m", "k"), Op.EQ, 1), None),
        (Compare(ColumnRef("gone"), Op.EQ, 1), None),
        (IsNull(ColumnRef("n")), None),
        (StartsWith(ColumnRef("s"), "a"), None),
    ):
        assert filter_text(predicate, columns, {**types, "gone": types["n"]}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 5", True),
        ("id > 5", False),
        ("s = 'x'", True),
        ("s > 'x'", False),
        ("n > 5", True),
        ("f = 5", False),
        ("f = 5 AND s IN ('x', 'y')", True),
        ("f = 5 OR s = 'x'", False),
        ("s = 'x' OR id = 3", True),
        ("s LIKE 'x%'", True),
        ("n IS NULL", True),
        ("lower(s) = 'x'", False),
        ("wide LIKE '%abc%'", True),
        ("lower(wide) LIKE '%abc%' AND f = 5", True),
        ("wide LIKE '%abc%' OR f = 5", False),
        ("wide LIKE '%abc%' OR s = 'x'", True),
        ("reverse(wide) LIKE '%abc%'", False),
        ("wide NOT LIKE '%abc%'", False),
    ],
)
def test_keys_and_indexes_find_rows(text, expected):
    options = {**OPTIONS, "ngram-filter.columns": "wide"}
    schema = build_schema("id BIGINT, n INT, f DOUBLE, s STRING, wide STRING", primary_keys=["id"], options=options)
    assert finds_by_index(parse_filter(text, schema.column_types), schema) == expected
