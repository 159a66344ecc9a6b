"""A question that is asked again is not planned again, and never answered by another state of the table."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import manifest.io.file_io
from lsm.keys.key_set import KeySet
from lsm.scan.planner import ScanPlanner
from manifest.io.file_cache import SHARED
from manifest.store import FileStore
from pyspark_paimon import Table
from pyspark_paimon.local.plan import plan_request
from pyspark_paimon.request.requests import ScanRequest
from tests.examples import some

SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64()), ("t", pa.string())])
FILTERS = ["k = 3", "v >= 4", "k IN (1, 5, 9)", "t = 'b'", "k = 3 AND v < 100", None]


@pytest.fixture(autouse=True)
def held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold what was made of files that have just been written, too."""
    monkeypatch.setattr(manifest.io.file_io, "_CLOCK_TICK_NANOS", 0)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Predicates that were planned."""
    found: list[Any] = []
    plan = ScanPlanner.plan

    def noting(self: ScanPlanner, predicate: Any = None, **options: Any) -> Any:
        found.append(predicate)
        return plan(self, predicate, **options)

    monkeypatch.setattr(ScanPlanner, "plan", noting)
    return found


def rows(start: int, count: int, v: int) -> pa.Table:
    keys = range(start, start + count)
    return pa.table({"k": list(keys), "v": [v + key for key in keys], "t": ["abc"[key % 3] for key in keys]}, schema=SCHEMA)


def made(path: Path, **options: str) -> Table:
    return Table.create(path, SCHEMA, primary_keys=["k"], options={"bucket": "2", "write-only": "true", **options})


def test_a_question_is_planned_once_and_by_every_other_state_anew(tmp_path: Path, planned: list[Any]) -> None:
    table = made(tmp_path / "t")
    table.write(rows(0, 10, 0))

    def asked(**options: Any) -> tuple[list[int], int]:
        planned.clear()
        return Table.open(tmp_path / "t").scan("k = 3", **options).to_arrow()["v"].to_pylist(), len(planned)

    assert [asked(), asked()] == [([3], 1), ([3], 0)]
    assert asked(options={"scan.mode": "latest"})[0] == [3]
    assert asked(read_optimized=True) == ([], 1)
    table.write(rows(3, 1, 100))
    assert [asked(), asked()] == [([103], 1), ([103], 0)]
    assert asked(snapshot=1) == ([3], 0)
    table.rollback_to(1)
    table.write(rows(3, 1, 200))  # the second snapshot once more
    assert [asked(), asked()] == [([203], 1), ([203], 0)]


def test_another_table_at_the_same_place_is_planned_anew(tmp_path: Path, planned: list[Any]) -> None:
    for v in (0, 50):
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        made(tmp_path / "t").write(rows(0, 10, v))
        planned.clear()
        assert [Table.open(tmp_path / "t").scan("k = 3").to_arrow()["v"].to_pylist() for _ in range(2)] == [[3 + v]] * 2
        assert len(planned) == 1


def test_long_questions_are_not_held(tmp_path: Path, planned: list[Any]) -> None:
    table = made(tmp_path / "t")
    table.write(rows(0, 10, 0))
    for text in (f"k IN ({','.join(map(str, range(40)))})", " OR ".join(f"k = {n}" for n in range(40)), "k % 2 = 1"):
        planned.clear()
        assert len({table.scan(text).count() for _ in range(2)}) == 1
        assert len(planned) == 2


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_a_process_that_holds_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    table = made(tmp_path / "t", **({"deletion-vectors.enabled": "true"} if seed % 2 else {}))
    table.write(rows(0, 10, 0))
    steps = {
        "write": lambda: table.write(rows(chance.randrange(12), 4, chance.randrange(100))),
        "delete": lambda: table.delete(f"k = {chance.randrange(12)}"),
        "compact": lambda: table.compact(full=True),
        "rollback": lambda: table.rollback_to(chance.choice(table.snapshots()["snapshot_id"].to_pylist())),
        "alter": lambda: table.alter_options({"source.split.target-size": chance.choice(["1 kb", "128 mb"])}),
    }
    for name in chance.choices(list(steps), weights=[4, 2, 2, 2, 1], k=some(4)):
        steps[name]()
        table = Table.open(tmp_path / "t")
        warm = [table.scan(text).to_arrow().sort_by("k") for text in FILTERS for _ in range(2)]
        SHARED.clear()
        assert warm == [table.scan(text).to_arrow().sort_by("k") for text in FILTERS for _ in range(2)], name


def test_a_limit_of_sought_keys_cuts_no_plan(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id INT", primary_keys=["id"], options={"bucket": "4", "source.split.target-size": "1b"})
    for _ in range(2):
        table.write([{"id": number} for number in range(100)])
    table.compact(full=True)
    store = FileStore.open(str(tmp_path / "t"))
    request = ScanRequest.of(None, columns=["id"], snapshot=store.snapshots.latest(), limit=1)
    assert len(plan_request(store, request, None).splits) == 1
    sought = request.model_copy(update={"keys": KeySet(pa.table({"id": pa.array([99], pa.int32())}))})
    assert len(plan_request(store, sought, None).splits) == 4
