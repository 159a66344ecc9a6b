"""Filters on sections with several runs: searching for candidate keys changes no answer."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lsm.merge.function import merge_function_for
from lsm.read.key_candidates import version_filters
from manifest.schema.validation import build_schema
from paimon_base.thresholds import use_thresholds
from pyspark_paimon import PaimonError, Table
from pyspark_paimon.filter.parse import bind_filter
from tests.build import keyed

NEVER = {"candidate_rows": 1 << 60}
ALWAYS = {"candidate_rows": 1, "rows_per_candidate": 1, "candidate_keys": 1 << 20, "rows_per_search": 1 << 60}
ALONE = {"candidate_rows": 1, "rows_per_search": 0}
INDEXES = {"file-index.bloom-filter.columns": "s", "file-index.bitmap.columns": "v,w"}
FUNCTIONS = ["sum", "product", "max", "min", "last_value", "last_non_null_value", "first_value", "first_non_null_value"]
GROUPS = {"fields.w.sequence-group": "v", "fields.d.sequence-group": "s"}
KINDS: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "deduplicate, indexed": INDEXES,
    "deduplicate, ignore-delete": {"ignore-delete": "true"},
    "deduplicate by v": {"sequence.field": "v", **INDEXES},
    "deduplicate by v, descending": {"sequence.field": "v", "sequence.field.sort-order": "descending"},
    "deduplicate, vectors": {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true", **INDEXES},
    "deduplicate, lookup": {"changelog-producer": "lookup", "lookup-wait": "false"},
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true", **INDEXES},
    "partial-update": {"merge-engine": "partial-update", "ignore-delete": "true", **INDEXES},
    "partial-update, removed": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "partial-update, groups": {"merge-engine": "partial-update", **GROUPS, **INDEXES},
    "partial-update, summed group": {"merge-engine": "partial-update", **GROUPS, "fields.v.aggregate-function": "sum"},
    "partial-update, greatest of group": {"merge-engine": "partial-update", **GROUPS, "fields.v.aggregate-function": "max"},
    **{
        f"aggregation, {name}": {"merge-engine": "aggregation", "fields.v.aggregate-function": name, "fields.v.ignore-retract": "true"}
        for name in FUNCTIONS
    },
}
FILTERS: list[str | None] = [
    None,
    "v = 3",
    "v IS NULL",
    "v IS NOT NULL AND w > 1",
    "v > 2 AND w < 5",
    "w IN (1, 2) OR v = 1",
    "NOT (v = 2)",
    "s LIKE 'a%'",
    "s = 'b'",
    "s = 'nowhere'",
    "v IS NULL OR w = 1",
    "v + w = 5",
    "v <> w",
    "d > 0.5",
    "d = double('NaN')",
    "k < 20 AND w = 2",
    "k = 7 AND w = 2",
    "f < 2 AND v = 1",
    "n = 4",
    "n IS NULL AND v = 3",
]


def value(draw: random.Random, name: str) -> Any:
    if draw.random() < 0.2:
        return None
    return {
        "v": draw.randrange(6),
        "w": draw.randrange(6),
        "s": draw.choice(["a", "ab", "b", "", "é"]),
        "d": draw.choice([0.0, -0.0, 1.5, float("nan"), float("inf")]),
        "n": draw.randrange(6),
    }[name]


def rows(draw: random.Random, count: int, names: list[str]) -> list[dict[str, Any]]:
    keys = [{"k": draw.randrange(40), "f": draw.choice([0.0, -0.0, 1.0, float("nan")])} for _ in range(count)]
    return [key | {name: value(draw, name) for name in names} for key in keys]


def table_with_runs(path: Path, draw: random.Random, options: dict[str, str]) -> Table:
    """Return a table with waiting runs, some deletes, and a column that came later."""
    settings = {"bucket": "1", "write-only": "true", **options}
    columns = "k INT, f DOUBLE, v INT, w INT, s STRING, d DOUBLE"
    table = Table.create(path, columns, primary_keys=["k", "f"], options=settings)
    names = ["v", "w", "s", "d"]
    table.write(rows(draw, 60, names))
    if draw.random() < 0.7:
        table.compact(full=True)
    for number in range(draw.randrange(1, 5)):
        if number == 1:
            table.add_column("n", "INT")
            names.append("n")
        table.write(rows(draw, draw.randrange(1, 25), names))
        if draw.random() < 0.5:
            # Engines that refuse retractions have none.
            with suppress(PaimonError):
                table.write([{**row, "_row_kind": draw.choice(["-D", "-U"])} for row in rows(draw, 5, names)])
    return table


def texts(table: Table, condition: str | None, **limits: int) -> tuple[list[str], int, int]:
    with use_thresholds(**limits):
        scan = table.scan(condition)
        found = sorted(map(repr, scan.to_arrow().to_pylist()))
        merged = scan.explain().stages[-1].note
        return found, scan.count(), int(merged.split()[0].replace(",", "")) if merged else 0


@pytest.mark.slow("0-aggregation, product", "0-aggregation, min", "0-deduplicate, lookup")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
@pytest.mark.sampled(2)
def test_candidate_keys_change_no_answer(tmp_path: Path, kind: str, seed: int) -> None:
    draw = random.Random(f"{kind} {seed}")
    table = table_with_runs(tmp_path / "t", draw, KINDS[kind])
    has_n = "n" in table.schema.names
    for condition in FILTERS if seed else draw.sample(FILTERS, len(FILTERS) // 4):
        if condition and condition.startswith("n ") and not has_n:
            continue
        whole = texts(table, condition, **NEVER)
        for way in (ALWAYS, ALONE):
            found = texts(table, condition, **way)
            assert found[:2] == whole[:2], condition
            assert found[2] <= whole[2], condition


@pytest.mark.parametrize(("engine", "merged"), [("deduplicate", ""), ("partial-update", "5 of 2,004 decoded rows merged")])
def test_few_keys_are_searched_or_merged_and_explain_says_so(tmp_path: Path, engine: str, merged: str) -> None:
    options = {"bucket": "1", "write-only": "true", "merge-engine": engine}
    table = Table.create(tmp_path / "t", "id INT, v INT", primary_keys=["id"], options=options)
    table.write([{"id": n, "v": n % 500} for n in range(1000)])
    table.write([{"id": 7, "v": 8}, {"id": 8, "v": 9}])
    with use_thresholds(candidate_rows=100):
        stages = {stage.name: stage for stage in table.scan("v = 8").explain().stages}
    assert (stages["key candidates"].kept, stages["key candidates"].dropped) == (3, 999)
    assert (stages["rows"].kept, stages["rows"].note) == (2, merged)


def test_many_candidates_end_the_search(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "id INT, v INT", {"write-only": "true"})
    table.write([{"id": n, "v": n % 3} for n in range(1000)])
    table.write([{"id": 7, "v": 1}])
    with use_thresholds(candidate_rows=100, rows_per_search=1 << 60):
        stages = {stage.name: stage for stage in table.scan("v = 1").explain().stages}
    assert "key candidates" not in stages
    assert stages["rows"].kept == 333


def test_frequent_matches_end_the_search_for_a_limit(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "id INT, v INT", {"write-only": "true"})
    table.write([{"id": n, "v": n % 20} for n in range(1000)])
    table.write([{"id": 7, "v": 1}])
    with use_thresholds(candidate_rows=100, rows_per_search=1 << 60, rows_per_candidate=4):
        for limit, searched in ((3, False), (None, True)):
            scan = table.scan("v = 1", limit=limit)
            assert ("key candidates" in {stage.name for stage in scan.explain().stages}) is searched
            assert scan.to_arrow().num_rows == (limit or 51)


@pytest.mark.parametrize(
    ("function", "condition", "searched"),
    [
        ("max", "v > 3", 1),
        ("max", "v > 3 AND w = 2", 2),
        ("max", "v > w", 0),
        ("max", "v IS NULL", 0),
        ("max", "v = 1 OR v IS NULL", 0),
        ("sum", "v > 3", 0),
        ("sum", "v > 3 AND w = 2", 1),
        ("listagg", "v > 3", 0),
        ("max", "id > 3", 0),
        ("max", "id = 3 AND v = 1", 0),
    ],
)
def test_only_copied_columns_give_candidates(function: str, condition: str, searched: int) -> None:
    kind = "STRING" if function == "listagg" else "INT"
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": function}
    schema = build_schema(f"id INT, v {kind}, w INT", primary_keys=["id"], options=options)
    predicate = bind_filter(condition.replace("3", "'3'") if function == "listagg" else condition, schema.column_types)
    assert predicate is not None
    assert len(version_filters(merge_function_for(schema), predicate, schema)) == searched


def test_runs_of_one_size_are_merged_and_small_runs_are_not(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "id INT, v INT", {"write-only": "true"})
    table.write([{"id": n, "v": n} for n in range(1000)])
    notes = []
    with use_thresholds(candidate_rows=100):
        for number in range(4):
            table.write([{"id": n, "v": -number} for n in range(number, 5 if number < 3 else 1000)])
            notes.append(table.scan().explain().stages[-1].note)
    assert notes == ["", "", "", "2,009 of 2,009 decoded rows merged"]


@pytest.mark.parametrize("kind", ["BYTES", "STRING"])
def test_the_last_of_many_keys_may_end_with_a_nul_byte(tmp_path: Path, kind: str) -> None:
    table = keyed(tmp_path / "t", f"id {kind}, v INT", {"write-only": "true"})
    last: Any = b"z\0" if kind == "BYTES" else "z\0"
    keys = [b"%03d" % n if kind == "BYTES" else f"{n:03}" for n in range(300)]
    table.write([{"id": key, "v": 1} for key in (*keys, last)])
    table.write([{"id": last, "v": 2}])
    assert table.lookup([*keys, last]).num_rows == 301
    with use_thresholds(candidate_rows=100):
        for condition, found in ((None, 301), ("v = 1", 300), ("v = 2", 1)):
            assert table.scan(condition).to_arrow().num_rows == found
