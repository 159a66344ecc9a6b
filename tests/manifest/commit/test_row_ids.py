"""Row ids of a commit's files: new files get the next ones, others keep theirs."""

import pytest

from manifest.commit.attempt import with_row_ids
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileKind, FileSource, ManifestEntry

SNAPSHOT = 7


def with_ids(*files, first=100, kind=FileKind.ADD):
    """First ids and numbers of the files after a commit, and the next id."""
    made = [
        ManifestEntry(
            kind=kind,
            partition=bytes(12),
            bucket=0,
            total_buckets=-1,
            file=DataFileMeta(**{"file_name": f"data-{number}-0.parquet", "file_size": 1, "creation_time": 0, **file}),
        )
        for number, file in enumerate(files)
    ]
    entries, following = with_row_ids(EntryColumns.of(made), first, SNAPSHOT)
    return [(e.file.first_row_id, e.file.min_sequence_number, e.file.max_sequence_number) for e in entries.entries()], following


def new(rows, **fields):
    return {"row_count": rows, "file_source": FileSource.APPEND, **fields}


def numbered(first):
    return (first, SNAPSHOT, SNAPSHOT)


def test_new_files_follow_each_other():
    assert with_ids(new(3), new(4)) == ([numbered(100), numbered(103)], 107)


@pytest.mark.parametrize("column", ["a", "b"])
def test_columns_of_rows_that_have_ids_get_the_snapshots_number_alone(column):
    assert with_ids(new(3, first_row_id=20, write_cols=(column,)), new(2)) == ([numbered(20), numbered(100)], 102)


def test_copies_keep_ids_and_numbers():
    copy = new(3, first_row_id=20, min_sequence_number=4, max_sequence_number=5)
    assert with_ids(copy, new(2)) == ([(20, 4, 5), numbered(100)], 102)


def test_a_copy_with_ids_of_this_commit_pushes_new_files_behind_it():
    copy = new(3, first_row_id=100, min_sequence_number=4, max_sequence_number=5)
    assert with_ids(copy, new(2)) == ([(100, 4, 5), numbered(103)], 105)


def test_new_files_without_ids_that_have_numbers_get_ids():
    assert with_ids(new(3, min_sequence_number=4, max_sequence_number=5)) == ([numbered(100)], 103)


def test_compacted_files_stay_as_they_are():
    compacted = {"row_count": 3, "file_source": FileSource.COMPACT}
    assert with_ids(compacted, {**compacted, "first_row_id": 8}, new(1)) == ([(None, 0, 0), (8, 0, 0), numbered(100)], 101)


def test_deleted_files_stay_as_they_are():
    assert with_ids(new(3), kind=FileKind.DELETE) == ([(None, 0, 0)], 100)


def test_blobs_have_the_rows_of_the_file_before_them():
    def blob(name, rows):
        return new(rows, file_name=f"data-{name}{rows}-0.blob", write_cols=(name,))

    files = [new(5), blob("a", 2), blob("a", 3), blob("b", 5), new(2), blob("a", 2), blob("b", 2)]
    assert with_ids(*files) == ([numbered(first) for first in (100, 100, 102, 100, 105, 105, 105)], 107)
