"""In-process merge of source rows into a table.

Rows are matched by columns and changed by clause. The result is committed on the snapshot that was read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.predicate.tree import TRUE, ColumnRef, In, Predicate, all_of
from lsm.keys.key_set import KeySet
from lsm.keys.sort import DELETE, INSERT, UPDATE_AFTER
from lsm.rows_in.conform import conform
from lsm.write.bucket_writer import WriteJob
from lsm.write.copy_on_write import AppendMerge, Successors
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.commit.repeated_commits import committed_before
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import cached_property
from pyspark_paimon.filter.columns import SOURCE, TARGET
from pyspark_paimon.jobs.change_rows import Change, Evaluated, FilesChange
from pyspark_paimon.jobs.progress import FlushProgress
from pyspark_paimon.request.bound import Value
from pyspark_paimon.request.keys import any_of_keys
from pyspark_paimon.request.merge import Clause, MergeRequest, check_merge
from pyspark_paimon.request.operation import OpenTable
from pyspark_paimon.request.requests import EVERY_LEVEL, DeleteRequest, ScanRequest
from pyspark_paimon.results.results import MergeResult
from sparkexpr.expression.compute import compute
from sparkexpr.expression.tree import ColumnValue, Expression
from sparkexpr.values.arrays import Int64s, Mask, arrow_array
from sparkexpr.values.plain_value import plain_array, plain_values

_KINDS = {"update": UPDATE_AFTER, "delete": DELETE, "insert": INSERT}
_CHANGED = {"update": "updated", "delete": "deleted", "insert": "inserted"}
_NOWHERE = np.zeros(0, np.int64)
Places = Mapping[str, Int64s]
"""Row indexes by side. Equal positions belong together."""
WrittenRows = tuple[pa.Table, int]
"""Rows with the table's columns, and their row kind."""


