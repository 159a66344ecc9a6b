"""Keys of merge options, and checks without columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fileindex.base.errors import UnsupportedOption
from manifest.options.aggregate_functions import FUNCTIONS

DEFAULT_FUNCTION = "fields.default-aggregate-function"
GROUP_REMOVE = "partial-update.remove-record-on-sequence-group"
LAST_NON_NULL = "last_non_null_value"
_SUFFIXES = (
    "aggregate-function",
    "ignore-retract",
    "distinct",
    "list-agg-delimiter",
    "nested-key",
    "nested-key-null-strategy",
    "nested-sequence-field",
    "count-limit",
    "ts-field",
)
FIELD_OPTION = re.compile(rf"fields\.(?P<column>.+)\.(?P<option>{'|'.join(_SUFFIXES)}|sequence-group|stats-mode)")
MAP_LAYOUT = re.compile(r"fields\.(?P<column>.+)\.map\.(?P<option>storage-layout|shared-shredding\..+)")
"""Keys of the file layout of a MAP column."""


def field_option_reason(key: str, value: str) -> str | None:
    """Return why a ``fields.*`` option is invalid, None if valid.

    Does not check columns.

    >>> field_option_reason("fields.n.aggregate-function", "sum"), field_option_reason("fields.n.aggregate-function", "rbm64")
    (None, "'rbm64' is not supported: its bytes are in Java's 64-bit bitmap format, which differs from the portable one")
    """
    if key == DEFAULT_FUNCTION:
        return FUNCTIONS.reason(value.strip())
    layout = MAP_LAYOUT.fullmatch(key)
    if layout is not None:
        built = layout["option"] != "storage-layout" or value.strip().lower() == "default"
        return None if built else f"'{value}' is not supported: files store a MAP as entries; use 'default'"
    match = FIELD_OPTION.fullmatch(key)
    if match is None:
        known = ", ".join(f"fields.<column>.{suffix}" for suffix in (*_SUFFIXES, "sequence-group", "stats-mode"))
        return f"is unknown; per-field options are: {known}"
    return FUNCTIONS.reason(value.strip()) if match["option"] == "aggregate-function" else None


def check_field_columns(options: Mapping[str, str], columns: Iterable[str]) -> None:
    """Raise ``UnsupportedOption`` for a ``fields.<column>.<option>`` without column."""
    known = list(columns)
    for key in options:
        match = FIELD_OPTION.fullmatch(key)
        if match is not None and match["option"] not in {"sequence-group", "stats-mode"} and match["column"] not in known:
            raise UnsupportedOption(key, f"'{match['column']}' is not a column; columns are: {', '.join(known)}")


__all__ = [
    "DEFAULT_FUNCTION",
    "FIELD_OPTION",
    "GROUP_REMOVE",
    "LAST_NON_NULL",
    "MAP_LAYOUT",
    "check_field_columns",
    "field_option_reason",
]
