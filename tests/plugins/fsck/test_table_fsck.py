"""``Table.fsck`` and the command ``fsck``: clean tables, what is counted, what is forgiven, exit codes."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
import test_fsck_indexes
import test_fsck_metadata
import test_fsck_rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifest.io.file_io import LocalFileIO
from paimon_base.errors import InvalidArgument, PaimonError
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.plugins.cli import main
from pyspark_paimon.plugins.fsck.operation import Fsck
from pyspark_paimon.results.fsck_problem import ADVICE, Problem, ProblemKind
from tests.damaged_tables import MAKERS, Copies, Surgeon, cut, flip, gone
from tests.golden_rows import GOLDEN


def run(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out, shown.err


@pytest.mark.parametrize("shape", MAKERS)
def test_tables_that_are_whole_are_clean(copies, shape) -> None:
    result = Table.open(copies.of(shape)).fsck("deep")
    assert result.problems == ()
    assert result.clean
    assert result.counts["unreferenced files"] == 0
    assert result.counts["rows"] > 0


@pytest.mark.parametrize("name", sorted(path.parent.name for path in GOLDEN.glob("*/table")))
@pytest.mark.sampled(3)
def test_golden_tables_are_clean(name) -> None:
    result = Table.open(GOLDEN / name / "table").fsck("deep")
    assert result.problems == ()
    assert result.unchecked == {}


def test_every_kind_of_problem_is_tested_and_has_advice() -> None:
    modules = (test_fsck_metadata, test_fsck_rows, test_fsck_indexes)
    tested = {case.kind for module in modules for case in module.DAMAGES.values()}
    # No damage of a file: test_keys_across_partitions. Damage of a table with data evolution: test_evolved_tables.
    elsewhere = {ProblemKind.KEY_PARTITION, ProblemKind.ROW_RANGE}
    assert tested | elsewhere == set(ProblemKind) == set(ADVICE)


def test_a_problem_tells_who_needs_the_file(copies, tmp_path) -> None:
    path = copies.copy("written", tmp_path)
    old, new = Surgeon(path, 1), Surgeon(path)
    kept = [gone(old.path_of(old.live()[0])), gone(new.path_of(new.entries()[0]))]
    problems = {Path(problem.path): problem for problem in Table.open(path).fsck("quick").problems}
    assert set(problems) == set(kept)
    first, last = (problems[file] for file in kept)
    assert (first.origin.snapshot, last.origin.snapshot) == (3, 5)
    assert first.partition == "part=a"
    assert (last.bucket, last.manifest) == (new.entries()[0].bucket, new.metas()[0].file_name)
    assert str(first) == f"missing-file: {kept[0]}: is missing"


def test_branches_are_checked_each_by_its_own_history(copies, tmp_path) -> None:
    path = copies.copy("branched", tmp_path)
    side = Surgeon(f"{path}$branch_side")
    lost = gone(side.path_of(side.entries()[0]))
    (problem,) = Table.open(path).fsck().problems
    assert (problem.path, problem.origin.branch, problem.origin.snapshot) == (str(lost), "side", side.snapshot.id)


@pytest.mark.parametrize("damage", [gone, cut])
def test_a_branch_without_a_schema_is_named_and_the_others_are_checked(copies, tmp_path, damage) -> None:
    path = copies.copy("branched", tmp_path)
    Table.open(path).create_branch("tail", "fork")
    schema = damage(Path(path) / "branch" / "branch-side" / "schema" / "schema-0")
    result = Table.open(path).fsck("quick")
    assert [(problem.kind.value, problem.path) for problem in result.problems] == [("schema", str(schema))]
    assert result.counts["branches"] == 2


def test_a_tag_keeps_files_that_must_be_there(copies, tmp_path) -> None:
    path = copies.copy("keyed", tmp_path)
    table = Table.open(path)
    (Path(path) / "consumer" / "consumer-me").unlink()
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert table.fsck("deep").problems == ()
    kept = Surgeon(path)
    tagged = kept.store.live_entries(kept.store.snapshots.tag("kept")).entries()
    live = {entry.file.file_name for entry in kept.live()}
    lost = gone(kept.path_of(next(entry for entry in tagged if entry.file.file_name not in live)))
    (problem,) = table.fsck("quick").problems
    assert (problem.path, problem.origin.tag) == (str(lost), "kept")


def test_problems_beyond_the_limit_are_counted(copies, tmp_path) -> None:
    path = copies.copy("written", tmp_path)
    for entry in Surgeon(path).live():
        gone(Surgeon(path).path_of(entry))
    result = Table.open(path).fsck("quick", limit=1)
    assert len(result.problems) == 1
    assert result.problem_count == len(Surgeon(path).live())


def test_files_that_wait_for_compaction_are_counted_where_level_0_is_hidden(tmp_path) -> None:
    def counted(table: Table) -> tuple[int, int]:
        counts = table.fsck("quick").counts
        return counts.get("files that wait for compaction", 0), counts.get("buckets with files that wait for compaction", 0)

    hidden, merged = ({"bucket": "2", "write-only": "true", "deletion-vectors.enabled": flag} for flag in ("true", "false"))
    rows = pa.table({"id": range(20)})
    for name, options, waiting in (("hidden", hidden, (4, 2)), ("merged", merged, (0, 0))):
        table = Table.create(tmp_path / name, "id BIGINT", ["id"], [], options)
        table.write(rows)
        table.write(rows)
        assert counted(table) == waiting
        table.compact(full=True)
        assert counted(table) == (0, 0)


def test_a_check_reads_what_is_held_in_memory_again(copies, tmp_path, monkeypatch) -> None:
    told = LocalFileIO.identity
    monkeypatch.setattr(LocalFileIO, "identity", lambda self, path: told(self, path) and (0, 0, 0, 0))  # rot changes no time
    path = copies.copy("plain", tmp_path)
    table = Table.open(path)
    assert table.scan().to_arrow().num_rows == 60
    manifest = flip(Surgeon(path).name(Surgeon(path).metas()[0].file_name), -40)
    assert table.scan().to_arrow().num_rows == 60
    assert str(manifest) in {problem.path for problem in table.fsck("quick").problems}


def test_files_of_other_formats_are_counted_and_unreferenced_ones_are_no_problem(copies, tmp_path) -> None:
    path = copies.copy("plain", tmp_path)
    surgeon = Surgeon(path)
    entry = surgeon.entries()[0]
    renamed = surgeon.path_of(entry).with_suffix(".csv")
    surgeon.path_of(entry).rename(renamed)
    surgeon.change(lambda other: other.file == entry.file, file_name=renamed.name)
    (Path(path) / "manifest" / "manifest-left-behind").write_bytes(b"x")
    os.utime(Path(path) / "manifest" / "manifest-left-behind", (1, 1))
    result = Table.open(path).fsck("deep")
    assert result.clean
    assert result.unchecked == {"csv files": 1}
    assert result.counts["unreferenced files"] >= 1


def test_files_outside_the_table_are_followed(copies, tmp_path) -> None:
    path = copies.copy("plain", tmp_path)
    surgeon = Surgeon(path)
    entry = surgeon.entries()[0]
    outside = tmp_path / "elsewhere.parquet"
    surgeon.path_of(entry).rename(outside)
    surgeon.change(lambda other: other.file == entry.file, external_path=f"file:{outside}")
    assert Table.open(path).fsck("deep").clean
    cut(outside)
    assert [problem.path for problem in Table.open(path).fsck().problems] == [str(outside)]


class ExpiringIO(LocalFileIO):
    """Storage on which, once the first data file is looked for, another job expires the table's old snapshots."""

    __slots__ = ()
    expire: Any = None

    def size(self, path: str) -> int:
        expire, ExpiringIO.expire = ExpiringIO.expire, None
        if expire is not None:
            expire()
        return LocalFileIO.size(self, path)


