"""PyIceberg in its own environment: reads tables by their metadata, one JSON request a line.

Request: ``{"path": metadata file or table, "to": Arrow file, "filter"?, "snapshot"?, "properties"?}``; the answer is ``{"ok": rows}`` or ``{"error": text}``.
"""

from __future__ import annotations

import json
import sys
import traceback


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


def main() -> None:
    for line in sys.stdin:
        try:
            said = {"ok": answer(json.loads(line))}
        except Exception:  # noqa: BLE001  # the caller raises it
            said = {"error": traceback.format_exc()}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


main()
