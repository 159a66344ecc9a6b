"""Set or delete the position of a consumer."""

from __future__ import annotations

import re

from paimon_base.errors import InvalidArgument
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.results.state_results import TableChangeResult


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
            raise InvalidArgument(
                f"{store.root}: consumer '{self.name}' needs the id of its next snapshot, at least 1, not {self.following}"
            )
        else:
            store.snapshots.record_consumer(self.name, self.following)
        done = "deleted" if self.following is None else f"reads snapshot {self.following} next"
        return TableChangeResult(snapshot_id=self.following, done=(f"consumer '{self.name}' {done}",))


class ClearConsumers(Operation[TableChangeResult]):
    """Delete consumers whose names match.

    ``including``, ``excluding``: regular expressions of whole names. None: all, or no name.
    """

    including: str | None = None
    excluding: str | None = None

    def run(self, table: OpenTable) -> TableChangeResult:
        """Delete the consumer files."""
        store = table.store()
        including, excluding = _pattern("including", self.including or ".*"), _pattern("excluding", self.excluding or r"(?!)")
        names = [name for name in store.snapshots.consumers() if including.fullmatch(name) and not excluding.fullmatch(name)]
        for name in names:
            store.snapshots.delete_consumer(name)
        return TableChangeResult(done=tuple(f"consumer '{name}' deleted" for name in names))


def _pattern(argument: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidArgument(f"clear_consumers: {argument} is not a regular expression: {text!r} ({error})") from error
