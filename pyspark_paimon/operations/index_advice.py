"""Advice on file indexes for given filters, measured on a sample of files."""

from __future__ import annotations

from pyspark_paimon.request.answers import ArrowTable
from pyspark_paimon.request.bound import BoundFilter
from pyspark_paimon.request.operation import OpenTable, Question
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.results.message import Message

_WITHOUT_INDEXES = {"file-index.read.enabled": "false"}


class GivenFilter(Message):
    """A filter as its user wrote it, and bound to the table."""

    text: str
    predicate: BoundFilter


class AdviseIndexes(Question[ArrowTable]):
    """Effect of each possible index on each filter."""

    filters: tuple[GivenFilter, ...]
    snapshot_id: int | None
    most_bytes: int

    def answer(self, table: OpenTable) -> ArrowTable:
        """Read a sample of the files, and build indexes in memory."""
        from pyspark_paimon.views.index_advice import AdvisedFilter, IndexAdvice  # noqa: PLC0415  # see test_imports

        store = table.store()
        snapshot = None if self.snapshot_id is None else store.snapshots.readable(self.snapshot_id)
        filters = []
        for bound_filter in self.filters:
            request = ScanRequest.of(bound_filter.predicate, columns=store.schema.names[:1], snapshot=snapshot)
            plan = table.plan(request.model_copy(update={"options": _WITHOUT_INDEXES}))
            filters.append(AdvisedFilter(bound_filter.text, bound_filter.predicate, plan))
        rows = 0 if snapshot is None else snapshot.total_record_count
        return IndexAdvice(store, filters, rows, self.most_bytes).table()