@dataclass
class MergeRows:
    """One evaluation of a merge.

    Process the rows of the table first, then ``inserts``: source rows without a match.

    Args:
        schema: Schema of the table.
        merge: All source rows, the join and the clauses.
    """

    schema: TableSchema
    merge: MergeRequest
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0))

    def __post_init__(self) -> None:
        self._matched = np.zeros(self.merge.source.num_rows, np.bool_)
        self._counting = Lock()

    @property
    def reads_all(self) -> bool:
        """Whether table rows without a match are needed, too."""
        return any(clause.when == "not matched by source" for clause in self.merge.clauses)

    @cached_property
    def predicate(self) -> Predicate:
        """Predicate that matches all table rows that can match."""
        types = self.schema.column_types
        return all_of(*(In(ColumnRef(name), _values(self._keys.rows.column(name), types[name])) for name in self._keys.names))

    def of_target(self, batch: pa.RecordBatch) -> Iterator[WrittenRows]:
        """Return the changes of table rows.

        Raises ``InvalidArgument`` where two source rows would change one row.
        """
        return (self._made(*change) for change in self._changes(pa.Table.from_batches([batch])))

    def successors(self, rows: pa.Table) -> Successors:
        """Return the changes of rows to replace in files.

        The caller passes the changed row counts to ``count_changes``.
        """
        gone, positions, new = [_NOWHERE], [_NOWHERE], [rows.slice(0, 0)]
        for clause, places, sides in self._changes(rows):
            if clause.action == "delete":
                gone.append(places[TARGET])
            else:
                positions.append(places[TARGET])
                new.append(self._new(clause, places, sides))
        return Successors(np.concatenate(gone), np.concatenate(positions), pa.concat_tables(new))

    def count_changes(self, deleted: int, updated: int) -> None:
        """Count rows that ``successors`` changed. Thread-safe."""
        with self._counting:
            self.counts["delete"] += deleted
            self.counts["update"] += updated

    def _changes(self, rows: pa.Table) -> Iterator[tuple[Clause, Places, Mapping[str, pa.Table]]]:
        target, source = self._pairs(rows)
        self._matched[source] = True
        sides = {TARGET: rows, SOURCE: self.merge.source}
        matches = np.zeros(rows.num_rows, np.int64)
        for clause, places in self._decide_clauses("matched", {TARGET: target, SOURCE: source}, sides):
            if not clause.is_version:
                np.add.at(matches, places[TARGET], 1)
            yield clause, places, sides
        if (twice := np.flatnonzero(matches > 1)).size:
            raise InvalidArgument(f"merge: two rows of the source match the row {self._name(rows, int(twice[0]))}")
        if self.reads_all:
            lone = np.ones(rows.num_rows, np.bool_)
            lone[target] = False
            for clause, places in self._decide_clauses("not matched by source", {TARGET: np.flatnonzero(lone)}, sides):
                yield clause, places, sides

    def inserts(self) -> Iterator[WrittenRows]:
        """Yield the source rows to insert."""
        sides = {SOURCE: self.merge.source}
        for clause, places in self._decide_clauses("not matched", {SOURCE: np.flatnonzero(~self._matched)}, sides):
            yield self._made(clause, places, sides)

    def refuse_repeated_keys(self, inserts: Sequence[WrittenRows]) -> None:
        """Raise ``InvalidArgument`` if two inserts have one key."""
        if inserts and not any(clause.is_version for clause in self.merge.clauses):
            rows = pa.concat_tables([rows for rows, _ in inserts])
            numbers = KeySet(rows.select(list(self.schema.primary_keys)).combine_chunks()).numbers
            if len(numbers) and (counts := np.bincount(numbers)).max() > 1:
                row = int(np.flatnonzero(numbers == int(counts.argmax()))[0])
                raise InvalidArgument(f"merge: two rows of the source are inserted with the key {self._name(rows, row)}")

    @cached_property
    def _keys(self) -> KeySet:
        """Join columns of the source in the table's types.

        Source rows with a null there are left out.
        """
        return KeySet(_zeros_alike(self._columns.take(arrow_array(self._keyed))))

    @cached_property
    def _columns(self) -> pa.Table:
        fields = tuple(self.schema.field(name) for name, _ in self.merge.join.pairs)
        nullable = tuple(type(field)(field.id, field.name, field.type.with_nullable(nullable=True)) for field in fields)
        arrays = [self.merge.source.column(name) for _, name in self.merge.join.pairs]
        return conform(pa.table(arrays, names=[field.name for field in fields]), TableSchema(id=0, fields=nullable)).combine_chunks()

    @cached_property
    def _keyed(self) -> Int64s:
        has_key = np.ones(self._columns.num_rows, np.bool_)
        for column in self._columns.columns:
            has_key &= np.asarray(column.is_valid())
        return np.flatnonzero(has_key)

    def _pairs(self, rows: pa.Table) -> tuple[Int64s, Int64s]:
        """Return indexes of matching table and source rows."""
        wanted_keys = _zeros_alike(rows.select(self._keys.names))
        has_key = np.ones(rows.num_rows, np.bool_)
        for column in wanted_keys.columns:
            has_key &= np.asarray(column.is_valid())
        row_positions = np.flatnonzero(has_key)
        key_numbers = self._keys.find(wanted_keys.take(arrow_array(row_positions)))
        row_positions, key_numbers = row_positions[key_numbers >= 0], key_numbers[key_numbers >= 0]
        order, starts, counts = self._by_key
        target = np.repeat(row_positions, counts[key_numbers])
        begins = np.repeat(starts[key_numbers], counts[key_numbers])
        offsets = np.arange(len(target)) - np.repeat(np.cumsum(counts[key_numbers]) - counts[key_numbers], counts[key_numbers])
        source = self._keyed[order[begins + offsets]]
        for condition in self.merge.join.conditions:
            holds = self._holds(condition, {TARGET: target, SOURCE: source}, {TARGET: rows, SOURCE: self.merge.source})
            target, source = target[holds], source[holds]
        return target, source

    @cached_property
    def _by_key(self) -> tuple[Int64s, Int64s, Int64s]:
        """Source rows grouped by key number.

        An order of the rows, and the start and count of each key in it.
        """
        numbers = self._keys.numbers
        counts = np.bincount(numbers, minlength=len(self._keys)).astype(np.int64)
        return np.argsort(numbers, kind="stable"), np.cumsum(counts) - counts, counts

    def _decide_clauses(
        self, when: str, positions: Mapping[str, Int64s], sides: Mapping[str, pa.Table]
    ) -> Iterator[tuple[Clause, Mapping[str, Int64s]]]:
        """Yield each clause with the rows it applies to.

        The first clause with a true condition takes a row.
        """
        left = dict(positions)
        for clause in self.merge.clauses:
            if clause.when != when:
                continue
            size = len(next(iter(left.values())))
            holds = np.ones(size, np.bool_) if clause.condition is None else self._holds(clause.condition, left, sides)
            if holds.any():
                yield clause, {side: side_positions[holds] for side, side_positions in left.items()}
            left = {side: side_positions[~holds] for side, side_positions in left.items()}

    def _holds(self, condition: Expression, positions: Mapping[str, Int64s], sides: Mapping[str, pa.Table]) -> Mask:
        return np.asarray(self._compute_values(condition, positions, sides).fill_null(False))

    def _compute_values(self, value: Value, positions: Mapping[str, Int64s], sides: Mapping[str, pa.Table]) -> Any:
        def column(reference: ColumnValue) -> Any:
            side, name = reference.name.split(".", 1)
            array = sides[side].column(name).take(arrow_array(positions[side]))
            array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
            if reference.key is not None:
                return pc.map_lookup(array, pa.scalar(reference.key), "last")
            return array

        rows = len(next(iter(positions.values())))
        if isinstance(value, pa.Scalar):
            return pa.repeat(value, rows)
        return column(value) if isinstance(value, ColumnValue) else compute(value, column, rows)

    def _made(self, clause: Clause, positions: Places, sides: Mapping[str, pa.Table]) -> WrittenRows:
        self.counts[clause.action] += len(next(iter(positions.values())))
        return self._new(clause, positions, sides), _KINDS[clause.action]

    def _new(self, clause: Clause, positions: Places, sides: Mapping[str, pa.Table]) -> pa.Table:
        """Return a clause's new rows, or its deleted rows."""
        if clause.action == "insert":
            arrays = {name: self._compute_values(value, positions, sides) for name, value in clause.values.items()}
            return conform(pa.table(arrays), self.schema)
        rows = old = sides[TARGET].take(arrow_array(positions[TARGET]))
        for name, value in clause.values.items():
            rows = rows.set_column(rows.column_names.index(name), name, self._compute_values(value, positions, sides))
        if not clause.values:
            return rows
        version, rows = clause.new_version(self.schema), conform(rows, self.schema)
        return rows if version is None else version.apply(old, rows)

    def _name(self, rows: pa.Table, row: int) -> str:
        names = self.schema.primary_keys or self._keys.names
        return ", ".join(f"{name} = {rows.column(name)[row].as_py()!r:.60}" for name in names)


