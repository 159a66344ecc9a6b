"""Aggregate functions ``theta_sketch`` and ``hll_sketch`` over serialised sketches.

Sketches are united in pairs, in Paimon's order. The result has the bytes that the library writes in Java.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Mask
from lsm.keys.encoding import one_array
from lsm.merge.agg_collect import in_joined_order
from lsm.merge.version_groups import VersionHistory
from manifest.io.errors import UnmergeableRows, UnsupportedTable
from manifest.options.aggregate_functions import SKETCH_LIBRARY, SKETCHES_MISSING

_HEADER, _ONE_HASH = 8, 16
_FLAGS, _SINGLE_ITEM = 5, 0x20
_SEED_HASH = slice(6, 8)
_SAMPLING = slice(12, 16)
_ALL_SAMPLED = b"\x00\x00\x80\x3f"
"""1.0 as a little-endian FLOAT: no value was left out."""


def union_sketches(history: VersionHistory, column: Any, valid: Mask, name: str, function: str) -> Any:
    """Return the union of each key's sketches.

    A single sketch is returned unchanged.

    Raises:
        UnmergeableRows: A value is not such a sketch.
        UnsupportedTable: The sketch library is not installed.
    """
    union = _unions(name)[function]
    places = in_joined_order(history, np.flatnonzero(history.sets & valid))
    keys = history.versions.keys[places]
    parts = one_array(column).take(pa.array(history.versions.rows[places])).to_pylist()
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
        found: bytes = union.get_result(sketches.tgt_hll_type.HLL_4).serialize_compact()
        return found

    return {"theta_sketch": theta, "hll_sketch": hll}


def _as_java(sketch: bytes) -> bytes:
    """Return a theta sketch with the header bytes of Java.

    The C++ library leaves some header bytes unset that the Java library sets.
    """
    found = bytearray(sketch)
    if found[0] > 1:
        found[_SAMPLING] = _ALL_SAMPLED
    elif len(found) == _ONE_HASH:
        found[_FLAGS] |= _SINGLE_ITEM
    elif len(found) == _HEADER:
        found[_SEED_HASH] = b"\x00\x00"
    return bytes(found)


__all__ = ["union_sketches"]
