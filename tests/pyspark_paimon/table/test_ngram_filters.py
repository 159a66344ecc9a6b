"""N-gram filters of tables: searches for parts of texts decode the blocks that may match, and answers never change."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_paimon import UnsupportedOption

ROWS = 6000
OPTIONS = {"ngram-filter.columns": "s,attrs[k]", "ngram-filter.s.block-rows": "500", "ngram-filter.attrs.block-rows": "500"}
SCHEMA = "id BIGINT, s STRING, attrs MAP<STRING, STRING>"
RARE = {17: "Checksum mismatch in Block 9", 3210: "checksum MISMATCH", 5999: "höchst selten 😀 K\u212a"}


def rows(first: int = 0, count: int = ROWS) -> pa.Table:
    texts = [
        RARE.get(at) or (None if at % 11 == 0 else f"request {at * 7919 % 100_003} of user {at % 100}")
        for at in range(first, first + count)
    ]
    attrs = pa.array([[("k", text), ("other", "x")] if text else None for text in texts], pa.map_(pa.string(), pa.string()))
    return pa.table({"id": range(first, first + count), "s": texts, "attrs": attrs})


FILTERS = [
    ("s LIKE '%mismatch%'", 1000),
    ("s LIKE '%sum%match in%9'", 500),
    ("contains(s, 'selten')", 500),
    ("endswith(s, 'MISMATCH')", 1000),
    ("startswith(s, 'Checksum')", 1000),
    ("s RLIKE '^Check.*Block [0-9]$'", 500),
    ("s RLIKE '(?i)checksum (mismatch|error)'", 1000),
    ("s RLIKE 'hö.hst|in Block'", 1000),
    ("lower(s) LIKE '%check%match%'", 1000),
    ("s ILIKE '%CHECKSUM mis%'", 1000),
    ("upper(s) LIKE '%CHECK%'", 1000),
    ("s = 'checksum MISMATCH'", 1000),
    ("s IN ('checksum MISMATCH', 'no such text')", 1000),
    ("attrs['k'] LIKE '%mismatch%'", 1000),
    ("attrs['k'] = 'checksum MISMATCH' OR s LIKE '%selten%'", 1500),
    ("s LIKE '%mismatch%' AND id < 100", 1000),
    ("NOT (s NOT LIKE '%😀%')", 500),
    ("s LIKE '%no such text%'", 0),
    ("s LIKE '%r 1%' AND s LIKE '%höchst%'", 500),
]
UNSERVED = [
    "s NOT LIKE '%mismatch%'",
    "s LIKE '%u%'",
    "reverse(s) LIKE '%hctamsim%'",
    "lower(s) LIKE '%k%k%'",
    "s LIKE '%mismatch%' OR id = 1",
]


@pytest.mark.slow
@pytest.mark.sizes
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_searches_select_blocks_and_return_what_a_plain_scan_returns(create, file_format) -> None:
    table = create(SCHEMA, primary_keys=(), options={**OPTIONS, "file.format": file_format})
    table.write(rows())
    for condition, most in [*FILTERS, *((condition, ROWS) for condition in UNSERVED)]:
        scan = table.scan(condition)
        plain = table.scan(condition, options={"file-index.read.enabled": "false"})
        found = scan.to_arrow()
        assert found.equals(plain.to_arrow()), condition
        assert scan.count() == found.num_rows
        text = str(scan.explain())
        assert "warning" not in text.lower()
        if most < ROWS:
            assert "ngram-filter" in text, condition
            assert (": ngram-filter     0        1" if most == 0 else f" {most:,} rows selected") in text, (condition, text)
        else:
            assert "selected" not in text, condition


def test_filters_follow_options_and_are_verified(create) -> None:
    table = create(SCHEMA, primary_keys=())
    table.write(rows())
    assert table.file_indexes().num_rows == 0
    table.alter_options({**OPTIONS, "file-index.bloom-filter.columns": "s"})
    assert table.rewrite_file_index().rewritten == 1
    listed = [tuple(row.values()) for row in table.file_indexes().select(["column_name", "index_type"]).to_pylist()]
    assert {("s", "ngram-filter"), ("attrs[k]", "ngram-filter"), ("s", "bloom-filter")} <= set(listed)
    assert table.rewrite_file_index().bytes_written == 0
    health = {(row["column_name"], row["index_type"]): row for row in table.index_health().to_pylist()}
    assert health["s", "ngram-filter"]["note"] == ""
    assert 0 < health["s", "ngram-filter"]["false_positive_rate"] < 0.2
    assert table.fsck("deep").problems == ()
    table.alter_options({"ngram-filter.s.size": "4"})
    assert table.rewrite_file_index().rewritten == 1
    assert table.rewrite_file_index().rewritten == 0
    table.rename_column("s", "label")
    assert (table.options["ngram-filter.columns"], table.options["ngram-filter.label.size"]) == ("label,attrs[k]", "4")
    assert table.scan("label LIKE '%mismatch%'").to_arrow()["id"].to_pylist() == [17]
    assert "ngram-filter" in str(table.scan("label LIKE '%mismatch%'").explain())
    assert table.rewrite_file_index().rewritten == 0
    assert table.drop_index("attrs[k]", "ngram-filter", dry_run=True).removal.files == 1
    table.drop_index("label")
    assert "ngram-filter.label.size" not in table.options
    assert {row["column_name"] for row in table.file_indexes().to_pylist()} == {"attrs[k]"}
    with pytest.raises(UnsupportedOption, match=r"write 'ngram-filter\.columns'"):
        table.alter_options({"file-index.ngram-filter.columns": "label"})


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_filters_of_keyed_tables_serve_merges_and_deletions(create, vectors) -> None:
    table = create(SCHEMA, options={**OPTIONS, "deletion-vectors.enabled": vectors})
    table.write(rows())
    table.write(
        pa.table(
            {"id": [17, 18], "s": ["no longer", "a mismatch of late"], "attrs": pa.array([None, None], rows().schema.field("attrs").type)}
        )
    )
    for _ in range(2):
        assert table.scan("s LIKE '%mismatch%'").to_arrow()["id"].to_pylist() == [18]
        assert table.scan("s ILIKE '%MISMATCH%'", order_by="id").to_arrow()["id"].to_pylist() == [18, 3210]
        assert table.scan("s LIKE '%longer%' OR s LIKE '%selten%'", order_by="id").to_arrow()["id"].to_pylist() == [17, 5999]
        table.compact(full=True)
    assert {row["index_type"] for row in table.file_indexes().to_pylist()} == {"ngram-filter"}
    table.delete("s LIKE '%MISMATCH%'")
    assert table.scan("lower(s) LIKE '%match%'").to_arrow()["id"].to_pylist() == [18]
    assert table.fsck("deep").problems == ()


def test_a_column_that_a_later_schema_changed_is_searched_exactly(create) -> None:
    table = create("id BIGINT, s STRING, n INT", primary_keys=(), options={"ngram-filter.columns": "s"})
    table.write(pa.table({"id": range(3000), "s": [f"text {at}" for at in range(3000)], "n": pa.array(range(3000), pa.int32())}))
    table.rename_column("s", "old").add_column("s", "STRING")
    table.write(pa.table({"id": [9000], "old": ["new"], "n": pa.array([1], pa.int32()), "s": ["text 77"]}))
    assert table.scan("s LIKE '%xt 77%'").to_arrow()["id"].to_pylist() == [9000]
    assert table.scan("old LIKE '%xt 77'").to_arrow()["id"].to_pylist() == [77]
    assert table.scan("old LIKE '%xt 77' OR s LIKE '%xt 77'").to_arrow()["id"].to_pylist() == [77, 9000]
    assert table.scan("concat(old, s) LIKE '%newtext%'").to_arrow()["id"].to_pylist() == [9000]
