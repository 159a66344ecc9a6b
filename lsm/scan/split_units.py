"""Independent parts of a split.

A part is a file with all versions of its keys, or a section to merge. Splits are packed by bytes. Use this to
spread a split over several tasks, or to read some of its files differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lsm.deletion_vectors.reader import DeletionFile
from lsm.levels.sorted_runs import interval_partition, key_decoder
from lsm.scan.splits import DataSplit
from manifest.entry.data_file import DataFileMeta
from manifest.entry.row_ranges import range_groups
from manifest.schema.table_schema import TableSchema


def units(split: DataSplit, schema: TableSchema) -> Iterator[DataSplit]:
    """Split ``split`` into its smallest independent splits.

    ``raw_convertible`` ones have one file. A file that overlaps no other needs no merge, even if ``split`` as a whole does.
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
    deletion_files = tuple(vectors.get(file.file_name) for file in files)
    update = {"files": tuple(files), "raw_convertible": is_raw, "deletion_files": deletion_files if any(deletion_files) else None}
    return split.model_copy(update=update)
