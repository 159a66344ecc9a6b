"""Change the schema: columns, types, comments, options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fileindex.base.errors import UnsupportedOption
from manifest.options.core_options import CoreOptions
from manifest.schema.change import ChangeOptions, SchemaChange
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.request.state_results import TableChangeResult

if TYPE_CHECKING:
    from manifest.store import FileStore


class AlterSchema(Operation[TableChangeResult]):
    """Write one new schema version with all changes."""

    changes: tuple[SchemaChange, ...]

    def run(self, table: OpenTable) -> TableChangeResult:
        """Check and write the schema."""
        store = table.store()
        check_rescale(store, self.changes)
        store.schemas.alter(self.changes)
        return TableChangeResult()


def check_rescale(store: FileStore, changes: Sequence[SchemaChange]) -> None:
    """Raise ``UnsupportedOption`` for a bucket number that files contradict.

    A table with partitions may change it: each partition keeps its number until it is overwritten, new partitions use the new one.
    """
    changed = {key: value for change in changes if isinstance(change, ChangeOptions) for key, value in change.options.items()}
    if store.schema.partition_keys or changed.get("bucket") is None:
        return
    wanted = CoreOptions.of({"bucket": str(changed["bucket"])}).bucket
    if wanted < 1 or store.options.bucket < 1:
        return
    others = set(store.live_entries(store.snapshots.latest()).total_buckets.tolist()) - {wanted}
    if others:
        raise UnsupportedOption(
            "bucket",
            f"{store.root} has no partitions and its rows are in {others.pop()} buckets, so later writes would fail; "
            "to rescale, copy to a new table: Table.create(path, table.schema, table.primary_keys, "
            f"options={{**table.options, 'bucket': '{wanted}'}}).write(table.scan().to_arrow())",
        )


__all__ = ["AlterSchema", "check_rescale"]
