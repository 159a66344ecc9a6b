"""What the specifications of tables share: options, columns, values, features' names, usual steps."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tests.interop.made_rows import BASE, text_map
from tests.interop.specs import Spec, Step, commits

BUCKETS = {"bucket": "2"}
UNAWARE = {"bucket": "-1"}
EMBEDDED = {"file-index.in-manifest-threshold": "1 mb"}
INDEXES = {
    "file-index.bloom-filter.columns": "id,name,amount,ts",
    "file-index.bloom-filter.id.items": "200",
    "file-index.bloom-filter.name.items": "100",
    "file-index.bloom-filter.name.fpp": "0.01",
    "file-index.bloom-filter.amount.items": "200",
    "file-index.bloom-filter.ts.items": "200",
    "file-index.bitmap.columns": "city,flag,day",
    "file-index.bsi.columns": "qty,price,ts,day",
}
VECTORS = {"deletion-vectors.enabled": "true"}
MAP_INDEXES = {
    "file-index.bloom-filter.columns": "attrs[clicks],attrs[price]",
    "file-index.bloom-filter.attrs.items": "150",
    "file-index.bitmap.columns": "attrs[clicks]",
    "file-index.bsi.columns": "attrs[price]",
}
BITMAP_1 = {f"file-index.bitmap.{column}.version": "1" for column in ("city", "flag", "day", "qty", "name")}


def attributes(draw: random.Random) -> list[list[object]]:
    """A map of counts; now and then a key is missing or its value null."""
    names = draw.sample(["clicks", "price", "other"], draw.randrange(4))
    return [[name, None if draw.random() < 0.1 else draw.randrange(-20, 20)] for name in sorted(names)]


WITH_MAP = {**BASE, "attrs": text_map("BIGINT")}
MAPS = {"attrs": lambda draw: attributes(draw) if draw.random() < 0.95 else None}
EVOLUTION = (
    {"change": "add", "column": "extra", "type": "STRING"},
    {"change": "rename", "column": "city", "to": "city_new"},
    {"change": "type", "column": "qty", "type": "BIGINT"},
    {"change": "drop", "column": "flag"},
)
ADDED_AGAIN = ({"change": "add", "column": "flag", "type": "INT", "first": True},)
EDGE_COLUMNS = {"d": "DOUBLE", "s": "STRING", "f": "FLOAT", "p": "DECIMAL(9, 4)", "i": "INT", "b": "BYTES", "id": "BIGINT NOT NULL"}
_FLOATS = ["NaN", "Infinity", "-Infinity", 0.0, -0.0, 1.5, -1.5, 1e30, None]
EDGE_POOLS = {
    "d": [*_FLOATS, 5e-324, 1e300],
    "f": [*_FLOATS, 1.401298464324817e-45],
    "s": ["", " ", "a", "ab", "x" * 40, "x" * 16 + "y", "😀 grin", "￿", "\U0010ffff", "é", "é", None],
    "p": ["0.0000", "0.0001", "-0.0001", "99999.9999", "-99999.9999", "1.5000", None],
    "i": [0, -1, 1, 2147483647, -2147483648, 7, None],
    "b": ["", "00", "ff", "ff" * 18, "00" * 20, "7f80", None],
}
NARROW = {"id": "BIGINT NOT NULL", "name": "STRING", "qty": "INT", "ts": "TIMESTAMP(6)"}
NOTHING = {"id": "BIGINT NOT NULL", "s": "STRING", "i": "INT", "p": "DECIMAL(20, 3)", "t": "TIMESTAMP(6)"}


def appended(*extra: Step | int) -> Callable[[random.Random, Spec], Iterator[Step]]:
    """Two commits without key."""
    return commits(52, 52, *extra)


KEYED = commits(40, 38, 36)


def keyed(name: str, shows: str, feature: str, steps: Callable[[random.Random, Spec], Iterator[Step]] = KEYED, **options: str) -> Spec:
    """A table of the usual columns with the key ``id`` and two buckets; options by name, with ``_`` for ``.``."""
    return Spec(name, shows, feature, BASE, steps, ("id",), options={**BUCKETS, **{key.replace("_", "."): v for key, v in options.items()}})


L0, COMPACTED = "primary key, level 0", "primary key, compacted"
SIDECAR, IN_MANIFEST, ON_KEYS = "file indexes in sidecars", "file indexes in manifests", "file indexes on map keys"
PARTIAL = {**BUCKETS, "merge-engine": "partial-update"}
AGGREGATED = {**BUCKETS, "merge-engine": "aggregation"}
