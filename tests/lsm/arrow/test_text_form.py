"""Forms of text columns on the way from an input in memory to a file: what is copied and encoded is what was handed in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.arrow.text_form import DICTIONARY, encode_for_gather, gather, plain_texts
from lsm.data_files.spill import SpillSpace
from lsm.keys.sort import SortKey
from lsm.merge.function import Deduplicate
from lsm.parquet.write.writer import ParquetFileWriter
from lsm.write_buffer.sort_buffer import SortBuffer
from lsm.write_buffer.source import BufferedRows, Source
from manifest.io.file_io import LocalFileIO
from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Table
from tests.odd_bytes import odd_texts

COLUMNS = {
    "few": ["Oslo", "Bergen", "é", ""] * 2500,
    "few with nulls": ["Oslo", None, "Bergen", "Bergen"] * 2500,
    "more than bytes count": [str(at % 200) for at in range(10_000)],
    "many": [f"{at}: " + "ä" * (at % 40) for at in range(10_000)],
    "many with nulls": [None if at % 7 == 0 else str(at) for at in range(10_000)],
    "only nulls": [None] * 10_000,
    "few in the sample, many elsewhere": ["x" if at % 2 == 0 else str(at) for at in range(10_000)],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_moved_texts_are_the_texts(name: str) -> None:
    column = pa.array([*COLUMNS[name], "left out"], pa.string()).slice(1, 9_999)
    rows = pa.array(np.random.default_rng(1).permutation(9_999)[:5_000])
    found = gather(encode_for_gather(column), rows)
    found.validate(full=True)
    assert found.type in {DICTIONARY, pa.string()}
    assert found.cast(pa.string()).equals(column.take(rows))


@given(st.lists(st.one_of(st.none(), odd_texts, st.text(max_size=20)), max_size=50), st.randoms(use_true_random=False))
def test_moved_texts_are_the_texts_whatever_they_are(texts: list[str | None], random) -> None:
    column = pa.array(texts, pa.string())
    rows = [random.randrange(len(texts)) for _ in range(20)] if texts else []
    assert gather(encode_for_gather(column), pa.array(rows, pa.int64())).to_pylist() == [texts[row] for row in rows]


def test_a_column_of_another_type_stays_as_it_is() -> None:
    column = pa.array([b"a", b"a", b"b"])
    assert encode_for_gather(column) is column


def ready(ids: list[int], texts: list[str]) -> Source:
    source = Source(pa.table({"id": ids, "v": texts}))
    source.encode("v")
    return source


@pytest.mark.parametrize("spills", [0, 1])
def test_inputs_with_different_forms_of_a_column_come_out_sorted(tmp_path: Path, spills: int) -> None:
    buffer = SortBuffer(SortKey(("id",)), Deduplicate(), 0)
    buffer.add(ready([5, 1, 3, 2], ["a", "b", "a", "a"]), None)
    for _ in range(spills):
        buffer.spill(SpillSpace(str(tmp_path)))
    buffer.add(ready([4, 1, 0, 7], ["q", "r", "s", "t"]), np.array([0, 1, 3]))
    buffer.add(ready([6, 8, 9], ["a", "c", "a"]), None)
    table = pa.concat_tables(map(plain_texts, buffer.drain(SpillSpace(str(tmp_path)))))
    assert table["id"].to_pylist() == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert table["v"].to_pylist() == ["r", "a", "a", "q", "a", "a", "t", "c", "a"]
    assert table["_SEQUENCE_NUMBER"].to_pylist() == [5, 3, 2, 4, 0, 7, 6, 8, 9]


def test_dictionaries_are_handed_to_the_encoder_only_where_rows_are_not_combined() -> None:
    held = BufferedRows()
    held.add(ready([1, 2, 3], ["a", "a", "a"]), None)
    assert held.in_place(held.never_null).take(np.array([2, 0])).schema.field("v").type == DICTIONARY
    assert held.in_place(()).take(np.array([2, 0])).schema.field("v").type == pa.string()


def test_a_column_with_nulls_in_any_input_is_encoded_as_texts() -> None:
    """Arrow's encoder takes all of a dictionary for used if one text is missing and there is a null."""
    held = BufferedRows()
    held.add(ready([1, 2, 3], ["a", "a", "a"]), None)
    held.add(Source(pa.table({"id": [4], "v": pa.array([None], pa.string())})), None)
    assert held.in_place(held.never_null).take(np.array([3, 2, 0]))["v"].chunks == [pa.array([None, "a", "a"])]
    assert encode_for_gather(pa.array([None, *["a"] * 9])).type == pa.string_view()


