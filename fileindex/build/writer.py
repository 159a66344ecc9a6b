"""Construction of a data file's indexes while it is written.

Call ``write`` with every batch of rows, in file order, then ``finish`` once. A row's number is its position in the file.
So one writer serves exactly one file. Each column is converted once per batch for all of its indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.build.advice import BY_VALUE, size_advice
from fileindex.build.options import FileIndexOptions, IndexSpec
from fileindex.format.container import ROW_BLOCKS, StoredIndex
from fileindex.format.registry import INDEX_TYPES, HashingBuilder, IndexType, OrderedBuilder
from fileindex.format.row_blocks import RowBlocksBuilder, pays
from fileindex.keys.group_by import ColumnRows, GroupedColumn
from fileindex.predicate.evaluate_rows import type_of
from fileindex.predicate.tree import ColumnRef
from paimon_base.errors import UnknownColumn
from paimon_base.thresholds import thresholds
from sparkexpr.expression.nested import map_entries
from sparkexpr.values.column_type import STRINGS, ColumnType
from sparkexpr.values.plain_value import plain_array

_RANGE_BITMAP = "range-bitmap"


class FileIndexMaintainer:
    """All indexes of one column or map entry.

    >>> maintainer = FileIndexMaintainer(ColumnRef("a"), ColumnType("INT"), [IndexSpec(ColumnRef("a"), "bitmap")])
    >>> maintainer.write(pa.array([1, 2], pa.int32()))
    >>> [(column, index_type, len(payload)) for column, index_type, payload in maintainer.finish()]
    [('a', 'bitmap', 54)]
    """

    def __init__(self, column: ColumnRef, column_type: ColumnType, specs: Sequence[IndexSpec]) -> None:
        self.column = column
        self.omitted: list[str] = []
        self.advice: dict[str, str] = {}
        self._type = column_type
        self._hashing: list[tuple[str, HashingBuilder]] = []
        self._grouping: list[tuple[IndexSpec, IndexType]] = []
        self._ordered: list[tuple[str, OrderedBuilder]] = []
        for spec in specs:
            index_type = INDEX_TYPES[spec.index_type]
            if index_type.hashing is not None:
                self._hashing.append((spec.index_type, index_type.hashing(column_type, spec.options)))
            elif index_type.ordered is not None:
                self._ordered.append((spec.index_type, index_type.ordered(spec.options)))
            else:
                self._grouping.append((spec, index_type))
        self._rows = ColumnRows(column_type) if self._grouping else None
        self._blocks = next((RowBlocksBuilder(column_type, spec.block_rows) for spec in specs if spec.block_rows), None)
        self._block_rows = max((spec.block_rows for spec in specs), default=0)
        self._without_values = False

    def write(self, array: Any) -> None:
        """Add the column of the next rows.

        ``array`` has the column's Arrow type. It may be dictionary encoded, large or a view.
        """
        values = self._physical(array)
        if self._rows is not None:
            self._rows.append(values)
            if not self._ordered:
                return
        values = _encode(values)
        for _, ordered in self._ordered:
            ordered.add(values)
        if self._rows is not None:
            return
        if self._blocks is not None:
            for hashes in self._blocks.add(values):
                for _, builder in self._hashing:
                    builder.add_hashes(hashes)
            return
        for _, builder in self._hashing:
            builder.add(values.dictionary if pa.types.is_dictionary(values.type) else values)

    def finish(self) -> list[tuple[str, str, bytes]]:
        """Return the payloads as ``(column, index type, bytes)``.

        An index that cannot hold this file's values is left out, see ``omitted``.
        """
        name = str(self.column)
        payloads: list[tuple[str, str, bytes]] = []
        apart = [(name, index_type, builder.finish()) for index_type, builder in self._ordered]
        try:
            grouped = None if self._rows is None else self._rows.group()
        except OverflowError as error:
            self.omitted += [f"{spec.index_type} of '{name}': {error}" for spec, _ in self._grouping]
            return apart
        for index_type, builder in self._hashing:
            if grouped is not None:
                builder.add_keys(grouped.keys)
            payloads.append((name, index_type, builder.finish()))
        if self._blocks is not None and pays(self._block_rows, self._blocks.row_count, len(payloads[0][2])):
            payloads.append((name, ROW_BLOCKS, self._blocks.finish()))
        if grouped is not None:
            payloads += self._grouping_payloads(grouped)
            self._without_values = not len(grouped.values)
        return payloads + apart

    def stored_indexes(self) -> list[StoredIndex]:
        """Return the container's entries for this column.

        A range-bitmap without any value is stored as the marker of an empty index (None).
        """
        # Of such an index, Paimon's reader finds only the first and the last null row and loses the others.
        return [
            (column, kind, None if kind == _RANGE_BITMAP and self._without_values else payload) for column, kind, payload in self.finish()
        ]

    def _grouping_payloads(self, grouped: GroupedColumn) -> Iterator[tuple[str, str, bytes]]:
        name = str(self.column)
        for spec, index_type in self._grouping:
            assert index_type.grouping is not None
            try:
                payload = index_type.grouping(grouped, self._type, spec.options)
            except OverflowError as error:
                self.omitted.append(f"{spec.index_type} of '{name}': {error}")
                continue
            if spec.index_type == BY_VALUE and (advice := size_advice(grouped.row_count, len(grouped.keys), len(payload))):
                self.advice[f"{BY_VALUE} of '{name}'"] = advice
            yield name, spec.index_type, payload

    def _physical(self, array: Any) -> Any:
        """Return the physical form of ``array``.

        A text dictionary without unused values is kept, so that each text is processed once.
        """
        if pa.types.is_dictionary(array.type) and self._type.kind in STRINGS:
            dictionary = array.dictionary
            if len(dictionary) <= len(array) and not dictionary.null_count and len(array.indices.unique().drop_null()) == len(dictionary):
                return pa.DictionaryArray.from_arrays(array.indices, plain_array(dictionary, self._type))
        return plain_array(array, self._type)


def _encode(values: Any) -> Any:
    """Return an array, dictionary encoded if its texts repeat.

    Each text is then hashed once. A sample decides.
    """
    if not pa.types.is_string(values.type) or len(values) < 4 * thresholds.index_sample_rows:
        return values
    sample = thresholds.index_sample_rows
    repeats = 2 * pc.count_distinct(values[:sample]).as_py() <= sample
    return values.dictionary_encode() if repeats else values


class MapFileIndexMaintainer:
    """Indexes of several entries of one MAP column.

    The maps are unpacked once for all entries. A row counts as null if its map is null, lacks the key, or maps it to null.
    Of a repeated key the last value counts. A null key is ignored.
    """

    def __init__(self, entries: Sequence[FileIndexMaintainer]) -> None:
        self._entries = entries
        self._keys = [entry.column.key or "" for entry in entries]

    @property
    def omitted(self) -> list[str]:
        """Omitted indexes, with reasons."""
        return [line for entry in self._entries for line in entry.omitted]

    @property
    def advice(self) -> dict[str, str]:
        """Advice about indexes that cost more than they save."""
        return {index: advice for entry in self._entries for index, advice in entry.advice.items()}

    def write(self, array: Any) -> None:
        """Add the map column of the next rows."""
        for entry, values in zip(self._entries, map_entries(array, self._keys), strict=True):
            entry.write(values)

    def stored_indexes(self) -> list[StoredIndex]:
        """Return the container's entries for all map entries."""
        return [payload for entry in self._entries for payload in entry.stored_indexes()]


