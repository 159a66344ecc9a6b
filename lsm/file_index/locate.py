"""Location of a data file's indexes.

They are in the manifest entry, or in a side file.
"""

from __future__ import annotations

from dataclasses import dataclass

from fileindex.format.container import ContainerReader
from manifest.entry.data_file import ManifestEntry
from manifest.store import FileStore


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """Index container of a data file.

    ``path`` is the side file, None if embedded.
    """

    path: str | None
    container: ContainerReader


def index_place(store: FileStore, entry: ManifestEntry) -> IndexPlace | None:
    """Return the index container of an entry, or None.

    An embedded container takes precedence over a side file.

    Raises:
        OSError: The side file is missing.
    """
    file = entry.file
    data_path = store.physical_files(entry.partition, entry.bucket, file)[0]
    if file.embedded_index is not None:
        return IndexPlace(None, ContainerReader.of(file.embedded_index))
    if file.index_file is None:
        return None
    path = store.paths.extra_file(data_path, file.index_file)
    ranges = store.file_io.open_ranges(path, store.cache.files)
    container = ContainerReader(ranges.read, ranges.size(), file.index_file)
    return IndexPlace(path, container)