def file_of(path: Path, pieces: list[pa.Table]) -> pq.FileMetaData:
    with use_thresholds(group_rows=2500):
        writer = ParquetFileWriter(LocalFileIO(), str(path), pa.schema([("s", pa.string())]))
        for piece in pieces:
            writer.write(piece)
        return writer.close()[0]


def bounds(footer: pq.FileMetaData) -> list[tuple[str, str, int]]:
    chunks = [footer.row_group(at).column(0).statistics for at in range(footer.num_row_groups)]
    return [(chunk.min, chunk.max, chunk.null_count) for chunk in chunks]


@pytest.mark.sizes
@pytest.mark.parametrize("name", ["few", "more than bytes count", "many"])
def test_a_file_of_dictionaries_says_what_a_file_of_texts_says(tmp_path: Path, name: str) -> None:
    """Its dictionary holds more texts than a row group: bounds are of the texts that are there."""
    texts = pa.array(sorted(COLUMNS[name], key=str), pa.string())
    encoded = pa.table({"s": texts.dictionary_encode()})
    pieces = [encoded.slice(at, 1000) for at in range(0, 10_000, 1000)]
    mixed = [piece if at % 3 else plain_texts(piece) for at, piece in enumerate(pieces)]
    expected = bounds(file_of(tmp_path / "texts", [plain_texts(piece) for piece in pieces]))
    for path, written in ((tmp_path / "codes", pieces), (tmp_path / "mixed", mixed)):
        assert bounds(file_of(path, written)) == expected
        assert pq.read_table(path)["s"].combine_chunks().equals(texts)


def test_texts_that_are_expanded_still_fit_to_rows_without_dictionaries(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string())])
    texts = pa.table([[1, 2], ["Oslo", None]], schema=schema)
    coded = pa.table([[3], pa.array(["Rome"]).cast(DICTIONARY)], schema=schema.set(1, pa.field("city", DICTIONARY)))
    assert plain_texts(coded).schema == schema
    writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / "rows.parquet"), schema)
    for piece in (texts, coded, texts):
        writer.write(piece)
    writer.close()
    assert pq.read_table(tmp_path / "rows.parquet")["city"].to_pylist() == ["Oslo", None, "Rome", "Oslo", None]


def people(count: int, *, offset: int = 0, null: bool = False) -> pa.Table:
    ids = range(offset, offset + count)
    cities = [None if null and at % 5 == 0 else ("Oslo", "Bergen", "Tromsø")[at % 3] for at in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "city": pa.array(cities, pa.string()), "note": [f"note {at}" for at in ids]})


@pytest.mark.parametrize("second_has_nulls", [False, True])
@pytest.mark.parametrize("note_of_few_texts", [False, True])
def test_compaction_keeps_texts_and_exact_bounds_whatever_their_form(
    tmp_path: Path, second_has_nulls: bool, note_of_few_texts: bool
) -> None:
    """Dictionaries pass through only where no input has a null; a column may be a dictionary in one input and not in another."""
    table = Table.create(
        tmp_path / "t", "id BIGINT, city STRING, note STRING", primary_keys="id", options={"bucket": "1", "write-only": "true"}
    )
    first, second = people(3_000), people(3_000, offset=1_500, null=second_has_nulls)
    if note_of_few_texts:
        first = first.set_column(2, "note", pa.array(["z"] * 3_000))
    table.write(first)
    table.write(second)
    table.compact(full=True)
    expected = pa.concat_tables([first.slice(0, 1_500), second])
    assert table.scan().to_arrow().sort_by("id").combine_chunks().equals(expected.combine_chunks().cast(table.scan().to_arrow().schema))
    footers = [pq.read_metadata(path) for path in sorted((tmp_path / "t" / "bucket-0").iterdir(), key=lambda path: path.stat().st_mtime)]
    position = footers[-1].schema.to_arrow_schema().names.index("city")
    statistics = [footers[-1].row_group(at).column(position).statistics for at in range(footers[-1].num_row_groups)]
    nulls = sum(one.null_count for one in statistics)
    assert (min(one.min for one in statistics), max(one.max for one in statistics)) == ("Bergen", "Tromsø")
    assert nulls == (600 if second_has_nulls else 0)
    assert table.fsck().problems == ()
