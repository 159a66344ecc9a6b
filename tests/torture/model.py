"""What a table must hold: its rows, tags and branches as plain dicts, changed by the same operations.

A row is a dict of its values that are not null. Rows of tables with a key are held by ``id``, others in a list.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Rows = dict[int, Row] | list[Row]
Operation = dict[str, Any]


def plain(row: Mapping[str, Any]) -> Row:
    return {name: value for name, value in row.items() if value is not None and name != "_row_kind"}


def bag(rows: Iterable[Mapping[str, Any]], without: Iterable[str] = ()) -> Counter[str]:
    left = set(without)
    return Counter(repr(sorted((name, value) for name, value in plain(row).items() if name not in left)) for row in rows)


def values(rows: Rows) -> Iterable[Row]:
    return rows.values() if isinstance(rows, dict) else rows


@dataclass
class Model:
    """A table of one merge engine (``append``: without key)."""

    engine: str
    partitioned: bool = False
    rows: Rows = field(default_factory=dict)
    tags: dict[str, Rows] = field(default_factory=dict)
    maybe_tags: dict[str, Rows] = field(default_factory=dict)
    branches: dict[str, Rows] = field(default_factory=dict)
    bases: dict[str, tuple[str, Rows]] = field(default_factory=dict)
    """The tag that each branch was made from, and its rows: a branch has its own copy, which a move to it brings back."""
    columns: list[str] = field(default_factory=lambda: ["id", "p", "n", "s"])
    dropped: list[str] = field(default_factory=list)
    answered: list[Operation] = field(default_factory=list)
    """Operations with an id that were acknowledged, and may be repeated."""

    def __post_init__(self) -> None:
        if self.engine == "append" and not self.rows:
            self.rows = []

    def after(self, operation: Operation) -> Model:
        """The table once ``operation`` is done whole."""
        done = copy.copy(self)
        for name in ("tags", "maybe_tags", "branches", "bases", "columns", "dropped", "answered"):
            setattr(done, name, copy.copy(getattr(self, name)))
        getattr(done, f"_{operation['op'].replace('-', '_')}", lambda _: None)(operation)
        if "id" in operation and self._commits(operation):
            done.answered = [*done.answered[-8:], operation]
        return done

    def _commits(self, operation: Operation) -> bool:
        """Whether it makes a commit that can be found again: an update or a delete of no row makes none."""
        if operation["op"] not in {"delete", "update"}:
            return True
        low, high = operation["between"]
        return any(low <= row["id"] < high for row in values(self.rows))

    def _write(self, operation: Operation) -> None:
        self.rows = self._merged(self.rows, operation["rows"])

    def _overwrite(self, operation: Operation) -> None:
        new = operation["rows"]
        touched = {row["p"] for row in new}
        kept: Rows = type(self.rows)()
        if self.partitioned and isinstance(self.rows, dict):
            kept = {key: row for key, row in self.rows.items() if row["p"] not in touched}
        elif self.partitioned:
            kept = [row for row in values(self.rows) if row["p"] not in touched]
        self.rows = self._merged(kept, new)

    def _delete(self, operation: Operation) -> None:
        low, high = operation["between"]
        if isinstance(self.rows, dict):
            self.rows = {key: row for key, row in self.rows.items() if not low <= key < high}
        else:
            self.rows = [row for row in self.rows if not low <= row["id"] < high]

    def _update(self, operation: Operation) -> None:
        low, high = operation["between"]

        def changed(row: Row) -> Row:
            return {**row, **operation["set"]} if low <= row["id"] < high else row

        if isinstance(self.rows, dict):
            self.rows = {key: changed(row) for key, row in self.rows.items()}
        else:
            self.rows = [changed(row) for row in self.rows]

    def _tag(self, operation: Operation) -> None:
        self.tags[operation["name"]] = self.rows

    def _untag(self, operation: Operation) -> None:
        self.maybe_tags.pop(operation["name"], None)
        self.tags.pop(operation["name"], None)

    def _rollback(self, operation: Operation) -> None:
        self.rows = self.tags[operation["name"]]
        self._back_to(operation["name"])

    def _branch(self, operation: Operation) -> None:
        self.tags[operation["tag"]] = self.rows
        self.branches[operation["name"]] = self.rows
        self.bases[operation["name"]] = operation["tag"], self.rows

    def _branch_write(self, operation: Operation) -> None:
        self.branches[operation["name"]] = self._merged(self.branches[operation["name"]], operation["rows"])

    def _unbranch(self, operation: Operation) -> None:
        self.branches.pop(operation["name"], None)

    def _fast_forward(self, operation: Operation) -> None:
        self.rows = self.branches[operation["name"]]
        tag, rows = self.bases[operation["name"]]
        self._back_to(tag)
        self.maybe_tags.setdefault(tag, rows)

    def _back_to(self, tag: str) -> None:
        """Tags that came later may go: whether a snapshot lies between is the table's affair."""
        names = list(self.tags)
        for later in names[names.index(tag) + 1 :] if tag in names else names:
            self.maybe_tags[later] = self.tags.pop(later)
        self.answered = []

    def _add_column(self, operation: Operation) -> None:
        self.columns.append(operation["name"])

    def _drop_column(self, operation: Operation) -> None:
        name = operation["name"]
        self.columns.remove(name)
        self.dropped.append(name)

    def _merged(self, rows: Rows, new: Iterable[Row]) -> Rows:
        if not isinstance(rows, dict):
            return [*rows, *map(plain, new)]
        merged = dict(rows)
        for row in new:
            self._fold(merged, row["id"], row)
        return merged

    def _fold(self, rows: dict[int, Row], key: int, row: Row) -> None:
        old = rows.get(key)
        match self.engine:
            case "first-row":
                rows.setdefault(key, plain(row))
            case "partial-update":
                rows[key] = {**(old or {}), **plain(row)}
            case "aggregation":
                total = [found["n"] for found in (old or {}, plain(row)) if "n" in found]
                rows[key] = {**(old or {}), **plain(row), **({"n": sum(total)} if total else {})}
            case _ if row.get("_row_kind") == "-D":
                rows.pop(key, None)
            case _:
                rows[key] = plain(row)
