"""The operations of the torture: drawn at random for a model, or written down in a script, and carried out on a table."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from manifest.io.errors import CommitReplayed
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from tests.torture.model import Model, Operation, Row
from tests.torture.tables import Configuration

LATER = 2**61
KEYS = 40
INDEXES = ({"bloom-filter": "id,s"}, {"bitmap": "n", "bloom-filter": "s"}, {"range-bitmap": "n,id"}, {"bsi": "n"})
WEIGHTS = {
    "write": 30,
    "overwrite": 5,
    "delete": 9,
    "update": 7,
    "compact": 8,
    "compact-full": 7,
    "index": 4,
    "expire": 5,
    "orphans": 2,
    "analyze": 2,
    "replay": 8,
    "tag": 6,
    "untag": 3,
    "rollback": 4,
    "branch": 3,
    "branch-write": 5,
    "unbranch": 2,
    "fast-forward": 2,
    "add-column": 3,
    "drop-column": 2,
}


def opened(path: str, *, branch: str | None = None) -> Table:
    """The table, with one thread, so that a try goes the same way again."""
    return Table(LocalEngine(path if branch is None else f"{path}$branch_{branch}", threads=1))


class Draw:
    """Draws operations that are allowed on a table; ``branching`` ones have branches, others change their columns."""

    def __init__(self, dice: random.Random, configuration: Configuration, *, branching: bool) -> None:
        self.dice = dice
        self.configuration = configuration
        self.branching = branching
        self._number = 0

    def rows(self, model: Model, most: int = 12, *, deletes: bool = True) -> list[Row]:
        found = []
        for _ in range(self.dice.randint(1, most)):
            key = self.dice.randrange(KEYS)
            row: Row = {
                "id": key,
                "p": key % 3,
                "n": self._maybe(self.dice.randrange(100)),
                "s": self._maybe(self.dice.choice("abcdef") * 3),
            }
            row |= {name: self._maybe(self.dice.randrange(9)) for name in model.columns[4:]}
            if deletes and model.engine == "deduplicate" and self.dice.random() < 0.15:
                row["_row_kind"] = "-D"
            found.append(row)
        return found

    def next(self, model: Model) -> Operation:
        names = [name for name in WEIGHTS if self._allowed(name, model)]
        (what,) = self.dice.choices(names, [WEIGHTS[name] for name in names])
        return self._made(what, model)

    def _maybe(self, value: Any) -> Any:
        return None if self.dice.random() < 0.1 else value

    def _fresh(self, kind: str) -> str:
        self._number += 1
        return f"{kind}{self._number}"

    def _allowed(self, what: str, model: Model) -> bool:
        match what:
            case "delete" | "update":
                return self.configuration.deletes
            case "replay":
                return bool(model.answered)
            case "tag":
                return len(model.tags) < 4
            case "untag":
                return bool(self._free_tags(model))
            case "rollback":
                return bool(model.tags)
            case "branch":
                return self.branching and not model.branches
            case "branch-write" | "unbranch" | "fast-forward":
                return bool(model.branches)
            case "add-column":
                return not self.branching and len(model.columns) < 6
            case "drop-column":
                return len(model.columns) > 4
        return True

    def _free_tags(self, model: Model) -> list[str]:
        return [name for name in model.tags if name not in {tag for tag, _ in model.bases.values()}]

    def _made(self, what: str, model: Model) -> Operation:
        made: Operation = {"op": what}
        if what in {"write", "overwrite", "delete", "update"}:
            made["id"] = f"{self.dice.getrandbits(64):016x}"
        match what:
            case "write":
                made["rows"] = self.rows(model)
            case "overwrite":
                made["rows"] = self.rows(model, deletes=False)
            case "delete" | "update":
                low = self.dice.randrange(KEYS)
                made["between"] = [low, low + self.dice.randint(1, 8)]
                if what == "update":
                    made["set"] = {"n": self.dice.randrange(100), "s": "updated"}
            case "replay":
                made["of"] = self.dice.choice(model.answered)
            case "index":
                made["indexes"] = self.dice.choice(INDEXES)
            case "expire":
                made["keep"] = self.dice.randint(1, 3)
            case "tag" | "add-column":
                made["name"] = self._fresh("t" if what == "tag" else "x")
            case "untag":
                made["name"] = self.dice.choice(self._free_tags(model))
            case "rollback":
                made["name"] = self.dice.choice(list(model.tags))
            case "branch":
                made |= {"name": self._fresh("b"), "tag": self._fresh("t")}
            case "branch-write" | "unbranch" | "fast-forward":
                made["name"] = self.dice.choice(list(model.branches))
                made["rows"] = self.rows(model, deletes=False)
            case "drop-column":
                made["name"] = self.dice.choice(model.columns[4:])
        return made


def table_of(rows: list[Row], schema: pa.Schema) -> pa.Table:
    kinds = pa.array([row.get("_row_kind", "+I") for row in rows])
    made = pa.Table.from_pylist(rows, schema)
    return made.append_column("_row_kind", kinds) if any("_row_kind" in row for row in rows) else made


def carry_out(path: str, operation: Operation) -> Any:
    """Do it; the answer is the table's."""
    table = opened(path)
    return _DO[operation["op"]](table, operation)


