"""Create a table with a primary key, upsert rows, and read them."""

from __future__ import annotations

import tempfile

from pyspark_paimon import Table

path = f"{tempfile.mkdtemp()}/users"
users = Table.create(path, "id BIGINT, name STRING, city STRING", primary_keys=["id"], options={"bucket": "1"})
users.write([{"id": 1, "name": "Ada", "city": "London"}, {"id": 2, "name": "Grace", "city": "New York"}])
users.write([{"id": 2, "name": "Grace", "city": "Arlington"}])  # the same key: an update
users.delete("id = 1")
print(users.scan().to_arrow().to_pylist())
users.compact(full=True)
print(users.snapshots().select(["snapshot_id", "commit_kind"]).to_pylist())
