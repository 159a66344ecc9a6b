"""Read older states, name one with a tag, and return to it."""

from __future__ import annotations

import tempfile

from pyspark_paimon import Table

stock = Table.create(f"{tempfile.mkdtemp()}/stock", "item STRING, count INT", primary_keys=["item"], options={"bucket": "1"})
stock.write([{"item": "bolt", "count": 10}, {"item": "nut", "count": 20}])
stock.create_tag("inventory")
stock.write([{"item": "bolt", "count": 0}])

print(stock.scan(snapshot=1).to_arrow().to_pylist())
print(stock.scan(tag="inventory").to_arrow().to_pylist())
stock.rollback_to(tag="inventory")
print(stock.scan().to_arrow().to_pylist())
