"""Metadata of Paimon's engine: ours of the same snapshot says the same, and we continue the engine's."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from manifest.store import FileStore
from pyspark_paimon import Table
from pyspark_paimon.plugins.iceberg.publish import publish
from tests.iceberg_files import check_files, latest_metadata, manifests, records

GOLDEN = Path(__file__).parents[2] / "golden_iceberg"
NAMES = ("append", "legacy", "keyed")
DIFFERS = {"table-uuid", "last-updated-ms", "snapshots", "snapshot-log"}
"""Made anew each time, or not written by the engine."""


@pytest.fixture(params=NAMES)
def engines(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """A copy of an engine's table, with the paths of its new place in the metadata."""
    path = tmp_path / "t"
    shutil.copytree(GOLDEN / request.param, path)
    metadata = next((path / "metadata").glob("v*.metadata.json"))
    before = json.loads(metadata.read_text())["location"]
    metadata.write_text(metadata.read_text().replace(before, str(path)))
    for file in (path / "metadata").glob("*.avro"):
        reader = fastavro.reader(io.BytesIO(file.read_bytes()))
        moved = [json.loads(json.dumps(record, default=_kept).replace(before, str(path)), object_hook=_restored) for record in reader]
        out = io.BytesIO()
        fastavro.writer(out, reader.writer_schema, moved)
        file.write_bytes(out.getvalue())
    return Table.open(path)


def _kept(value: Any) -> dict[str, str]:
    return {"hex": value.hex()} if isinstance(value, bytes) else {"text": str(value)}


def _restored(value: dict[str, Any]) -> Any:
    return bytes.fromhex(value["hex"]) if value.keys() == {"hex"} else value


def avro_schema(path: str) -> dict[str, Any]:
    return json.loads(fastavro.reader(io.BytesIO(Path(path).read_bytes())).metadata["avro.schema"])


def schemas(table: Table) -> list[dict[str, Any]]:
    current = latest_metadata(table)["snapshots"][-1]
    return [avro_schema(current["manifest-list"]), avro_schema(manifests(table)[-1]["manifest_path"])]


def live_files(table: Table) -> list[dict[str, Any]]:
    """The data files, without what only tells when they came."""
    entries = [entry for manifest in manifests(table) for entry in records(table, manifest["manifest_path"]) if entry["status"] != 2]
    return sorted((entry["data_file"] for entry in entries), key=lambda file: file["file_path"])


def test_ours_of_the_same_snapshot_says_the_same(engines: Table) -> None:
    theirs, their_files, their_schemas = latest_metadata(engines), live_files(engines), schemas(engines)
    shutil.rmtree(f"{engines.path}/metadata")
    publish(FileStore.open(engines.path))
    ours = latest_metadata(engines)
    assert {*ours} - {*theirs} == {"snapshot-log"}
    assert {key: value for key, value in ours.items() if key not in DIFFERS} == {
        key: value for key, value in theirs.items() if key not in DIFFERS
    }
    assert schemas(engines) == their_schemas
    assert live_files(engines) == their_files
    last, of_engine = ours["snapshots"][-1], theirs["snapshots"][-1]
    assert {key: last[key] for key in ("snapshot-id", "sequence-number", "schema-id")} == {
        key: of_engine[key] for key in ("snapshot-id", "sequence-number", "schema-id")
    }


def test_we_continue_the_engines_metadata(engines: Table) -> None:
    before = latest_metadata(engines)
    kept = {one["manifest_path"] for one in manifests(engines)}
    assert publish(FileStore.open(engines.path)) == before["current-snapshot-id"]
    assert latest_metadata(engines) == before
    row = dict.fromkeys(engines.schema.names) | {"id": 1000} | ({"part": "b"} if "part" in engines.schema.names else {})
    engines.write(pa.Table.from_pylist([row], engines.schema))
    check_files(engines)
    after = latest_metadata(engines)
    assert after["table-uuid"] == before["table-uuid"]
    assert after["snapshots"][:-1] == before["snapshots"][-len(after["snapshots"]) + 1 :]
    if "part" in engines.schema.names:
        assert kept <= {one["manifest_path"] for one in manifests(engines)}
    engines.delete("id = 1000 OR id = 1")
    engines.compact(full=True)
    check_files(engines)
