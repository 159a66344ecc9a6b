"""Search of data files for rows that match a filter, whether or not a read shows them.

A file stores rows that newer versions replaced, that deletion vectors mark, and that are deletes.
"""

from __future__ import annotations

from collections.abc import Sequence

from fileindex.predicate.tree import Predicate
from lsm.read.data_file import DataFileRead
from lsm.read.file_filter import FileFilter
from manifest.entry.data_file import ManifestEntry
from manifest.io.threads import map_in_threads
from manifest.store import FileStore
from paimon_base.errors import FilterFailed


def files_storing(store: FileStore, entries: Sequence[ManifestEntry], predicate: Predicate, *, threads: int = 1) -> set[str]:
    """Return the names of data files that store a matching row.

    Statistics and indexes skip files. A row for which the filter fails counts as a match.
    """
    file_filter = FileFilter(store, predicate)
    file_names: set[str] = set()

    def search(entry: ManifestEntry) -> None:
        read = DataFileRead(store, entry.partition, entry.bucket, entry.file, (), file_filter)
        try:
            if any(batch.num_rows for batch in read.batches()):
                file_names.add(entry.file.file_name)
        except FilterFailed:  # a value that no read shows may break an expression
            file_names.add(entry.file.file_name)

    map_in_threads(search, list({entry.file.file_name: entry for entry in entries}.values()), threads)
    return file_names
