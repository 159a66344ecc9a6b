"""Kinds of table: what a primary key means for options, files and reads."""

from __future__ import annotations

import pickle

import pytest

from manifest.io.errors import UnsupportedTable
from manifest.options.core_options import CoreOptions
from manifest.schema.table_kind import AppendTable, KeyValueTable, TableKind
from manifest.schema.table_schema import TableSchema
from manifest.schema.validation import build_schema


def schema(*keys: str, **options: str) -> TableSchema:
    return build_schema("id INT, n INT", primary_keys=keys, options={"bucket": "1", **({} if keys else {"bucket-key": "id"}), **options})


def keyed(**options: str) -> TableKind:
    return KeyValueTable(CoreOptions.of({name.replace("_", "-"): value for name, value in options.items()}))


def test_a_schema_has_the_kind_of_its_primary_key() -> None:
    with_key, without = schema("id"), schema()
    assert type(with_key.kind) is KeyValueTable
    assert type(without.kind) is AppendTable
    assert with_key.kind is with_key.kind
    assert with_key.kind.options is with_key.core


def test_another_schema_has_another_kind() -> None:
    before = schema("id")
    assert before.kind.target_file_size == 128 << 20
    after = before.model_copy(update={"options": {**before.options, "target-file-size": "1 mb"}})
    assert after.kind.target_file_size == 1 << 20


def test_append_tables_have_larger_files() -> None:
    assert schema().kind.target_file_size == 2 * schema("id").kind.target_file_size


@pytest.mark.parametrize(
    ("kind", "single", "prunes"),
    [
        (keyed(), False, False),
        (keyed(**{"deletion-vectors.enabled": "true"}), True, True),
        (keyed(merge_engine="first-row"), True, True),
        (AppendTable(CoreOptions.of({"deletion-vectors.enabled": "true"})), False, True),
    ],
    ids=str,
)
def test_values_prune_files_if_a_key_has_one_version(kind: TableKind, single: bool, prunes: bool) -> None:
    assert (kind.has_single_version, kind.prunes_by_value) == (single, prunes)


def test_a_sequence_field_replaces_the_order_of_commits() -> None:
    assert keyed().orders_by_sequence
    assert not keyed(**{"sequence.field": "n"}).orders_by_sequence
    assert not AppendTable(CoreOptions.of({})).orders_by_sequence


@pytest.mark.parametrize(("producer", "level"), [("none", 0), ("input", 0), ("lookup", 1), ("full-compaction", 4)])
def test_a_changelog_of_compactions_starts_at_their_level(producer: str, level: int) -> None:
    options = CoreOptions.of({"changelog-producer": producer, "num-levels": "5"})
    assert KeyValueTable(options).logged_level == level
    assert AppendTable(options).logged_level == 0
    assert KeyValueTable(options).has_lookup_readers == (level > 0)
    assert not AppendTable(options).has_lookup_readers


def test_only_versions_of_rows_need_a_known_merge_engine() -> None:
    options = CoreOptions.of({"merge-engine": "newest-row"})
    AppendTable(options).check_readable("t")
    with pytest.raises(UnsupportedTable, match=r"t: option 'merge-engine': 'newest-row'"):
        KeyValueTable(options).check_readable("t")


def test_values_derived_from_a_schema_are_its_own_and_not_sent() -> None:
    before = schema("id")
    before.derived["x"] = object()
    assert before.model_copy(update={"options": {}}).derived == {}
    sent = pickle.loads(pickle.dumps(before))
    assert sent == before
    assert sent.derived == {}
    assert "kind" not in vars(sent)
