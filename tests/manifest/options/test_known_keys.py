"""Every key that a table may have is honoured, or said to mean nothing here, or refused; and what is said to be honoured is used."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from fileindex.sorted_index.build_options import SortedIndexKind
from manifest.options.core_options import CoreOptions
from manifest.options.former_keys import PRESENT_KEYS
from manifest.options.known_keys import BY_CALL, BY_KEY, CORE, HONOURED, KNOWN, REFUSED, ROWS_OF_STREAMS
from manifest.options.parquet_options import PARQUET_HONOURED, PARQUET_WITHOUT_EFFECT, ParquetOptions
from manifest.options.secondary_indexes import REFUSED_PREFIXES
from manifest.options.support import check_alter, check_call, check_settable, check_writable, effect_of
from manifest.options.without_effect import WITHOUT_EFFECT
from manifest.schema.table_kind import KeyValueTable
from manifest.storage.storage_options import STORE_PREFIXES
from paimon_base.errors import PaimonError, UnsupportedOption
from tests.manifest.options.paimon_keys import FORMER_PAIRS, PAIMON_KEYS

ROOT = Path(__file__).parents[3]
CLASSES = {
    "honoured": HONOURED,
    "by call": set(BY_CALL),
    "limited or refused": set(REFUSED),
    "limited in streams": set(ROWS_OF_STREAMS),
    "former": set(PRESENT_KEYS),
    "without effect": set(WITHOUT_EFFECT),
    "parquet, honoured": PARQUET_HONOURED,
    "parquet, without effect": set(PARQUET_WITHOUT_EFFECT),
}
TABLES = {"known_keys.py", "without_effect.py", "core_options.py", "former_keys.py"}
SOURCES = {
    path: path.read_text()
    for room in ("sparkexpr", "paimon_base", "fileindex", "manifest", "lsm", "pyspark_paimon")
    for path in (ROOT / room).rglob("*.py")
}
USERS = "\n".join(text for path, text in SOURCES.items() if path.name not in TABLES)
CORE_SOURCE = (ROOT / "manifest/options/core_options.py").read_text()


def test_every_known_key_is_in_one_class() -> None:
    for (one, first), (other, second) in combinations(CLASSES.items(), 2):
        assert not first & second, (one, other)
    assert set().union(*CLASSES.values()) == KNOWN


@pytest.mark.parametrize("key", sorted(PAIMON_KEYS))
def test_every_key_of_paimon_is_known(key: str) -> None:
    assert effect_of(key, "someone")[0] != "unknown"


@pytest.mark.parametrize("key", sorted({*REFUSED, *ROWS_OF_STREAMS, *REFUSED_PREFIXES}))
def test_what_is_refused_is_documented(key: str) -> None:
    refused = (ROOT / "docs/compatibility.md").read_text().partition("## Options that are refused")[2].partition("\n## ")[0]
    assert f"`{key}" in refused


def test_former_keys_are_those_of_paimon() -> None:
    assert {former: present for present, former in FORMER_PAIRS} == PRESENT_KEYS


@pytest.mark.parametrize("value", ["true", "false", "3", "someone"])
@pytest.mark.parametrize(("present", "former"), FORMER_PAIRS)
def test_a_former_key_is_as_the_present_one(present: str, former: str, value: str) -> None:
    def told(options: dict[str, str]) -> object:
        try:
            check_settable(options)
            check_call(options)
            core = CoreOptions.of(options)
            KeyValueTable(core).check_readable("t")
            check_writable(core, "t")
        except PaimonError as error:
            return type(error), str(error).replace(former, present)
        return core.model_copy(update={"raw": {}}), core.raw[present]

    assert told({former: value}) == told({present: value})
    assert effect_of(former, value) == effect_of(present, value)
    assert told({former: "true", present: value}) == told({present: value}), "the present key wins"
    check_alter({former: value}, {present: value})
    check_alter({former: value}, {former: value, present: value})


@pytest.mark.parametrize("name", sorted(set(CoreOptions.model_fields) - {"raw"}))
def test_what_options_have_a_member_for_is_used(name: str) -> None:
    used = re.compile(rf"\.{name}\b")
    accessors = {
        match[1] for match in re.finditer(r"    def (\w+)\(self[^\n]*\n(?:(?!    def ).*\n)*", CORE_SOURCE) if used.search(match[0])
    }
    assert used.search(USERS) or any(re.search(rf"\.{accessor}\b", USERS) for accessor in accessors)


@pytest.mark.parametrize("key", sorted(BY_KEY.difference(kind.columns_option for kind in SortedIndexKind)))
def test_what_is_honoured_by_its_name_is_looked_up(key: str) -> None:
    assert re.search(rf"[\"']{re.escape(key)}[\"']", USERS)


@pytest.mark.parametrize("key", sorted(WITHOUT_EFFECT))
def test_what_is_without_effect_is_kept_and_said_and_used_nowhere(key: str) -> None:
    check_settable({key: "1"})
    assert effect_of(key, "1") == ("none", WITHOUT_EFFECT[key])
    assert f'"{key}"' not in USERS
    assert key not in CORE


def test_the_members_of_the_parquet_options_are_used() -> None:
    users = (
        "\n".join(text for path, text in SOURCES.items() if path.name != "parquet_options.py")
        + SOURCES[ROOT / "manifest/options/parquet_options.py"].partition("def bloom_filters")[2]
    )
    for name in ParquetOptions.__dataclass_fields__:
        assert re.search(rf"\.{name}\b", users), name


@pytest.mark.parametrize("key", ["sink.parallelism", "sink.anything.at-all", "scan.parallelism", "scan.infer-parallelism", "lookup.async"])
def test_keys_of_other_engines_jobs_are_kept(key: str) -> None:
    check_settable({key: "8"})
    assert effect_of(key, "8")[0] == "none"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parquet.bloom.filter.enable", "true"),
        ("parquet.bloom.filter.enabled", "yes"),
        ("parquet.bloom.filter.fpp#id", "2"),
        ("parquet.bloom.filter.expected.ndv#id", "0"),
        ("parquet.page.size", "x"),
        ("parquet.page.size#id", "1 kb"),
        ("parquet.page.row.count.limit", "-1"),
        ("parquet.writer.version", "PARQUET_2_0"),
        ("parquet.page.write-checksum.enabled", "false"),
        ("parquet.encryption.footer.key", "k"),
    ],
)
def test_what_the_encoder_cannot_do_is_refused_by_name(key: str, value: str) -> None:
    with pytest.raises(UnsupportedOption, match=re.escape(key)):
        check_settable({key: value})


def test_effects_of_options() -> None:
    assert effect_of("bucket", "4") == ("honoured", "")
    assert effect_of("write.compaction-skip", "true") == ("honoured", "")
    assert effect_of("partition.expiration-time", "1 d")[0] == "by call"
    assert effect_of("changelog.time-retained", "1 d") == ("honoured", "")
    assert effect_of("made.by", "someone")[0] == "unknown"
    assert effect_of("parquet.compression", "gzip")[0] == "none"
    assert effect_of("parquet.bloom.filter.enabled#id", "true") == ("honoured", "")
    assert effect_of("parquet.compression#id", "lz4") == ("honoured", "")
    assert effect_of("parquet.compression", "lz4")[0] == "none"
    assert effect_of("parquet.compression#id", "lzo")[0] == "none"


@pytest.mark.parametrize("prefix", [prefix for prefixes in STORE_PREFIXES.values() for prefix in prefixes] + ["storage."])
def test_an_option_of_a_store_is_no_tables_and_says_where_it_goes(prefix):
    with pytest.raises(
        UnsupportedOption, match=r"storage_options= to Table.open, Catalog or spark_session, or set it in the environment"
    ) as caught:
        check_settable({f"{prefix}Access-Key": "hush-hush"})
    assert "hush" not in str(caught.value), "it may be a secret"
    assert effect_of(f"{prefix}Access-Key", "x") == ("unknown", "is kept as it is"), "another engine's table may have it"
