"""The ``file-index.*`` options: what they declare, what they inherit, and what is refused by name."""

from __future__ import annotations

import pytest

from fileindex.build.options import FileIndexOptions
from fileindex.predicate.tree import ColumnRef
from paimon_base.errors import UnsupportedOption
from paimon_base.memory_size import parse_memory_size
from sparkexpr.values.column_type import ColumnType, Kind

TEXT = ColumnType(Kind.VARCHAR)
TYPES = {
    "a": ColumnType(Kind.INT),
    "b": ColumnType(Kind.BIGINT),
    "f0": ColumnType(Kind.INT),
    "f3": TEXT,
    "dec": ColumnType(Kind.DECIMAL, precision=10, scale=2),
    "wide": ColumnType(Kind.DECIMAL, precision=20),
    "nanos": ColumnType(Kind.TIMESTAMP, precision=9),
    "bin": ColumnType(Kind.VARBINARY),
    "list": ColumnType(Kind.ARRAY),
    "m": ColumnType(Kind.MAP, key=TEXT, value=ColumnType(Kind.INT)),
    "mi": ColumnType(Kind.MAP, key=ColumnType(Kind.INT), value=ColumnType(Kind.INT)),
}


def parse(raw, strict=True):
    return FileIndexOptions.parse(raw, TYPES, strict=strict)


def columns(options):
    return [str(spec.column) for spec in options.specs]


def test_nothing_is_indexed_by_default():
    options = parse({"bucket": "4", "fields.a.x": "y"})
    assert (options.specs, options.in_manifest_threshold, options.read_enabled) == ((), 500, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a,b", ["a", "b"]), ("a,", ["a"]), ("a,,", ["a"]), (" a , b ", ["a", "b"]), (",", []), ("m[k],m[j]", ["m[k]", "m[j]"])],
)
def test_columns_are_split_at_commas(text, expected):
    assert columns(parse({"file-index.bitmap.columns": text})) == expected


@pytest.mark.parametrize(("rows", "is_taken"), [("0", True), ("1", False), ("99", False), ("100", True)])
def test_a_block_has_a_hundred_rows_at_least(rows, is_taken):
    raw = {"file-index.bloom-filter.columns": "a", "file-index.bloom-filter.a.block-rows": rows}
    if is_taken:
        assert parse(raw).specs[0].block_rows == int(rows)
    else:
        with pytest.raises(UnsupportedOption, match="too few for a block"):
            parse(raw)


@pytest.mark.parametrize("text", ["", ",a", "a,,b", "a, "])
def test_a_blank_column_is_refused(text):
    with pytest.raises(UnsupportedOption, match="empty column name") as caught:
        parse({"file-index.bitmap.columns": text})
    assert caught.value.option == "file-index.bitmap.columns"


def test_a_map_key_is_everything_between_the_first_bracket_and_the_last():
    options = parse({"file-index.bitmap.columns": "m[a[b]],m[x.y]"})
    assert [spec.column for spec in options.specs] == [ColumnRef("m", "a[b]"), ColumnRef("m", "x.y")]


def test_entries_inherit_the_options_of_their_map_column():
    options = parse({"file-index.bitmap.columns": "m[k],m[j]", "file-index.bitmap.m.version": "1", "file-index.bitmap.m[j].version": "2"})
    assert {str(spec.column): spec.options for spec in options.specs} == {"m[k]": {"version": "1"}, "m[j]": {"version": "2"}}


def test_a_column_can_have_several_indexes():
    options = parse({"file-index.bitmap.columns": "a", "file-index.bloom-filter.columns": "a", "file-index.bloom-filter.a.items": "150"})
    assert [(spec.index_type, spec.options) for spec in options.specs] == [("bitmap", {}), ("bloom-filter", {"items": "150"})]


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("file-index.columns", "a", "has no index type"),
        ("file-index.full-text.columns", "a", "'full-text' is unknown"),
        ("file-index.bitmap.columns", "nope", "unknown column 'nope'"),
        ("file-index.bitmap.columns", "f3[k]", "is not a MAP"),
        ("file-index.bitmap.columns", "mi[k]", "keys of type INT"),
        ("file-index.bitmap.columns", "m", "type MAP is not supported by 'bitmap' index"),
        ("file-index.bitmap.columns", "list", "type ARRAY is not supported by 'bitmap' index"),
        ("file-index.bloom-filter.columns", "list", "type ARRAY is not supported by 'bloom-filter' index"),
        ("file-index.bitmap.columns", "bin", "type VARBINARY is not supported"),
        ("file-index.bloom-filter.columns", "dec", r"type DECIMAL\(10\) is not supported"),
        ("file-index.bsi.columns", "f3", "type VARCHAR is not supported by 'bsi' index"),
        ("file-index.range-bitmap.columns", "wide", r"type DECIMAL\(20\) is not supported"),
        ("file-index.range-bitmap.columns", "nanos", r"type TIMESTAMP\(9\) is not supported"),
        ("file-index.bloom-filter.vin.items", "10", "column 'vin' is not declared in 'file-index.bloom-filter.columns'"),
        ("file-index.x.y.z", "1", "not declared"),
        ("file-index.a.b", "1", "is not a file index option"),
        ("file-index.in-manifest-threshold", "lots", "not a memory size"),
        ("file-index.read.enabled", "maybe", "neither true nor false"),
    ],
)
def test_what_cannot_be_built_is_refused_by_name(key, text, reason):
    with pytest.raises(UnsupportedOption, match=reason) as caught:
        parse({key: text})
    assert caught.value.option == key


