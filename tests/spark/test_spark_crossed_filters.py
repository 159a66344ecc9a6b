"""The oracle's tables and conditions over Spark: by the thin client, by frames, by SQL and by SQL of pipes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import pyspark_paimon
from paimon_base.thresholds import Thresholds, use_thresholds
from pyspark_paimon import Catalog, Table
from tests.oracle.conditions import Params
from tests.oracle.drawing import Drawing
from tests.oracle.layouts import draw_spec
from tests.oracle.tables import Built, Spec, Step
from tests.oracle.values import VALUES, bits

pytestmark = pytest.mark.spark
INDEXES = {"file-index.bitmap.columns": "i,s,bo,m[k]", "file-index.bsi.columns": "e,n", "file-index.range-bitmap.columns": "b,d,t"}
Road = Callable[[Any, Built, Path, str], Iterable[int]]


def _scan(spark: Any, built: Built, warehouse: Path, text: str) -> list[int]:
    table = Table.open(built.table.path, spark=spark)
    ids = [row["id"] for row in table.scan(text, ["id"]).to_arrow().to_pylist()]
    assert table.scan(text).count() == len(ids)
    return ids


def _frame(spark: Any, built: Built, warehouse: Path, text: str) -> list[int]:
    return [row.id for row in spark.read.format("paimon").load(str(built.table.path)).filter(text).select("id").collect()]


def _sql(spark: Any, built: Built, warehouse: Path, text: str) -> list[int]:
    query = f"SELECT id FROM default.t WHERE {text}"
    return [row.id for row in pyspark_paimon.sql(spark, query, catalog=Catalog(warehouse)).collect()]


def _pipes(spark: Any, built: Built, warehouse: Path, text: str) -> list[int]:
    query = f"FROM default.t |> EXTEND id + 0 AS copied |> WHERE {text} |> WHERE copied = id |> SELECT id"
    return [row.id for row in pyspark_paimon.sql(spark, query, catalog=Catalog(warehouse)).collect()]


ROADS: dict[str, Road] = {"scan": _scan, "frame": _frame, "sql": _sql, "pipes": _pipes}


def _ask(spark: Any, warehouse: Path, road: str, seed: int, conditions: int) -> None:
    draw = random.Random(seed)
    spec = draw_spec(draw)
    with use_thresholds(Thresholds.tiny()):
        built = Built(spec, str(warehouse / "default.db" / "t"))
    drawing = Drawing(draw, built.columns, spec.indexed)
    for _ in range(conditions):
        condition, params = drawing.condition(), Params()
        text = condition.sql(built.columns, params)
        if not params:  # only some roads take them
            expected = sorted(row["id"] for row in built.expected if condition.matches(row))
            assert sorted(ROADS[road](spark, built, warehouse, text)) == expected, f"seed {seed}, {road}: {text}\n{spec}"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("road", ROADS)
def test_filters_over_spark_agree_with_the_model(spark, tmp_path, road, seed) -> None:
    _ask(spark, tmp_path, road, 100 + seed, 4)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("road", ROADS)
def test_many_filters_over_spark_agree_with_the_model(spark, tmp_path, road) -> None:
    for seed in range(500, 530):
        _ask(spark, tmp_path / str(seed), road, seed, 10)


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "keyed"])
def test_a_delete_over_spark_takes_the_matching_rows_only(spark, tmp_path, keys) -> None:
    draw = random.Random(7)
    rows = [{"id": number, "p": 0, **{ident: draw.choice(values) for ident, values in VALUES.items()}} for number in range(60)]
    options = {**INDEXES, **({"bucket": "1"} if keys else {})}
    steps = (Step("write", tuple(rows[:35])), Step("widen"), Step("write", tuple(rows[35:])))
    made = Built(Spec("deduplicate" if keys else "append", keys, (), tuple(options.items()), steps, tiny=False), str(tmp_path / "t"))
    Table.open(made.table.path, spark=spark).delete("i IN (1, 2, 3) AND (r.x >= 1 OR size(l) = 2)")
    gone = [row for row in made.expected if row["i"] in {1, 2, 3} and (((row["r"] or {}).get("x") or 0) >= 1 or len(row["l"] or []) == 2)]
    left = {bits(made.columns.by_ident(row)) for row in Table.open(made.table.path).scan().to_arrow().to_pylist()}
    assert left == {bits(row) for row in made.expected if row not in gone}
    assert gone
