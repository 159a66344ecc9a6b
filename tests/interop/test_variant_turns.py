"""VARIANT columns: the engine reads ours, we read its, and both write one table in turns.

python -m tests.interop.test_variant_turns     # makes the golden table anew
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine
from tests.interop.features import JAVA, OURS_READS, READS_OURS, TURNS, feature

pytestmark = pytest.mark.interop

HOME = Path(__file__).parent.parent / "golden_variant"
FIELDS = {"id": "INT NOT NULL", "v": "VARIANT", "w": "VARIANT NOT NULL"}
ROWS = [
    {"id": 1, "v": '{"a":1,"b":[1,2.5,"x"],"c":{"d":null}}', "w": "true"},
    {"id": 2, "v": None, "w": '"text"'},
    {"id": 3, "v": "null", "w": "12345678901234"},
]


def made(engine: Engine, path: Path) -> None:
    """Two commits, the second of which replaces a row of the first."""
    engine.create(path, FIELDS, primary_keys=["id"], options={"bucket": "1"})
    engine.write(path, ROWS)
    engine.write(path, [{"id": 1, "v": "[]", "w": "{}"}, {"id": 4, "v": '{"long":"' + "x" * 100 + '"}', "w": "1.5"}])


def parts(table: Table) -> dict[int, Any]:
    return {row["id"]: (row["v"], row["w"]) for row in table.scan().to_arrow().to_pylist()}


@feature("VARIANT", JAVA, OURS_READS)
@feature("VARIANT", JAVA, READS_OURS)
@feature("VARIANT", JAVA, TURNS)
def test_the_engine_and_we_take_turns(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t"
    made(engine, path)
    table = Table.open(path)
    before = parts(table)
    copied = table.scan("id IN (1, 4)").to_arrow()
    table.write(copied.set_column(0, "id", pa.array([id_ + 10 for id_ in copied["id"].to_pylist()], pa.int32())))
    table.compact(full=True)
    assert parts(table) == before | {id_ + 10: before[id_] for id_ in (1, 4)}
    shown = {row["id"]: (row["v"], row["w"]) for row in engine.dump(path)}
    assert shown[11] == shown[1] == ("[]", "{}")
    assert shown[14] == shown[4]
    engine.write(path, [{"id": 2, "v": '{"q":1}', "w": "1"}])
    engine.compact(path, full=True)
    assert parts(table).keys() == shown.keys()
    assert parts(table)[2][0] == {"value": bytes.fromhex("0201000002" + "0c01"), "metadata": bytes.fromhex("0101000171")}
    assert engine.fsck(path) == []
    assert table.fsck(depth="deep").problems == ()


if __name__ == "__main__":
    running = Engine.start()
    shutil.rmtree(HOME, ignore_errors=True)
    made(running, HOME / "table")
    (HOME / "expected.json").write_text(json.dumps(running.dump(HOME / "table"), indent=1) + "\n")
    shredded = {
        "parquet.variant.shreddingSchema": json.dumps(
            {"type": "ROW", "fields": [{"name": "v", "type": {"type": "ROW", "fields": [{"name": "a", "type": "INT"}]}}]}
        )
    }
    running.create(HOME / "shredded", FIELDS, options={"bucket": "-1", **shredded})
    running.write(HOME / "shredded", ROWS)
    running.stop()