@pytest.mark.parametrize(
    ("option", "text", "reason"),
    [
        ("bitmap.a.version", "3", "unknown"),
        ("bitmap.a.index-block-size", "big", "not a memory size"),
        ("bitmap.a.items", "3", "has no option 'items'"),
        ("bsi.a.version", "1", "has no option 'version'; it has: none"),
        ("range-bitmap.a.chunk-size", "x", "not a memory size"),
        ("bloom-filter.a.items", "-1", "is outside"),
        ("bloom-filter.a.items", "ten", "not an integer"),
        ("bloom-filter.a.fpp", "0", "not a false positive rate"),
        ("bloom-filter.a.fpp", "often", "not a number"),
        ("bloom-filter.a.fpp", "nan", "not a false positive rate"),
    ],
)
def test_a_bad_index_option_is_refused_by_name(option, text, reason):
    with pytest.raises(UnsupportedOption, match=reason) as caught:
        parse({**dict.fromkeys((f"file-index.{name}.columns" for name in SUPPORT), "a"), f"file-index.{option}": text})
    assert caught.value.option == f"file-index.{option}"


@pytest.mark.parametrize("given", ["m", "m[k]"])
def test_a_bad_option_of_a_map_entry_is_named_as_it_was_given(given):
    with pytest.raises(UnsupportedOption) as caught:
        parse({"file-index.bitmap.columns": "m[k]", f"file-index.bitmap.{given}.version": "7"})
    assert caught.value.option == f"file-index.bitmap.{given}.version"


def test_a_table_with_a_bad_threshold_is_still_read():
    options = parse({"file-index.in-manifest-threshold": "lots", "file-index.bitmap.columns": "a"}, strict=False)
    assert (options.in_manifest_threshold, columns(options)) == (500, ["a"])
    assert "in-manifest-threshold" in options.ignored[0]


SUPPORT = {
    "bloom-filter": "CHAR VARCHAR BINARY VARBINARY TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DATE TIME TIMESTAMP TIMESTAMP_LTZ",
    "bitmap": "CHAR VARCHAR BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DATE TIME TIMESTAMP TIMESTAMP_LTZ",
    "bsi": "TINYINT SMALLINT INT BIGINT DATE TIME TIMESTAMP TIMESTAMP_LTZ DECIMAL",
    "range-bitmap": "CHAR VARCHAR BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DATE TIME TIMESTAMP TIMESTAMP_LTZ DECIMAL",
}
PRECISIONS = {Kind.DECIMAL: (1, 18, 19, 38), Kind.TIMESTAMP: (0, 3, 6, 7, 9), Kind.TIMESTAMP_LTZ: (0, 3, 6, 7, 9)}


@pytest.mark.parametrize("index_type", SUPPORT)
@pytest.mark.parametrize("kind", Kind)
def test_each_index_takes_the_types_that_it_has_in_paimon(index_type, kind):
    for precision in PRECISIONS.get(kind, (0,)):
        column_type = ColumnType(kind, precision=precision, key=ColumnType(Kind.VARCHAR), value=ColumnType(Kind.MAP))
        most = 18 if kind is Kind.DECIMAL else 6
        supported = kind in SUPPORT[index_type].split() and not (index_type == "range-bitmap" and precision > most)
        key = f"file-index.{index_type}.columns"
        for column, types in (
            ("x", {"x": column_type}),
            ("x[k]", {"x": ColumnType(Kind.MAP, key=ColumnType(Kind.CHAR), value=column_type)}),
        ):
            if supported:
                assert len(FileIndexOptions.parse({key: column}, types).specs) == 1
                continue
            with pytest.raises(UnsupportedOption, match=f"type {kind}.* is not supported by '{index_type}' index") as caught:
                FileIndexOptions.parse({key: column}, types)
            assert caught.value.option == key


def test_a_filter_of_more_than_2_31_bits_is_refused():
    raw = {
        "file-index.bloom-filter.columns": "a",
        "file-index.bloom-filter.a.items": "2000000000",
        "file-index.bloom-filter.a.fpp": "0.0001",
    }
    with pytest.raises(UnsupportedOption, match="exceeds"):
        parse(raw)


def test_an_existing_table_keeps_what_can_be_built_and_says_what_cannot():
    raw = {"file-index.full-text.columns": "f3", "file-index.bitmap.columns": "a,gone", "file-index.bitmap.m[x.y].version": "1"}
    options = parse(raw, strict=False)
    assert columns(options) == ["a"]
    assert len(options.ignored) == 3
    assert any("full-text" in line for line in options.ignored)


@pytest.mark.parametrize("index_type", SUPPORT)
def test_every_type_takes_integers_and_entries_of_integers(index_type):
    assert columns(parse({f"file-index.{index_type}.columns": "f0,m[k]"})) == ["f0", "m[k]"]


def test_threshold_and_switch():
    options = parse({"file-index.in-manifest-threshold": "1 mb", "file-index.read.enabled": "False"})
    assert (options.in_manifest_threshold, options.read_enabled) == (1 << 20, False)


@pytest.mark.parametrize(
    ("text", "size"),
    [("16kb", 16384), ("16KB", 16384), ("16 kb", 16384), ("16384", 16384), ("500 B", 500), ("1 Mebibytes", 1 << 20), ("2g", 2 << 30)],
)
def test_memory_sizes(text, size):
    assert parse_memory_size(text, "x") == size


@pytest.mark.parametrize("text", ["", "kb", "-1", "1.5kb", "1 parsec", "9" * 19 + "g"])
def test_what_is_no_memory_size_is_refused(text):
    with pytest.raises(UnsupportedOption, match="option 'x'"):
        parse_memory_size(text, "x")