def _write(table: Table, operation: Operation) -> Any:
    mode = "overwrite" if operation["op"] == "overwrite" else None
    return table.write(table_of(operation["rows"], table.schema), mode, commit_id=operation["id"])


def _filter(operation: Operation) -> str:
    low, high = operation["between"]
    return f"id >= {low} AND id < {high}"


def _index(table: Table, operation: Operation) -> Any:
    kept = {f"file-index.{kind}.columns": None for kind in ("bloom-filter", "bitmap", "range-bitmap", "bsi")}
    table.alter_options({**kept, **{f"file-index.{kind}.columns": names for kind, names in operation["indexes"].items()}})
    return table.rewrite_file_index()


def _replay(table: Table, operation: Operation) -> Any:
    """A repeat is answered, or refused because its snapshot has expired; it never commits."""
    try:
        result = carry_out(table.path, operation["of"])
    except CommitReplayed:
        return None
    assert result.replayed or result.snapshot_id is None, f"a repeated commit was made again: {result}"
    return result


def _branch(table: Table, operation: Operation) -> Any:
    if operation["tag"] not in table.tags()["tag_name"].to_pylist():  # a repetition finds it
        table.create_tag(operation["tag"])
    return table.create_branch(operation["name"], operation["tag"])


def _branch_write(table: Table, operation: Operation) -> Any:
    branch = opened(table.path, branch=operation["name"])
    return branch.write(table_of(operation["rows"], branch.schema))


_DO: dict[str, Callable[[Table, Operation], Any]] = {
    "write": _write,
    "overwrite": _write,
    "delete": lambda table, operation: table.delete(_filter(operation), commit_id=operation["id"]),
    "update": lambda table, operation: table.update(_filter(operation), values=operation["set"], commit_id=operation["id"]),
    "compact": lambda table, _: table.compact(),
    "compact-full": lambda table, _: table.compact(full=True),
    "index": _index,
    "expire": lambda table, operation: table.expire_snapshots(retain_min=operation["keep"], retain_max=operation["keep"], older_than=LATER),
    "orphans": lambda table, _: table.remove_orphan_files(older_than=LATER),
    "analyze": lambda table, _: table.analyze(),
    "replay": _replay,
    "tag": lambda table, operation: table.create_tag(operation["name"]),
    "untag": lambda table, operation: table.delete_tag(operation["name"]),
    "rollback": lambda table, operation: table.rollback_to(tag=operation["name"]),
    "branch": _branch,
    "branch-write": _branch_write,
    "unbranch": lambda table, operation: table.delete_branch(operation["name"]),
    "fast-forward": lambda table, operation: table.fast_forward(operation["name"]),
    "add-column": lambda table, operation: table.add_column(operation["name"], "BIGINT"),
    "drop-column": lambda table, operation: table.drop_column(operation["name"]),
}
