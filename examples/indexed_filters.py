"""Answer selective filters by file indexes, also between compactions."""

from __future__ import annotations

import tempfile

import pyarrow as pa

from pyspark_paimon import Table

options = {"bucket": "1", "file-index.bloom-filter.columns": "email", "file-index.bitmap.columns": "plan"}
columns = "id BIGINT, email STRING, plan STRING"
table = Table.create(f"{tempfile.mkdtemp()}/accounts", columns, primary_keys=["id"], options=options)
ids = range(100_000)
table.write(pa.table({"id": ids, "email": [f"u{n}@example.com" for n in ids], "plan": [("free", "pro", "team")[n % 3] for n in ids]}))
table.compact(full=True)
table.write([{"id": 7, "email": "seven@example.com", "plan": "pro"}])  # a second sorted run

found = table.scan("email = 'u4711@example.com'")
print(found.to_arrow().to_pylist())
print(found.explain())
print(table.scan("plan = 'pro'").count())
