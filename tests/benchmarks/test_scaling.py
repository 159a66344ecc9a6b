"""The scaling runs: what a table must hold after commits, the steps of the worker, and a run that goes on where it stopped."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.scaling import __main__ as scaling
from benchmarks.scaling import step as worker
from benchmarks.scaling.data import Data, Sums, after_commits, chosen, versions
from benchmarks.scaling.report import publish
from benchmarks.scaling.step import Step

ROWS = 240
OPTIONS = {"bucket": "4", "write-only": "true"}


@pytest.fixture(scope="module")
def base():
    keys = np.random.default_rng(1).permutation(ROWS)
    columns = {
        "l_orderkey": keys,
        "l_linenumber": pa.array(keys % 3, pa.int32()),
        "l_partkey": keys * 10,
        "l_comment": [f"row {at}" for at in keys],
    }
    fields = [pa.field("l_orderkey", pa.int64(), nullable=False), pa.field("l_linenumber", pa.int32(), nullable=False)]
    return pa.table(columns, pa.schema([*fields, pa.field("l_partkey", pa.int64()), pa.field("l_comment", pa.string())]))


@pytest.fixture(scope="module")
def inputs(base, tmp_path_factory):
    """A file for each remainder, as the data are dealt."""
    folder = tmp_path_factory.mktemp("inputs")
    for remainder in range(4):
        pq.write_table(base.filter(pa.array(base["l_orderkey"].to_numpy() % 4 == remainder)), folder / f"base-{remainder}.parquet")
    return [str(path) for path in sorted(folder.glob("base-*"))]


def test_sums_after_commits_are_those_of_the_newest_versions(base):
    newest = dict(zip(base["l_orderkey"].to_pylist(), base["l_partkey"].to_pylist(), strict=True))
    for commit in range(1, 6):
        places = chosen(commit, ROWS, 30)
        assert len(set(places.tolist())) == 30
        newest.update(dict.fromkeys(base["l_orderkey"].take(pa.array(places)).to_pylist(), commit))
    assert after_commits(base, 5, 30) == Sums(ROWS, sum(newest), sum(newest.values()))


def test_a_table_read_after_the_workers_commits_holds_what_it_must(base, inputs, tmp_path, capsys):
    path = str(tmp_path / "t")
    worker.write(Step("write", path, inputs, create=True, primary_key=[], options=OPTIONS))()
    told = worker.commits(Step("commits", path, inputs, last=4, size=20))
    whole = pa.concat_tables(pq.read_table(each) for each in inputs)
    assert worker.read(Step("read", path))() == vars(after_commits(whole, 4, 20))
    worker.compact(Step("compact", path))()
    assert worker.read(Step("read", path))() == vars(after_commits(whole, 4, 20))
    assert (len(told["seconds"]), len(told["queries"]["resident"])) == (4, 4)
    assert [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()] == ["ready", "done"]


def test_lookups_find_their_rows_and_the_state_counts_files(inputs, tmp_path):
    path = str(tmp_path / "t")
    worker.write(Step("write", path, inputs, create=True, options=OPTIONS))()
    found = worker.look(Step("look", path, inputs))["queries"]
    assert (found["key lookup, hit"]["answers"], found["key lookup, miss"]["answers"]) == ([1] * worker.REPEATS, [0] * worker.REPEATS)
    assert found["plan"]["answers"] == [4] * worker.REPEATS
    assert (found["state"]["live files"], found["state"]["data files"], found["state"]["snapshots"]) == (4, 4, 1)


def test_the_floor_merges_as_the_table_does(base, inputs, tmp_path):
    upserts = [str(tmp_path / f"upsert-{remainder}.parquet") for remainder in range(4)]
    for source, target in zip(inputs, upserts, strict=True):
        pq.write_table(versions(pq.read_table(source).slice(0, 10), 0), target)
    ours, floor = str(tmp_path / "t"), str(tmp_path / "floor")
    for name, files, create in (("base", inputs, True), ("upsert", upserts, False)):
        worker.write(Step("write", ours, files, create=create, options=OPTIONS))()
        worker.floor_write(Step("floor_write", floor, files, name=name))()
    wanted = worker.read(Step("read", ours))()
    assert wanted["rows"] == ROWS
    assert worker.floor_read(Step("floor_read", floor, name="base+upsert"))() == wanted
    worker.floor_compact(Step("floor_compact", floor, name="base+upsert"))()
    assert worker.floor_read(Step("floor_read", floor, name="compacted"))() == wanted


def test_what_is_done_stays_done(tmp_path, capsys):
    run = scaling.Scaling(tmp_path, quick=True)
    run.point("rows", "1", lambda folder: {"rows": 7, "made in": folder.name})
    again = scaling.Scaling(tmp_path, quick=True)
    again.point("rows", "1", lambda _: pytest.fail("it was there"))
    assert again.results["rows"] == {"1": {"rows": 7, "made in": "1"}}
    assert "done before" in capsys.readouterr().out


def test_a_wrong_answer_stops_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "run", lambda *_, **__: scaling.Measured(answer={"rows": 1, "orderkeys": 1, "partkeys": 1}))
    with pytest.raises(SystemExit, match="answers"):
        scaling.Scaling(tmp_path, quick=True).measure(Step("read", "t"), expected=Sums(1, 1, 2))


def test_the_report_has_a_column_a_size_and_pictures_that_are_xml(tmp_path):
    noted = {"seconds": [2.0, 4.0], "cpu": [1.0], "growth": [1 << 20], "foreign": [0.0]}
    steps = dict.fromkeys(("write", "upsert", "merged read", "full compaction", "read, compacted"), noted)
    asked = {name: {"seconds": [0.005]} for name in ("key lookup, hit", "key lookup, miss", "plan")}
    sizes = {str(at): {"rows": at * 10**6, "ours": {**steps, **asked}, "floor": {"decode inputs": noted}} for at in (1, 6)}
    counted = dict.fromkeys(("live files", "live manifest bytes", "metadata bytes", "data files", "data bytes"), 4096)
    points = {count: {**asked, "merged read": noted, "state": counted} for count in ("0", "2", "4")}
    run = {"size": 5, "rows": 100, "seconds": [0.1] * 4, "cpu": [0.1] * 4, "resident": [1 << 20] * 4, "points": points}
    text = publish({"machine": "a machine", "quick": False, "rows": sizes, "commits": {"compacting": run}}, tmp_path)
    assert "| work | 1,000,000 rows | 6,000,000 rows |" in text
    assert "| write | 3.00 s · 3.00 · 1 | 3.00 s · 0.50 · 1 |" in text
    assert "| a commit, median of the stretch | - | 0.10 s | 0.10 s |" in text
    for name in ("scaling-rows.svg", "scaling-commits.svg"):
        assert ET.parse(tmp_path / name).getroot().tag.endswith("svg")


def test_data_that_are_there_are_not_made_again(tmp_path):
    form = {"base": ["a"], "upsert": ["b"], "written": vars(Sums(1, 2, 3)), "upserted": vars(Sums(4, 5, 6))}
    (tmp_path / "data.json").write_text(json.dumps(form))
    assert scaling.lineitem(tmp_path, 1) == Data(["a"], ["b"], Sums(1, 2, 3), Sums(4, 5, 6))
