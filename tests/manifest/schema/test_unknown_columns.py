"""Every option and key that names a column says which column is nearest to an unknown name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.io.errors import InvalidSchema
from manifest.schema.validation import build_schema
from paimon_base.errors import UnsupportedOption

COLUMNS = "id INT, city STRING, photo BYTES, changed TIMESTAMP(3), amount BIGINT, kind STRING"
KEYED = {"primary_keys": ["id"]}

OPTIONS: dict[str, tuple[str, dict[str, str]]] = {
    # the column that the option may name, other options that it needs
    "blob-field": ("photo", {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}),
    "bucket-key": ("amount", {"bucket": "2"}),
    "clustering.columns": ("city", {"clustering.incremental": "true", "bucket": "-1"}),
    "fields.{}.stats-mode": ("city", {}),
}
KEYED_OPTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "changelog-producer.row-deduplicate-ignore-fields": (
        "changed",
        {"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true", "bucket": "1"},
    ),
    "fields.{}.aggregate-function": ("amount", {"merge-engine": "aggregation", "bucket": "1"}),
    "fields.{}.sequence-group": ("changed", {"merge-engine": "partial-update", "bucket": "1"}),
    "record-level.time-field": ("changed", {"record-level.expire-time": "1 d", "bucket": "1"}),
    "rowkind.field": ("kind", {"bucket": "1"}),
    "sequence.field": ("changed", {"bucket": "1"}),
}
CASES = [(key, *case, {}) for key, case in OPTIONS.items()] + [(key, *case, KEYED) for key, case in KEYED_OPTIONS.items()]


def _misspelt(name: str, position: int) -> str:
    """Return the name with one letter twice."""
    position %= len(name)
    return name[:position] + name[position] + name[position:]


@given(st.sampled_from(CASES), st.integers(0, 9))
def test_an_option_with_a_misspelt_column_shows_the_nearest_one(
    case: tuple[str, str, dict[str, str], dict[str, list[str]]], position: int
) -> None:
    key, column, others, keys = case
    name = _misspelt(column, position)
    option, text = (key.format(name), "city") if "{}" in key else (key, name)
    if option.endswith("stats-mode"):
        text = "full"
    elif option.endswith("aggregate-function"):
        text = "sum"
    with pytest.raises(UnsupportedOption) as raised:
        build_schema(COLUMNS, **keys, options={**others, option: text})
    assert f"'{name}' is not a column, did you mean '{column}'; columns are: id, city" in str(raised.value), str(raised.value)


@pytest.mark.parametrize("keys", ["primary_keys", "partition_keys"])
def test_a_misspelt_key_column_shows_the_nearest_one(keys: str) -> None:
    with pytest.raises(InvalidSchema, match="'citty' is not a column, did you mean 'city'; columns are: id, city"):
        build_schema(COLUMNS, **{keys: ["citty"]})
