"""Questions about files, indexes and history, answered as Arrow tables."""

from __future__ import annotations

from pyspark_paimon.request.answers import ArrowTable
from pyspark_paimon.request.operation import OpenTable, Question
from pyspark_paimon.request.requests import IndexView, View
from pyspark_paimon.views.history_views import history_view


class ListHistory(Question[ArrowTable]):
    """Tags, branches, schemas, partitions or consumers, one row each."""

    view: View

    def answer(self, table: OpenTable) -> ArrowTable:
        """Read the metadata."""
        return history_view(table.store(), self.view)


class ListFiles(Question[ArrowTable]):
    """Live data files of a snapshot. None: no files."""

    snapshot_id: int | None

    def answer(self, table: OpenTable) -> ArrowTable:
        """Read the manifests."""
        from pyspark_paimon.views.table_views import files_table  # noqa: PLC0415  # see test_imports

        store = table.store()
        snapshot = None if self.snapshot_id is None else store.snapshots.readable(self.snapshot_id)
        return files_table(store.live_entries(snapshot).entries(), store.schema)


class ListIndexes(Question[ArrowTable]):
    """File indexes of a snapshot, or their health."""

    view: IndexView
    snapshot_id: int | None

    def answer(self, table: OpenTable) -> ArrowTable:
        """Read the index headers, for their health the payloads too."""
        from pyspark_paimon.views.index_views import index_view  # noqa: PLC0415  # see test_imports

        store = table.store()
        snapshot = None if self.snapshot_id is None else store.snapshots.readable(self.snapshot_id)
        return index_view(store, self.view, snapshot, table.threads)
