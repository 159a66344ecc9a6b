"""What a table of a test is made of: columns, options and steps, said once and carried out by either engine."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.interop.made_rows import Pool, made_row

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Write:
    """One commit of rows; each batch is flushed by itself. ``overwrite``: the partition to replace, ``{}`` for those of the rows."""

    batches: Sequence[Sequence[Row]]
    overwrite: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Compact:
    """A compaction of every bucket."""

    full: bool = True


@dataclass(frozen=True)
class Delete:
    """The rows of an append table that match go."""

    filter: Mapping[str, Any]


@dataclass(frozen=True)
class Alter:
    """Changes of the schema, in the form of the engine's driver."""

    changes: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Tag:
    """A name for the newest snapshot."""

    name: str


@dataclass(frozen=True)
class Expire:
    """All but the newest snapshots go."""

    keep: int


Step: TypeAlias = Write | Compact | Delete | Alter | Tag | Expire
FULL, MINOR = Compact(full=True), Compact(full=False)


@dataclass(frozen=True)
class Spec:
    """A table and what happens to it; ``steps`` draws rows, so that other seeds give other tables of the same kind."""

    name: str
    shows: str
    feature: str
    fields: Mapping[str, Any]
    steps: Callable[[random.Random, Spec], Iterator[Step]]
    keys: Sequence[str] = ()
    partitions: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    pools: Mapping[str, Pool] = field(default_factory=dict)
    unordered: Sequence[str] = ()
    unasked: Sequence[str] = ()

    def drawn(self, seed: int = 0) -> list[Step]:
        """The steps with the rows of a seed."""
        return list(self.steps(random.Random(f"{self.name} {seed}"), self))


def commits(
    *parts: int | Step, ids: range = range(-15, 60), deletes: float = 0.1, once: bool = False
) -> Callable[[random.Random, Spec], Iterator[Step]]:
    """Steps in which a number stands for a commit of so many rows: of keys in ``ids``, or without key numbered onwards.

    With ``once`` no commit has two rows of a key. Columns that a change adds, drops or renames on the way are drawn as they are then.
    """

    def steps(draw: random.Random, spec: Spec) -> Iterator[Step]:
        fields, pools, number = dict(spec.fields), dict(spec.pools), 0
        for part in parts:
            if not isinstance(part, int):
                if isinstance(part, Alter):
                    fields, pools = _altered(fields, pools, part)
                yield part
                continue
            keys = draw.sample(ids, part) if once else draw.choices(ids, k=part)
            numbers = keys if spec.keys else range(number, number + part)
            number += part
            yield Write([[made_row(draw, fields, spec.keys, pools, number=each, deletes=deletes if spec.keys else 0) for each in numbers]])

    return steps


def overwrite(count: int, partition: Mapping[str, str] | None = None) -> Callable[[random.Random, Spec], Write]:
    """A commit of rows that replace those of a partition (None: of theirs); its columns are drawn from the partition."""

    def step(draw: random.Random, spec: Spec) -> Write:
        pools = {**spec.pools, **{name: [value] for name, value in (partition or {}).items()}}
        return Write([[made_row(draw, spec.fields, spec.keys, pools, number=1000 + i, deletes=0) for i in range(count)]], partition or {})

    return step


def then(first: Callable[[random.Random, Spec], Iterator[Step]], *more: Step | Callable[[random.Random, Spec], Step]) -> Any:
    """Further steps behind others; some of them drawn too."""

    def steps(draw: random.Random, spec: Spec) -> Iterator[Step]:
        yield from first(draw, spec)
        for each in more:
            yield each(draw, spec) if callable(each) else each

    return steps


def _altered(fields: dict[str, Any], pools: dict[str, Pool], alter: Alter) -> tuple[dict[str, Any], dict[str, Pool]]:
    for change in alter.changes:
        column = change.get("column")
        match change["change"]:
            case "add" if isinstance(column, str):
                fields[column] = change["type"]
                pools.pop(column, None)
            case "drop" if isinstance(column, str):
                del fields[column]
            case "rename" if isinstance(column, str):
                fields = {change["to"] if name == column else name: kind for name, kind in fields.items()}
                if column in pools:
                    pools[change["to"]] = pools[column]
            case "type" if isinstance(column, str):
                fields[column] = change["type"]
            case _:
                pass  # neither a place nor an option changes what rows look like; nested changes come with rows of their own
    return fields, pools