def test_what_is_expired_meanwhile_is_no_problem(copies, tmp_path) -> None:
    path = copies.copy("written", tmp_path)
    ExpiringIO.expire = lambda: Table.open(path).expire_snapshots(retain_min=1, retain_max=1)
    result = LocalEngine(path, file_io=ExpiringIO()).ask(Fsck(depth="deep"))
    assert ExpiringIO.expire is None
    assert result.problems == ()
    assert Table.open(path).snapshots().num_rows == 1


def test_progress_is_told(copies) -> None:
    told: list[Any] = []
    result = Table.open(copies.of("written"), progress=told.append).fsck()
    assert {event.stage for event in told} == {"fsck"}
    assert told[-1].done == told[-1].total == result.counts["data files"] + result.counts["changelog files"]


def test_a_depth_that_there_is_not(copies) -> None:
    with pytest.raises(InvalidArgument, match="quick, footers, deep"):
        Table.open(copies.of("plain")).fsck("deeper")


def test_the_command_says_clean_and_ends_with_0(copies, capsys) -> None:
    code, out, _ = run(capsys, "fsck", str(copies.of("plain")), "--deep")
    assert code == 0
    assert out.startswith("clean")
    assert "60 rows" in out


def test_the_command_names_what_is_wrong_and_ends_with_1(copies, tmp_path, capsys) -> None:
    path = copies.copy("plain", tmp_path)
    lost = gone(Surgeon(path).path_of(Surgeon(path).live()[0]))
    code, out, _ = run(capsys, "fsck", path, "--quick", "--json")
    assert code == 1
    told = json.loads(out)
    assert (told["clean"], told["problem_count"], told["depth"]) == (False, 1, "quick")
    assert told["problems"][0]["path"] == str(lost)
    assert told["problems"][0]["advice"].startswith("restore the file")
    code, out, _ = run(capsys, "fsck", path)
    assert code == 1
    assert "missing-file" in out
    assert "1 problem " in out


