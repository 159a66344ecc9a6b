"""A small table for examples."""

from __future__ import annotations

import tempfile

import pyarrow as pa

from pyspark_paimon.table.table import Table


def cities() -> Table:
    """Create a primary-key table with three rows in a temporary directory.

    >>> cities().scan().to_arrow().sort_by("id").to_pylist()[0]
    {'id': 1, 'city': 'Oslo', 'country': 'NO', 'attrs': [('clicks', 3)]}
    """
    table = Table.create(
        f"{tempfile.mkdtemp(prefix='paimon-')}/cities",
        "id BIGINT, city STRING, country STRING, attrs MAP<STRING, INT>",
        primary_keys=["id"],
        options={"bucket": "1", "file-index.bloom-filter.columns": "city", "file-index.bloom-filter.city.items": "100"},
    )
    attrs = pa.array([[("clicks", 3)], [("clicks", 7)], None], pa.map_(pa.string(), pa.int32()))
    table.write(pa.table({"id": [1, 2, 3], "city": ["Oslo", "Lima", "Rome"], "country": ["NO", "PE", "IT"], "attrs": attrs}))
    return table


__all__ = ["cities"]
