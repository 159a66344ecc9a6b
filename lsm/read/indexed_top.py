"""First rows of an order by the secondary index of its first column.

A payload has the values in order, so the first rows of a level are in its first blocks. Deleted rows and those that do not match the
filter are no candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyroaring import BitMap

from fileindex.predicate.tree import TRUE, Predicate
from fileindex.rowset.roaring import all_rows, bitmap_to_rows, rows_to_bitmap, serialize
from lsm.deletion_vectors.reader import DeletionFile, dead_rows
from lsm.keys.order_by import RowOrder
from lsm.scan.splits import DataSplit
from lsm.secondary_index.answers import open_index
from lsm.secondary_index.payloads import LiveFile, LiveFiles, Payload, is_covered, live_payloads
from lsm.secondary_index.selection import IndexedRows, IndexSelection, term_names
from manifest.commit.conflicts import BucketId
from manifest.entry.data_file import DataFileMeta
from manifest.schema.secondary_index import SecondaryIndex
from manifest.store import FileStore
from paimon_base.errors import describe_error
from paimon_base.log import logger_of

_LOG = logger_of(__name__)


@dataclass(frozen=True)
class IndexedTop:
    """Selection of rows that may be among the first ``limit``.

    Args:
        store: Store of the table.
        index: Index of the first column of ``order``.
        order: Sort order.
        limit: Number of rows.
        predicate: Exact filter of rows.
    """

    store: FileStore
    index: SecondaryIndex
    order: RowOrder
    limit: int
    predicate: Predicate
    _dead: dict[str, DeletionFile] = field(default_factory=dict, init=False, repr=False)
    _selections: dict[str, IndexSelection] = field(default_factory=dict, init=False, repr=False)

    def restrict(self, splits: Sequence[DataSplit]) -> list[DataSplit]:
        """Return the splits with the rows that may be among the first ones.

        Files that no payload covers stay as they are.
        """
        live, selected = self._live(splits), dict[tuple[BucketId, str], BitMap]()
        if not live:
            return list(splits)
        entries = self.store.index_entries(self.store.snapshots.get(splits[0].snapshot_id))
        for payload in live_payloads(self.store, [self.index], entries, live):
            try:
                selected.update(self._rows(payload, live[payload.bucket]))
            except Exception as error:  # noqa: BLE001 - a damaged payload or a failing store must not fail the read
                name = payload.entry.file_name
                _LOG.warning("%s: payload %s: %s; its files are read instead", self.store.root, name, describe_error(error))
        return [restricted for split in splits if (restricted := self._restricted(split, selected)).files]

    def _live(self, splits: Sequence[DataSplit]) -> dict[BucketId, dict[str, LiveFile]]:
        live: dict[BucketId, dict[str, LiveFile]] = {}
        for split in splits:
            if not split.has_independent_files:
                continue
            self._dead.update({f.file_name: d for f, d in zip(split.files, split.deletion_files or (), strict=False) if d is not None})
            for file in filter(_may_be_first, split.files):
                if split.index_selection is not None:
                    self._selections[file.file_name] = split.index_selection
                live.setdefault((split.partition, split.bucket), {})[file.file_name] = LiveFile(file.level, file.row_count, file.schema_id)
        return live

    def _rows(self, payload: Payload, live: LiveFiles) -> Iterator[tuple[tuple[BucketId, str], BitMap]]:
        starts, ordinals, names = payload.offsets(), BitMap(), set[str]()
        for number, file in payload.live_files(live):
            rows = self._candidates(file.name, file.row_count)
            if rows is not None:
                ordinals |= rows_to_bitmap(bitmap_to_rows(rows) + np.uint32(starts[number]))
                names.add(file.name)
        column = self.order.columns[0]
        first = open_index(self.store, payload).top_n(
            self.limit,
            ascending=column.ascending,
            nulls_first=bool(column.nulls_first),
            strict=len(self.order.columns) == 1,
            candidates=ordinals,
        )
        for file, positions in payload.by_file(bitmap_to_rows(first), live):
            if file.name in names:
                yield (payload.bucket, file.name), rows_to_bitmap(positions)

    def _candidates(self, name: str, row_count: int) -> BitMap | None:
        """Return the rows of a file that match the filter. None: unknown."""
        rows = all_rows(row_count)
        if self.predicate != TRUE:
            selection = self._selections.get(name)
            answered = None if selection is None else selection.answer(name, self.predicate)
            if answered is None or answered.residual != TRUE:
                return None
            rows = answered.rows
        return rows - dead_rows(self.store.file_io, self._dead[name]) if name in self._dead else rows

    def _restricted(self, split: DataSplit, selected: dict[tuple[BucketId, str], BitMap]) -> DataSplit:
        bucket = (split.partition, split.bucket)
        ours = {file.file_name: selected[bucket, file.file_name] for file in split.files if (bucket, file.file_name) in selected}
        if not ours:
            return split
        terms = term_names(self.predicate)
        planned = {} if split.index_selection is None else dict(split.index_selection.files)
        files = planned | {name: IndexedRows(rows=serialize(rows), proven=terms) for name, rows in ours.items()}
        with_rows = [(file, number) for number, file in enumerate(split.files) if ours.get(file.file_name, True)]
        vectors = split.deletion_files
        return split.model_copy(
            update={
                "files": tuple(file for file, _ in with_rows),
                "deletion_files": vectors and tuple(vectors[number] for _, number in with_rows),
                "index_selection": IndexSelection(terms=terms, files=files),
            }
        )


def _may_be_first(file: DataFileMeta) -> bool:
    return is_covered(file) and file.delete_row_count == 0
