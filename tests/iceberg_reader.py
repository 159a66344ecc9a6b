"""Readers of Iceberg that are not ours: PyIceberg and DuckDB, each in a virtual environment and a process of its own.

An environment is made once (about half a minute) and kept in the user's cache, as those of the benchmarks' contenders are.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.environments import Unavailable, environment
from pyspark_paimon import Table

PYICEBERG: tuple[str, ...] = ("pyiceberg[pyarrow,snappy]==0.12.0",)
DUCKDB = ("duckdb==1.5.5", "duckdb-extension-avro==1.5.5", "duckdb-extension-iceberg==1.5.5", "pyarrow==24.0.0")
PROGRAM = Path(__file__).with_name("iceberg_process.py")
__all__ = ["DUCKDB", "PYICEBERG", "IcebergReader", "Unavailable", "counted"]


class IcebergReader:
    """A running process; raises ``Unavailable`` where it cannot be."""

    def __init__(self, pins: tuple[str, ...] = PYICEBERG) -> None:
        python = environment(pins, 240)
        self._home = tempfile.TemporaryDirectory(prefix="iceberg-reader-")
        self._process = subprocess.Popen(
            [str(python), str(PROGRAM), *(["duckdb"] if pins is DUCKDB else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TZ": "UTC", "PYTHONPATH": ""},
        )

    def stop(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait(timeout=30)
        self._home.cleanup()

    def read(self, path: str, **request: Any) -> pa.Table:
        """The rows of a table, by its version hint or by the metadata file that ``path`` names."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        to = f"{self._home.name}/rows.arrow"
        self._process.stdin.write(json.dumps({"path": path, "to": to, **request}) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline() or '{"error": "PyIceberg ended"}')
        assert "ok" in said, said["error"]
        with pa.OSFile(to) as file, pa.ipc.open_file(file) as rows:
            return rows.read_all()

    def check(self, table: Table, **request: Any) -> None:
        """Assert that PyIceberg reads the rows and columns that we read."""
        theirs = self.read(table.path, **request)
        ours = table.scan(request.get("filter")).to_arrow()
        assert theirs.column_names == ours.column_names
        left, right = counted(theirs), counted(ours)
        assert left == right, f"only PyIceberg: {list(left - right)[:3]}, only here: {list(right - left)[:3]}"


def counted(rows: pa.Table) -> Counter[str]:
    """Rows as text with how often each is there; maps as sorted pairs, and times in UTC."""
    return Counter(json.dumps(row, default=str, sort_keys=True) for row in rows.to_pylist())
