"""Keys of a section that may match a filter, found without a merge.

A merged row can match a filter only if some version of its key does, as long as the merge copies values and makes none. So each run
is read alone with the whole filter, by its statistics, indexes and pages, and gives keys. Only these keys are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from fileindex.predicate.projection import only_columns
from fileindex.predicate.tree import FALSE, Predicate, all_of, columns_of, conjuncts
from lsm.keys.sorted_keys import SortedKeys
from lsm.merge.function import MergeFunction, combines_versions
from lsm.scan.predicates import bind_constants, bucket_keys
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import FilterFailed
from paimon_base.thresholds import thresholds

if TYPE_CHECKING:
    from lsm.read.data_file import DataFileRead


def version_filters(fold: MergeFunction, predicate: Predicate, schema: TableSchema) -> tuple[Predicate, ...]:
    """Return filters that some version of each matching key satisfies.

    Each filter alone finds all keys. () means that a matching row need not have a matching version.

    >>> from fileindex.predicate.tree import And, ColumnRef, Compare, Op
    >>> from lsm.merge.function import merge_function_for
    >>> from manifest.schema.validation import build_schema
    >>> options = {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.m.aggregate-function": "max"}
    >>> schema = build_schema("id INT, n INT, m INT", primary_keys=["id"], options=options)
    >>> n, m = (Compare(ColumnRef(name), Op.GT, 5) for name in "nm")
    >>> version_filters(merge_function_for(schema), And((n, m)), schema) == (m,)
    True
    """
    keys = schema.trimmed_primary_keys
    if not set(columns_of(predicate)).difference(keys, schema.partition_keys):
        return ()
    # The conditions on keys leave few keys by themselves.
    if bucket_keys(predicate, keys, schema.column_types) is not None:
        return ()
    if not combines_versions(fold):
        return (predicate,)
    on_keys = only_columns(predicate, {*keys, *schema.partition_keys}).inclusive
    return tuple(all_of(term, on_keys) for term in conjuncts(predicate) if _holds_for_a_version(fold, term, schema))


def _holds_for_a_version(fold: MergeFunction, term: Predicate, schema: TableSchema) -> bool:
    # Columns of one row may come from different versions, so only terms on one column count. A merge may
    # leave null where no version has null: a retraction does.
    columns = set(columns_of(term))
    if len(columns) != 1 or columns <= {*schema.trimmed_primary_keys, *schema.partition_keys}:
        return False
    (name,) = columns
    return fold.copies(name) and bind_constants(term, {name: None}, schema.column_types) == FALSE


def candidate_keys(reads: Sequence[DataFileRead], rows: int, limit: int | None = None) -> SortedKeys | None:
    """Return the keys of all rows of ``reads``.

    None: there are too many, so that merging all keys costs less.

    Args:
        reads: Reads of the key columns of all files of a section, at least one, with the filter and a report each.
        rows: Number of rows of the files.
        limit: Number of rows that the caller needs. None: all.
    """
    least = thresholds.rows_per_candidate
    max_keys = min(rows // least, thresholds.candidate_keys)
    if limit is not None:
        # Frequent matches fill a limit soon: the merge stops before a search would end.
        max_keys = min(max_keys, least * limit)
    search = _Search(max_keys)
    io = reads[0].store.file_io
    try:
        for first in range(0, len(reads), thresholds.files_searched):
            io.run_parallel(
                *[partial(search.read, read) for read in reads[first : first + thresholds.files_searched]]
            )  # on a disk one after the other
    except FilterFailed:
        # An expression may fail for a version that the merge drops.
        return None
    if search.ended:
        return None
    return SortedKeys.of(pa.Table.from_batches(search.matches).columns) if search.matches else SortedKeys((pa.nulls(0),))


@dataclass
class _Search:
    """Rows found in the files of a section, up to ``max_rows``."""

    max_rows: int
    count: int = 0
    ended: bool = False
    matches: list[pa.RecordBatch] = field(default_factory=list)

    def read(self, read: DataFileRead) -> None:
        """Add the rows of a file, unless there are too many."""
        if self.ended:
            return
        for batch in read.batches():
            # Threads may lose an addition here, which only ends the search later. Each sets ``ended`` before it drops rows.
            self.count += batch.num_rows
            if self.count > self.max_rows:
                self.ended = True
                return
            if batch.num_rows:
                self.matches.append(batch)
