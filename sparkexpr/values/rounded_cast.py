"""Casts in which Arrow rounds values silently."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def may_round(source: Any, target: Any) -> bool:
    """Return whether Arrow's cast rounds silently.

    >>> may_round(pa.float64(), pa.float32()), may_round(pa.float32(), pa.float64())
    (True, False)
    """
    types = pa.types
    return bool(
        (types.is_floating(source) and types.is_floating(target) and target.bit_width < source.bit_width)
        or (types.is_timestamp(source) and types.is_date(target))
    )


def is_rounded(before: Any, after: Any) -> bool:
    """Return whether a cast has changed a value.

    >>> is_rounded(pa.array([0.1, None]), pa.array([0.1, None], pa.float32()))
    True
    """
    same = pc.or_(pc.equal(after.cast(before.type), before), pc.is_null(before, nan_is_null=True))
    return pc.all(same).as_py() is False
