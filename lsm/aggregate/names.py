"""Names of column aggregates.

A separate module, because every request may name them and few do.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

AggregateName: TypeAlias = Literal["count", "min", "max", "sum"]
AGGREGATES: tuple[AggregateName, ...] = get_args(AggregateName)
