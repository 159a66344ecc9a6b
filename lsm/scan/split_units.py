"""The parts of a split that can be read apart: files that hold every version of their keys, and sections to merge.

A split is packed for its bytes. Whoever has several tasks for it, or reads some of its files otherwise, cuts it here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lsm.deletion_vectors.reader import DeletionFile
from lsm.levels.sorted_runs import interval_partition, key_decoder
from lsm.scan.row_ranges import range_groups
from lsm.scan.splits import DataSplit
from manifest.entry.data_file import DataFileMeta
from manifest.schema.table_schema import TableSchema


def units(split: DataSplit, schema: TableSchema) -> Iterator[DataSplit]:
    """Splits that together have the rows of ``split``, as small as they get; ``raw_convertible`` ones are of one file.

    The rows of a file without a neighbour that overlaps its keys need no merging, though ``split`` as a whole may.
    """
    if split.branch is not None:
        yield split
        return
    vectors = dict(zip((file.file_name for file in split.files), split.deletion_files or (), strict=False))
    if split.raw_convertible:
        yield from (_unit(split, [file], vectors, is_raw=True) for file in split.files)
        return
    if not schema.is_primary_key_table:
        yield from (_unit(split, group, vectors, is_raw=False) for group in range_groups(split.files))
        return
    for section in interval_partition(split.files, key_decoder(schema.key_types)):
        if len(section) == 1:
            yield from (_unit(split, [file], vectors, is_raw=True) for file in section[0].files)
        else:
            yield _unit(split, [file for run in section for file in run.files], vectors, is_raw=False)


def _unit(split: DataSplit, files: Sequence[DataFileMeta], vectors: dict[str, DeletionFile | None], *, is_raw: bool) -> DataSplit:
    found = tuple(vectors.get(file.file_name) for file in files)
    update = {"files": tuple(files), "raw_convertible": is_raw, "deletion_files": found if any(found) else None}
    return split.model_copy(update=update)


__all__ = ["units"]
