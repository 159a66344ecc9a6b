"""Tables of random kinds hold what their model holds; ``python -m tests.torture --part model`` tries many more."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from tests.model.columns import Column
from tests.model.machine import run
from tests.model.tables import TableKind
from tests.model.torture import replay
from tests.model.upkeep import Upkeep
from tests.model.world import World, Wrong
from tests.model.writes import Write
from tests.torture.report import leave_case

KIND = TableKind("deduplicate", (Column("k0", "k0", "INT", nullable=False), Column("c0", "c0", "DOUBLE")), ("k0",), (), {"bucket": "1"})
STEPS = [Write([{"k0": 1, "c0": -0.0}, {"k0": 2, "c0": None}]), Upkeep("compact", {"full": True})]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.sampled(2)
def test_tables_of_random_kinds_hold_what_their_model_holds(seed: int) -> None:
    run(seed, examples=6, steps=10)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 110))
@pytest.mark.timeout(1200)
def test_many_tables_of_random_kinds_hold_what_their_model_holds(seed: int) -> None:
    run(seed, examples=20, steps=25)


def test_a_row_that_differs_by_its_sign_of_zero_is_reported_with_a_script(tmp_path: Path) -> None:
    world = World(KIND, f"{tmp_path}/t")
    world.perform(STEPS[0])
    world.sides["main"].state = world.sides["main"].state.upserted([{"k0": 1, "c0": 0.0}])
    with pytest.raises(
        Wrong, match=r"(?s)scan: missing .*table = Table.create\(path, 'k0 INT NOT NULL, c0 DOUBLE'.*table.compact\(full=True\)"
    ):
        world.perform(STEPS[1])


def test_the_script_of_a_failure_makes_the_rows(tmp_path: Path) -> None:
    world = World(KIND, f"{tmp_path}/t")
    for step in STEPS:
        world.perform(step)
    names = {"path": f"{tmp_path}/again"}
    exec("\n".join(world.script), names)
    assert names["table"].scan().to_arrow().sort_by("k0").to_pylist() == [{"k0": 1, "c0": -0.0}, {"k0": 2, "c0": None}]


@pytest.mark.parametrize(
    ("steps", "verdict"), [(STEPS, "right"), ([*STEPS, Upkeep("no_such_call", {})], "untyped error")], ids=["right", "wrong"]
)
def test_a_case_is_replayed_from_its_folder(tmp_path: Path, steps: list[object], verdict: str) -> None:
    leave_case(tmp_path, "model", seed=1)
    (tmp_path / "steps.pickle").write_bytes(pickle.dumps((KIND, steps, 1)))
    outcome = replay(tmp_path)
    assert (outcome.verdict, json.loads((tmp_path / "case.json").read_text())["part"]) == (verdict, "model")
