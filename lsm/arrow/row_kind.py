"""The kind of a row as people see it: text in a column beside the table's own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from fileindex.base.arrays import Int8s

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


__all__ = ["ROW_KIND", "ROW_KINDS", "kind_texts"]
