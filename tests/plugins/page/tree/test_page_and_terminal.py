"""The page and the terminal give the same numbers for a filter, and the numbers add up."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path
from typing import Any

import pytest

from paimon_base.thresholds import use_thresholds
from pyspark_paimon import FunnelStage, Table
from tests.tiny import tiny_options

pytestmark = pytest.mark.slow

INDEXES = {"file-index.bloom-filter.columns": "s,n", "file-index.bitmap.columns": "v,w", "file-index.bloom-filter.s.items": "100"}
VECTORS = {"deletion-vectors.enabled": "true"}
KINDS: dict[str, tuple[list[str], dict[str, str]]] = {
    "keys": (["k"], {"bucket": "2"}),
    "keys, indexed": (["k"], {"bucket": "2", **INDEXES}),
    "keys, vectors": (["k"], {"bucket": "1", **INDEXES, **VECTORS}),
    "first row": (["k"], {"bucket": "1", "merge-engine": "first-row", **INDEXES}),
    "partial update": (["k"], {"bucket": "1", "merge-engine": "partial-update", **INDEXES}),
    "aggregation": (["k"], {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "max", **INDEXES}),
    "dynamic buckets": (["k"], {"dynamic-bucket.target-row-num": "20", **INDEXES}),
    "append": ([], INDEXES),
    "append, vectors": ([], {**INDEXES, **VECTORS}),
    "data evolution": ([], {"row-tracking.enabled": "true", "data-evolution.enabled": "true", **INDEXES}),
}
WAYS = {
    "merged": {"candidate_rows": 1 << 60},
    "searched": {"candidate_rows": 1, "rows_per_candidate": 1, "candidate_keys": 1 << 20, "rows_per_search": 1 << 60},
    "alone": {"candidate_rows": 1, "rows_per_search": 0},
    "few candidates": {"candidate_rows": 1, "rows_per_candidate": 20, "rows_per_search": 1 << 60},
}
FILTERS = [
    None,
    "v = 3",
    "v IS NULL",
    "w IN (1, 2) OR v = 1",
    "s = 'b'",
    "s = 'nowhere'",
    "s = 'nowhere' AND n = 99",
    "k < 20 AND w = 2",
    "k = 7",
    "k = 7 AND s = 'a'",
    "d > 0",
    "n = 4",
    "p = 1",
    "p = 1 AND s = 'a'",
    "p = 9",
]
OF_FILES = ("partition", "bucket", "level", "key range", "value stats", "embedded index")


def row(draw: random.Random) -> dict[str, Any]:
    values = {"v": draw.randrange(6), "w": draw.randrange(6), "s": draw.choice("abc"), "d": draw.random(), "n": draw.randrange(9)}
    nulled = {name: value if draw.random() > 0.2 else None for name, value in values.items()}
    return {"k": draw.randrange(60), "p": draw.randrange(3), **nulled}


def random_table(path: Path, kind: str, draw: random.Random) -> Table:
    keys, options = KINDS[kind]
    columns = "k INT, p INT, v INT, w INT, s STRING, d DOUBLE, n INT"
    partitioned = draw.random() < 0.4
    write_only = {"write-only": "true"} if draw.random() < 0.5 else {}
    table = Table.create(
        path,
        columns,
        primary_keys=[*keys, *(["p"] if partitioned and keys else [])],
        partition_keys=["p"] if partitioned else [],
        options=tiny_options({"num-sorted-run.compaction-trigger": "4", **options, **write_only}),
    )
    for _ in range(draw.randrange(1, 5)):
        table.write([row(draw) for _ in range(draw.randrange(1, 60))])
    if draw.random() < 0.4 and kind not in {"first row", "partial update", "aggregation", "data evolution"}:
        table.delete("w = 2")
    if draw.random() < 0.3:
        table.compact(full=draw.random() < 0.5)
    return table


def numbers(stages: tuple[FunnelStage, ...]) -> dict[str, tuple[int, int]]:
    return {stage.name: (stage.kept, stage.dropped) for stage in stages}


def check(table: Table, text: str | None) -> None:
    scan = table.scan(text)
    explained = scan.explain().stages
    terminal = numbers(explained)
    steps = [terminal[name] for name in OF_FILES if name in terminal] + [terminal["file index"]]
    for (kept, _), (later, dropped) in itertools.pairwise(steps):
        assert kept == later + dropped, (text, explained)
    assert sum(terminal["file index"]) == sum(len(split.files) for split in scan.plan().splits)
    assert terminal["rows"][0] == scan.count()
    for stage in explained:
        if stage.name == "key candidates":
            [searched] = re.findall(r"of ([\d,]+) rows? in", stage.note)
            assert stage.kept + stage.dropped == int(searched.replace(",", ""))
    page = table.tree(text)
    # A search for keys ends when it has found too many, so it does not ask every index.
    compared = [stage for stage in page.stages if not (stage.name.startswith("index ") and scan.plan().merging_count)]
    assert numbers(tuple(compared)) == {stage.name: terminal.get(stage.name) for stage in compared}, text
    assert page.total("kept") == terminal["file index"][0]
    assert page.total("files") == table.files().num_rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [pytest.param(0), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_the_stages_of_page_and_terminal_add_up(tmp_path: Path, kind: str, seed: int) -> None:
    draw = random.Random(f"{kind} {seed}")
    way = draw.choice(list(WAYS))
    with use_thresholds(**WAYS[way]):
        table = random_table(tmp_path / "t", kind, draw)
        for text in FILTERS:
            check(table, text)


@pytest.mark.parametrize("kind", ["keys", "keys, indexed", "append", "append, vectors"])
def test_every_call_of_the_page_can_be_copied(tmp_path: Path, kind: str) -> None:
    draw = random.Random(kind)
    table = random_table(tmp_path / "t", kind, draw)
    for _ in range(8):
        table.write([row(draw) for _ in range(40)])
    calls = {advice.call for text in FILTERS for advice in table.tree(text).advice if advice.call}
    assert calls
    for call in sorted(calls):
        exec(call, {"table": Table.open(table.path)})
