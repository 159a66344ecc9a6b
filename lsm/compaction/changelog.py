"""Changelog files of a bucket (Paimon's ``changelog-producer``).

They have the format of level-0 data files, and a separate prefix. Compression and statistics have their own options. They never have an index.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.arrow.row_kind import drop_retracts
from lsm.data_files.rolling import RollingFileWriter, discard_files, key_value_writer
from lsm.data_files.writer import FileTarget
from lsm.keys.encoding import one_array
from lsm.keys.sort import Sorted, SortKey, sort_rows
from lsm.merge.function import LEVEL, without_level
from lsm.merge.merge_iterator import MergeRound
from lsm.merge.row_diff import row_diff
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.schema.table_schema import TableSchema
from paimon_base.lazy import cached_property
from sparkexpr.values.arrays import Mask

_Mask = Mask
_DEFAULT_PREFIX = "changelog-"
_OWN = {
    "changelog-file.format": "file.format",
    "changelog-file.compression": "file.compression",
    "changelog-file.stats-mode": "metadata.stats-mode",
}
_LEFT_OUT = ("file-index.", "ngram-filter.", "target-file-row-num")
_UNKNOWN = np.iinfo(np.int8).max


def changelog_target(target: FileTarget) -> FileTarget:
    """Return the changelog file target for a data file target."""
    schema = target.store.schema
    options = {key: value for key, value in schema.options.items() if not key.startswith(_LEFT_OUT)}
    for changelog_option, general in _OWN.items():
        if changelog_option in options:
            options = {key: value for key, value in options.items() if key != f"{general}.per.level"} | {general: options[changelog_option]}
    names = replace(target.names, prefix=options.get("changelog-file.prefix", _DEFAULT_PREFIX))
    logged = target.store.with_schema(schema.model_copy(update={"options": options}))
    return FileTarget(store=logged, directory=target.directory, names=names, target_size=target.target_size)


@dataclass
class ChangelogWriter:
    """Writer of the changelog of one flush or compaction.

    Call ``write`` any number of times, then ``finish`` or ``abort``. It can be reused afterwards. The first row creates the first file.
    Rows must be in key order.
    """

    data: FileTarget
    """Target of the data files."""
    _writer: RollingFileWriter | None = field(default=None, init=False, repr=False)

    @cached_property
    def target(self) -> FileTarget:
        """Target of the changelog files."""
        return changelog_target(self.data)

    def write(self, rows: Any) -> None:
        """Append rows with their kinds."""
        if rows.num_rows:
            self._writer = self._writer or key_value_writer(self.target, 0, FileSource.APPEND)
            self._writer.write(rows)

    def finish(self) -> list[DataFileMeta]:
        """Return the files. On failure all are deleted."""
        writer, self._writer = self._writer, None
        return [] if writer is None else writer.close()

    def abort(self) -> None:
        """Delete files written since the last ``finish``. Never raises."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abort()

    def discard(self, file: DataFileMeta) -> None:
        """Delete a finished file that no snapshot references."""
        discard_files(self.target.store.file_io, self.target.directory, file)


@dataclass(frozen=True, slots=True)
class CompactionChangelog:
    """Changelog of a compaction.

    Compares the keys of new rows before and after.

    The old version is the shallowest result of earlier compactions above level 0. With ``full-compaction`` it is the one on the deepest level.

    Args:
        log: Receives the changelog rows.
        key: Order of rows.
        merged_level: First level with results of earlier compactions. 1 for ``lookup``, the deepest for ``full-compaction``.
        compared: An update equal in these columns is dropped (``changelog-producer.row-deduplicate``). None: log every update.
        first_only: Skip keys that have an old version (first-row).
    """

    log: ChangelogWriter
    key: SortKey
    merged_level: int
    compared: tuple[str, ...] | None = None
    first_only: bool = False

    @classmethod
    def of(cls, schema: TableSchema, log: ChangelogWriter, key: SortKey, max_level: int) -> CompactionChangelog | None:
        """Return the changelog of the table's producer.

        None: compactions write no changelog. ``max_level`` is the deepest level of the bucket.
        """
        core = schema.core
        if core.changelog_producer not in {"lookup", "full-compaction"}:
            return None
        merged_level = 1 if core.changelog_producer == "lookup" else max_level
        compared = None
        if core.changelog_row_deduplicate:
            compared = tuple(name for name in schema.names if name not in core.changelog_row_deduplicate_ignore_fields)
        return cls(log, key, merged_level, compared, core.engine.first_row_wins)

    def observe(self, merged: MergeRound) -> None:
        """Write the changes of a merge round.

        Its rows must have ``_LEVEL``.
        """
        rows = merged.rows
        levels = one_array(rows.column(LEVEL)).to_numpy(zero_copy_only=False)
        if merged.sorted_rows is None:
            new = without_level(rows if (levels < self.merged_level).all() else rows.filter(pa.array(levels < self.merged_level)))
            self.log.write(row_diff(new.slice(0, 0), drop_retracts(new), self.key))
            return
        sorted_rows = merged.sorted_rows
        ordered = levels[sorted_rows.order]
        met: _Mask = np.minimum.reduceat(ordered, sorted_rows.starts) < self.merged_level
        shallowest = np.minimum.reduceat(np.where(ordered < self.merged_level, _UNKNOWN, ordered), sorted_rows.starts)
        if self.first_only:
            met &= shallowest == _UNKNOWN
        sizes = np.diff(sorted_rows.starts, append=len(sorted_rows.order))
        old = (ordered == np.repeat(shallowest, sizes)) & np.repeat(met, sizes)
        before = without_level(rows.take(pa.array(sorted_rows.order[old])))
        after = self._results(merged, sorted_rows, met)
        self.log.write(row_diff(drop_retracts(before), drop_retracts(after), self.key, compared=self.compared))

    def _results(self, merged: MergeRound, sorted_rows: Sorted, met: _Mask) -> Any:
        """Return the results of the keys in ``met``.

        A key may have no result.
        """
        result = without_level(merged.result)
        if result.num_rows == len(sorted_rows.starts):
            return result if met.all() else result.filter(pa.array(met))
        names = list(self.key.columns)
        met_keys = merged.rows.select(names).take(pa.array(sorted_rows.order[sorted_rows.starts[met]]))
        joined = pa.concat_tables([result.select(names), met_keys.cast(result.select(names).schema)])
        sides = sort_rows(self.key.key_words(joined), length=joined.num_rows, runs=True)
        twice = np.diff(sides.starts, append=joined.num_rows) == 2
        return result.take(pa.array(sides.order[sides.starts[twice]]))