def test_the_command_ends_with_2_where_there_is_no_table(tmp_path, capsys) -> None:
    code, _, err = run(capsys, "fsck", f"{tmp_path}/none")
    assert code == 2
    assert err.startswith("TableNotFound")
    assert run(capsys, "fsck", f"{tmp_path}/none", "--quick", "--deep")[0] == 2


@pytest.mark.slow
def test_a_table_written_in_many_ways_stays_clean(create) -> None:
    table = create(
        options={"num-sorted-run.compaction-trigger": "3", "snapshot.num-retained.min": "1", "file-index.bitmap.columns": "city"}
    )
    for turn in range(8):
        rows = {"id": range(turn, turn + 30), "city": [f"c{turn % 3}"] * 30, "n": pa.array([turn] * 30, pa.int32())}
        if turn > 3:
            rows = {"id": rows["id"], "city": rows["city"], "number": rows["n"], "more": ["x"] * 30}
        table.write(pa.table(rows))
        if turn == 3:
            table.add_column("more", "STRING")
            table.rename_column("n", "number")
        if turn == 5:
            table.delete("id < 9")
            table.alter_options({"file-index.bloom-filter.columns": "city"})
            table.rewrite_file_index()
        assert table.fsck("deep").problems == ()
    table.compact(full=True)
    table.expire_snapshots(retain_min=2, retain_max=2)
    assert table.fsck("deep").problems == ()


def _everything(path: str) -> dict[str, list[str]]:
    """The rows of every snapshot and tag that there is."""
    table = Table.open(path)
    states: dict[str, Any] = {f"snapshot {number}": {"snapshot": number} for number in table.snapshots()["snapshot_id"].to_pylist()}
    states |= {f"tag {name}": {"tag": name} for name in table.tags()["tag_name"].to_pylist()}
    return {name: sorted(map(str, table.scan(**wanted).to_arrow().to_pylist())) for name, wanted in states.items()}


def _damage(path: Path, blow: Blow) -> None:
    """One bit, the end, or all of a file; a Parquet footer stays whole, for Arrow answers some that are not by ending the process."""
    data = path.read_bytes()
    size = len(data)
    if path.suffix == ".parquet" and blow.how == "flip":
        size -= 8 + int.from_bytes(data[-8:-4], "little")
    if blow.how == "delete" or not size:
        path.unlink()
    elif blow.how == "cut":
        path.write_bytes(data[: int(blow.at * size)])
    else:
        flip(path, int(blow.at * size), 1 << blow.bit)


def _is_named(path: Path, problem: Problem) -> bool:
    """By its own name, or by those of the state and the manifest that has it."""
    origin = problem.origin
    states = [f"snapshot-{origin.snapshot}", f"tag-{origin.tag}", f"changelog-{origin.changelog}", problem.manifest]
    gone_snapshot = path.name.replace("-", " ") in problem.message  # a hint that names it
    return path.name in problem.path or path.name in problem.message or path.name in states or gone_snapshot


class Blow(NamedTuple):
    """What is done to one file of a table; ``chosen`` and ``at`` are shares of the files and of the bytes."""

    shape: str
    chosen: float
    how: str
    at: float
    bit: int


def _judge(copies: Copies, blow: Blow) -> None:
    with tempfile.TemporaryDirectory() as home:
        root = Path(copies.copy(blow.shape, Path(home)))
        files = sorted(path for path in root.rglob("*") if path.is_file())
        victim = files[int(blow.chosen * len(files))]
        whole = _everything(str(root))
        _damage(victim, blow)
        try:
            problems = Table.open(root).fsck("deep").problems
        except PaimonError as error:  # the newest schema: there is no table then
            assert victim.parent.name == "schema", error  # noqa: PT017
            return
        if not problems:
            left = _everything(str(root))
            assert left == {state: rows for state, rows in whole.items() if state in left}, victim
        elif not any(_is_named(victim, problem) for problem in problems):
            pytest.fail(f"{victim} is named by none of {[str(problem) for problem in problems]}")


SHARES = st.floats(0, 1, exclude_max=True)
BLOWS = st.builds(
    Blow, st.sampled_from(sorted(MAKERS)), SHARES, st.sampled_from(["flip", "flip", "flip", "cut", "delete"]), SHARES, st.integers(0, 7)
)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(blow=BLOWS)
def test_any_damage_is_named_or_does_no_harm(copies, blow) -> None:
    _judge(copies, blow)


@pytest.mark.long
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(blow=BLOWS)
def test_any_of_many_damages_is_named_or_does_no_harm(copies, blow) -> None:
    _judge(copies, blow)
