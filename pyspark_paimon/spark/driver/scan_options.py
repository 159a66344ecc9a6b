"""Scans from read options or from a client.

A scan from options is pinned to a snapshot. A client of this package sends a complete scan.
"""

from __future__ import annotations

from collections.abc import Mapping

from fileindex.base.errors import UnknownColumn
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.jobs.incremental import change_columns, range_of
from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.request.backend import IncrementalRange, ScanRequest
from pyspark_paimon.spark.driver.options import FILTER, between, columns, table_options, travel
from pyspark_paimon.spark.wire import rpc


def scan_request(backend: LocalBackend, options: Mapping[str, str], columns_wanted: tuple[str, ...] | None = None) -> ScanRequest:
    """Return the scan of a client or of read options.

    A scan from options is pinned to a snapshot. ``columns_wanted`` are the columns of a schema from Spark or the user.
    None: use the columns of the scan or the options.
    """
    if rpc.SCAN in options:
        request = rpc.parse_scan(options[rpc.SCAN])
        return request if columns_wanted is None else request.model_copy(update={"columns": columns_wanted})
    changes = between(options)
    if changes is not None:
        return _changes_request(backend, options, range_of(backend, backend.schema(), *changes[0], changes[1]), columns_wanted)
    snapshot, table = backend.start(travel(options))
    names = columns_wanted or columns(options) or table.names
    for name in names:
        if name not in table.names:
            raise UnknownColumn(name, tuple(table.names))
    tree = bind_filter(options.get(FILTER), table.column_types)
    request = ScanRequest.of(tree, columns=names, snapshot=snapshot)
    return request.model_copy(update={"schema_id": table.id, "options": table_options(options)})


def _changes_request(
    backend: LocalBackend, options: Mapping[str, str], wanted: IncrementalRange, columns_wanted: tuple[str, ...] | None
) -> ScanRequest:
    table = backend.schema()
    tree = bind_filter(options.get(FILTER), table.column_types)
    names = change_columns(columns_wanted or columns(options), table)
    request = ScanRequest(predicate=tree, columns=tuple(names), snapshot_id=wanted.end_id)
    return request.model_copy(update={"schema_id": table.id, "incremental": wanted, "options": table_options(options)})


__all__ = ["scan_request"]
