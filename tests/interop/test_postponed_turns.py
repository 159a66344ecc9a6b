"""Postponed buckets in turns: the engine leaves rows without buckets, we give them theirs, it reads, checks and goes on.

python -m tests.interop.test_postponed_turns     # makes the golden table anew
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine
from tests.interop.features import JAVA, OURS_READS, READS_OURS, TURNS, feature

pytestmark = pytest.mark.interop

HOME = Path(__file__).parent.parent / "golden_postponed"


def waiting(engine: Engine, path: Path) -> None:
    """A table in which a delete, an older and a newer version of a key wait for their buckets."""
    fields = {"id": "INT NOT NULL", "s": "STRING", "p": "STRING NOT NULL"}
    engine.create(path, fields, primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "-2"})
    engine.write(path, [{"id": 1, "s": "a", "p": "x"}, {"id": 2, "s": "b", "p": "x"}, {"id": 1, "s": "q", "p": "y"}])
    engine.write(path, [{"_kind": "-D", "id": 2, "s": "b", "p": "x"}, {"id": 1, "s": "a2", "p": "x"}, {"id": 3, "s": "c", "p": "x"}])


@feature("postponed buckets", JAVA, OURS_READS)
@feature("postponed buckets", JAVA, READS_OURS)
@feature("postponed buckets", JAVA, TURNS)
def test_the_engine_and_we_take_turns(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t"
    waiting(engine, path)
    table = Table.open(path)
    model: dict[tuple[str, int], str] = {}

    def agree() -> None:
        ours = {(row["p"], row["id"]): row["s"] for row in table.scan().to_arrow().to_pylist()}
        assert ours == {(row["p"], row["id"]): row["s"] for row in engine.dump(path)} == model
        said = [line for line in engine.fsck(path) if not line.startswith("data--u-")]  # its check wants an order where rows wait
        assert said == []
        assert table.fsck(depth="deep").problems == ()

    agree()
    table.compact()
    model |= {("x", 1): "a2", ("x", 3): "c", ("y", 1): "q"}
    agree()
    ids = list(range(2, 30))
    table.write(pa.table({"id": pa.array(ids, pa.int32()), "s": [f"w{i}" for i in ids], "p": ["x"] * len(ids)}))
    model |= {("x", i): f"w{i}" for i in ids}
    agree()
    engine.write(path, [{"id": 5, "s": "java", "p": "x"}, {"_kind": "-D", "id": 6, "s": None, "p": "x"}, {"id": 1, "s": "new", "p": "z"}])
    agree()
    table.compact(full=True)
    del model["x", 6]
    model |= {("x", 5): "java", ("z", 1): "new"}
    agree()


if __name__ == "__main__":
    running = Engine.start()
    shutil.rmtree(HOME, ignore_errors=True)
    waiting(running, HOME / "table")
    running.stop()
