"""Sketches: the engine and we unite the same ones, byte for byte, and each goes on with the other's.

python -m tests.interop.test_sketch_turns     # makes the golden unions anew
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine
from tests.interop.features import JAVA, OURS_READS, READS_OURS, TURNS, feature

sketches = pytest.importorskip("_datasketches", reason="the package 'datasketches' has no wheel for this Python")
pytestmark = pytest.mark.interop

HOME = Path(__file__).parent.parent / "golden_sketches.json"
SPANS = [((0, 0), (0, 0)), ((0, 1), (0, 0)), ((0, 1), (0, 1)), ((0, 1), (1, 2)), ((0, 5), (3, 9)), ((0, 40), (20, 90))]
LARGE = [((0, 1000), (500, 1500)), ((0, 3000), (2000, 6000)), ((0, 20000), (10000, 50000))]


def sketch(function: str, first: int, end: int) -> bytes:
    made = sketches.update_theta_sketch() if function == "theta_sketch" else sketches.hll_sketch(12)
    for value in range(first, end):
        made.update(value * 7919 + 3)
    return made.compact().serialize() if function == "theta_sketch" else made.serialize_compact()


def united(engine: Engine, path: Path, function: str, spans: list) -> list[tuple[str, str, str]]:
    """Pairs of sketches, and what the engine makes of each."""
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.s.aggregate-function": function}
    engine.create(path, {"id": "INT NOT NULL", "s": "BYTES"}, primary_keys=["id"], options=options)
    pairs = [[sketch(function, *span).hex() for span in pair] for pair in spans]
    for side in range(2):
        engine.write(path, [{"id": i, "s": pair[side]} for i, pair in enumerate(pairs)])
    unions = {row["id"]: row["s"] for row in engine.dump(path)}
    return [(*pair, unions[i]) for i, pair in enumerate(pairs)]


@feature("aggregation of sketches", JAVA, OURS_READS)
@feature("aggregation of sketches", JAVA, READS_OURS)
@feature("aggregation of sketches", JAVA, TURNS)
@pytest.mark.parametrize("function", ["theta_sketch", "hll_sketch"])
def test_both_unite_to_the_same_bytes(engine: Engine, tmp_path: Path, function: str) -> None:
    path = tmp_path / "t"
    found = united(engine, path, function, SPANS + LARGE)
    table = Table.open(path)

    def agree() -> list[bytes]:
        ours = table.scan(order_by="id").to_arrow()["s"].to_pylist()
        assert [row["s"] for row in sorted(engine.dump(path), key=lambda row: row["id"])] == [value.hex() for value in ours]
        return ours

    assert [value.hex() for value in agree()] == [union for _, _, union in found]
    table.compact(full=True)
    agree()
    ids = pa.array(range(len(found)), pa.int32())
    table.write(pa.table({"id": ids, "s": [sketch(function, 100 * i, 100 * i + 300) for i in range(len(found))]}))
    agree()
    engine.write(path, [{"id": i, "s": sketch(function, 50, 60 + i).hex()} for i in range(len(found))])
    engine.compact(path, full=True)
    agree()
    assert engine.fsck(path) == []


if __name__ == "__main__":
    running = Engine.start()
    with tempfile.TemporaryDirectory() as scratch:
        told = {name: united(running, Path(scratch) / name, name, SPANS) for name in ("theta_sketch", "hll_sketch")}
    HOME.write_text(json.dumps(told, indent=1) + "\n")
    running.stop()
