"""What a package that was just installed must be able to do, without anything of the repository: run by ``scripts/check-dist``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import pyspark_paimon
from pyspark_paimon import Table

folder = Path(tempfile.mkdtemp())
home = Path(pyspark_paimon.__file__).parent
assert "site-packages" in home.parts, f"{home} is not what was installed"
assert (home / "py.typed").exists(), "type checkers look for py.typed"
options = {"bucket": "1", "file-index.bloom-filter.columns": "city"}
table = Table.create(folder / "t", "id BIGINT, city STRING", primary_keys=["id"], options=options)
table.write(pa.table({"id": [1, 2], "city": ["Oslo", "Lima"]}))
table.write([{"id": 2, "city": "Rome"}])
table.compact(full=True)
assert table.scan("city = 'Rome'").to_arrow()["id"].to_pylist() == [2]
assert "<svg" in table.report(folder / "t.html", "id = 1").read_text()
assert table.fsck("deep").clean
for command in (["--version"], ["inspect", str(folder / "t")], ["report", str(folder / "t"), "-o", str(folder / "r.html")]):
    done = subprocess.run([Path(sys.executable).parent / "pyspark-paimon", *command], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip()
print(f"pyspark-paimon {pyspark_paimon.__version__} works from {home}")
