"""The benchmark harness on a handful of rows: answers are checked, wrong ones refused, what is done stays done, and a table comes out."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.answers import answer_of
from benchmarks.contenders.worker import Filter, Job, Query, run_queries
from benchmarks.docs_page import BEGIN, END, between
from benchmarks.harness import PROFILES, Bench, contender, known
from benchmarks.inputs import Inputs, store_changes
from benchmarks.queries import lookups, matching
from benchmarks.report import Report
from benchmarks.results import Record, Results, short
from benchmarks.workloads import BY_NAME, LINES, MAKER, WORKLOADS

TINY = replace(PROFILES["tiny"], smalls=1)
ROWS = 240


def lineitem_rows() -> pa.Table:
    make = np.random.default_rng(1)
    keys = make.permutation(np.arange(ROWS))
    schema = pa.schema(
        [
            pa.field("l_orderkey", pa.int64(), nullable=False),
            pa.field("l_linenumber", pa.int32(), nullable=False),
            pa.field("l_extendedprice", pa.decimal128(15, 2)),
            pa.field("l_returnflag", pa.string()),
            pa.field("l_shipmode", pa.string()),
            pa.field("l_comment", pa.string()),
        ]
    )
    prices = pa.array(make.integers(900, 10_000, ROWS)).cast(pa.decimal128(21, 2)).cast(pa.decimal128(15, 2))
    columns = [
        keys // 4 * 32 + 1,
        (keys % 4 + 1).astype(np.int32),
        prices,
        ["R", "N"] * (ROWS // 2),
        ["AIR", "RAIL", "SHIP"] * (ROWS // 3),
        [f"comment {at}" for at in range(ROWS)],
    ]
    return pa.table(columns, schema=schema)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """With inputs that are there already, and only the first workload."""
    folder = tmp_path / "inputs" / f"lineitem-{TINY.scale:g}-1-{TINY.smalls}"
    folder.mkdir(parents=True)
    store_changes(Inputs(folder, ("l_orderkey", "l_linenumber"), TINY.smalls), lineitem_rows(), 10)
    return Bench(tmp_path, TINY, ["floor", "ours"], ["write"], say=lambda _: None)


def report_of(bench: Bench) -> Report:
    return Report("tiny", bench.results, bench.contenders, bench.excluded_files, {"rows": ROWS, "sixth": ROWS // 6, "small": 2})


@pytest.mark.slow
def test_a_tiny_run_has_checked_answers_a_table_and_a_picture(bench: Bench) -> None:
    bench.run()
    assert [(one.contender, one.failed, one.rows) for one in bench.results.records] == [("floor", None, ROWS), ("ours", None, ROWS)]
    table = report_of(bench).main_table()
    assert table.rows[0][0] == "write 240 rows, primary key"
    floor, ours, first, processor, ratio = table.rows[0][1:6]
    assert floor
    assert ours
    assert not first, "a write has no second time"
    assert processor
    assert float(ratio) > 0
    assert "write 240 rows" in report_of(bench).picture()
    assert bench.tables.find("ours", "base") is not None
    before = list(bench.results.records)
    bench.run()  # nothing is left to do
    assert bench.results.records == before
    assert Results(bench.results.path).records == before


def lying(folder: Path, answer: dict[str, int]) -> list[str]:
    """The command of a contender that writes nothing and answers what it is told to."""
    program = folder / "lying.py"
    said = {"event": "result", "seconds": [0.001], "cpu": [0.001], "answer": answer, "versions": {}}
    lines = [json.dumps({"event": "ready"}), "some noise", json.dumps({"event": "done"}), json.dumps(said)]
    program.write_text(f"for line in {lines!r}: print(line, flush=True)\n")
    return [sys.executable, "-S", str(program)]


def test_a_wrong_answer_is_refused_and_gives_no_time(bench: Bench, tmp_path: Path) -> None:
    right = answer_of(lineitem_rows())
    for answer in ({**right, "rows": right["rows"] - 1}, {**right, "hash": right["hash"] ^ 1}):
        bench.commands = {"floor": lying(tmp_path, answer)}
        record = bench.measure("floor", BY_NAME["write"], 0)
        assert record.failed is not None
        assert record.failed.startswith("WrongAnswer")
    assert bench.results.summary("floor", "write") is None
    assert bench.tables.find("floor", "base") is None
    bench.commands = {"floor": lying(tmp_path, right)}
    assert bench.measure("floor", BY_NAME["write"], 1).failed is None


def test_a_worker_that_dies_is_a_failure_with_its_reason(bench: Bench) -> None:
    bench.commands = {"floor": [sys.executable, "-S", "-c", "raise SystemExit('no disk')"]}
    assert "no disk" in (bench.measure("floor", BY_NAME["write"], 0).failed or "")
    assert any("no disk" in note for note in report_of(bench).notes())


def test_the_hash_of_an_answer_sees_values_and_not_their_order_or_layout() -> None:
    rows = lineitem_rows()
    shuffled = rows.take(pa.array(np.random.default_rng(2).permutation(ROWS)))
    assert answer_of(shuffled) == answer_of(rows)
    views = rows.set_column(5, "l_comment", rows["l_comment"].cast(pa.string_view()))
    coded = views.set_column(4, "l_shipmode", views["l_shipmode"].dictionary_encode())
    assert answer_of(coded) == answer_of(rows)
    swapped = rows.set_column(5, "l_comment", pa.concat_arrays([rows["l_comment"].chunk(0)[1:], rows["l_comment"].chunk(0)[:1]]))
    assert answer_of(swapped) != answer_of(rows)
    assert answer_of(pa.table({"a": pa.array([None, 0])})) != answer_of(pa.table({"a": pa.array([0, 0])}))


def test_every_question_has_rows_or_none_as_its_name_says() -> None:
    rows = lineitem_rows()
    for query in lookups(rows):
        found = [matching(rows, query, conditions).num_rows for conditions in query.filters]
        assert all(count == 0 for count in found) if "miss" in query.name else all(found), query.name


def test_targets_are_judged_against_the_same_run(tmp_path: Path) -> None:
    results = Results(tmp_path / "r.jsonl")
    for name, seconds in (("floor", 2.0), ("ours", 1.26), ("pypaimon_rust", 9.0)):
        results.add(Record(name, "write", 0, seconds=seconds, memory=(100 << 20, 0)))
    report = Report(
        "full", results, {name: contender(name) for name in ("floor", "ours", "pypaimon_rust")}, {}, {"rows": 1, "sixth": 1, "small": 1}
    )
    line = next(each for each in LINES if each.workload == "write")
    assert [report.verdict(line, target)[1] for target in line.targets] == ["**no** (1.05)", "yes (0.20)"]
    results.add(Record("ours", "write", 1, seconds=1.0, foreign=1.0))  # while others worked: it does not count
    assert results.summary("ours", "write").median == 1.26


def test_states_have_makers_and_every_contender_knows_its_steps() -> None:
    assert {each.source for each in WORKLOADS if each.source} <= {*MAKER, "planned"}
    for name in known():
        found = contender(name)
        assert found.command is not None or {"write", "read", "lookup"} <= set(found.steps)


def test_a_job_travels_as_json() -> None:
    job = Job("lookup", "/t", queries=[Query("key hit", [[["id", "=", 1]]], ["id"])])
    assert Job.from_json(job.to_json()) == job


def test_the_readme_keeps_what_stands_around_the_figures() -> None:
    once = between("# Title\n\ntext\n", "figures")
    assert once.startswith("# Title")
    assert between(once, "others") == once.replace("figures", "others")
    assert once.count(BEGIN) == once.count(END) == 1


@pytest.mark.parametrize(("seconds", "text"), [(0.0042, "4.2 ms"), (0.042, "42 ms"), (4.2, "4.20 s"), (42, "42.0 s"), (420, "420 s")])
def test_times_have_the_digits_they_deserve(seconds: float, text: str) -> None:
    assert short(seconds) == text


def test_the_first_and_the_second_time_of_a_question_are_apart(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[int] = []

    def ask(_: Query, conditions: Filter) -> int:
        asked.append(int(conditions[0][2]))
        return 7

    query = Query("range", [[["k", "=", 1]], [["k", "=", 2]]])
    found = run_queries(ask, [query], twice=True)["queries"]["range"]
    assert asked == [1, 1, 2, 1, 2], "once for the imports, then each question twice"
    assert [len(found[name]) for name in ("first", "seconds", "cpu", "answers")] == [2, 2, 2, 2]
    answers = itertools.count()
    with pytest.raises(RuntimeError, match="range: the second answer"):
        run_queries(lambda *_: next(answers), [query], twice=True)
    capsys.readouterr()


def test_a_table_of_results_tells_first_touch_and_processors(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    for at, steady in enumerate([1.0, 3.0, 2.0]):
        results.add(
            Record("ours", "lookup_indexed", at, queries={"range": [steady]}, first={"range": [10 * steady]}, processors={"range": [5.0]})
        )
    summary = Results(results.path).summary("ours", "lookup_indexed", "range")
    assert summary is not None
    assert (summary.median, summary.first, summary.cpu) == (2.0, 20.0, 5.0)
