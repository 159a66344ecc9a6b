"""Change the schema: columns, types, comments, options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from manifest.io.errors import InvalidSchema, SchemaMismatch
from manifest.options.core_options import CoreOptions
from manifest.schema.change import ChangeOptions, SchemaChange
from manifest.schema.merge_on_write import MergeRules, merge_changes
from manifest.schema.retyped import lossy_change
from paimon_base.errors import UnsupportedOption
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.results.state_results import TableChangeResult

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema
    from manifest.store import FileStore
    from pyspark_paimon.request.engine import Engine
    from pyspark_paimon.request.requests import WriteRequest


class AlterSchema(Operation[TableChangeResult]):
    """Write one new schema version with all changes.

    ``rescales``: the caller moves stored rows into a new number of buckets.
    """

    changes: tuple[SchemaChange, ...]
    rescales: bool = False

    def run(self, table: OpenTable) -> TableChangeResult:
        """Check and write the schema."""
        store = table.store()
        if not self.rescales:
            check_rescale(store, self.changes)
        check_types(store, self.changes)
        store.schemas.alter(self.changes)
        return TableChangeResult()


def store_for(table: OpenTable, request: WriteRequest) -> FileStore:
    """Open a table with the schema that a write gives it."""
    store = table.store(request.options, request.schema_id)
    if request.pending is None or store.schema.id >= request.pending.id:
        return store
    return store.with_pending(request.pending)


def store_pending(engine: Engine | OpenTable, pending: TableSchema) -> None:
    """Store the schema of a write whose rows passed all checks.

    Raises ``SchemaMismatch`` if another version was stored meanwhile: the files of the write refer to this one.
    """
    newest = engine.ask(SchemaOf())
    if newest.id < pending.id:
        changes = merge_changes(newest, pending.fields, MergeRules(widens=True, casts=True))
        try:
            engine.run(AlterSchema(changes=changes))
        except InvalidSchema:
            if engine.ask(SchemaOf()).id == newest.id:
                raise  # no other writer added such a column
    if engine.ask(SchemaOf(id=pending.id)).fields != pending.fields:
        raise SchemaMismatch(f"{engine.path}: the schema changed while this write added columns; nothing was committed. Write again")


def check_types(store: FileStore, changes: Sequence[SchemaChange]) -> None:
    """Raise ``InvalidSchema`` for a new type that may change stored values.

    A table without snapshot has no values.
    """
    if store.snapshots.latest_id() is None:
        return
    # Files keep the types of their schemas: compare with every type that the column has had.
    versions = (store.schemas.get(schema_id) for schema_id in sorted(store.schemas.ids(), reverse=True))
    lossy = lossy_change(store.schema, changes, versions)
    if lossy is None:
        return
    name, old, new = lossy.name, lossy.old.with_nullable(nullable=True), lossy.new.with_nullable(nullable=True)
    way = (
        f"Bring it back as {old} first, then change its type"
        if lossy.is_back
        else f"change_type('{name}', '{new}', dry_run=True) counts such values, and force=True changes the type anyway"
    )
    raise InvalidSchema(
        f"{store.root}: column '{name}': {new} does not keep every value of {old}: numbers wrap around or lose digits, texts are "
        f"cut, and a text that is not a valid {new} makes reads fail. Nothing was changed. {way}"
    )


def check_rescale(store: FileStore, changes: Sequence[SchemaChange]) -> None:
    """Raise ``UnsupportedOption`` for a bucket number that files contradict.

    A table with partitions may change it: each partition keeps its number until it is overwritten, new partitions use the new one.
    """
    changed = {key: value for change in changes if isinstance(change, ChangeOptions) for key, value in change.options.items()}
    if store.schema.partition_keys or changed.get("bucket") is None:
        return
    bucket_count = CoreOptions.of({"bucket": str(changed["bucket"])}).bucket
    if bucket_count < 1 or store.options.bucket < 1:
        return
    other_counts = set(store.live_entries(store.snapshots.latest()).total_buckets.tolist()) - {bucket_count}
    if other_counts:
        raise UnsupportedOption(
            "bucket",
            f"{store.root} has no partitions and its rows are in {other_counts.pop()} buckets, so later writes would fail; "
            f"call rescale({bucket_count}), which moves the rows, too",
        )