def _zeros_alike(rows: pa.Table) -> pa.Table:
    """Replace -0.0 by 0.0.

    In SQL, zeros of both signs are equal when rows are matched.
    """
    for number, column in enumerate(rows.columns):
        if pa.types.is_floating(column.type):
            rows = rows.set_column(number, rows.column_names[number], pc.add(column, pa.scalar(0.0, column.type)))
    return rows


def _values(column: Any, column_type: Any) -> tuple[Any, ...]:
    return tuple(plain_values(pc.unique(plain_array(column, column_type)), column_type))


@dataclass(frozen=True, kw_only=True)
class MergeChange(Change):
    """A merge, evaluated on a snapshot and committed on it."""

    merge: MergeRequest
    _last: list[MergeRows] = field(default_factory=list)

    @property
    def verb(self) -> str:
        """See ``Change``."""
        return "merge"

    @property
    def changed(self) -> dict[str, int]:
        """Rows by kind of change, by the names of ``MergeResult``."""
        counts = self._last[-1].counts if self._last else {}
        return {name: counts.get(action, 0) for action, name in _CHANGED.items()}

    @property
    def reads_all(self) -> bool:
        """See ``Change``."""
        return self.merge.reads_all(self.store.schema)

    def evaluate(self, base: Snapshot | None, messages: list[CommitMessage]) -> int:
        """See ``Change``. Raises ``SchemaMismatch`` if another commit changed the schema."""
        if base is not None and base.schema_id > self.store.schema.id:
            raise SchemaMismatch(f"{self.store.root}: the schema changed during the merge; nothing was committed. Merge again")
        merge = MergeRows(self.store.schema, self.merge)
        self._last.append(merge)
        base_id = None if base is None else base.id
        batches = self._read_matches(merge, base, messages)
        user = self.request.commit_id
        flush = FlushProgress(self.table.progress)
        store = self.store.with_listener(flush)
        with TableWrite(store, WriteJob(commit_id=user, threads=self.table.threads, base_snapshot_id=base_id)) as write:
            for batch in batches:
                _write(write, merge.of_target(batch))
            inserts = list(merge.inserts())
            self._check_inserts(merge, inserts, base_id)
            _write(write, inserts)
            changed = sum(merge.counts.values())
            with flush.begin(changed):
                messages += write.prepare_commit()
        return changed

    @abstractmethod
    def _read_matches(self, merge: MergeRows, base: Snapshot | None, messages: list[CommitMessage]) -> Iterable[pa.RecordBatch]:
        """Return rows of ``base`` whose changes are written like inserts.

        Adds the files that it changes to ``messages``.
        """

    def _check_inserts(self, merge: MergeRows, inserts: Sequence[WrittenRows], snapshot_id: int | None) -> None:
        """Raise ``InvalidArgument`` if inserts conflict. Rows without key never do."""


