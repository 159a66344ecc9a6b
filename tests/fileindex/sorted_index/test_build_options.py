"""Build options of a column: of the table, and of the column's JSON."""

from __future__ import annotations

import pytest

from fileindex.sorted_index.build_options import SortedIndexKind, SortedIndexOptions
from paimon_base.errors import UnsupportedOption

BTREE, BITMAP = SortedIndexKind.BTREE, SortedIndexKind.BITMAP
COLUMN = "fields.a.pk-btree.index.options"


def test_defaults_are_those_of_the_engine():
    assert SortedIndexOptions.parse(BTREE, "a", {"bucket": "1"}) == SortedIndexOptions(BTREE, 65536, "none", 1)
    assert SortedIndexOptions.parse(BITMAP, "a", {}) == SortedIndexOptions(BITMAP, 16384, "none", 1)
    assert (BTREE.columns_option, BITMAP.columns_option) == ("pk-btree.index.columns", "pk-bitmap.index.columns")


def test_options_of_the_table_and_of_the_column_are_joined():
    raw = {
        "btree-index.compression": "ZSTD",
        "btree-index.cache-size": "1 gb",
        "bitmap-index.compression": "lz4",
        COLUMN: '{"block-size": "1 kb", "btree-index.compression-level": 3, "btree-index.compression": "ZSTD"}',
        "fields.b.pk-btree.index.options": "not read",
    }
    assert SortedIndexOptions.parse(BTREE, "a", raw) == SortedIndexOptions(BTREE, 1024, "zstd", 3)
    assert SortedIndexOptions.parse(BITMAP, "a", raw) == SortedIndexOptions(BITMAP, 16384, "lz4", 1)


def test_options_that_ask_for_what_is_written_anyway_are_allowed():
    raw = {"btree-index.bloom-filter.enabled": "false", "btree-index.file-version": "1", COLUMN: '{"sorted-index.records-per-range": "10"}'}
    assert SortedIndexOptions.parse(BTREE, "a", raw) == SortedIndexOptions(BTREE, 65536)


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("btree-index.compression", "lzo", "'lzo'"),
        ("btree-index.compression-level", "x", "number"),
        ("btree-index.compression-level", "23", "level"),
        ("btree-index.block-size", "0", "size"),
        ("btree-index.block-size", "3 gb", "size"),
        ("btree-index.block-size", "big", "memory size"),
        ("btree-index.bloom-filter.enabled", "true", "Bloom"),
        ("btree-index.file-version", "2", "version 1"),
        ("btree-index.dictionary-block-size", "1 kb", "not an option"),
        (COLUMN, "{", "JSON"),
        (COLUMN, "[]", "JSON object"),
        (COLUMN, '{" ": "1"}', "JSON object"),
        (COLUMN, '{"block-size": null}', "JSON object"),
        (COLUMN, '{"compression": "lzo"}', "'lzo'"),
        (COLUMN, '{"bloom-filter.enabled": "true"}', "Bloom"),
        (COLUMN, '{"file-version": "2"}', "version 1"),
        (COLUMN, '{"fields.a.x": "2"}', "not an option"),
    ],
)
def test_other_options_are_refused_by_name(key, text, reason):
    with pytest.raises(UnsupportedOption, match=reason) as error:
        SortedIndexOptions.parse(BTREE, "a", {key: text})
    assert error.value.option == key


def test_one_key_with_two_values_is_refused():
    with pytest.raises(UnsupportedOption, match="set it once") as error:
        SortedIndexOptions.parse(BTREE, "a", {"btree-index.block-size": "1 kb", COLUMN: '{"block-size": "2 kb"}'})
    assert error.value.option == COLUMN
