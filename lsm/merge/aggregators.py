"""Fold of one column (Paimon's ``FieldAggregator`` family).

``theta_sketch`` and ``hll_sketch`` unite serialised sketches in pairs, in Paimon's order. The result has the bytes that the library
writes in Java.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.keys.encoding import one_array
from lsm.merge import agg_collect as nested
from lsm.merge import agg_collect as tables
from lsm.merge import agg_first_last as choice
from lsm.merge import agg_sum_product as number
from lsm.merge.agg_collect import in_joined_order
from lsm.merge.version_groups import GroupFold, VersionHistory
from manifest.io.errors import UnmergeableRows, UnsupportedTable
from manifest.options.aggregate_functions import FUNCTIONS, SKETCH_LIBRARY, SKETCHES_MISSING
from manifest.schema.merge_options import FieldAggregate
from sparkexpr.values.arrays import Mask

_PICKS = frozenset({"last_value", "first_value", "last_non_null_value", "first_non_null_value", "max", "bool_or", "min", "bool_and"})
"""Functions whose results are positions of versions."""
_HEADER, _ONE_HASH = 8, 16
_FLAGS, _SINGLE_ITEM = 5, 0x20
_SEED_HASH = slice(6, 8)
_SAMPLING = slice(12, 16)
_ALL_SAMPLED = b"\x00\x00\x80\x3f"
"""1.0 as a little-endian FLOAT: no value was left out."""


def fold_column(folding: GroupFold, name: str, rule: FieldAggregate, history: VersionHistory) -> Any:
    """Return the merged column, with the keys that have one version.

    Raises:
        UnmergeableRows: The function does not support retracts, or the result does not fit.
    """
    if history.retract is not None:
        reason = retract_refusal(name, rule)
        if reason is not None and history.retract.any():
            raise UnmergeableRows(reason)
        history = history.without_retracts() if rule.ignore_retract else history
    versions, column = folding.versions, folding.rows.column(name)
    match rule.function:
        case "last_value":
            return folding.gather(name, versions.rows_at(choice.last_value(history)))
        case "first_value":
            return folding.gather(name, versions.rows_at(choice.first_value(history)))
    valid = versions.valid(column)
    match rule.function:
        case "last_non_null_value":
            return folding.gather(name, versions.rows_at(choice.last_non_null_value(history, valid)))
        case "first_non_null_value":
            return folding.gather(name, versions.rows_at(choice.first_non_null_value(history, valid)))
        case "max" | "bool_or":
            return folding.gather(name, versions.rows_at(choice.greatest(history, column, valid)))
        case "min" | "bool_and":
            return folding.gather(name, versions.rows_at(choice.least(history, column, valid)))
    return folding.with_values(name, _compute(history, column, rule, name))


def _compute(history: VersionHistory, column: Any, rule: FieldAggregate, name: str) -> Any:
    valid = history.versions.valid(column)
    match rule.function:
        case "sum":
            return number.total(history, column, valid, name)
        case "product":
            return number.product_of(history, column, valid, name)
        case "listagg":
            return nested.listagg(history, column, valid, rule)
        case "collect":
            return nested.collect(history, column, valid, rule)
        case "merge_map":
            return nested.merge_map(history, column, valid)
        case "merge_map_with_keytime":
            return nested.merge_map_with_keytime(history, column, valid, rule)
        case "nested_update":
            return tables.nested_update(history, column, valid, rule, name)
        case "nested_partial_update":
            return tables.nested_partial_update(history, column, valid, rule, name)
        case "theta_sketch" | "hll_sketch":
            return union_sketches(history, column, valid, name, rule.function)
        case _:
            return nested.union_bitmaps(history, column, valid, name)


def copies_value(rule: FieldAggregate) -> bool:
    """Return whether the function picks the value of one version.

    >>> copies_value(FieldAggregate("max")), copies_value(FieldAggregate("sum"))
    (True, False)
    """
    return rule.function in _PICKS


def retract_refusal(name: str, rule: FieldAggregate) -> str | None:
    """Return why the column does not accept retracts.

    None: retracts are supported or ignored.
    """
    if rule.ignore_retract or FUNCTIONS[rule.function].retracts:
        return None
    return f"column '{name}': '{rule.function}' cannot retract a value; set 'fields.{name}.ignore-retract' to ignore retracts"


def union_sketches(history: VersionHistory, column: Any, valid: Mask, name: str, function: str) -> Any:
    """Return the union of each key's sketches.

    A single sketch is returned unchanged.

    Raises:
        UnmergeableRows: A value is not such a sketch.
        UnsupportedTable: The sketch library is not installed.
    """
    union = _unions(name)[function]
    positions = in_joined_order(history, np.flatnonzero(history.sets & valid))
    keys = history.versions.keys[positions]
    parts = one_array(column).take(pa.array(history.versions.rows[positions])).to_pylist()
    united: list[bytes | None] = [None] * len(history.versions.starts)
    edges = np.flatnonzero(np.diff(keys, prepend=-1)).tolist()
    for start, end in pairwise([*edges, len(keys)]):
        try:
            united[keys[start]] = reduce(union, parts[start:end])
        except (ValueError, RuntimeError, IndexError) as error:
            raise UnmergeableRows(f"column '{name}': a value is not a sketch of '{function}' ({error})") from error
    return pa.array(united, one_array(column).type)


def _unions(name: str) -> dict[str, Callable[[bytes, bytes], bytes]]:
    try:
        import _datasketches as sketches  # noqa: PLC0415  # an extra that few tables need
    except ImportError as error:
        raise UnsupportedTable(f"column '{name}': {SKETCHES_MISSING}") from error
    assert sketches.__name__ == SKETCH_LIBRARY

    def theta(first: bytes, second: bytes) -> bytes:
        union = sketches.theta_union()
        for part in (first, second):
            union.update(sketches.compact_theta_sketch.deserialize(part))
        return _as_java(union.get_result(True).serialize())  # ordered

    def hll(first: bytes, second: bytes) -> bytes:
        newer = sketches.hll_sketch.deserialize(second)
        union = sketches.hll_union(newer.lg_config_k)
        union.update(newer)
        union.update(sketches.hll_sketch.deserialize(first))
        sketch: bytes = union.get_result(sketches.tgt_hll_type.HLL_4).serialize_compact()
        return sketch

    return {"theta_sketch": theta, "hll_sketch": hll}


def _as_java(sketch: bytes) -> bytes:
    """Return a theta sketch with the header bytes of Java.

    The C++ library leaves some header bytes unset that the Java library sets.
    """
    encoded = bytearray(sketch)
    if encoded[0] > 1:
        encoded[_SAMPLING] = _ALL_SAMPLED
    elif len(encoded) == _ONE_HASH:
        encoded[_FLAGS] |= _SINGLE_ITEM
    elif len(encoded) == _HEADER:
        encoded[_SEED_HASH] = b"\x00\x00"
    return bytes(encoded)
