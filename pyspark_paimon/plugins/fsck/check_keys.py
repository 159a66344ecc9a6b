"""Check that each key lives in one partition only.

A single file cannot show this, so the newest rows of the table are read.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lsm.cross_partition.key_locations import EVERY_ROW, name_key
from lsm.cross_partition.staged_rows import StagedRows
from lsm.data_files.spill import SpillDirectory, SpillSpace
from lsm.keys.encoding import one_array
from lsm.keys.key_set import KeySet
from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from manifest.io.errors import SnapshotExpired
from manifest.schema.table_schema import BucketMode
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from paimon_base.texts import count_text
from pyspark_paimon.results.fsck_problem import Findings, Origin, ProblemKind

_PARTITION = "_PARTITION"


def check_key_partitions(store: FileStore, findings: Findings) -> None:
    """Report primary keys that exist in more than one partition.

    Reports the first such key of each pass. Does nothing for tables whose keys include the partition. Reads all key columns once, with half of
    ``write-buffer-size`` as memory. The check of files reports unreadable ones.
    """
    snapshot = store.snapshots.latest() if store.schema.bucket_mode is BucketMode.KEY_DYNAMIC else None
    if snapshot is None:
        return
    all_rows, names = store.with_options(EVERY_ROW), list(store.schema.primary_keys)
    with SpillDirectory() as directory:
        waiting = StagedRows(store.schema, store.options.write_buffer_size // 2, SpillSpace(directory))
        try:
            splits = ScanPlanner(all_rows).plan(snapshot=snapshot, columns=names).splits
            numbers = {partition: number for number, partition in enumerate(dict.fromkeys(split.partition for split in splits))}
            for split in splits:
                for batch in read_split(all_rows, split, columns=names):
                    where = pa.array(np.full(batch.num_rows, numbers[split.partition], np.int32))
                    waiting.add(pa.Table.from_batches([batch]).append_column(_PARTITION, where), None)
        except (CorruptFile, SnapshotExpired):
            return
        partitions = list(numbers)
        for rows, _ in waiting.drain():
            keys, places = KeySet(rows.select(names)), one_array(rows.column(_PARTITION)).to_numpy()
            one_of = np.zeros(len(keys), np.int32)
            one_of[keys.numbers] = places
            twice = np.flatnonzero(places != one_of[keys.numbers])
            if len(twice):
                row = int(twice[0])
                number = int(keys.numbers[row])
                partition_text = " and ".join(
                    str(store.partition.decode(partitions[index])) for index in sorted((int(places[row]), int(one_of[number])))
                )
                message = (
                    f"the key {name_key(keys, number)} lives in partitions {partition_text}; such keys have {count_text(len(twice), 'row')}"
                )
                findings.add(ProblemKind.KEY_PARTITION, store.root, message, Origin(branch=store.branch, snapshot=snapshot.id))
