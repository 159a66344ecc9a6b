"""The head that footers share: whatever was decoded before, a footer is what its own bytes say, and so are the columns that it must have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.parquet.expected_footer import ExpectedFooter, FooterMismatch
from lsm.parquet.footer import CachedFooter
from lsm.parquet.footer_structure import decode_footer
from lsm.parquet.thrift import I32, decode_struct
from lsm.parquet.write.writer import ParquetFileWriter
from manifest.io.file_io import LocalFileIO
from manifest.schema.validation import build_schema
from manifest.store import FileStore
from pyspark_paimon import Table
from tests.damage import footer_span

TYPES = [pa.int64(), pa.int32(), pa.string(), pa.list_(pa.int64()), pa.struct([("a", pa.int64()), ("b", pa.string())])]


def footer_of(folder: Path, types: list[pa.DataType], rows: int) -> bytes:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    schema = pa.schema([(f"c{at}", kind) for at, kind in enumerate(types)])
    writer = ParquetFileWriter(LocalFileIO(), str(path), schema)
    if rows:
        writer.write(pa.Table.from_arrays([pa.nulls(rows, kind) for kind in types], schema=schema))
    writer.close()
    content = path.read_bytes()
    start, end = footer_span(content)
    return content[start : end - 8]


@given(st.lists(st.tuples(st.lists(st.sampled_from(TYPES), min_size=1, max_size=20), st.integers(0, 3)), min_size=1, max_size=4))
def test_a_footer_is_what_its_bytes_say_whatever_was_decoded_before(tmp_path_factory, files) -> None:
    folder = tmp_path_factory.mktemp("files")
    footers = [footer_of(folder, types, rows) for types, rows in files]
    for encoded in footers * 2:
        footer, head = decode_footer(encoded)
        assert (footer, len(encoded)) == decode_struct(encoded)
        assert head.fields == {number: footer[number] for number in (1, 2)}
        assert encoded.startswith(head.encoded)


def test_a_footer_that_is_spelled_in_another_way_is_read_by_itself(tmp_path: Path) -> None:
    encoded = footer_of(tmp_path, [pa.int64()], 1)
    assert encoded[0] == 0x10 | I32
    spelled = bytes([I32, 2]) + encoded[1:]  # the number of the first field in full
    for one in (spelled, encoded, spelled):
        assert decode_footer(one)[0] == decode_struct(encoded)[0]


def test_bytes_after_a_known_head_are_not_taken_for_more_than_they_are(tmp_path: Path) -> None:
    encoded = footer_of(tmp_path, [pa.int64()], 1)
    _, head = decode_footer(encoded)
    assert head is decode_footer(encoded)[1]
    for broken in (head.encoded, encoded[:-1], encoded + b"\0", head.encoded + bytes([I32, 2, 2, 0])):
        with pytest.raises(ValueError, match=r"ends early|are used|twice|exceed"):
            decode_footer(broken)


def test_columns_that_fit_one_schema_are_not_taken_for_those_of_another(tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 2], "v": [3, 4]})
    table = Table.create(f"{tmp_path}/a.db/t", rows.schema, options={"bucket": "-1"})
    table.write(rows)
    store = FileStore.open(f"{tmp_path}/a.db/t")
    (file,) = store.live_entries(store.snapshots.latest()).files()
    (path,) = tmp_path.rglob("*.parquet")
    start, end = footer_span(path.read_bytes())
    footer, head = decode_footer(path.read_bytes()[start : end - 8])
    expected = ExpectedFooter(file, store.schema)
    for _ in range(2):
        expected.check(footer, head, file.file_size)
    for columns, told in (("k BIGINT, v STRING", "'v' is stored as another type"), ("k BIGINT, v BIGINT, w INT", "no column 'w'")):
        with pytest.raises(FooterMismatch, match=told):
            replace(expected, schema=build_schema(columns)).check(footer, head, file.file_size)
    expected.check(footer, head, file.file_size)


def test_a_footer_is_read_only_if_it_is_what_the_metadata_says(tmp_path: Path) -> None:
    table = Table.create(f"{tmp_path}/a.db/t", "k BIGINT", options={"bucket": "-1"})
    table.write(pa.table({"k": [1, 2]}))
    store = FileStore.open(f"{tmp_path}/a.db/t")
    (file,) = store.live_entries(store.snapshots.latest()).files()
    (path,) = tmp_path.rglob("*.parquet")
    content = path.read_bytes()

    def read(expected: ExpectedFooter | None) -> CachedFooter:
        return CachedFooter.read(lambda start, length: content[start : start + length], len(content), expected)

    expected = ExpectedFooter(file, store.schema)
    assert read(expected).metadata.num_rows == 2
    assert read(expected).kept == {expected.key}
    assert read(None).kept == set()
    for other in (
        replace(expected, file=file.model_copy(update={"row_count": 3})),
        replace(expected, schema=build_schema("k BIGINT, w INT")),
    ):
        with pytest.raises(FooterMismatch):
            read(other)
