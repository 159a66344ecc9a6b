"""Row kinds: numbers in files, text in a column beside the table's own where people see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.arrays import Int8s, Mask
from lsm.keys.encoding import one_array
from lsm.keys.sort import UPDATE_BEFORE, VALUE_KIND

ROW_KIND = "_row_kind"
"""The column of a row's kind: in rows to write into a primary-key table, and in changes that are read."""

ROW_KINDS = ("+I", "-U", "+U", "-D")
"""Insert, the old and the new row of an update, delete; numbered 0 to 3 in files."""


def kind_texts(kinds: Int8s) -> Any:
    """Kinds as a string array.

    >>> kind_texts(np.array([0, 3], np.int8)).to_pylist()
    ['+I', '-D']
    """
    return pa.array(ROW_KINDS, pa.string()).take(pa.array(kinds))


def retracts(kinds: Any) -> Mask:
    """Mask of the ``-U`` and ``-D`` rows of a ``_VALUE_KIND`` column (Arrow or numpy)."""
    values: Int8s = kinds if isinstance(kinds, np.ndarray) else one_array(kinds).to_numpy(zero_copy_only=False)
    found: Mask = (values & 1) == UPDATE_BEFORE
    return found


def drop_retracts(rows: Any) -> Any:
    """``rows`` without its ``-U`` and ``-D`` rows; the same object if it has none."""
    mask = retracts(rows.column(VALUE_KIND))
    return rows.filter(pc.invert(pa.array(mask))) if mask.any() else rows


__all__ = ["ROW_KIND", "ROW_KINDS", "drop_retracts", "kind_texts", "retracts"]
