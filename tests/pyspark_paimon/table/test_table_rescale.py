"""Another number of buckets: partitions keep theirs until they are overwritten."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_paimon import Table, UnsupportedOption, UnsupportedTable


def rows(ids: range, text: str = "x") -> pa.Table:
    return pa.table({"id": list(ids), "day": [f"d{i % 2}" for i in ids], "v": [f"{text}{i}" for i in ids]})


@pytest.fixture
def rescaled(create) -> Table:
    """Two partitions of two buckets each; the table's option says four."""
    table = create("id BIGINT, day STRING, v STRING", primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": "2"})
    for text in "ab":
        table.write(rows(range(40), text), options={"write-only": "true"})
    return table.alter_options({"bucket": "4"})


def buckets(table: Table, day: str) -> set[int]:
    return {row["bucket"] for row in table.files().to_pylist() if row["partition"] == f"day={day}"}


def test_new_rows_are_refused_until_the_partition_is_overwritten(rescaled: Table) -> None:
    with pytest.raises(UnsupportedTable, match=r"day='d1' has 2 buckets.*'bucket' is 4"):
        rescaled.write(rows(range(1, 2)))
    kept = rescaled.scan("day = 'd1'").to_arrow()
    rescaled.write(kept, mode="overwrite", partition={"day": "d1"})
    assert rescaled.write(rows(range(1, 2), "new")).rows == 1
    assert buckets(rescaled, "d1") == {0, 1, 2, 3}
    assert buckets(rescaled, "d0") == {0, 1}
    assert rescaled.scan("id = 1").to_arrow()["v"].to_pylist() == ["new1"]
    assert rescaled.scan("id = 2").to_arrow()["v"].to_pylist() == ["b2"]
    assert rescaled.scan().count() == 40


def test_old_partitions_are_compacted_in_the_buckets_they_have(rescaled: Table) -> None:
    result = rescaled.compact(full=True)
    assert (result.files_before, result.files_after) == (8, 4)
    assert rescaled.scan("id = 2").to_arrow()["v"].to_pylist() == ["b2"]
    assert {split.total_buckets for split in rescaled.scan().plan().splits} == {2}


def test_a_write_to_a_bucket_that_an_old_partition_does_not_have_is_refused_too(rescaled: Table) -> None:
    for key in range(0, 12, 2):
        with pytest.raises(UnsupportedTable, match="overwrite it"):
            rescaled.write(rows(range(key, key + 1)))
    assert rescaled.snapshots().num_rows == 2


def test_a_number_of_buckets_that_no_write_could_keep_to_is_refused(create, tmp_path) -> None:
    table = create("id BIGINT, day STRING, v STRING", options={"bucket": "2"})
    table.alter_options({"bucket": 3})
    table.write(rows(range(40)))
    with pytest.raises(UnsupportedOption, match=r"are in 3 buckets.*call rescale\(4\)"):
        table.alter_options({"bucket": "4", "target-file-size": "1 mb"})
    assert (table.options["bucket"], table.options.get("target-file-size")) == ("3", None)
    assert table.write(rows(range(2))).rows == 2
    copy = Table.create(str(tmp_path / "copy"), table.schema, table.primary_keys, options={**table.options, "bucket": "4"})
    copy.write(table.scan().to_arrow())
    assert copy.scan().count() == 40
    assert {row["bucket"] for row in copy.files().to_pylist()} == {0, 1, 2, 3}
