"""Names of aggregate functions and the types they accept (``FieldAggregatorFactory``).

Also which of them can retract, which are not supported, and the keys of merge options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from fileindex.sorted_index.build_options import SortedIndexKind
from manifest.options.secondary_indexes import COLUMN_OPTIONS
from manifest.types.data_type import MAX_LENGTH, DataType
from paimon_base.errors import UnsupportedOption, not_a_column
from sparkexpr.values.column_type import FLOATS, INTEGERS, Kind

_Takes = Callable[[DataType], bool]
_NUMERIC = INTEGERS | FLOATS | {Kind.DECIMAL}
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


def _is_rows(data_type: DataType) -> bool:
    return data_type.kind is Kind.ARRAY and data_type.part("element").kind is Kind.ROW


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function.

    Args:
        takes: Accepted types, for errors.
        test: Whether a type is accepted.
        retracts: Whether the function can retract a version.
    """

    takes: str
    test: _Takes
    retracts: bool = False


class Functions(dict[str, Function]):
    """Supported functions by name."""

    def reason(self, name: str) -> str | None:
        """Return why ``name`` cannot be used, None if it can."""
        name = ALIASES.get(name, name)
        if name in _UNSUPPORTED:
            return f"'{name}' is not supported: {_UNSUPPORTED[name]}"
        if name in _SKETCHES and find_spec(SKETCH_LIBRARY) is None:
            return SKETCHES_MISSING
        return None if name in self else f"'{name}' is not an aggregate function; use one of: {', '.join(sorted(self))}"


_ANY = Function("any type", lambda _: True)
_FLAG = Function("BOOLEAN", lambda data_type: data_type.kind is Kind.BOOLEAN)
_ORDERED = Function("a type with an order", lambda data_type: not data_type.is_nested)
_NUMBER = Function("a numeric type", lambda data_type: data_type.kind in _NUMERIC, retracts=True)
_LAST = Function("any type", lambda _: True, retracts=True)
ALIASES = {"first_not_null_value": "first_non_null_value"}
FUNCTIONS = Functions(
    {
        "sum": _NUMBER,
        "product": _NUMBER,
        "max": _ORDERED,
        "min": _ORDERED,
        "bool_and": _FLAG,
        "bool_or": _FLAG,
        "last_value": _LAST,
        "last_non_null_value": _LAST,
        "first_value": _ANY,
        "first_non_null_value": _ANY,
        "listagg": Function("STRING", lambda data_type: data_type.kind is Kind.VARCHAR and data_type.length == MAX_LENGTH),
        "collect": Function("ARRAY", lambda data_type: data_type.kind is Kind.ARRAY, retracts=True),
        "merge_map": Function("MAP", lambda data_type: data_type.kind is Kind.MAP, retracts=True),
        "merge_map_with_keytime": Function(
            "MAP of ROW", lambda data_type: data_type.kind is Kind.MAP and data_type.part("value").kind is Kind.ROW
        ),
        "nested_update": Function("ARRAY of ROW", _is_rows, retracts=True),
        "nested_partial_update": Function("ARRAY of ROW", _is_rows),
        **dict.fromkeys(("rbm32", "theta_sketch", "hll_sketch"), Function("VARBINARY", lambda data_type: data_type.kind is Kind.VARBINARY)),
    }
)
SKETCH_LIBRARY = "_datasketches"
"""Module of the package ``datasketches``, which merges sketches."""
SKETCHES_MISSING = "sketches need the package 'datasketches': pip install 'pyspark-paimon[sketches]'"
_SKETCHES = frozenset({"theta_sketch", "hll_sketch"})
_UNSUPPORTED = {
    "rbm64": "its bytes are in Java's 64-bit bitmap format, which differs from the portable one",
}


def check_function(key: str, name: str, column: str, data_type: DataType) -> str:
    """Return the function's canonical name.

    Raises ``UnsupportedOption`` for ``key`` if the function is unknown, not supported, or does not accept the column's type.
    """
    reason = FUNCTIONS.reason(name)
    if reason is not None:
        raise UnsupportedOption(key, reason)
    name = ALIASES.get(name, name)
    function = FUNCTIONS[name]
    if not function.test(data_type):
        raise UnsupportedOption(key, f"'{name}' needs {function.takes}, but column '{column}' is {data_type}")
    return name


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
    of_index = COLUMN_OPTIONS.fullmatch(key)
    if of_index is not None:
        return None if of_index["kind"] in set(SortedIndexKind) else "belongs to an index that is not supported"
    match = FIELD_OPTION.fullmatch(key)
    if match is None:
        option_names = ", ".join(f"fields.<column>.{suffix}" for suffix in (*_SUFFIXES, "sequence-group", "stats-mode"))
        return f"is unknown; per-field options are: {option_names}"
    return FUNCTIONS.reason(value.strip()) if match["option"] == "aggregate-function" else None


def check_field_columns(options: Mapping[str, str], columns: Iterable[str]) -> None:
    """Raise ``UnsupportedOption`` for a ``fields.<column>.<option>`` without column."""
    column_names = list(columns)
    for key in options:
        match = FIELD_OPTION.fullmatch(key)
        if match is not None and match["option"] not in {"sequence-group", "stats-mode"} and match["column"] not in column_names:
            raise UnsupportedOption(key, not_a_column(match["column"], column_names))
