"""Manifests in ORC and Parquet, in turns: who commits writes them, merges them and reads those of the other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.interop.engine import Engine
from tests.interop.features import JAVA, OURS_READS, READS_OURS, TURNS, feature

pytestmark = pytest.mark.interop

MAGIC = {"orc": b"ORC", "parquet": b"PAR1"}


@feature("manifests in ORC and Parquet", JAVA, OURS_READS)
@feature("manifests in ORC and Parquet", JAVA, READS_OURS)
@feature("manifests in ORC and Parquet", JAVA, TURNS)
@pytest.mark.parametrize(("form", "codec"), [("orc", "zstd"), ("parquet", "zstd"), ("parquet", "snappy")])
def test_the_engine_and_we_take_turns(engine: Engine, tmp_path: Path, form: str, codec: str) -> None:
    path = tmp_path / "t"
    options = {"bucket": "2", "manifest.format": form, "manifest.merge-min-count": "3", "deletion-vectors.enabled": "true"}
    options["manifest.compression"] = codec
    fields = {"p": "STRING NOT NULL", "id": "INT NOT NULL", "v": "STRING"}
    engine.create(path, fields, primary_keys=["p", "id"], partition_keys=["p"], options=options)
    model: dict[tuple[str, int], str] = {}
    for turn in range(8):
        rows = [("xyz"[(turn + i) % 3], i, f"v{turn}") for i in range(turn, turn + 6)]
        model |= {(p, i): v for p, i, v in rows}
        if turn % 2:
            engine.write(path, [dict(zip(fields, row, strict=True)) for row in rows])
        else:
            columns = [
                pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), (pa.string(), pa.int32(), pa.string()), strict=True)
            ]
            Table.open(path).write(pa.table(dict(zip(fields, columns, strict=True))))
        if turn == 5:
            engine.compact(path, full=True)
        if turn == 6:
            Table.open(path).compact(full=True)
    table = Table.open(path)
    assert {(row["p"], row["id"]): row["v"] for row in table.scan().to_arrow().to_pylist()} == model
    assert {(row["p"], row["id"]): row["v"] for row in engine.dump(path)} == model
    assert engine.fsck(path) == []
    assert table.fsck(depth="deep").problems == ()
    assert all(file.read_bytes().startswith(MAGIC[form]) for file in (path / "manifest").iterdir() if not file.name.startswith("."))
