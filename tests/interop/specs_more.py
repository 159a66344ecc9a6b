"""Tables that show what the golden ones do not: every merge function, odd partitions, codecs, modes, nested changes of the schema."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tests.interop.made_rows import BASE, array, struct, text_map
from tests.interop.spec_parts import (
    AGGREGATED,
    BUCKETS,
    COMPACTED,
    EMBEDDED,
    IN_MANIFEST,
    INDEXES,
    L0,
    PARTIAL,
    SIDECAR,
    UNAWARE,
    VECTORS,
    keyed,
)
from tests.interop.specs import FULL, MINOR, Alter, Delete, Expire, Spec, Step, Tag, Write, commits, overwrite, then

SMALL = {"id": "BIGINT NOT NULL", "name": "STRING", "qty": "INT", "price": "DECIMAL(12, 2)", "ts": "TIMESTAMP(6)"}
ODD_TEXTS = ["", " ", "Åse 日本 🙂", "a/b=c%2F", "__DEFAULT_PARTITION__", "x'y\"z", "tab\there", "null", None]
ONE = {"bucket": "1"}
_LONG = {"many": "BIGINT", "tags": array("STRING"), "attrs": text_map("INT"), "lines": array(struct(k="INT", v="STRING", n="INT"))}
FUNCTIONS = {
    "fields.many.aggregate-function": "product",
    "fields.tags.aggregate-function": "collect",
    "fields.tags.distinct": "true",
    "fields.attrs.aggregate-function": "merge_map",
    "fields.lines.aggregate-function": "nested_update",
    "fields.lines.nested-key": "k",
    "fields.name.aggregate-function": "listagg",
    "fields.name.list-agg-delimiter": "; ",
    "fields.name.distinct": "true",
    "fields.city.aggregate-function": "first_non_null_value",
    "fields.flag.aggregate-function": "bool_and",
    "fields.qty.aggregate-function": "max",
    "fields.price.aggregate-function": "sum",
    "fields.amount.aggregate-function": "last_value",
    "fields.day.aggregate-function": "min",
    "fields.ts.aggregate-function": "last_non_null_value",
}
_ORDERS = {**SMALL, "kind": "STRING NOT NULL"}
_PEOPLE = {
    "id": "BIGINT NOT NULL",
    "who": struct(name="STRING", age="INT", home=struct(city="STRING")),
    "seen": array(struct(day="DATE", n="INT")),
}
_NESTED_CHANGES = (
    {"change": "add", "column": ["who", "mail"], "type": "STRING"},
    {"change": "rename", "column": ["who", "name"], "to": "called"},
    {"change": "type", "column": ["who", "age"], "type": "BIGINT"},
    {"change": "add", "column": ["who", "home", "street"], "type": "STRING"},
    {"change": "drop", "column": ["who", "home", "city"]},
)
_MOVES = (
    {"change": "move", "column": "ts", "first": True},
    {"change": "type", "column": "qty", "type": "DOUBLE"},
    {"change": "move", "column": "price", "after": "name"},
    {"change": "type", "column": "price", "type": "DECIMAL(20, 4)"},
    {"change": "nullable", "column": "id", "nullable": True},
)


def _person(draw: random.Random, number: int, *, new: bool) -> dict[str, object]:
    age = draw.choice([None, draw.randrange(90)])
    if new:
        who: dict[str, object] = {
            "called": f"new-{number}",
            "age": age,
            "home": {"street": "Long Road"},
            "mail": draw.choice([None, "a@b"]),
        }
    else:
        who = {"name": f"old-{number}", "age": age, "home": draw.choice([None, {"city": "Oslo"}])}
    return {"id": number, "who": draw.choice([None, who, who]), "seen": draw.choice([None, [], [{"day": "2024-02-29", "n": number}]])}


def nested_evolution(draw: random.Random, spec: Spec) -> Iterator[Step]:
    """Rows, changes inside of their structs, rows again."""
    yield Write([[_person(draw, number, new=False) for number in range(30)]])
    yield Alter(_NESTED_CHANGES)
    yield Write([[_person(draw, number, new=True) for number in range(20, 45)]])


def _partitioned(name: str, kind: str, values: list[object], **options: str) -> Spec:
    return Spec(
        f"parts_{name}",
        f"partitions of {kind}",
        "partitions with odd values",
        {**SMALL, "p": kind},
        commits(30, 20),
        partitions=("p",),
        options={**UNAWARE, **{key.replace("_", "-").replace("--", "."): value for key, value in options.items()}},
        pools={"p": values},
    )


def _coded(codec: str, **more: str) -> Spec:
    return keyed(f"codec_{codec}", f"file.compression={codec}", COMPACTED, commits(20, 20, FULL), **{"file.compression": codec, **more})


def _stats(name: str, **options: str) -> Spec:
    return Spec(f"stats_{name}", f"statistics, {name}", "append", BASE, commits(30, 20), options={**UNAWARE, **options})


def _deleted(feature: str, name: str, **options: str) -> Spec:
    steps = commits(
        40,
        40,
        Delete({"op": "<", "col": "qty", "value": 0}),
        20,
        Delete({"op": "in", "col": "city", "values": ["Oslo", ""]}),
        Delete({"op": "between", "col": "id", "values": [10, 15]}),
    )
    return Spec(name, "rows of an append table marked in deletion vectors", feature, BASE, steps, options={**VECTORS, **options})


def _kinds(draw: random.Random, spec: Spec) -> Iterator[Step]:
    """A column gives each row its kind."""
    for part in commits(30, 30, deletes=0)(draw, spec):
        assert isinstance(part, Write)
        for batch in part.batches:
            for row in batch:
                row["kind"] = draw.choice(["+I", "+U", "-D", "-U"])
        yield part


def flushed(*sizes: int) -> Callable[[random.Random, Spec], Iterator[Step]]:
    """Several flushes in each of two commits."""

    def steps(draw: random.Random, spec: Spec) -> Iterator[Step]:
        for _ in range(2):
            writes = [step for step in commits(*sizes)(draw, spec) if isinstance(step, Write)]
            yield Write([batch for write in writes for batch in write.batches])

    return steps


MORE = (
    Spec("many_flushes", "commits of several flushes", L0, SMALL, flushed(12, 9, 11), ("id",), options={**BUCKETS, "write-only": "true"}),
    keyed("lz4_l0", "level-0 files with codecs of their own", L0, commits(20, 20), **{"file.compression.per.level": "0:lz4,5:zstd"}),
    keyed("mod_buckets", "bucket-function.type=mod", L0, commits(40), **{"bucket-function.type": "mod"}),
    Spec(
        "agg_functions",
        "every other aggregate function",
        "aggregation",
        {**BASE, **_LONG},
        commits(40, 40, 40, deletes=0),
        ("id",),
        options={**AGGREGATED, **FUNCTIONS},
        pools={"many": [1, 2, 3, -1, None]},
        unordered=("tags", "lines"),
    ),
    Spec(
        "agg_removes",
        "aggregation.remove-record-on-delete",
        "aggregation, retracts",
        SMALL,
        commits(40, 40, 40, deletes=0.2),
        ("id",),
        options={**AGGREGATED, "aggregation.remove-record-on-delete": "true", "fields.qty.aggregate-function": "sum"},
    ),
    Spec(
        "partial_aggregated",
        "partial-update with sums in sequence groups",
        "partial-update, sequence groups",
        BASE,
        commits(40, 40, 40, deletes=0),
        ("id",),
        options={
            **PARTIAL,
            "fields.ts.sequence-group": "qty,price",
            "fields.qty.aggregate-function": "sum",
            "fields.day.sequence-group": "city,amount",
            "fields.default-aggregate-function": "last_non_null_value",
        },
    ),
    Spec(
        "partial_two_fields",
        "a sequence group of two fields",
        "partial-update, sequence groups",
        BASE,
        commits(40, 40, 40, deletes=0),
        ("id",),
        options={**PARTIAL, "fields.day,ts.sequence-group": "qty,price,city"},
    ),
    Spec(
        "partial_group_removes",
        "partial-update.remove-record-on-sequence-group",
        "partial-update, removing deletes",
        BASE,
        commits(40, 40, 40, deletes=0.2),
        ("id",),
        options={
            **PARTIAL,
            "fields.ts.sequence-group": "qty,price,city,name,flag,amount,day",
            "partial-update.remove-record-on-sequence-group": "ts",
        },
    ),
    keyed(
        "seq_two_desc",
        "two sequence fields, descending",
        "sequence.field",
        commits(40, 40, 40, FULL, 20, once=True),  # of rows of one flush the engine takes the greatest, whatever the order
        **{"sequence.field": "day,qty", "sequence.field.sort-order": "descending"},
    ),
    keyed(
        "ignore_delete",
        "deduplicate with ignore-delete",
        "deletes by row kind",
        commits(40, 40, FULL, 20, deletes=0.3),
        **{"ignore-delete": "true"},
    ),
    Spec(
        "rowkind_field",
        "rowkind.field",
        "deletes by row kind",
        {**SMALL, "kind": "STRING"},
        _kinds,
        ("id",),
        options={**BUCKETS, "rowkind.field": "kind"},
    ),
    Spec(
        "first_mixed",
        "first-row, levels and new rows",
        "first-row",
        SMALL,
        commits(30, FULL, 30, MINOR, 30, deletes=0),
        ("id",),
        options={**BUCKETS, "merge-engine": "first-row"},
    ),
    keyed(
        "changelog_full",
        "changelog-producer=full-compaction",
        "changelog-producer full-compaction",
        commits(30, 30, FULL, 30, FULL),
        **{"changelog-producer": "full-compaction"},
    ),
    keyed(
        "dv_agg",
        "deletion vectors beside lookups",
        "deletion vectors, 32 bit",
        commits(60, 40, FULL, 20, MINOR, 20, MINOR),
        **{"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
    ),
    Spec(
        "dv_parts",
        "deletion vectors in partitions",
        "deletion vectors, 32 bit",
        _ORDERS,
        commits(50, 40, FULL, 20, MINOR),
        ("kind", "id"),
        ("kind",),
        {**BUCKETS, **VECTORS},
        {"kind": ["a", "b c", "ü"]},  # the engine's lookups fail on a partition with a slash
    ),
    _deleted("append, deletion vectors", "append_dv", **UNAWARE, **INDEXES),
    _deleted("append, deletion vectors", "append_dv64", **UNAWARE, **{"deletion-vectors.bitmap64": "true"}),
    _deleted("append, deletion vectors", "append_dv_bucketed", **BUCKETS, **{"bucket-key": "id"}),
    Spec(
        "append_dv_compacted",
        "deleted rows go when files are joined",
        "append, deletion vectors",
        SMALL,
        commits(30, 30, Delete({"op": ">", "col": "qty", "value": 0}), 10, FULL),
        options={**UNAWARE, **VECTORS},
    ),
    Spec(
        "append_many",
        "bucketed append, compacted",
        "append, bucketed",
        SMALL,
        commits(*[9] * 6, FULL),
        options={**BUCKETS, "bucket-key": "id,name"},
    ),
    _partitioned("text", "STRING", ODD_TEXTS),
    _partitioned("default_name", "STRING", ["a", None, ""], partition__default_name="__NOTHING__"),
    _partitioned("date", "DATE", ["1969-12-31", "2024-02-29", None], partition__legacy_name="true"),
    _partitioned("date_sql", "DATE", ["1969-12-31", "2024-02-29", None], partition__legacy_name="false"),
    _partitioned("decimal", "DECIMAL(38, 10)", ["-9999999999999999999999999999.9999999999", "0.0000000001", "12.5000000000", None]),
    _partitioned("timestamp", "TIMESTAMP(6)", ["1969-12-31T23:59:59.999999", "2024-02-29T00:00:00.000000", None]),
    _partitioned("flag", "BOOLEAN", [True, False, None]),
    _partitioned("double", "DOUBLE", [1.5, 1e100, -0.25, "NaN", None]),
    Spec(
        "pk_dynamic_parts",
        "dynamic buckets in partitions",
        "dynamic buckets",
        _ORDERS,
        commits(60, 40, FULL, 40),
        ("kind", "id"),
        ("kind",),
        {**UNAWARE, "dynamic-bucket.target-row-num": "10"},
        {"kind": ["a", "b"]},
    ),
    *(_coded(codec) for codec in ("none", "snappy", "gzip", "zstd")),
    _stats("counts", **{"metadata.stats-mode": "counts"}),
    _stats("truncated", **{"metadata.stats-mode": "truncate(3)", "fields.name.stats-mode": "none", "fields.qty.stats-mode": "full"}),
    _stats("sparse", **{"metadata.stats-mode": "none", "metadata.stats-dense-store": "false"}),
    keyed(
        "manifest_deflate",
        "manifest.compression=deflate",
        COMPACTED,
        commits(*[6] * 5, FULL),
        **{"manifest.compression": "deflate", "manifest.merge-min-count": "2"},
    ),
    Spec("nested_evolved", "schema evolution inside structs", "schema evolution", _PEOPLE, nested_evolution, options=UNAWARE),
    Spec(
        "nested_evolved_pk",
        "schema evolution inside structs of a PK table",
        "schema evolution",
        _PEOPLE,
        nested_evolution,
        ("id",),
        options=BUCKETS,
    ),
    Spec(
        "moved",
        "columns moved and widened, with indexes",
        "schema evolution",
        SMALL,
        commits(30, Alter(_MOVES[:4]), 30),
        options={
            **UNAWARE,
            **EMBEDDED,
            "file-index.bitmap.columns": "qty,name",
            "file-index.bsi.columns": "price",
            "file-index.range-bitmap.columns": "ts",
        },
    ),
    Spec(
        "overwritten_dynamic",
        "dynamic overwrite",
        "overwrite",
        _ORDERS,
        then(commits(30, 20), overwrite(9)),
        ("kind", "id"),
        ("kind",),
        BUCKETS,
        {"kind": ["p", "q"]},
    ),
    Spec("overwritten_whole", "the whole table overwritten", "overwrite", SMALL, then(commits(30, 20), overwrite(9)), options=UNAWARE),
    Spec(
        "tag_kept", "a tag on an expired snapshot", "tags", SMALL, commits(20, Tag("v1"), 20, FULL, 20, Expire(1)), ("id",), options=BUCKETS
    ),
    Spec(
        "idx_pk_sidecar",
        "sidecar indexes through compactions",
        SIDECAR,
        BASE,
        commits(40, 40, FULL, 20, MINOR),
        ("id",),
        options={**INDEXES, **ONE},
    ),
    Spec(
        "idx_range_pk",
        "range-bitmap and bloom filter in manifests, PK",
        IN_MANIFEST,
        BASE,
        commits(40, 40, FULL, 20),
        ("id",),
        options={
            **ONE,
            **EMBEDDED,
            "file-index.range-bitmap.columns": "qty,ts,name,amount",
            "file-index.bloom-filter.columns": "city,ts",
        },
    ),
)
