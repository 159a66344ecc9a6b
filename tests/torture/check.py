"""What must hold of a table after whatever happened to it: the rows of one of the states allowed, and nothing broken."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from manifest.storage.resolve import file_io_for
from pyspark_paimon import Table
from pyspark_paimon.plugins.fsck import jobs as fsck
from tests.torture.model import Model, Rows, bag, values
from tests.torture.operations import KEYS, LATER, opened

SETTLING = "_EXPIRY_SECONDS"


class Wrong(Exception):
    """What is wrong, by a verdict of the report."""

    def __init__(self, verdict: str, detail: str) -> None:
        super().__init__(verdict, detail)
        self.verdict = verdict
        self.detail = detail


@dataclass
class Found:
    """What a check saw: which of the allowed states it is, the tags there are by snapshot, the state of each branch, the columns."""

    state: int
    tags: list[str]
    branches: dict[str, int]
    columns: list[str]


def rows_are_one_of(table: Table, allowed: Sequence[Rows], dropped: Iterable[str], what: str, **scan: Any) -> int:
    """The index of the state that the table is in. Raises ``Wrong``."""
    actual = bag(table.scan(**scan).to_arrow().to_pylist(), dropped)
    for number, rows in enumerate(allowed):
        if bag(values(rows), dropped) == actual:
            count = table.scan(**scan).count()
            if count != actual.total():
                raise Wrong("wrong rows", f"{what}: count() tells {count} of {actual.total()} rows")
            return number
    expected = bag(values(allowed[-1]), dropped)
    raise Wrong(_kind(expected, actual), f"{what}: expected {_few(expected - actual)}, found instead {_few(actual - expected)}")


def _kind(expected: Counter[str], actual: Counter[str]) -> str:
    missing, extra = expected - actual, actual - expected
    return "wrong rows" if missing and extra else "lost" if missing else "twice" if extra and set(extra) <= set(expected) else "wrong rows"


def _few(rows: Counter[str]) -> str:
    shown = list(rows.elements())[:6]
    return f"{rows.total()} rows {shown}"


def lookups_agree(table: Table, rows: Rows, dropped: Iterable[str], dice: random.Random) -> None:
    """Filtered reads, which indexes and statistics serve, find what is there."""
    key = dice.randrange(KEYS)
    for text, wanted in ((f"id = {key}", "id"), (f"n >= {key} AND s > 'b'", "n")):
        expected = [
            row for row in values(rows) if (row["id"] == key if wanted == "id" else row.get("n", -1) >= key and row.get("s", "") > "b")
        ]
        actual = bag(table.scan(text).to_arrow().to_pylist(), dropped)
        if actual != bag(expected, dropped):
            raise Wrong("wrong rows", f"{text}: expected {_few(bag(expected, dropped))}, found {_few(actual)}")


def whole(table: Table, depth: str = "deep") -> None:
    """Nothing is broken. Raises ``Wrong``."""
    setattr(fsck, SETTLING, 0.01)  # nobody expires anything beside
    result = table.fsck(depth)  # type: ignore[arg-type]
    if result.problems:
        raise Wrong("broken table", "; ".join(f"{problem.kind}: {problem.path}: {problem.message}" for problem in result.problems[:4]))


def examined(path: str, states: Sequence[Model], dice: random.Random) -> Found:
    """Which of ``states`` (before and after what was under way) the table is in, with tags, branches and columns of either."""
    table = opened(path)
    first, last = states[0], states[-1]
    dropped = sorted({*first.dropped, *last.dropped, *_added(first, last)})
    allowed = [model.rows for model in states]
    state = rows_are_one_of(table, allowed, dropped, "the table")
    lookups_agree(table, allowed[state], dropped, dice)
    tags = table.tags().sort_by("snapshot_id")["tag_name"].to_pylist()
    for name in tags:
        known = [found[name] for model in states for found in (model.tags, model.maybe_tags) if name in found]
        if not known:
            raise Wrong("wrong rows", f"a tag '{name}' that nobody made")
        rows_are_one_of(table, known, dropped, f"tag {name}", tag=name)
    if set(table.schema.names) not in [set(model.columns) for model in states]:
        raise Wrong("wrong rows", f"columns {table.schema.names} instead of {last.columns}")
    missing = set(first.tags) & set(last.tags) - set(tags)
    if missing:
        raise Wrong("lost", f"tags {sorted(missing)}")
    branches = {name: _branch(path, name, states, dropped) for name in table.branches()["branch_name"].to_pylist()}
    missing = set(first.branches) & set(last.branches) - set(branches)
    if missing:
        raise Wrong("lost", f"branches {sorted(missing)}")
    delete_unfinished_branches(path)
    whole(table)
    return Found(state, tags, branches, list(table.schema.names))


def delete_unfinished_branches(path: str) -> None:
    """Delete what a cut off ``create_branch`` has left on an object store, as the documentation says."""
    table = opened(path)
    file_io, root = file_io_for(path)
    listed = {status.name.removeprefix("branch-") for status in file_io.list(f"{root}/branch") if status.is_dir}
    for name in listed.difference(table.branches()["branch_name"].to_pylist()):
        if not name.startswith("."):
            table.delete_branch(name)


def _branch(path: str, name: str, states: Sequence[Model], dropped: Iterable[str]) -> int:
    known = [(number, model.branches[name]) for number, model in enumerate(states) if name in model.branches]
    if not known:
        raise Wrong("wrong rows", f"a branch '{name}' that nobody made")
    return known[rows_are_one_of(opened(path, branch=name), [rows for _, rows in known], dropped, f"branch {name}")][0]


def _added(first: Model, last: Model) -> set[str]:
    return set(first.columns) ^ set(last.columns)


def tidied(path: str, rows: Rows, dropped: Iterable[str]) -> int:
    """Orphan removal removes orphans only: how many. Raises ``Wrong``."""
    table = opened(path)
    removed = table.remove_orphan_files(older_than=LATER)
    left = table.list_orphan_files(older_than=LATER)
    if left:
        raise Wrong("broken table", f"orphans that stay: {[orphan.path for orphan in left][:4]}")
    rows_are_one_of(opened(path), [rows], dropped, "after the removal of orphans")
    whole(opened(path), "footers")
    return len(removed)
