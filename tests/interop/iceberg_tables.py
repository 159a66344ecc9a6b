"""Tables with Iceberg metadata that Paimon's engine wrote: ``python -m tests.interop.iceberg_tables`` makes ``tests/golden_iceberg`` anew."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.interop.engine import Engine

HOME = Path(__file__).parent.parent / "golden_iceberg"
ICEBERG = {"metadata.iceberg.storage": "table-location", "metadata.iceberg.manifest-compression": "null"}
TYPES = {
    "flag": "BOOLEAN",
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "n": "INT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "amount": "DECIMAL(10, 2)",
    "wide": "DECIMAL(30, 5)",
    "name": "STRING",
    "code": "CHAR(3)",
    "raw": "BYTES",
    "day": "DATE",
    "milli": "TIMESTAMP(3)",
    "at": "TIMESTAMP(6)",
    "zoned": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
}


def row(number: int) -> dict[str, Any]:
    """A row of the append table."""
    return {
        "id": number,
        "part": "ab"[number % 2],
        "flag": number % 2 == 0,
        "tiny": -number,
        "small": 300 + number,
        "n": None if number % 3 == 0 else number,
        "f": number / 4,
        "d": -number / 8,
        "amount": f"{number}.25",
        "wide": f"{number}00000000000000.00001",
        "name": f"a name that is longer than sixteen bytes {number}",
        "code": "abc",
        "raw": "00ff",
        "day": f"2024-01-{number + 1:02}",
        "milli": "2024-01-31T10:20:30.123000",
        "at": "2024-01-31T10:20:30.123456",
        "zoned": "2024-01-31T10:20:30.123456Z",
    }


def make_append(engine: Engine, path: Path, **options: str) -> None:
    """Two appends, an overwrite of a partition and a changed schema."""
    engine.create(path, {"id": "BIGINT NOT NULL", "part": "STRING", **TYPES}, partition_keys=["part"], options={**ICEBERG, **options})
    engine.write(path, [row(number) for number in range(4)])
    engine.write(path, [row(number) for number in range(4, 6)])
    engine.write(path, [row(10)], overwrite={"part": "a"})
    engine.alter(path, {"change": "add", "column": "extra", "type": {"type": "ARRAY", "element": "INT"}})
    engine.write(path, [{**row(11), "extra": [1, 2]}])


def make_keyed(engine: Engine, path: Path, **options: str) -> None:
    """Two full compactions, and rows that none has seen."""
    engine.create(path, {"id": "BIGINT NOT NULL", "v": "STRING"}, primary_keys=["id"], options={**ICEBERG, "bucket": "1", **options})
    for generation in range(2):
        engine.write(path, [{"id": number, "v": f"{generation}"} for number in range(generation * 2, 5)])
        engine.compact(path, full=True)
    engine.write(path, [{"id": 100, "v": "new"}])


def main() -> None:
    """Make the golden tables with what the engine reads."""
    engine = Engine.start()
    shutil.rmtree(HOME, ignore_errors=True)
    for name, make in (("append", make_append), ("legacy", make_append), ("keyed", make_keyed)):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "db.db" / name
            make(engine, path, **({"metadata.iceberg.manifest-legacy-version": "true"} if name == "legacy" else {}))
            (HOME / name).parent.mkdir(exist_ok=True)
            shutil.copytree(path, HOME / name)
    engine.stop()
    (HOME / "README.md").write_text(
        "Tables with Iceberg metadata, written by Paimon's Java engine 1.4.2 (`python -m tests.interop.iceberg_tables`).\n",
        encoding="utf-8",
    )
    for crc in HOME.rglob("*.crc"):
        crc.unlink()
    assert json.loads((HOME / "append/metadata/v4.metadata.json").read_text())


if __name__ == "__main__":
    main()