class DataFileIndexWriter:
    """Index writer of one data file.

    Passes its batches to the maintainers of all indexed columns.
    """

    def __init__(self, maintainers: Mapping[str, FileIndexMaintainer | MapFileIndexMaintainer]) -> None:
        self._maintainers = maintainers
        self.row_count = 0

    @classmethod
    def create(cls, options: FileIndexOptions, column_types: Mapping[str, ColumnType]) -> Self | None:
        """Return a writer for one data file.

        None if no written column has an index.

        >>> types = {"a": ColumnType("INT")}
        >>> options = FileIndexOptions.parse({"file-index.bitmap.columns": "a"}, types)
        >>> writer = DataFileIndexWriter.create(options, types)
        >>> writer.write(pa.record_batch({"a": pa.array([1, 2], pa.int32())}))
        >>> [(column, kind, len(payload)) for column, kind, payload in writer.finish()]
        [('a', 'bitmap', 54)]
        """
        by_column: dict[ColumnRef, list[IndexSpec]] = {}
        for spec in options.specs:
            if spec.column.name in column_types:
                by_column.setdefault(spec.column, []).append(spec)
        plain: dict[str, FileIndexMaintainer | MapFileIndexMaintainer] = {}
        entries: dict[str, list[FileIndexMaintainer]] = {}
        for column, specs in by_column.items():
            maintainer = FileIndexMaintainer(column, type_of(column, column_types), specs)
            if column.key is None:
                plain[column.name] = maintainer
            else:
                entries.setdefault(column.name, []).append(maintainer)
        maps = {name: MapFileIndexMaintainer(maintainers) for name, maintainers in entries.items()}
        return cls({**plain, **maps}) if plain or maps else None

    def write(self, batch: Any) -> None:
        """Add the next rows of the file.

        ``batch`` is a RecordBatch or Table with at least the indexed columns.

        Raises:
            UnknownColumn: An indexed column is missing in the batch.
        """
        if batch.num_rows == 0:
            return
        for name, maintainer in self._maintainers.items():
            position = batch.schema.get_field_index(name)
            if position < 0:
                raise UnknownColumn(name, tuple(batch.schema.names))
            column = batch.column(position)
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else (column,):
                maintainer.write(chunk)
        self.row_count += batch.num_rows

    @property
    def omitted(self) -> list[str]:
        """Indexes that could not hold this file's values, with reasons.

        Available after ``finish``.
        """
        return [line for maintainer in self._maintainers.values() for line in maintainer.omitted]

    @property
    def advice(self) -> dict[str, str]:
        """Advice about indexes that cost more than they save.

        Available after ``finish``.
        """
        return {index: advice for maintainer in self._maintainers.values() for index, advice in maintainer.advice.items()}

    def finish(self) -> list[StoredIndex]:
        """Return the indexes of all rows, for ``write_index_container``."""
        return [index for maintainer in self._maintainers.values() for index in maintainer.stored_indexes()]
