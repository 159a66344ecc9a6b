"""The first row group decides the Arrow types of a file: later ones take them, whatever form their texts come in."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.data_files.writer import file_encoder
from lsm.parquet.write.writer import ParquetFileWriter, fit_to_schema
from lsm.schema.parquet_schema import file_schema
from manifest.io.errors import EncodeFailed
from manifest.io.file_io import LocalFileIO
from manifest.schema.validation import build_schema
from manifest.store import FileStore
from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Table
from tests.examples import some
from tests.lsm.small_tables import create

GROUP = 8
DDL = "s STRING, t STRING, n BIGINT, l ARRAY<STRING>, r ROW<a STRING, b INT>, m MAP<STRING, BIGINT>"
SCHEMA = file_schema(build_schema(DDL).fields)
FORMS = {
    "plain": lambda texts: texts,
    "dictionary": lambda texts: texts.dictionary_encode(),
    "narrow codes": lambda texts: texts.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    "large": lambda texts: texts.cast(pa.large_string()),
    "view": lambda texts: texts.cast(pa.string_view()),
    "large dictionary": lambda texts: texts.cast(pa.large_string()).dictionary_encode(),
}
VALUES = {
    "few": lambda at: f"few {at % 2}",
    "many": lambda at: f"many {at}",
    "nulls": lambda _: None,
    "some nulls": lambda at: None if at % 3 == 0 else f"known {at % 4}",
    "empty": lambda _: "",
}


def group(number: int, kind: str, form: str) -> pa.Table:
    """The rows of one row group."""
    texts = [VALUES[kind](at) for at in range(number * GROUP, (number + 1) * GROUP)]
    column = pa.array(texts, pa.string())
    nested = {
        "l": [None if text is None else [text, None] for text in texts],
        "r": [None if text is None else {"a": text, "b": at} for at, text in enumerate(texts)],
        "m": [None if text is None else [(text, at)] for at, text in enumerate(texts)],
    }
    arrays = {name: pa.array(values, SCHEMA.field(name).type) for name, values in nested.items()}
    return pa.table({"s": FORMS[form](column), "t": column, "n": pa.array(range(GROUP), pa.int64()), **arrays})


def plain(rows: pa.Table) -> list[dict]:
    return rows.cast(SCHEMA).to_pylist()


def encoder(tmp_path: Path, kind: str, name: str):
    store = FileStore.open(create(tmp_path / f"table-{name}", DDL, file__format=kind, bucket="-1"))
    return file_encoder(
        LocalFileIO(),
        str(tmp_path / name),
        store.options,
        tuple(store.schema.fields),
        SCHEMA,
        level=0,
        target=1 << 20,
        plain=frozenset(),
        table=store.root,
    )


@pytest.mark.parametrize("forms", list(itertools.product(FORMS, repeat=2)), ids="-".join)
@pytest.mark.sampled(3)
def test_later_row_groups_take_the_form_of_the_first(tmp_path, set_thresholds, forms):
    set_thresholds(group_rows=GROUP)
    writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / "f"), SCHEMA)
    groups = [group(at, "few", form) for at, form in enumerate(forms)]
    for rows in groups:
        writer.write(rows)
    footer, _ = writer.close()
    assert footer.num_row_groups == len(groups)
    assert pq.read_table(tmp_path / "f").to_pylist() == [row for rows in groups for row in plain(rows)]


@settings(max_examples=some(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(VALUES)), st.sampled_from(sorted(FORMS))), min_size=1, max_size=6), st.integers(1, 3))
def test_any_sequence_of_row_groups_is_written_and_bounded(tmp_path_factory, kinds, groups_a_write):
    path = tmp_path_factory.mktemp("forms") / "f"
    groups = [group(at, kind, form) for at, (kind, form) in enumerate(kinds)]
    with use_thresholds(group_rows=GROUP * groups_a_write, fewest_rows=1, trial_rows=4, sample_rows=4):
        writer = ParquetFileWriter(LocalFileIO(), str(path), SCHEMA)
        for rows in groups:
            writer.write(rows)
        footer, _ = writer.close()
    expected = [row for rows in groups for row in plain(rows)]
    assert pq.read_table(path).to_pylist() == expected
    for at in range(footer.num_row_groups):
        rows = expected[at * GROUP * groups_a_write :][: footer.row_group(at).num_rows]
        for column, name in enumerate(("s", "t")):
            known = [row[name] for row in rows if row[name] is not None]
            statistics = footer.row_group(at).column(column).statistics
            assert statistics.null_count == len(rows) - len(known)
            if known:
                assert statistics.min <= min(known) <= max(known) <= statistics.max


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"bucket": "1"}, {"bucket": "-1"}, {"bucket": "1", "merge-engine": "partial-update"}], ids=str)
@pytest.mark.parametrize("order", list(itertools.permutations(["few", "many", "some nulls"])), ids="-".join)
@pytest.mark.sampled(3)
def test_a_table_takes_writes_whose_texts_change_from_few_to_many(tmp_path, set_thresholds, options, order):
    """100 rows cross every threshold of the write and of its compaction."""
    set_thresholds(group_rows=10, fewest_rows=4, trial_rows=4, sample_rows=4, kept_rows=20)
    set_thresholds(text_rows=10, text_sample_distinct=4, text_sample_rows=16, text_dictionary=8)
    set_thresholds(plain_text_rows=10)
    set_thresholds(batch_rows=10)
    table = Table.create(tmp_path / "t", "id BIGINT, s STRING, r ROW<a STRING>", primary_keys=["id"], options=options)
    expected: dict[int, str | None] = {}
    for number, kind in enumerate((*order, *order)):
        first = number * 100 if number < len(order) else number * 25  # first ranges of their own, then some that overlap
        ids = range(first, first + 100)
        texts = [VALUES[kind](at) for at in ids]
        table.write(pa.table({"id": pa.array(ids, pa.int64()), "s": texts, "r": [{"a": text} for text in texts]}, table.schema))
        merged = {at: text for at, text in zip(ids, texts, strict=True) if text is not None or options.get("merge-engine") is None}
        expected |= dict.fromkeys(set(ids) - expected.keys()) | merged
        table.write(pa.table({"id": [10_000 + number], "s": ["single"], "r": [{"a": None}]}, table.schema))
        expected[10_000 + number] = "single"
        assert {row["id"]: row["s"] for row in table.scan(columns=["id", "s"]).to_arrow().to_pylist()} == expected
    table.compact(full=True)
    assert {row["id"]: row["s"] for row in table.scan(columns=["id", "s"]).to_arrow().to_pylist()} == expected
    assert table.fsck("deep").problems == ()


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_what_an_encoder_cannot_take_is_typed_and_names_file_and_column(tmp_path, kind):
    writer = encoder(tmp_path, kind, "f")
    rows = group(0, "few", "plain").set_column(2, "n", pa.array(["no number"] * GROUP))
    with pytest.raises(EncodeFailed, match=r"/f: column 'n' cannot be encoded") as error:
        writer.write(rows)
    assert (error.value.path, error.value.column) == (str(tmp_path / "f"), "n")
    writer.abort()
    assert not (tmp_path / "f").exists()


def test_the_column_is_found_where_the_encoder_itself_refuses(tmp_path):
    """Arrow writes dictionaries of texts, but none of structs."""
    schema = pa.schema([("a", pa.int64()), ("d", pa.dictionary(pa.int32(), pa.struct([("x", pa.int64())])))])
    writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / "f"), schema)
    values = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array([{"x": 1}]))
    writer.write(pa.table([pa.array([1, 2]), values], schema=schema))
    with pytest.raises(EncodeFailed, match="column 'd' cannot be encoded"):
        writer.close()
    writer.abort()
    assert list(tmp_path.iterdir()) == []


def test_rows_that_fit_are_not_copied(tmp_path):
    rows = group(0, "few", "plain").cast(SCHEMA)
    assert fit_to_schema(rows, SCHEMA, "f") is rows
