"""How a table spells its paths, above all those of partitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.io.paths import FileNames, TablePaths, escape, java_float_text, local_form, parse_number, partition_text
from paimon_base.errors import UnsupportedType
from sparkexpr.values.column_type import ColumnType, Kind

STRING, DATE = ColumnType(Kind.VARCHAR), ColumnType(Kind.DATE)


def text(value, kind, *, legacy=True, **parameters):
    return partition_text(value, ColumnType(kind, **parameters), "none", legacy=legacy)


def test_unsafe_characters_are_escaped_and_others_are_not():
    raw = """a b/c=d:e%f#g'h"i*j?k\\l{m}n[o]p^q&r+s,t"""
    assert escape(raw) == "a b%2Fc%3Dd%3Ae%25f%23g%27h%22i%2Aj%3Fk%5Cl%7Bm%7Dn%5Bo%5Dp%5Eq&r+s,t"
    assert escape("\x00\x1f\x7f\n") == "%00%1F%7F%0A"
    assert escape("é北 ;<>|~@!$()") == "é北 ;<>|~@!$()"


@given(st.text())
def test_an_escaped_text_is_one_component_and_can_be_read_back(raw):
    spelled = escape(raw)
    assert "/" not in spelled
    parts = spelled.split("%")
    assert parts[0] + "".join(chr(int(part[:2], 16)) + part[2:] for part in parts[1:]) == raw


@pytest.mark.parametrize("value", [None, "", " ", "\t "])
def test_null_and_blank_share_the_default_name(value):
    assert text(value, Kind.VARCHAR) == "none"


def test_legacy_names_are_javas():
    assert text(20454, Kind.DATE) == "20454"
    assert text(3_600_000, Kind.TIME) == "3600000"
    assert text(True, Kind.BOOLEAN) == "true"
    assert text(120, Kind.DECIMAL, precision=5, scale=2) == "1.20"
    assert text(-5, Kind.DECIMAL, precision=5, scale=2) == "-0.05"
    assert text(-5, Kind.DECIMAL, precision=5) == "-5"
    assert text(1 - 10**38, Kind.DECIMAL, precision=38, scale=10) == "-9999999999999999999999999999.9999999999"
    assert text(1_767_225_600_120, Kind.TIMESTAMP, precision=3) == "2026-01-01T00:00:00.120"
    assert text(1_767_225_600_000, Kind.TIMESTAMP, precision=3) == "2026-01-01T00:00"
    assert text(1_767_225_601_000_001, Kind.TIMESTAMP, precision=6) == "2026-01-01T00:00:01.000001"
    assert text(-1, Kind.TIMESTAMP, precision=9) == "1969-12-31T23:59:59.999999999"


def test_modern_names_are_sql_casts():
    assert text(20454, Kind.DATE, legacy=False) == "2026-01-01"
    assert text(3_600_001, Kind.TIME, legacy=False, precision=3) == "01:00:00.001"
    assert text(3_600_000, Kind.TIME, legacy=False) == "01:00:00"
    assert text(1_767_225_600_120_000, Kind.TIMESTAMP, legacy=False, precision=6) == "2026-01-01 00:00:00.120000"
    assert text(b"ab", Kind.VARBINARY, legacy=False) == "ab"


def test_a_binary_column_has_no_legacy_name():
    with pytest.raises(UnsupportedType, match=r"partition\.legacy-name"):
        text(b"ab", Kind.VARBINARY)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (123456789.5, "1.234567895E8"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_floats_are_spelled_as_java_spells_them(value, shown):
    assert java_float_text(value, single=False) == shown


def test_a_float_is_as_short_as_its_precision_allows():
    assert java_float_text(0.1, single=True) == "0.1"


def test_the_layout_of_a_table():
    paths = TablePaths("/w/t", ("dt", "hh"), (STRING, ColumnType(Kind.INT)))
    assert paths.bucket_dir(("2026-01-01", 8), 0) == "/w/t/dt=2026-01-01/hh=8/bucket-0"
    assert paths.data_file(("a/b", None), 3, "data-1-0.parquet") == "/w/t/dt=a%2Fb/hh=__DEFAULT_PARTITION__/bucket-3/data-1-0.parquet"
    assert paths.data_file(("a", 1), 0, "x", "file:/else/x") == "/else/x"
    assert paths.extra_file("/else/x", "x.index") == "/else/x.index"
    assert paths.index("index-1") == "/w/t/index/index-1"
    assert (paths.schema_file(0), paths.tag("a b")) == ("/w/t/schema/schema-0", "/w/t/tag/tag-a b")
    assert paths.bucket_dir(("a", 1), -2).endswith("/bucket-postpone")


def test_options_move_data_and_index_files():
    paths = TablePaths("/t", data_directory="/data/", index_in_data_directory=True)
    assert paths.bucket_dir((), 1) == "/t/data/bucket-1"
    assert paths.index("index-1", (), 1) == "/t/data/bucket-1/index-1"


def test_a_branch_has_metadata_of_its_own_only():
    branch = TablePaths("/t").for_branch("dev")
    assert branch.snapshot_file(1) == "/t/branch/branch-dev/snapshot/snapshot-1"
    assert branch.schema_file(1) == "/t/branch/branch-dev/schema/schema-1"
    assert (branch.manifest("m"), branch.bucket_dir((), 0)) == ("/t/manifest/m", "/t/bucket-0")


def test_names_of_two_attempts_never_meet():
    names = [FileNames("data-", ".parquet", "commit") for _ in range(2)]
    made = [name.next() for name in names for _ in range(3)]
    assert len(set(made)) == 6
    assert all(name.startswith("data-commit-") and name.endswith(".parquet") for name in made)


@pytest.mark.parametrize(
    "name", ["snapshot-", "snapshot-x", "snapshot--1", "snapshot-1.tmp", ".snapshot-1.u.tmp", "schema-1", "snapshot-²"]
)
def test_other_names_have_no_number(name):
    assert parse_number(name, "snapshot-") is None


def test_external_paths_lose_their_scheme():
    assert (local_form("file:///a/b"), local_form("/a/b")) == ("/a/b", "/a/b")
