"""Join streams by key: each write sets some columns, the others stay."""

from __future__ import annotations

import tempfile

from pyspark_paimon import Table

options = {"bucket": "1", "merge-engine": "partial-update"}
orders = Table.create(f"{tempfile.mkdtemp()}/orders", "id INT, amount DOUBLE, address STRING", primary_keys=["id"], options=options)
orders.write([{"id": 1, "amount": 9.5}, {"id": 2, "amount": 20.0}])
orders.write([{"id": 1, "address": "Oslo"}])
print(orders.scan().to_arrow().to_pylist())
