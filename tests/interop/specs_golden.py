"""The tables of ``tests/golden``: one for each feature, as small as shows it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tests.interop.made_rows import ALL_TYPES, BASE, text_map
from tests.interop.specs import FULL, MINOR, Alter, Expire, Spec, Step, Tag, commits, overwrite, then

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
_MARKED = commits(120, 120, 120, FULL, 10, MINOR, 10, MINOR, 9, MINOR, ids=range(-50, 260))

GOLDEN = (
    Spec(
        "pk_l0",
        "PK, write-only: level 0 files only, merge on read",
        L0,
        BASE,
        KEYED,
        ("id",),
        options={**INDEXES, **BUCKETS, "write-only": "true"},
    ),
    Spec(
        "pk_full",
        "PK, several commits then a full compaction: one run on the top level",
        COMPACTED,
        BASE,
        commits(36, 39, 39, FULL),
        ("id",),
        options={**INDEXES, **BUCKETS},
    ),
    keyed("pk_mixed", "PK, full compaction followed by small commits: top level plus level 0", COMPACTED, commits(61, FULL, 12, 13)),
    Spec(
        "pk_dv",
        "PK with deletion vectors: updates and deletes after a full compaction",
        "deletion vectors, 32 bit",
        BASE,
        _MARKED,
        ("id",),
        options={**INDEXES, **BUCKETS, **VECTORS},
    ),
    Spec(
        "pk_dv_embedded",
        "deletion vectors + indexes embedded in the manifest: the planner itself skips files by index",
        IN_MANIFEST,
        BASE,
        _MARKED,
        ("id",),
        options={**INDEXES, **BUCKETS, **EMBEDDED, **VECTORS},
    ),
    Spec(
        "pk_dv64",
        "as pk_dv with 64-bit deletion vectors",
        "deletion vectors, 64 bit",
        BASE,
        commits(120, 120, 120, FULL, 10, MINOR, ids=range(-50, 260)),
        ("id",),
        options={**BUCKETS, **VECTORS, "deletion-vectors.bitmap64": "true"},
    ),
    Spec(
        "pk_embedded",
        "PK, indexes embedded in the manifest",
        IN_MANIFEST,
        BASE,
        commits(40, 40, FULL),
        ("id",),
        options={**INDEXES, "bucket": "1", **EMBEDDED},
    ),
    keyed(
        "pk_thin", "PK, data-file.thin-mode: no _KEY_ columns", "thin data files", commits(40, 40, FULL), **{"data-file.thin-mode": "true"}
    ),
    Spec(
        "pk_composite",
        "composite key declared in another order than the columns, long string keys",
        "composite and text keys",
        {**BASE, "tenant": "STRING NOT NULL"},
        commits(60, 60),
        ("tenant", "id"),
        options=BUCKETS,
        pools={"tenant": lambda draw: f"tenant-with-a-very-long-name-{draw.randrange(5)}"},
    ),
    Spec(
        "append_idx",
        "append, .index side files",
        SIDECAR,
        BASE,
        appended(52),
        options={**INDEXES, **UNAWARE, "file-index.in-manifest-threshold": "1b"},
    ),
    Spec(
        "append_embedded",
        "append, indexes embedded in the manifest",
        IN_MANIFEST,
        BASE,
        appended(52),
        options={**INDEXES, **UNAWARE, **EMBEDDED},
    ),
    Spec(
        "append_compacted",
        "append, small files compacted into one",
        "append, compacted",
        BASE,
        commits(26, 26, 26, 26, 26, FULL),
        options={**INDEXES, **UNAWARE},
    ),
    Spec(
        "append_bitmap_v1",
        "append, bitmap index version 1",
        IN_MANIFEST,
        BASE,
        appended(),
        options={**UNAWARE, **EMBEDDED, "file-index.bitmap.columns": "city,flag,day,qty,name", **BITMAP_1},
    ),
    Spec(
        "append_bitmap_v2",
        "append, bitmap version 2 with small index blocks, also on floating point and timestamps",
        IN_MANIFEST,
        BASE,
        appended(),
        options={
            **UNAWARE,
            **EMBEDDED,
            "file-index.bitmap.columns": "name,amount,ts,qty,id",
            "file-index.bitmap.name.index-block-size": "100b",
            "file-index.bitmap.qty.index-block-size": "64b",
        },
    ),
    Spec("append_bsi", "append, bsi", SIDECAR, BASE, appended(), options={**UNAWARE, "file-index.bsi.columns": "id,qty,price,day,ts"}),
    Spec(
        "append_range_bitmap",
        "append, range-bitmap",
        IN_MANIFEST,
        BASE,
        appended(),
        options={
            **UNAWARE,
            **EMBEDDED,
            "file-index.range-bitmap.columns": "qty,price,name,ts,amount,flag,day",
            "file-index.range-bitmap.name.chunk-size": "64b",
            "file-index.range-bitmap.qty.chunk-size": "0b",
        },
    ),
    Spec("append_map", "append, indexes on map keys", ON_KEYS, WITH_MAP, appended(), options={**MAP_INDEXES, **UNAWARE}, pools=MAPS),
    Spec(
        "append_map_embedded",
        "append, indexes on map keys in the manifest",
        ON_KEYS,
        WITH_MAP,
        appended(),
        options={**MAP_INDEXES, **EMBEDDED, **UNAWARE},
        pools=MAPS,
    ),
    Spec(
        "pk_map",
        "PK, indexes on map keys",
        ON_KEYS,
        WITH_MAP,
        commits(40, 40, FULL),
        ("id",),
        options={**MAP_INDEXES, **BUCKETS},
        pools=MAPS,
    ),
    Spec(
        "pk_partial",
        "partial-update: null does not overwrite",
        "partial-update",
        BASE,
        commits(40, 40, 40, 40, deletes=0),
        ("id",),
        options=PARTIAL,
    ),
    Spec(
        "pk_partial_ignore",
        "partial-update with ignore-delete and deletes in the input",
        "partial-update, ignored deletes",
        BASE,
        commits(40, 40, 40, deletes=0.2),
        ("id",),
        options={**PARTIAL, "ignore-delete": "true"},
    ),
    Spec(
        "pk_partial_group",
        "partial-update with a sequence group; deletes retract the group",
        "partial-update, sequence groups",
        BASE,
        commits(40, 40, 40, 40, deletes=0.15),
        ("id",),
        options={**PARTIAL, "fields.ts.sequence-group": "qty,price,city"},
    ),
    Spec(
        "pk_partial_remove",
        "partial-update with partial-update.remove-record-on-delete",
        "partial-update, removing deletes",
        BASE,
        commits(40, 40, 40, 40, deletes=0.15),
        ("id",),
        options={**PARTIAL, "partial-update.remove-record-on-delete": "true"},
    ),
    Spec(
        "pk_first",
        "first-row",
        "first-row",
        BASE,
        commits(40, 40, 40, FULL, deletes=0.1),
        ("id",),
        options={**BUCKETS, "merge-engine": "first-row", "ignore-delete": "true"},
    ),
    Spec(
        "pk_agg",
        "aggregation",
        "aggregation",
        BASE,
        commits(40, 40, 40, 40, deletes=0.1),
        ("id",),
        options={
            **AGGREGATED,
            "ignore-delete": "true",
            "fields.qty.aggregate-function": "sum",
            "fields.price.aggregate-function": "max",
            "fields.amount.aggregate-function": "min",
            "fields.name.aggregate-function": "last_non_null_value",
            "fields.city.aggregate-function": "listagg",
            "fields.flag.aggregate-function": "bool_or",
            "fields.day.aggregate-function": "first_value",
        },
    ),
    Spec(
        "pk_agg_retract",
        "aggregation with deletes: sums retract, the rest ignores retracts",
        "aggregation, retracts",
        BASE,
        commits(40, 40, 40, 40, deletes=0.15),
        ("id",),
        options={
            **AGGREGATED,
            "fields.default-aggregate-function": "last_non_null_value",
            "fields.qty.aggregate-function": "sum",
            "fields.price.aggregate-function": "sum",
            "fields.amount.aggregate-function": "last_value",
            **{f"fields.{column}.ignore-retract": "true" for column in ("name", "city", "flag", "amount", "day", "ts")},
        },
    ),
    keyed(
        "pk_seq",
        "sequence.field: the larger version wins, whatever the order of arrival",
        "sequence.field",
        commits(40, 40, 40, 40),
        **{"sequence.field": "ts"},
    ),
    Spec(
        "pk_parts",
        "partitioned PK",
        "partitions with odd values",
        {**BASE, "region_code": "STRING NOT NULL"},
        commits(45, 48),
        ("region_code", "id"),
        ("region_code",),
        BUCKETS,
        {"region_code": ["eu", "us west", "a/b=c"]},
    ),
    Spec(
        "append_parts",
        "partitioned append, null partition values, two partition columns",
        "partitions with odd values",
        {**BASE, "dt": "DATE", "hh": "INT"},
        appended(),
        partitions=("dt", "hh"),
        options=UNAWARE,
        pools={"dt": ["2022-01-08", "2022-01-09", "2022-01-10", None], "hh": [7, 8]},
    ),
    Spec("append_bucketed", "append with fixed buckets", "append, bucketed", BASE, appended(), options={**BUCKETS, "bucket-key": "name"}),
    Spec(
        "pk_dynamic",
        "dynamic bucket, HASH index files",
        "dynamic buckets",
        BASE,
        commits(45, 38, 41),
        ("id",),
        options={**UNAWARE, "dynamic-bucket.target-row-num": "60"},
    ),
    keyed("pk_changelog", "changelog-producer=input", "changelog-producer input", commits(60, 60, 60), **{"changelog-producer": "input"}),
    keyed("pk_changelog_lookup", "changelog-producer=lookup", "changelog-producer lookup", commits(60, 60, 60), **{"changelog-producer": "lookup"}),
    Spec(
        "overwritten",
        "one partition replaced by INSERT OVERWRITE (commit kind OVERWRITE)",
        "overwrite",
        {**BASE, "zone": "STRING"},
        then(appended(), overwrite(18, {"zone": "p"})),
        partitions=("zone",),
        options=UNAWARE,
        pools={"zone": ["p", "q"]},
    ),
    Spec(
        "evolved",
        "schema evolution on a PK table: add, rename, widen, drop, re-add",
        "schema evolution",
        BASE,
        commits(36, Alter(EVOLUTION), 39, Alter(ADDED_AGAIN)),
        ("id",),
        options={**BUCKETS, "write-only": "true"},
    ),
    Spec(
        "evolved_append",
        "schema evolution on an indexed append table",
        "schema evolution",
        BASE,
        commits(52, Alter(EVOLUTION), 52, Alter(ADDED_AGAIN)),
        options={"file-index.bitmap.columns": "name,day", **EMBEDDED, **UNAWARE},
    ),
    keyed("tagged", "tag `v1` on snapshot 1, later snapshots differ", "tags", commits(40, Tag("v1"), 40, FULL)),
    Spec(
        "manifests_merged",
        "many commits: manifests merged, DELETE entries present",
        "primary key, compacted",
        NARROW,
        commits(*[6] * 12, ids=range(60)),
        ("id",),
        options={"bucket": "1", "manifest.merge-min-count": "4", "num-sorted-run.compaction-trigger": "3"},
    ),
    Spec(
        "expired",
        "old snapshots expired",
        "expired snapshots",
        NARROW,
        commits(*[6] * 7, Expire(3), ids=range(40)),
        ("id",),
        options={"bucket": "1", "num-sorted-run.compaction-trigger": "3"},
    ),
    Spec(
        "all_types",
        "every atomic type, nested types, extreme values (append)",
        "scalar types with their extremes",
        ALL_TYPES,
        appended(),
        options=UNAWARE,
    ),
    Spec(
        "all_types_pk", "the same as a PK table, compacted", "ARRAY, MAP, ROW", ALL_TYPES, commits(40, 30, FULL), ("id",), options=BUCKETS
    ),
    Spec(
        "multiset",
        "MULTISET column",
        "MULTISET",
        {"id": "BIGINT NOT NULL", "m": {"type": "MULTISET", "element": "STRING NOT NULL"}},
        commits(30),
        options=UNAWARE,
    ),
    Spec(
        "edges",
        "nulls, empty and long strings, unicode, negative decimals, NaN, infinities, -0.0, with indexes",
        "scalar types with their extremes",
        EDGE_COLUMNS,
        commits(75, 70),
        options={
            **UNAWARE,
            **EMBEDDED,
            "file-index.bitmap.columns": "s,f,d,i",
            "file-index.range-bitmap.columns": "s,f,d,p,i",
            "file-index.bloom-filter.columns": "s,f,d,i",
            **{f"file-index.bloom-filter.{column}.items": "50" for column in "sfdi"},
            "file-index.bsi.columns": "p,i",
        },
        pools=EDGE_POOLS,
    ),
    Spec(
        "all_null",
        "columns that hold nothing but nulls",
        IN_MANIFEST,
        NOTHING,
        commits(20),
        options={
            **UNAWARE,
            **EMBEDDED,
            "file-index.bitmap.columns": "s,i",
            "file-index.range-bitmap.columns": "s,i",
            "file-index.bloom-filter.columns": "s,i",
            "file-index.bloom-filter.s.items": "10",
            "file-index.bloom-filter.i.items": "10",
            "file-index.bsi.columns": "i,t",
        },
        pools={column: [None] for column in "sipt"},
        unasked=("is_null",),  # of a range-bitmap of nulls the engine's reader finds only the first and the last row
    ),
    keyed(
        "codecs",
        "parquet compression and stats options",
        COMPACTED,
        commits(30, 30, FULL),
        **{"file.compression": "lz4", "metadata.stats-mode": "full", "manifest.compression": "null"},
    ),
    Spec("stats_none", "metadata.stats-mode=none", "append", BASE, appended(), options={**UNAWARE, "metadata.stats-mode": "none"}),
)