class KeyedMerge(MergeChange):
    """A merge that writes new versions of rows."""

    def _read_matches(self, merge: MergeRows, base: Snapshot | None, messages: list[CommitMessage]) -> Iterable[pa.RecordBatch]:  # noqa: ARG002  # files do not change
        return self._read(None if merge.reads_all else merge.predicate, None if base is None else base.id)

    def _check_inserts(self, merge: MergeRows, inserts: Sequence[WrittenRows], snapshot_id: int | None) -> None:
        merge.refuse_repeated_keys(inserts)
        if not self.merge.join.finds_keys(self.store.schema):
            self._refuse_existing_keys(inserts, snapshot_id)

    def _read(self, predicate: Predicate | None, snapshot_id: int | None, keys: KeySet | None = None) -> Iterator[pa.RecordBatch]:
        schema, pending = self.store.schema, self.store.pending
        request = ScanRequest(
            predicate=predicate,
            keys=keys,
            columns=schema.names,
            snapshot_id=snapshot_id,
            schema_id=schema.id if pending is None else None,
            options=EVERY_LEVEL,
            pending=pending,
        )
        return self.table.read(request, stage=self.verb)

    def _refuse_existing_keys(self, inserts: Sequence[WrittenRows], snapshot_id: int | None) -> None:
        """Raise ``InvalidArgument`` if an insert's key exists."""
        # An upsert of the key would silently replace a row that the condition did not match.
        for rows, _ in inserts:
            keys = KeySet(rows.select(list(self.store.schema.primary_keys)).combine_chunks())
            for batch in self._read(any_of_keys(keys, self.store.schema), snapshot_id, keys):
                if batch.num_rows:
                    name = ", ".join(f"{key} = {batch.column(key)[0].as_py()!r:.60}" for key in keys.names)
                    raise InvalidArgument(f"merge: a source row matches no table row, but the table has its key {name}: match by the key")


class FilesMerge(MergeChange, FilesChange):
    """A merge that marks rows in their files, or rewrites the files."""

    def _read_matches(self, merge: MergeRows, base: Snapshot | None, messages: list[CommitMessage]) -> Iterable[pa.RecordBatch]:
        if base is not None:
            predicate = TRUE if merge.reads_all else merge.predicate
            user, columns = self.request.commit_id, self.merge.updated_columns
            change = AppendMerge(self.store, base, predicate, user, columns=columns, decide=merge.successors, tell=merge.count_changes)
            self.rewrite_files(change, self.verb, messages)
        return ()


def merge_rows(
    table: OpenTable, request: DeleteRequest, merge: MergeRequest, evolve: Callable[[OpenTable, TableSchema], None]
) -> MergeResult:
    """Merge and commit.

    ``evolve`` stores the schema that the merge gives the table. Raises ``InvalidArgument`` where source rows conflict, and the errors of
    updates.
    """
    store, pending = table.store(request.options), merge.pending
    schema = store.schema if pending is None else pending
    check_merge(merge.clauses, schema, store.root)
    merge_of = FilesMerge if schema.kind.changes_files else KeyedMerge
    change: MergeChange = merge_of(table, store, request, merge=merge)
    if pending is not None and store.schema.id >= pending.id:
        evolve(table, pending)  # another writer changed the schema: raises unless it is this one
    elif pending is not None and (request.first_run or committed_before(store, request.commit_id, request.identifier) is None):
        ready = Evaluated.of(replace(change, store=store.with_pending(pending)))
        try:
            evolve(table, pending)
        except BaseException:
            FileStoreCommit(store, request.commit_id).abort(ready.messages, identifier=request.identifier)
            raise
        change = replace(change, store=table.store(request.options), ready=ready)
    result = change.run()
    return MergeResult.model_validate({**dict(result), **change.changed})


def _write(write: TableWrite, written_rows: Iterable[WrittenRows]) -> None:
    for rows, kind in written_rows:
        write.write(rows, kinds=arrow_array(np.full(rows.num_rows, kind, np.int8)))
