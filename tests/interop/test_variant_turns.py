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

from pyspark_paimon import Table, Variant
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


def row(**fields: Any) -> dict[str, Any]:
    """The type of a ROW in a shredding schema."""
    return {"type": "ROW", "fields": [{"id": at, "name": name, "type": kind} for at, (name, kind) in enumerate(fields.items())]}


TYPES = row(
    i="INT", b="TINYINT", s="SMALLINT", l="BIGINT", t="STRING", d="DECIMAL(9, 2)", w="DECIMAL(30, 3)", f="DOUBLE", o="BOOLEAN",
    n=row(x="INT", y=row(z="STRING")), a={"type": "ARRAY", "element": "INT"}, r={"type": "ARRAY", "element": row(k="STRING")},
)  # fmt: skip
SHREDDED = {
    "typed": {"parquet.variant.shreddingSchema": json.dumps(row(v=TYPES, w="STRING"))},
    "inferred": {"variant.inferShreddingSchema": "true", "variant.shredding.minFieldCardinalityRatio": "0.3"},
}
"""Options of tables whose VARIANTs are shredded: into scalars of all kinds, objects in objects and arrays; and as the engine infers."""


def make_shredded(engine: Engine, path: Path, options: dict[str, str]) -> None:
    """Two commits of the same values under other keys, and a third that replaces some."""
    values = INFERRED if "variant.inferShreddingSchema" in options else TYPED
    engine.create(path, FIELDS, primary_keys=["id"], options={"bucket": "1", "write-only": "true", **options})
    for start in (0, 100):
        engine.write(path, [{"id": start + at, "v": text, "w": '"w"' if at % 2 else str(at)} for at, text in enumerate(values)])
    engine.write(path, [{"id": 100, "v": '{"i":5}', "w": "0"}])


TYPED = [
    '{"i":1,"b":-128,"s":32767,"l":9223372036854775807,"t":"é🙂","d":1.50,"w":123456789012345678901234567.125,"f":1e100,"o":true,"n":{"x":1,"y":{"z":"q"}},"a":[1,2],"r":[{"k":"a"},{"k":1,"m":2},3]}',
    '{"i":"text","b":128,"s":1.5,"l":1.0,"t":1,"d":1.555,"w":1,"f":1,"o":null,"n":{"x":"1","y":7},"a":[1,"2",null,[3]],"r":[]}',
    '{"i":2147483648,"n":[1],"a":{"i":1},"r":"x","other":{"deep":[{"i":1}]},"z":0}',
    "{}",
    '{"n":{"y":{}}}',
    '{"n":{"q":1,"y":{"z":null,"zz":[]}},"e f":"","a":[]}',
    "[]",
    "[1,2]",
    "null",
    None,
    '"text"',
    "12.25",
    "true",
]
"""Values that fit their types, and such that do not: in range, missing, null, of other types, with other fields."""

INFERRED = [TYPED[0], *(f'{{"i":{at},"t":"{at}","n":{{"x":[{at}]}},"d":{at}.25,"more{at % 2}":{{}}}}' for at in range(6)), "{}", None]
"""Values with enough in common to be shredded."""


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


@feature("VARIANT", JAVA, OURS_READS)
@feature("VARIANT", JAVA, TURNS)
@pytest.mark.parametrize("options", SHREDDED.values(), ids=SHREDDED)
def test_shredded_variants_become_plain_ones(engine: Engine, tmp_path: Path, options: dict[str, str]) -> None:
    path = tmp_path / "t"
    make_shredded(engine, path, options)
    table = Table.open(path)
    before = {row["id"]: (row["v"], row["w"]) for row in engine.dump(path)}
    assert json_parts(table) == before
    table.compact(full=True)
    assert json_parts(table) == before
    assert {row["id"]: (row["v"], row["w"]) for row in engine.dump(path)} == before
    engine.write(path, [{"id": 0, "v": TYPED[0], "w": "1"}])
    assert json_parts(table)[0] == (before[0][0], "1")
    assert table.fsck(depth="deep").problems == ()
    assert engine.fsck(path) == []


def json_parts(table: Table) -> dict[int, tuple[str | None, str | None]]:
    """The values as JSON texts by id."""
    found = table.scan().to_arrow()
    texts = [Variant.json_array(found[name]).to_pylist() for name in ("v", "w")]
    return dict(zip(found["id"].to_pylist(), zip(*texts, strict=True), strict=True))


if __name__ == "__main__":
    running = Engine.start()
    shutil.rmtree(HOME, ignore_errors=True)
    made(running, HOME / "table")
    (HOME / "expected.json").write_text(json.dumps(running.dump(HOME / "table"), indent=1) + "\n")
    for name, options in SHREDDED.items():
        make_shredded(running, HOME / name, options)
        (HOME / f"{name}.json").write_text(json.dumps(running.dump(HOME / name), indent=1, ensure_ascii=False) + "\n")
    running.stop()
