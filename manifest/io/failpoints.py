"""Named points where a test may kill the process.

``PAIMON_FAULT_POINT=name`` kills at the first visit of the point, ``name:n`` at the n-th. Without it a point costs a
dictionary look-up. The names: after-data-files, after-manifest, after-manifest-list, after-temp-snapshot, after-link,
after-hint, between-append-and-compact, inside-expiry. Tables with Iceberg metadata have two more.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

VARIABLE = "PAIMON_FAULT_POINT"
POINTS = (
    "after-data-files",
    "after-manifest",
    "after-manifest-list",
    "after-temp-snapshot",
    "after-link",
    "after-hint",
    "between-append-and-compact",
    "inside-expiry",
)
ICEBERG_POINTS = ("after-iceberg-manifests", "after-iceberg-metadata")
"""Points of a commit to a table with Iceberg metadata."""

_visits: Counter[str] = Counter()


def point(name: str) -> None:
    """Kill this process with SIGKILL if the environment requests it.

    >>> point("after-manifest")
    """
    setting = os.environ.get(VARIABLE)
    if not setting:
        return
    point_name, _, visit = setting.partition(":")
    if point_name != name:
        return
    _visits[name] += 1
    if _visits[name] >= int(visit or 1):
        os.kill(os.getpid(), signal.SIGKILL)
