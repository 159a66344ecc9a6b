"""Checks of single files listed by ``pyspark_paimon.plugins.fsck.walk``.

Any process can run them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from lsm.bucket.dynamic import read_hashes
from manifest.entry.index_manifest import IndexManifestEntry
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import thresholds
from pyspark_paimon.plugins.fsck.data_file import CheckedDataFile
from pyspark_paimon.plugins.fsck.indexes import check_index_file
from pyspark_paimon.plugins.fsck.unit import DataUnit, Unit, is_whole
from pyspark_paimon.plugins.fsck.walk import branch_store
from pyspark_paimon.results.fsck_depth import Depth
from pyspark_paimon.results.fsck_problem import Findings
from sparkexpr.values.arrays import Int32s


@dataclass
class FileCheck:
    """Checker of a table's files. Thread-safe.

    Args:
        store: Store of the table.
        depth: Depth of the check.
    """

    store: FileStore
    depth: Depth
    _branches: dict[str, FileStore] = field(default_factory=dict)
    _hashes: OrderedDict[str, Int32s | None] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, unit: Unit, limit: int) -> Findings:
        """Return the problems of one file, and counts of checks."""
        findings = Findings(limit)
        store = self._branch(unit.origin.branch)
        if not is_whole(store, unit, findings) or self.depth is Depth.QUICK:
            return findings
        if isinstance(unit, DataUnit):
            CheckedDataFile(store, unit, self.depth, findings, lambda: self._known_hashes(store, unit.hashes)).check()
        else:
            check_index_file(store, unit, findings)
        return findings

    def _branch(self, name: str) -> FileStore:
        with self._lock:
            if name not in self._branches:
                self._branches[name] = branch_store(self.store, name)
            return self._branches[name]

    def _known_hashes(self, store: FileStore, entry: IndexManifestEntry | None) -> Int32s | None:
        """Return the sorted hashes of a bucket.

        None: they cannot be read. The check of that file reports it.
        """
        if entry is None:
            return None
        with self._lock:
            if entry.file_name not in self._hashes:
                try:
                    self._hashes[entry.file_name] = np.sort(read_hashes(store, entry))
                except CorruptFile:
                    self._hashes[entry.file_name] = None
                while len(self._hashes) > thresholds.checked_buckets:
                    self._hashes.popitem(last=False)
            return self._hashes[entry.file_name]
