"""The stops of one operation that matter beside another: before a file operation that does not commute with those of the other.

Two neighbouring stops have the same outcome if the file operation between them commutes with everything the other operation does. Files
are compared by pattern: a number or a unique part of a name stands for any, because the other operation may meet newer files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.torture.disk import Operation

_UNIQUE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{16}")
_NUMBER = re.compile(r"\d+")
_READS = frozenset({"open", "read", "stat"})
_REMOVES = frozenset({"unlink", "rmdir"})


@dataclass
class Footprint:
    """The files that an operation reads, creates and removes, by pattern, and the directories that it lists or locks."""

    read: set[str] = field(default_factory=set)
    created: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    locked: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, operations: Sequence[Operation]) -> Footprint:
        found = cls()
        locks = _locks(operations)
        for operation in operations:
            path = pattern(operation.path)
            match operation.name:
                case "fsync":
                    continue
                case "scandir":
                    found.listed.add(path)
                case name if name in _READS:
                    found.read.add(path)
                case name if name in _REMOVES:
                    found.removed.add(path)
                    found.changed.add(_parent(path))
                case _:
                    found.created.add(path)
                    found.changed.add(_parent(path))
            if operation.number in locks:
                found.locked.add(path)
        return found

    def conflicts(self, operation: Operation, *, locks: bool) -> bool:
        """Return whether a file operation of another process does not commute with these."""
        path = pattern(operation.path)
        if operation.name == "fsync":
            return False
        if operation.name == "scandir":
            return path in self.changed
        if operation.name in _READS:
            changed = path in self.removed or (path in self.created and "*" not in path)
            return changed or (locks and path in self.locked)
        touched = path in self.read or path in self.created or path in self.removed
        if operation.name in _REMOVES:
            return touched or _parent(path) in self.listed
        if "*" in path:  # a new name, which nobody knows who does not list
            return path in self.removed or (_parent(path) in self.listed and not path.endswith(".tmp"))
        return touched or _parent(path) in self.listed


def relevant_stops(operations: Sequence[Operation], others: Sequence[Footprint]) -> list[int]:
    """Return the numbers of the operations to stop before, one for each group of stops with the same outcome."""
    locks = _locks(operations)
    return [o.number for o in operations if any(other.conflicts(o, locks=o.number in locks) for other in others)]


def _locks(operations: Sequence[Operation]) -> set[int]:
    """Return the numbers of the operations that open a directory for its lock, not to make it durable."""
    used = {o.number for o, after in pairwise(operations) if after.path == o.path and after.name in {"fsync", "read"}}
    return {o.number for o in operations if o.name == "open" and o.number not in used}


def pattern(path: str) -> str:
    """Return a path of a table with "*" for unique parts of a name and "#" for numbers.

    >>> pattern("/snapshot/snapshot-17"), pattern("/bucket-0/data-6bd5e29ecb070c4e-2.parquet")
    ('/snapshot/snapshot-#', '/bucket-#/data-*-#.parquet')
    """
    return _NUMBER.sub("#", _UNIQUE.sub("*", path))


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
