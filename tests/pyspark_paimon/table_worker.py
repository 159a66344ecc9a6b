"""A process that changes a table as it is told and acknowledges every commit: ``python table_worker.py PATH < actions.json``.

Actions: ``["write", [[kind, id, city], ...]]``, ``["delete", filter]``, ``["update", [filter, city]]``, ``["compact", full]``, ``["expire", keep]``,
``["rewrite-index", null]``, ``["rows", [mode, [row, ...], commit id]]``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent


def run(path: str) -> None:
    import pyarrow as pa

    from pyspark_paimon import Table

    table = Table.open(path)
    say("ready")
    for number, (what, argument) in enumerate(json.load(sys.stdin)):
        commit = str(uuid.uuid4())
        if what == "write":
            kinds, ids, cities = zip(*argument, strict=True)
            result = table.write(pa.table({"id": ids, "city": cities, "_row_kind": kinds}), commit_id=commit)
        elif what == "rows":
            mode, rows, commit = argument
            result = table.write(pa.Table.from_pylist(rows, table.schema), mode=mode, commit_id=commit)
        elif what == "delete":
            result = table.delete(argument, commit_id=commit)
        elif what == "update":
            result = table.update(argument[0], values={"city": argument[1]}, commit_id=commit)
        elif what == "compact":
            result = table.compact(full=argument)
        elif what == "rewrite-index":
            result = table.rewrite_file_index()
        else:
            table.expire_snapshots(retain_min=argument, retain_max=argument)
            continue
        say(json.dumps({"action": number, "snapshot": result.snapshot_id, "commit": commit}))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def start(path: str, actions: Iterable[object], *, fault: str | None = None) -> subprocess.Popen[str]:
    """Start a worker; it runs once its standard input is closed."""
    stores = {name: value for name, value in os.environ.items() if name.startswith(("AWS_", "AZURE_"))}
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", **stores, **({"PAIMON_FAULT_POINT": fault} if fault else {})}
    worker = subprocess.Popen(
        [sys.executable, __file__, path], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(list(actions)))
    return worker


def finish(worker: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]], str]:
    """(exit code, acknowledgements, standard error) once the worker has ended."""
    out, err = worker.communicate(timeout=280)
    return worker.returncode, [json.loads(line) for line in out.splitlines() if line.startswith("{")], err


if __name__ == "__main__":
    run(sys.argv[1])
