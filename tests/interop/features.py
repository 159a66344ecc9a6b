"""The features that the docs' table tells of, and the mark by which a test says which cell it proves.

    @feature("deletion vectors, 64 bit", PYPAIMON, READS_OURS, outcome="refuses")
    def test_...

A cell holds what the peer does: ``yes``, or words for what the test asserts the peer does instead.
"""

from __future__ import annotations

from typing import Any

import pytest

JAVA = "Java 1.4.2"
PYPAIMON = "pypaimon 2.1"
RUST = "pypaimon 2.1 + rust 0.4"
PEERS = (JAVA, PYPAIMON, RUST)

READS_OURS = "reads ours"
OURS_READS = "ours reads"
TURNS = "turns"
DIRECTIONS = (READS_OURS, OURS_READS, TURNS)

FEATURES = (
    "scalar types with their extremes",
    "nanoseconds of timestamps",
    "ARRAY, MAP, ROW",
    "MULTISET",
    "VARIANT",
    "BLOB",
    "primary key, level 0",
    "primary key, compacted",
    "composite and text keys",
    "thin data files",
    "partitions with odd values",
    "dynamic buckets",
    "postponed buckets",
    "keys across partitions",
    "deletion vectors, 32 bit",
    "deletion vectors, 64 bit",
    "sequence.field",
    "deletes by row kind",
    "first-row",
    "partial-update",
    "partial-update, sequence groups",
    "partial-update, ignored deletes",
    "partial-update, removing deletes",
    "aggregation",
    "aggregation, retracts",
    "aggregation of sketches",
    "listagg of blank texts",
    "changelog-producer input",
    "changelog-producer lookup",
    "changelog-producer full-compaction",
    "append",
    "append, bucketed",
    "append, compacted",
    "append, deletion vectors",
    "append, clustered",
    "ORC data files",
    "Avro data files",
    "data files of several formats",
    "manifests in ORC and Parquet",
    "file indexes in sidecars",
    "file indexes in manifests",
    "file indexes on map keys",
    "filters on NaN",
    "schema evolution",
    "data evolution",
    "rows that expire",
    "overwrite",
    "tags",
    "branches",
    "expired snapshots",
    "changelogs that outlive snapshots",
    "Iceberg metadata",
    "concurrent commits",
)


def feature(name: str, peer: str, direction: str, outcome: str = "yes") -> Any:
    """The mark of a test that proves one cell; a case of a parametrised test takes it by ``pytest.param(..., marks=feature(...))``."""
    assert name in FEATURES, name
    assert peer in PEERS, peer
    assert direction in DIRECTIONS, direction
    return pytest.mark.interop_feature(name, peer=peer, direction=direction, outcome=outcome)
