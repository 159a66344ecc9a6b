"""Options that are said to be honoured: what they change."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_paimon import Table, UnsupportedOption


def rows(count: int, first: int = 0) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array([i / 7 for i in ids], pa.float64()), "s": [f"t{i % 50}" for i in ids]})


R = pa.struct({"a": pa.int32(), "b": pa.list_(pa.string())})


def footers(table: Table) -> list[pq.FileMetaData]:
    return [pq.read_metadata(path) for path in sorted(Path(table.path).rglob("data-*.parquet"))]


@pytest.mark.parametrize("keys", [("id",), ()], ids=["keys", "append"])
@pytest.mark.local_files
def test_bloom_filters_are_written_and_disturb_nobody(create, keys) -> None:
    options = {"parquet.bloom.filter.enabled#id": "true", "parquet.bloom.filter.fpp#id": "0.05", "write-only": "true"}
    table = create("id BIGINT, x DOUBLE, s STRING", primary_keys=keys, options=options)
    plain = create("id BIGINT, x DOUBLE, s STRING", name="plain", primary_keys=keys)
    for one in (table, plain):
        one.write(rows(3000))
    (with_filter,), (without,) = footers(table), footers(plain)
    assert with_filter.serialized_size != without.serialized_size
    (file,), (other,) = (sorted(Path(one.path).rglob("data-*.parquet")) for one in (table, plain))
    assert file.stat().st_size > other.stat().st_size + 1500
    table.compact(full=True)
    assert table.scan("id = 77").to_arrow().num_rows == 1
    assert table.scan("x > 100").count() == plain.scan("x > 100").count()
    assert not table.fsck(depth="deep").problems


@pytest.mark.local_files
@pytest.mark.sizes
def test_pages_and_dictionaries_are_as_the_options_say(create) -> None:
    options = {"parquet.page.row.count.limit": "100", "parquet.enable.dictionary#s": "false", "parquet.page.size": "4 kb"}
    table, plain = (create("id BIGINT, x DOUBLE, s STRING", name=name, options=given) for name, given in (("t", options), ("plain", {})))
    for one in (table, plain):
        one.write(rows(5000))
        assert one.scan().count() == 5000
    (told,), (default,) = footers(table), footers(plain)
    at = default.schema.names.index("s")
    assert default.row_group(0).column(at).has_dictionary_page
    assert not told.row_group(0).column(at).has_dictionary_page
    assert told.row_group(0).column(0).total_compressed_size > default.row_group(0).column(0).total_compressed_size


@pytest.mark.local_files
@pytest.mark.parametrize("of_table", [{}, {"file.compression": "zstd"}, {"file.compression": "none"}, {"file.compression": "gzip"}])
def test_a_column_has_the_codec_of_its_option(create, of_table) -> None:
    options = {"parquet.compression#s": "lz4", "parquet.compression#r": "SNAPPY", "parquet.compression#none": "lz4", **of_table}
    table = create("id BIGINT, x DOUBLE, s STRING, r STRUCT<a: INT, b: ARRAY<STRING>>", options=options)
    written = rows(3000).append_column("r", pa.array([{"a": at, "b": ["b"] * (at % 3)} for at in range(3000)], R))
    table.write(written)
    table.compact(full=True)
    (footer,) = footers(table)[-1:]
    group = footer.row_group(0)
    codecs = {group.column(at).path_in_schema: group.column(at).compression for at in range(footer.num_columns)}
    assert codecs["s"] == "LZ4"
    assert {codec for path, codec in codecs.items() if path.startswith("r.")} == {"SNAPPY"}
    assert set(codecs.values()) <= {"LZ4", "SNAPPY", "UNCOMPRESSED", of_table.get("file.compression", "zstd").upper()}
    assert table.scan().to_arrow().sort_by("id").to_pylist() == written.to_pylist()
    with pytest.raises(UnsupportedOption, match=r"parquet.compression#s.*lz4"):
        table.alter_options({"parquet.compression#s": "lzo"})


def test_options_that_mean_nothing_here_are_listed(create) -> None:
    table = create("id BIGINT, x DOUBLE, s STRING", options={"sink.parallelism": "8", "parquet.compression": "gzip"})
    effects = {row["option"]: row["effect"] for row in table.option_effects().to_pylist()}
    assert effects == {"bucket": "honoured", "sink.parallelism": "none", "parquet.compression": "none"}
    assert Table.open(table.path).options["sink.parallelism"] == "8"


@pytest.mark.local_files
def test_a_consumer_that_rests_for_too_long_is_forgotten_by_expiry(create) -> None:
    table = create("id BIGINT, x DOUBLE, s STRING", options={"write-only": "true"})
    for at in range(4):
        table.write(rows(1, at))
    table.reset_consumer("slow", 2)
    table.reset_consumer("new", 3)
    assert table.expire_snapshots(retain_min=1, retain_max=1).snapshots == 1
    day_ago = time.time() - 86_400
    os.utime(Path(table.path) / "consumer" / "consumer-slow", (day_ago, day_ago))
    table.alter_options({"consumer.expiration-time": "1 h"})
    assert table.expire_snapshots(retain_min=1, retain_max=1).snapshots == 1
    assert table.consumers()["consumer_id"].to_pylist() == ["new"]
