"""An error of a decoder becomes one that names the file, once."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fileindex.base.errors import CorruptFile
from lsm.arrow.text_form import plain_texts
from lsm.parquet.reader import ParquetDataFile, decoding
from manifest.io.errors import UnsupportedTable
from manifest.io.file_io import LocalFileIO


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (UnsupportedTable("data-1: it is encrypted"), UnsupportedTable, "data-1: it is encrypted"),
        (UnsupportedTable("it is encrypted"), UnsupportedTable, "data-1: it is encrypted"),
        (FileNotFoundError(2, "no such file"), CorruptFile, "data-1: the data file is missing"),
        (pa.ArrowInvalid("bad page"), CorruptFile, "data-1: is not a readable Parquet file (bad page)"),
        (ValueError("bad length"), CorruptFile, "data-1: is not a readable Parquet file (bad length)"),
    ],
    ids=repr,
)
def test_the_file_is_named_once(error: Exception, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as found, decoding("data-1", "Parquet"):
        raise error
    assert str(found.value) == text


@pytest.mark.parametrize("group_rows", [1, 7, 50, 300])
def test_nanoseconds_beside_texts_with_dictionaries_are_read_over_row_groups(tmp_path, group_rows) -> None:
    """The decoder ends a batch where the dictionary of a text column ends, and not in a stream without one."""
    stamps = [None if at % 7 == 0 else at * 1_000_001 for at in range(300)]
    rows = pa.table({"at": pa.array(stamps, pa.timestamp("ns")), "city": [f"city {at % 3 + at // 40}" for at in range(300)]})
    path = str(tmp_path / "data.parquet")
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True, row_group_size=group_rows)
    with ParquetDataFile(LocalFileIO(), path) as file:
        for dictionaries, size in product(((), ("city",)), (10, 1000)):
            batches = file.batches(["city", "at"], file.row_groups, nanos=["at"], dictionaries=dictionaries, batch_rows=size)
            found = pa.concat_tables([plain_texts(pa.Table.from_batches([batch])) for batch in batches])
            assert found.select(rows.column_names).to_pydict() == rows.to_pydict()
