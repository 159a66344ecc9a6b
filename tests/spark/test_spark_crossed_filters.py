"""Over Spark, too, a condition that an index answers exactly leaves the conditions beside it alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pyspark_paimon import Table
from tests.oracle.conditions import Drawing, Params
from tests.oracle.tables import Built, Spec, Step, value_of
from tests.oracle.values import VALUES, bits

pytestmark = pytest.mark.spark
INDEXES = {"file-index.bitmap.columns": "i,s,bo,m[k]", "file-index.bsi.columns": "e,n", "file-index.range-bitmap.columns": "b,d,t"}


def built(path: Path, keys: tuple[str, ...]) -> Built:
    draw = random.Random(7)
    rows = [{"id": number, "p": 0, **{ident: draw.choice(values) for ident, values in VALUES.items()}} for number in range(60)]
    steps = (
        Step("write", tuple(rows[:35])),
        Step("widen"),
        Step("write", tuple(rows[35:])),
        *([Step("compact", full=True)] if keys else []),
    )
    options = {**INDEXES, **({"bucket": "1"} if keys else {})}
    return Built(Spec("deduplicate" if keys else "append", keys, (), tuple(options.items()), steps, tiny=False), str(path))


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "keyed"])
def test_filters_over_spark_agree_with_the_model(spark, tmp_path, keys) -> None:
    made = built(tmp_path / "t", keys)
    table = Table.open(made.table.path, spark=spark)
    drawing = Drawing(random.Random(11), made.columns, {"i", "e", "s", "b"})
    for _ in range(12):
        condition, params = drawing.condition(), Params()
        text = condition.sql(made.columns, params)
        expected = sorted(row["id"] for row in made.expected if condition.matches(row))
        scan = table.scan(text, params=dict(params) or None)
        assert sorted(row["id"] for row in scan.to_arrow().to_pylist()) == expected, text
        assert scan.count() == len(expected), text


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "keyed"])
def test_a_delete_over_spark_takes_the_matching_rows_only(spark, tmp_path, keys) -> None:
    made = built(tmp_path / "t", keys)
    Table.open(made.table.path, spark=spark).delete("i IN (1, 2, 3) AND (r.x >= 1 OR size(l) = 2)")
    gone = [row for row in made.expected if row["i"] in {1, 2, 3} and (((row["r"] or {}).get("x") or 0) >= 1 or len(row["l"] or []) == 2)]
    left = {bits(value_of(made, row)) for row in Table.open(made.table.path).scan().to_arrow().to_pylist()}
    assert left == {bits(row) for row in made.expected if row not in gone}
    assert gone
