"""System tables that show rows.

``$audit_log`` and ``$binlog`` show the kind of each row, ``$row_tracking`` its id, ``$ro`` the rows of the last full compaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from fileindex.predicate.projection import UNKNOWN, Projection, without_columns
from fileindex.predicate.tree import Predicate
from lsm.aggregate.summary import RowSummary
from lsm.arrow.row_kind import ROW_KINDS, kind_texts
from lsm.keys.encoding import one_array
from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND
from lsm.read.column_files import ROW_NUMBERS
from lsm.read.metrics import ReadReport
from lsm.read.split import SplitRead, read_split
from lsm.scan.plan import ScanPlan
from lsm.scan.splits import DataSplit
from manifest.io.errors import UnsupportedTable
from manifest.schema.metadata_columns import ROW_ID
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField, DataType, number_fields
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.results.counters import ScanTally
from pyspark_paimon.results.results import FunnelStage
from pyspark_paimon.system.columns import A_BIG, TEXT, system_schema
from pyspark_paimon.system.engine import SystemTable
from sparkexpr.values.column_type import Kind

ROWKIND = "rowkind"
_OURS = ROW_NUMBERS | {ROWKIND}


class AuditTable(SystemTable):
    """The table ``$audit_log``.

    It shows the newest row of each key, with its kind. Deleted rows are included. All rows of a table without keys have the
    kind ``+I``.
    """

    def schema(self, schema_id: int | None = None) -> TableSchema:
        """Return ``rowkind`` and the table's columns."""
        table = self._base.schema(schema_id)
        kind = DataField(-1, ROWKIND, DataType.from_json(TEXT))
        return system_schema(number_fields([kind, *map(self._field, table.fields)]), table.id)

    def plan(self, request: ScanRequest) -> ScanPlan:
        """Return the table's splits."""
        self._check(request)
        return self._base.plan(self._table_request(request))

    def cheap_aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary] | None:  # noqa: ARG002  # signature of the base class
        """Return None: the rows must be read."""
        return None

    def _split_rows(self, request: ScanRequest, split: DataSplit) -> Iterator[pa.RecordBatch]:
        store = self._base.store(request.options, request.schema_id)
        table_request, schema = self._table_request(request), self.schema(request.schema_id).arrow
        has_kinds = store.schema.kind.has_row_kinds
        for rows in read_split(store, split, columns=table_request.columns, predicate=table_request.predicate, kinds=has_kinds):
            kinds = (
                kind_texts(one_array(rows.column(VALUE_KIND)).to_numpy(zero_copy_only=False))
                if has_kinds
                else pa.repeat(ROW_KINDS[0], rows.num_rows)
            )
            fields = [schema.field(name) for name in request.columns]
            arrays = [kinds if field.name == ROWKIND else self._values(rows.column(field.name), field.type) for field in fields]
            yield pa.record_batch(arrays, schema=pa.schema(fields))

    def _table_request(self, request: ScanRequest) -> ScanRequest:
        """Return what the table can execute of a request."""
        names = tuple(name for name in request.columns if name not in _OURS)
        return request.model_copy(
            update={
                "columns": names,
                "predicate": self._push_down(request.predicate).inclusive,
                "order_by": (),
                "limit": None,
                "aggregates": {},
            }
        )

    def _push_down(self, predicate: Predicate | None) -> Projection:
        """Return the conditions that the table's files can answer. The caller checks all of ``predicate`` on the rows."""
        return without_columns(predicate, {ROWKIND})

    def _field(self, field: DataField) -> DataField:
        return field

    def _values(self, column: pa.Array, _: pa.DataType) -> pa.Array:
        return column


class BinlogTable(AuditTable):
    """The table ``$binlog``: ``$audit_log`` with values in lists."""

    def _push_down(self, predicate: Predicate | None) -> Projection:  # noqa: ARG002
        return UNKNOWN  # there are no statistics of the list values

    def _field(self, field: DataField) -> DataField:
        return replace(field, type=DataType(Kind.ARRAY, element=field.type.with_nullable(nullable=True)))

    def _values(self, column: pa.Array, data_type: pa.DataType) -> pa.Array:
        return pa.ListArray.from_arrays(pa.array(np.arange(len(column) + 1, dtype=np.int32)), column).cast(data_type)


class RowTrackingTable(AuditTable):
    """The table ``$row_tracking``: rows with their ids.

    The sequence number of a row is that of the newest file with columns of the row.
    """

    def schema(self, schema_id: int | None = None) -> TableSchema:
        """Return the table's columns and two more.

        Raises ``UnsupportedTable`` for a table without row tracking.
        """
        table = self._base.schema(schema_id)
        if not table.core.row_tracking_enabled:
            raise UnsupportedTable(f"{self.path}: the table has no row ids; set 'row-tracking.enabled'")
        numbers = [DataField(-1, name, DataType.from_json(A_BIG)) for name in (ROW_ID, SEQUENCE_NUMBER)]
        return system_schema(number_fields([*table.fields, *numbers]), table.id)

    def _split_rows(self, request: ScanRequest, split: DataSplit) -> Iterator[pa.RecordBatch]:
        store = self._base.store(request.options, request.schema_id)
        fields = [self.schema(request.schema_id).arrow.field(name) for name in request.columns]
        read = SplitRead(store, split, tuple(request.columns), self._push_down(request.predicate).inclusive)
        for rows in read.with_row_numbers():
            yield pa.RecordBatch.from_arrays(rows.columns, schema=pa.schema(fields)) if fields else rows

    def _push_down(self, predicate: Predicate | None) -> Projection:
        return without_columns(predicate, ROW_NUMBERS)


class ReadOptimizedTable(SystemTable):
    """The table ``$ro``.

    It shows the result of the last full compaction of each bucket. These rows need no merging. For a table without keys,
    ``$ro`` has all rows.
    """

    has_files: ClassVar[bool] = True

    def schema(self, schema_id: int | None = None) -> TableSchema:
        """Return the table's columns and keys."""
        return self._base.schema(schema_id)

    def plan(self, request: ScanRequest) -> ScanPlan:
        """Return the table's splits on its last level."""
        self._check(request)
        return self._base.plan(_read_optimized(request))

    def read(
        self, request: ScanRequest, *, keeps_all: bool = False, tally: ScanTally | None = None, stage: str = "scan"
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        self._check(request)
        return self._base.read(_read_optimized(request), keeps_all=keeps_all, tally=tally, stage=stage)

    def read_split(self, request: ScanRequest, split: DataSplit | str, report: ReadReport | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split."""
        return self._base.read_split(_read_optimized(request), split, report)

    def read_stages(self, request: ScanRequest) -> tuple[FunnelStage, ...]:
        """Return what the stages at read time kept and dropped."""
        return self._base.read_stages(_read_optimized(request))

    def aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary]:
        """Return the aggregates of all rows."""
        self._check(request)
        return self._base.aggregate(_read_optimized(request))

    def cheap_aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary] | None:
        """Return the aggregates if metadata are sufficient, else None."""
        return self._base.cheap_aggregate(_read_optimized(request))

    def aggregate_split(self, request: ScanRequest, split: str) -> dict[bytes, RowSummary]:
        """Return the aggregates of one split."""
        return self._base.aggregate_split(_read_optimized(request), split)

    def _split_rows(self, request: ScanRequest, split: DataSplit) -> Iterator[pa.RecordBatch]:
        return self.read_split(request, split)


def _read_optimized(request: ScanRequest) -> ScanRequest:
    return request.model_copy(update={"read_optimized": True})
