"""The tables that are tortured: every merge engine and append tables, in the layouts that commits, reads and expiry tell apart."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark_paimon import Table
from tests.torture.model import Model

VECTORS = {"deletion-vectors.enabled": "true"}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "12"}
PARTIAL = {"merge-engine": "partial-update"}
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
FIRST = {"merge-engine": "first-row"}
EMBEDDED = {"file-index.bloom-filter.columns": "id,s", "file-index.bitmap.columns": "n", "file-index.in-manifest-threshold": "1 mb"}
SIDECAR = {"file-index.bloom-filter.columns": "id,s", "file-index.range-bitmap.columns": "n", "file-index.in-manifest-threshold": "1 b"}
EXPIRING = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "3"}


@dataclass(frozen=True)
class Configuration:
    """How a table is made; ``engine`` is ``append`` for one without key."""

    name: str
    engine: str = "deduplicate"
    options: dict[str, str] = field(default_factory=dict)
    partitioned: bool = False

    def create(self, path: str) -> Table:
        append = self.engine == "append"
        keys = () if append else ("p", "id") if self.partitioned else ("id",)
        options = {**({} if append else {"bucket": "2"}), "num-sorted-run.compaction-trigger": "3", **self.options}
        partitions = ("p",) if self.partitioned else ()
        return Table.create(path, "id BIGINT NOT NULL, p INT NOT NULL, n BIGINT, s STRING", keys, partitions, options)

    def model(self) -> Model:
        return Model(self.engine, self.partitioned)

    @property
    def deletes(self) -> bool:
        return self.engine in {"deduplicate", "append"}


CONFIGURATIONS = {
    made.name: made
    for made in (
        Configuration("deduplicate"),
        Configuration("deduplicate, expiring at each commit", options=EXPIRING),
        Configuration("deduplicate, changelog lookup", options={"changelog-producer": "lookup"}),
        Configuration("deduplicate, changelog full-compaction", options={"changelog-producer": "full-compaction"}),
        Configuration("deduplicate, changelog input, embedded indexes", options={"changelog-producer": "input", **EMBEDDED}),
        Configuration("deduplicate, vectors", options=VECTORS),
        Configuration("deduplicate, vectors, partitioned, sidecar indexes", options={**VECTORS, **SIDECAR}, partitioned=True),
        Configuration("deduplicate, vectors, dynamic buckets", options={**VECTORS, **DYNAMIC}),
        Configuration("deduplicate, vectors, changelog lookup, expiring", options={**VECTORS, "changelog-producer": "lookup", **EXPIRING}),
        Configuration("deduplicate, vectors, write-only", options={**VECTORS, "write-only": "true"}),
        Configuration("deduplicate, dynamic buckets, partitioned", options=DYNAMIC, partitioned=True),
        Configuration("deduplicate, write-only, embedded indexes", options={"write-only": "true", **EMBEDDED}),
        Configuration("partial-update, sidecar indexes", "partial-update", {**PARTIAL, **SIDECAR}),
        Configuration("partial-update, vectors", "partial-update", {**PARTIAL, **VECTORS}),
        Configuration("aggregation", "aggregation", SUM),
        Configuration("aggregation, vectors", "aggregation", {**SUM, **VECTORS}),
        Configuration("aggregation, changelog lookup, dynamic buckets", "aggregation", {**SUM, **DYNAMIC, "changelog-producer": "lookup"}),
        Configuration("first-row", "first-row", FIRST),
        Configuration("first-row, dynamic buckets, partitioned", "first-row", {**FIRST, **DYNAMIC}, partitioned=True),
        Configuration("append", "append", EMBEDDED),
        Configuration("append, vectors, sidecar indexes", "append", {**VECTORS, **SIDECAR}),
        Configuration("append, partitioned, expiring", "append", EXPIRING, partitioned=True),
        Configuration("append, fixed buckets", "append", {"bucket": "2", "bucket-key": "id"}),
    )
}

ON_STORE = " on a store"
KINDS = (*CONFIGURATIONS, *(f"{name}{ON_STORE}" for name in CONFIGURATIONS))
"""Names of tables in a local directory and on an object store."""


def configuration_of(kind: str) -> Configuration:
    """Return how a table of ``KINDS`` is made."""
    return CONFIGURATIONS[kind.removesuffix(ON_STORE)]
