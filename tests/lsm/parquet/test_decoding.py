"""An error of a decoder becomes one that names the file, once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fileindex.base.errors import CorruptFile
from lsm.parquet.decoding import decoding
from manifest.io.errors import UnsupportedTable


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (UnsupportedTable("data-1: it is encrypted"), UnsupportedTable, "data-1: it is encrypted"),
        (UnsupportedTable("it is encrypted"), UnsupportedTable, "data-1: it is encrypted"),
        (FileNotFoundError(2, "no such file"), CorruptFile, "data-1: the data file is missing"),
        (pa.ArrowInvalid("bad page"), CorruptFile, "data-1: is no readable Parquet file (bad page)"),
        (ValueError("bad length"), CorruptFile, "data-1: is no readable Parquet file (bad length)"),
    ],
    ids=repr,
)
def test_the_file_is_named_once(error: Exception, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as found, decoding("data-1", "Parquet"):
        raise error
    assert str(found.value) == text
