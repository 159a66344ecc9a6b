"""Effects of options, judged for the kind of table that has them."""

from __future__ import annotations

import pytest

from manifest.options.known_keys import BY_CALL, HONOURED, REFUSED
from manifest.options.support import effect_of
from manifest.schema.option_effects import MERGE_FIELDS, SCOPED_KEYS, effect_in
from manifest.schema.validation import build_schema

BLOBS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
TABLES = {
    "keys": build_schema("id INT, v INT", primary_keys=["id"], options={"bucket": "1"}),
    "dynamic": build_schema("id INT, v INT", primary_keys=["id"], options={"bucket": "-1"}),
    "across": build_schema("id INT, v INT", primary_keys=["id"], partition_keys=["v"], options={"bucket": "-1"}),
    "postponed": build_schema("id INT, v INT", primary_keys=["id"], options={"bucket": "-2"}),
    "vectors": build_schema("id INT, v INT", primary_keys=["id"], options={"bucket": "1", "deletion-vectors.enabled": "true"}),
    "first row": build_schema("id INT, v INT", primary_keys=["id"], options={"bucket": "1", "merge-engine": "first-row"}),
    "append": build_schema("id INT, v INT", options={"bucket": "-1"}),
    "append vectors": build_schema("id INT, v INT", partition_keys=["v"], options={"bucket": "-1", "deletion-vectors.enabled": "true"}),
    "clustered": build_schema("id INT, v INT", options={"bucket": "-1", "clustering.columns": "v", "clustering.incremental": "true"}),
    "buckets": build_schema("id INT, v INT", options={"bucket": "2", "bucket-key": "id"}),
    "changelog": build_schema("id INT, v INT", primary_keys=["id"], options={"bucket": "1", "changelog-producer": "input"}),
    "iceberg": build_schema("id INT, v INT", primary_keys=["id"], options={"bucket": "1", "metadata.iceberg.storage": "table-location"}),
    "tags": build_schema("id INT, v INT", primary_keys=["id"], options={"bucket": "1", "tag.automatic-creation": "batch"}),
    "blobs": build_schema("id INT, v BLOB", options={"bucket": "-1", **BLOBS}),
}
WITH_KEYS = {"keys", "dynamic", "across", "postponed", "vectors", "first row", "changelog", "iceberg", "tags"}
EFFECTIVE = {
    "clustering.columns": {"append", "append vectors", "clustered", "blobs"},
    "compaction.min.file-num": TABLES.keys() - WITH_KEYS,
    "num-levels": {*WITH_KEYS, "clustered"},
    "ignore-delete": WITH_KEYS,
    "fields.v.aggregate-function": WITH_KEYS,
    "fields.default-aggregate-function": WITH_KEYS,
    "fields.v.stats-mode": TABLES.keys(),
    "dynamic-bucket.max-buckets": {"dynamic", "across"},
    "postpone.default-bucket-num": {"postponed"},
    "partition.expiration-time": {"across", "append vectors"},
    "blob.target-file-size": {"blobs"},
    "deletion-vectors.merge-on-read": {"vectors", "first row"},
    "deletion-vectors.bitmap64": {"vectors", "append vectors"},
    "write-only": TABLES.keys(),
    "metadata.iceberg.previous-versions-max": {"iceberg"},
    "metadata.iceberg.storage": TABLES.keys(),
    "tag.creation-delay": {"tags"},
    "tag.default-time-retained": TABLES.keys(),
    "changelog-file.stats-mode": {"changelog"},
    "sink.clustering.by-columns": {"append", "append vectors", "clustered", "blobs"},
}
"""Tables on which an option has an effect."""
VALUES = {
    "changelog-file.compression": "zstd",
    "changelog-file.format": "orc",
    "metadata.iceberg.format-version": "2",
    "metadata.iceberg.manifest-compression": "snappy",
    "metadata.iceberg.storage-location": "table-location",
}
"""Values of options that take few."""


@pytest.mark.parametrize("option", EFFECTIVE)
def test_an_option_has_an_effect_on_its_kind_of_table_only(option: str) -> None:
    value = {"metadata.iceberg.storage": "table-location"}.get(option, "sum" if "aggregate" in option else "1")
    effects = {name: effect_in(schema, option, value) for name, schema in TABLES.items()}
    assert {name for name, (effect, _) in effects.items() if effect != "none"} == EFFECTIVE[option]
    assert all(note.startswith("applies only") for effect, note in effects.values() if effect == "none")


def test_each_scoped_option_is_supported_and_depends_on_the_table() -> None:
    for key in SCOPED_KEYS - {MERGE_FIELDS}:
        value = VALUES.get(key, "1")
        assert key in HONOURED | BY_CALL.keys() | REFUSED.keys()
        effects = {effect_in(schema, key, value)[0] for schema in TABLES.values()}
        assert effects == {"none", effect_of(key, value)[0]}, key
