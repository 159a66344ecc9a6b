"""Change the number of buckets of stored rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from lsm.commit.rescale import partitions_to_rescale, rescale_partition
from manifest.entry.live import EntryFilter
from manifest.io.errors import UnsupportedTable
from manifest.schema.change import ChangeOptions
from manifest.schema.evolution import evolve
from manifest.schema.table_schema import BucketMode
from paimon_base.errors import InvalidArgument
from pyspark_paimon.operations.alter import AlterSchema
from pyspark_paimon.operations.history.removal import Destruction, partition_names, preview_partitions
from pyspark_paimon.request.bound import BoundFilter
from pyspark_paimon.request.operation import OpenTable
from pyspark_paimon.request.partition_spec import predicate_of
from pyspark_paimon.results.message import CommitId, CommitProperties
from pyspark_paimon.results.state_results import TableChangeResult

if TYPE_CHECKING:
    from manifest.store import FileStore

_MOST_BUCKETS = 2**31 - 1


class Rescale(Destruction):
    """Rewrite partitions into another number of buckets.

    ``buckets`` None: the table's option. ``partitions`` and ``predicate`` None: all that have another number.
    ``predicate``: a bound filter on partition columns, instead of ``partitions``.
    """

    stage: ClassVar[str | None] = "rescale"
    commit_id: CommitId
    buckets: int | None = None
    partitions: tuple[dict[str, str | None], ...] | None = None
    predicate: BoundFilter | None = None
    properties: CommitProperties = Field(default_factory=dict)

    def run(self, table: OpenTable) -> TableChangeResult:
        """Set the option, then commit each partition on its own.

        A call that was interrupted is finished by ``Rescale`` without ``buckets``.
        """
        store = table.writable()
        self._check(store)
        if self.buckets is not None and self.buckets != store.options.bucket:
            changes = (ChangeOptions(options={"bucket": str(self.buckets)}),)
            if not self.dry_run:
                table.run(AlterSchema(changes=changes, rescales=True))
            store = store.with_schema(evolve(store.schema, changes)) if self.dry_run else table.writable()
        predicate = self.predicate if self.partitions is None else predicate_of(self.partitions, store.schema)
        stale_partitions = partitions_to_rescale(store, store.snapshots.latest(), EntryFilter(predicate=predicate))
        if self.dry_run:
            return preview_partitions(store, stale_partitions)
        names, snapshot_id = partition_names(store, stale_partitions), None
        for number, partition in enumerate(stale_partitions):
            committed = rescale_partition(store, partition, f"{self.commit_id}-{number}", threads=table.threads, properties=self.properties)
            snapshot_id = committed.snapshot_id or snapshot_id
        return TableChangeResult(snapshot_id=snapshot_id, partitions=names)

    def _check(self, store: FileStore) -> None:
        """Raise ``UnsupportedTable`` or ``InvalidArgument`` where the change is not possible."""
        if store.schema.bucket_mode is not BucketMode.HASH_FIXED:
            raise UnsupportedTable(
                f"{store.root}: option 'bucket' is {store.options.bucket}, so the table has no fixed number of buckets to change"
            )
        if self.buckets is None or self.buckets == store.options.bucket:
            return
        if not 1 <= self.buckets <= _MOST_BUCKETS:
            raise InvalidArgument(f"{store.root}: a table has 1 to {_MOST_BUCKETS} buckets, not {self.buckets}")
        if self.partitions is not None or self.predicate is not None:
            raise InvalidArgument(
                f"{store.root}: the number of buckets is an option of the whole table: alter_options({{'bucket': '{self.buckets}'}}) first, "
                "then rescale the partitions; the others stay readable, and refuse writes until they are rescaled"
            )
