"""A few cases of crossed scale are part of every test run; ``python -m tests.torture --part scale`` draws others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.scale.case import run
from tests.scale.kinds import SIZES
from tests.scale.model import Model, difference
from tests.torture.report import leave_case
from tests.torture.runner import ROOT

SMALL = tuple(size for size in SIZES if size.name in {"tiny", "one group"})


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 12])
@pytest.mark.sampled(2)
def test_tables_of_crossed_sizes_hold_their_rows(tmp_path: Path, number: int) -> None:
    found = run(number, f"{tmp_path}/t", SMALL)
    assert found.verdict == "right", found


@pytest.mark.slow
def test_a_case_is_replayed_from_its_folder(tmp_path: Path) -> None:
    leave_case(tmp_path, "scale", seed=2)
    command = [sys.executable, "-m", "tests.torture", "--replay", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout[:6]) == (0, "scale,"), done


def test_the_model_merges_by_its_engine() -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
    rows = pa.table({"id": [2, 1, 2], "n": [1, 2, 3], "s": ["a", "b", None]}, schema=schema)
    expected = {
        "deduplicate": {"id": [1, 2], "n": [2, 3], "s": ["b", None]},
        "first-row": {"id": [1, 2], "n": [2, 1], "s": ["b", "a"]},
        "partial-update": {"id": [1, 2], "n": [2, 3], "s": ["b", "a"]},
        "aggregation": {"id": [1, 2], "n": [2, 4], "s": ["b", "a"]},
    }
    for engine, merged in expected.items():
        model = Model(engine, schema)
        model.write(rows)
        assert model.rows.to_pydict() == merged, engine
    assert "column n: id 2: 9 instead of 4" in str(difference(pa.table({**merged, "n": [2, 9]}, schema=schema), model.rows))
