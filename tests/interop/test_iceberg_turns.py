"""Iceberg metadata in turns with Paimon's engine: each continues what the other began, and PyIceberg reads the rows after each commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Table
from tests.iceberg_files import check_files, latest_metadata
from tests.iceberg_reader import IcebergReader, Unavailable
from tests.interop.engine import Engine
from tests.interop.features import JAVA, TURNS, feature

pytestmark = pytest.mark.interop
ICEBERG = {"metadata.iceberg.storage": "table-location"}


@pytest.fixture(scope="module")
def iceberg() -> Iterator[IcebergReader]:
    try:
        reader = IcebergReader()
    except Unavailable as error:
        pytest.skip(f"PyIceberg {error}")
    yield reader
    reader.stop()


def java_rows(first: int, count: int, version: int = 0) -> list[dict[str, object]]:
    return [{"id": number, "part": "ab"[number % 2], "v": version} for number in range(first, first + count)]


def our_rows(first: int, count: int, version: int = 0) -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("part", pa.string()), ("v", pa.int32())])
    return pa.Table.from_pylist(java_rows(first, count, version), schema)


@feature("Iceberg metadata", JAVA, TURNS)
@pytest.mark.parametrize("begins", ["java", "ours"])
@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
def test_turns(engine: Engine, iceberg: IcebergReader, tmp_path: Path, begins: str, keyed: bool) -> None:
    path = tmp_path / "db.db" / "t"
    keys = ["id", "part"] if keyed else []
    options = {
        **ICEBERG,
        "bucket": "1" if keyed else "-1",
        "metadata.iceberg.compaction.min.file-num": "3",
        "metadata.iceberg.compaction.max.file-num": "5",
    }
    engine.create(
        path, {"id": "BIGINT NOT NULL", "part": "STRING NOT NULL", "v": "INT"}, primary_keys=keys, partition_keys=["part"], options=options
    )
    table = Table.open(path)
    turn = begins == "java"
    steps = 0

    def check() -> None:
        nonlocal turn, steps
        if keyed:
            engine.compact(path, full=True) if turn else table.compact(full=True)
        check_files(table)
        iceberg.check(table)
        turn = not turn
        steps += 1

    for at in range(6):
        engine.write(path, java_rows(10 * at, 5)) if turn else table.write(our_rows(10 * at, 5))
        check()
    table.delete("id % 10 = 1")
    check()
    engine.write(path, java_rows(500, 3, 1), overwrite={"part": "a"})
    check()
    engine.compact(path, full=True)
    check_files(table)
    table.write(our_rows(600, 3))
    table.compact(full=True)
    check_files(table)
    iceberg.check(table)
    table.change_type("v", "BIGINT")
    table.add_column("extra", "STRING")
    for _ in range(2):
        if turn:
            engine.write(path, [{"id": 700, "part": "a", "v": 2**40, "extra": "java"}])
        else:
            table.write(pa.table({"id": [701], "part": ["b"], "v": [2**40], "extra": ["ours"]}))
        check()
    ids = [snapshot["snapshot-id"] for snapshot in latest_metadata(table)["snapshots"]]
    assert len(ids) > steps - 2, "neither began the history anew"


@feature("Iceberg metadata", JAVA, TURNS)
@pytest.mark.parametrize("codec", ["null", "zstd", "snappy"])
def test_turns_beside_the_databases(engine: Engine, iceberg: IcebergReader, tmp_path: Path, codec: str) -> None:
    path = tmp_path / "db.db" / "t"
    options = {
        "metadata.iceberg.storage": "hadoop-catalog",
        "metadata.iceberg.manifest-legacy-version": "true",
        "metadata.iceberg.manifest-compression": codec,
        "metadata.iceberg.previous-versions-max": "3",
        "bucket": "-1",
    }
    engine.create(path, {"id": "BIGINT", "part": "STRING", "v": "INT"}, partition_keys=["part"], options=options)
    table = Table.open(path)
    for at in range(6):
        engine.write(path, java_rows(10 * at, 4)) if at % 2 else table.write(our_rows(10 * at, 4))
        assert iceberg.read(str(tmp_path / "iceberg" / "db" / "t")).num_rows == 4 * at + 4
    engine.tag(path, "seen")
    table.delete("v = 0 AND id % 2 = 0")
    metadata = latest_metadata(table, "../../iceberg/db/t/metadata")
    assert len(metadata["snapshots"]) == 7
    assert metadata["refs"]["seen"]["snapshot-id"] == 6
    assert iceberg.read(str(tmp_path / "iceberg" / "db" / "t")).num_rows == 12


@feature("Iceberg metadata", JAVA, TURNS)
def test_turns_after_a_rollback(engine: Engine, iceberg: IcebergReader, tmp_path: Path) -> None:
    """The engine leaves the versions of the snapshots that it removes, and skips their numbers; we replace them."""
    path = tmp_path / "db.db" / "t"
    engine.create(path, {"id": "BIGINT", "part": "STRING", "v": "INT"}, partition_keys=["part"], options={**ICEBERG, "bucket": "-1"})
    for at in range(4):
        engine.write(path, java_rows(10 * at, 4))
    engine.rollback(path, snapshot=2)
    table = Table.open(path)
    for at in range(3):
        table.write(our_rows(100 + 10 * at, 4))
        check_files(table)
        iceberg.check(table)
    table.rollback_to(snapshot=3)
    engine.write(path, java_rows(500, 4))
    check_files(table)
    iceberg.check(table)


@feature("Iceberg metadata", JAVA, TURNS)
@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
def test_turns_with_deletion_vectors(engine: Engine, iceberg: IcebergReader, tmp_path: Path, keyed: bool) -> None:
    """The engine refers to its index files, which PyIceberg refuses; our next commit copies what it marked."""
    path = tmp_path / "db.db" / "t"
    options = {
        **ICEBERG,
        "metadata.iceberg.format-version": "3",
        "deletion-vectors.enabled": "true",
        "deletion-vectors.bitmap64": "true",
        "bucket": "1" if keyed else "-1",
    }
    columns = {"id": "BIGINT NOT NULL", "part": "STRING", "v": "INT"}
    engine.create(path, columns, primary_keys=["id"] if keyed else [], options=options)
    table = Table.open(path)
    for at in range(3):
        engine.write(path, java_rows(10 * at, 6))
        if keyed:
            engine.write(path, java_rows(10 * at + 1, 2, 7))
            engine.compact(path)
        else:
            engine.delete(path, {"op": "=", "col": "id", "value": 10 * at + 3})
        check_files(table)
        table.delete(f"id = {10 * at}")
        check_files(table)
        iceberg.check(table)
        table.write(our_rows(100 + 10 * at, 4))
        check_files(table)
        iceberg.check(table)
    engine.compact(path, full=True)
    table.write(our_rows(500, 4))
    check_files(table)
    iceberg.check(table)
