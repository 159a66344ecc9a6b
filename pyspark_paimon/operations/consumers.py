"""Set or delete the position of a consumer."""

from __future__ import annotations

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.request.state_results import TableChangeResult


class ResetConsumer(Operation[TableChangeResult]):
    """Set the next snapshot of a consumer.

    ``following`` None: delete the consumer.
    """

    name: str
    following: int | None

    def run(self, table: OpenTable) -> TableChangeResult:
        """Write or delete the consumer file."""
        store = table.store()
        if self.following is None:
            if not store.snapshots.delete_consumer(self.name):
                raise InvalidArgument(f"{store.root}: there is no consumer '{self.name}'")
        elif self.following < 1:
            raise InvalidArgument(f"a consumer reads a snapshot next, and {self.following} is none")
        else:
            store.snapshots.record_consumer(self.name, self.following)
        return TableChangeResult(snapshot_id=self.following)


__all__ = ["ResetConsumer"]
