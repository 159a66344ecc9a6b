"""Random writes with every threshold shrunk: texts change their form in buffers, spills, merges, files and reads, and no row changes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.examples import some

ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")
Row = tuple[int, str | None, str]
TEXTS: dict[str, Callable[[int, int], str | None]] = {
    "few": lambda at, _: f"f{at % 2}",
    "many": lambda at, write: f"m{at}-{write}",
    "nulls": lambda _, __: None,
    "some nulls": lambda at, _: None if at % 3 == 0 else f"s{at % 4}",
}


@pytest.fixture
def small(set_thresholds) -> None:
    set_thresholds(plain_text_rows=10)
    set_thresholds(batch_rows=10)
    set_thresholds(route_rows=16)
    set_thresholds(paged_rows=1)
    set_thresholds(masked_chunk_bytes=0)
    set_thresholds(group_rows=10, fewest_rows=4, trial_rows=4, sample_rows=4, kept_rows=20)
    set_thresholds(text_rows=10, text_sample_distinct=4, text_sample_rows=16, text_dictionary=8)


def options(dice: random.Random, engine: str) -> dict[str, str]:
    found = {
        "bucket": dice.choice(["1", "2", "-1"]),
        "merge-engine": engine,
        "write-buffer-size": dice.choice(["2 kb", "20 kb", "64 mb"]),
        "file.format": dice.choice(["parquet", "parquet", "orc", "avro"]),
        "num-sorted-run.compaction-trigger": dice.choice(["2", "3", "5"]),
    }
    if engine == "aggregation":
        found["fields.default-aggregate-function"] = "last_value"
    if engine != "first-row" and dice.random() < 0.3:
        found["changelog-producer"] = dice.choice(["input", "lookup", "full-compaction"]) if engine == "deduplicate" else "lookup"
    return found


def merged(engine: str, known: dict[int, Any], row: Row) -> None:
    """The row as one more version of its key."""
    key, text, other = row
    before = known.get(key)
    if engine == "first-row":
        known.setdefault(key, (text, other))
    elif engine == "partial-update" and text is None and before is not None:
        known[key] = (before[0], other)
    else:
        known[key] = (text, other)


@pytest.mark.slow("0-partial-update")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(some(2)))
def test_no_row_changes(tmp_path, small, engine, seed):
    dice = random.Random(f"{seed} {engine}")
    table = Table.create(tmp_path / "t", "id BIGINT, s STRING, u STRING", primary_keys=["id"], options=options(dice, engine))
    known: dict[int, Any] = {}
    for write in range(dice.randrange(3, 8)):
        first, step = dice.randrange(300), dice.choice([1, 2, 3])
        ids = list(range(first, first + dice.randrange(1, 150) * step, step))
        dice.shuffle(ids)
        text = TEXTS[dice.choice(sorted(TEXTS))]
        rows = [(at, text(at, write), f"u{at % 3}" if write % 2 else f"uu{at}") for at in ids]
        table.write(pa.Table.from_pylist([dict(zip(("id", "s", "u"), row, strict=True)) for row in rows], table.schema))
        for row in rows:
            merged(engine, known, row)
        assert {row["id"]: (row["s"], row["u"]) for row in table.scan().to_arrow().to_pylist()} == known
        wanted = sum(s == "f1" or u == "u1" for s, u in known.values())
        assert table.scan("s = 'f1' OR u = 'u1'").to_arrow().num_rows == wanted
        coded = table.scan().to_pandas(dictionaries=True)
        assert sorted(coded["u"].astype(str)) == sorted(u for _, u in known.values())
        if dice.random() < 0.3:
            table.compact(full=True)
    assert table.fsck("deep").problems == ()
