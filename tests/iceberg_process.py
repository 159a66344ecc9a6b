"""PyIceberg, or with the argument ``duckdb`` DuckDB, in its own environment: reads tables by their metadata, one JSON request a line.

Request: ``{"path": metadata file or table, "to": Arrow file, "filter"?, "snapshot"?, "properties"?}``; the answer is ``{"ok": rows}`` or ``{"error": text}``.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path


def answer(request: dict) -> int:
    """Write the rows to the Arrow file; how many there are."""
    import pyarrow as pa
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(request["path"], request.get("properties") or {})
    wanted = {"snapshot_id": request["snapshot"]} if "snapshot" in request else {}
    rows = table.scan(request.get("filter") or "true", **wanted).to_arrow()
    with pa.ipc.new_file(request["to"], rows.schema) as writer:
        writer.write_table(rows)
    return rows.num_rows


def duckdb_answer() -> Callable[[dict], int]:
    """The same by DuckDB, with its extensions from packages."""
    import duckdb
    import duckdb_extension_avro
    import duckdb_extension_iceberg
    import pyarrow as pa

    connection = duckdb.connect()
    for package in (duckdb_extension_avro, duckdb_extension_iceberg):
        (file,) = Path(package.__file__).parent.glob("extensions/*/*.duckdb_extension")
        connection.execute(f"INSTALL '{file}'")
        connection.execute(f"LOAD '{file}'")

    def answer_one(request: dict) -> int:
        rows = connection.execute(
            f"SELECT * FROM iceberg_scan('{request['path']}') WHERE {request.get('filter') or 'true'}"
        ).fetch_arrow_table()
        with pa.ipc.new_file(request["to"], rows.schema) as writer:
            writer.write_table(rows)
        return rows.num_rows

    return answer_one


def main() -> None:
    reads = duckdb_answer() if sys.argv[1:] == ["duckdb"] else answer
    for line in sys.stdin:
        try:
            said = {"ok": reads(json.loads(line))}
        except Exception:  # noqa: BLE001  # the caller raises it
            said = {"error": traceback.format_exc()}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
