"""Row kinds: integers in files, text in the ``_row_kind`` column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.keys.encoding import one_array
from lsm.keys.sort import UPDATE_BEFORE, VALUE_KIND
from sparkexpr.values.arrays import Int8s, Mask, arrow_array, numpy_array

ROW_KIND = "_row_kind"
"""Column of row kinds, in rows written to a primary-key table and in changes read."""

ROW_KINDS = ("+I", "-U", "+U", "-D")
"""Insert, old and new row of an update, delete. Their numbers in files are 0 to 3."""


def kind_texts(kinds: Int8s) -> Any:
    """Return kinds as a string array.

    >>> kind_texts(np.array([0, 3], np.int8)).to_pylist()
    ['+I', '-D']
    """
    return pa.array(ROW_KINDS, pa.string()).take(pa.array(kinds))


def retracts(kinds: Any) -> Mask:
    """Return a mask of the ``-U`` and ``-D`` rows.

    ``kinds`` is a ``_VALUE_KIND`` column, Arrow or numpy.
    """
    values: Int8s = kinds if isinstance(kinds, np.ndarray) else numpy_array(one_array(kinds))
    mask: Mask = (values & 1) == UPDATE_BEFORE
    return mask


def drop_retracts(rows: Any) -> Any:
    """Return ``rows`` without ``-U`` and ``-D`` rows.

    Returns the same table if there are no such rows.
    """
    mask = retracts(rows.column(VALUE_KIND))
    return rows.filter(pc.invert(arrow_array(mask))) if mask.any() else rows
