"""Read what changed between two snapshots, with the kind of each row."""

from __future__ import annotations

import tempfile

from pyspark_paimon import Table

options = {"bucket": "1", "changelog-producer": "lookup"}
prices = Table.create(f"{tempfile.mkdtemp()}/prices", "item STRING, price INT", primary_keys=["item"], options=options)
prices.write([{"item": "bolt", "price": 10}])
prices.write([{"item": "bolt", "price": 12}, {"item": "nut", "price": 3}])
prices.delete("item = 'nut'")
for row in prices.changelog(0).to_arrow().to_pylist():
    print(row)
