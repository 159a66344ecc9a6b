"""Aggregates by partition as JSON, for transport from a server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from lsm.aggregate.names import AggregateName
from lsm.aggregate.summary import RowSummary


def summaries_to_json(found: Mapping[bytes, RowSummary]) -> str:
    """Encode aggregates as JSON for ``summaries_from_json``."""
    return json.dumps([[partition.hex(), summary.to_json()] for partition, summary in found.items()])


def summaries_from_json(texts: Iterable[str], wanted: Mapping[str, Iterable[AggregateName]]) -> dict[bytes, RowSummary]:
    """Decode several texts and merge their aggregates.

    >>> summaries_from_json([summaries_to_json({b"p": RowSummary({}, 2)}), '[["70", {"rows": 3, "columns": {}}]]'], {})
    {b'p': RowSummary(columns={}, rows=5)}
    """
    whole: dict[bytes, RowSummary] = {}
    for text in texts:
        for partition, summary in json.loads(text):
            own = bytes.fromhex(partition)
            if own not in whole:
                whole[own] = RowSummary.of(wanted, {})
            whole[own].merge_json(summary)
    return whole


__all__ = ["summaries_from_json", "summaries_to_json"]
