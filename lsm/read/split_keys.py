"""Requested keys of one split."""

from __future__ import annotations

import numpy as np

from lsm.bucket.hash import bucket_ids
from lsm.keys.encoding import one_array
from lsm.keys.key_set import KeySet
from lsm.keys.sorted_keys import SortedKeys, key_codes
from lsm.scan.bucket_pruner import BucketPruner
from lsm.scan.splits import DataSplit
from manifest.store import FileStore
from sparkexpr.values.arrays import arrow_array
from sparkexpr.values.plain_value import literal_array


def keys_of_split(store: FileStore, split: DataSplit, keys: KeySet) -> SortedKeys:
    """Return the keys in the split's partition and bucket, without partition columns."""
    schema = store.schema
    partition, total = store.partition, split.total_buckets
    in_bucket = np.ones(keys.rows.num_rows, np.bool_)
    values = dict(zip(partition.names, partition.decode(split.partition), strict=True))
    named = [name for name in partition.names if name in keys.names]
    if named:
        # All splits of a read share the keys, and what is derived from all of them.
        codes, layout = keys.derive("partitions", lambda rows: key_codes([one_array(rows.column(name)) for name in named]))
        partition_values = [literal_array([values[name]], schema.column_types[name]) for name in named]
        in_bucket &= codes == key_codes(partition_values, layout)[0][0]
    if len(in_bucket) > 1 and BucketPruner.applies(schema) and all(file.schema_id == schema.id for file in split.files):
        in_bucket &= keys.derive(("buckets", total), lambda rows: bucket_ids(rows, schema, total)) == split.bucket
    rows = keys.rows if in_bucket.all() else keys.rows.filter(arrow_array(in_bucket))
    return SortedKeys.of([rows.column(name) for name in schema.trimmed_primary_keys])
