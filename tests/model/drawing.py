"""Rows and steps, drawn to fit what the table is at that moment."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.model import questions, upkeep, writes
from tests.model.columns import Column
from tests.model.conditions import Condition, conditions
from tests.model.containers import CONTAINERS
from tests.model.tables import OTHER_OPTIONS, SMALL_OPTIONS, TableKind
from tests.model.values import NESTED, PARTITION_TEXTS, SCALARS, Row, values_of
from tests.model.world import MAIN, Side, Step, World

KINDS = ["+I", "+I", "+U", "-D"]


def value(kind: TableKind, column: Column) -> st.SearchStrategy[Any]:
    """A value that the column may hold."""
    if column.ident == kind.rowkind:
        return st.sampled_from(KINDS)
    if column.ident in kind.partitions:
        found = st.sampled_from(PARTITION_TEXTS) if column.type == "STRING" else st.sampled_from(SCALARS[column.type][:3])
    elif column.ident in kind.sums:
        found = st.sampled_from([Decimal(number) / 10 if column.type.startswith("DECIMAL") else number for number in (0, 1, -1, 2, 5)])
    elif column.type.startswith("TIMESTAMP") and "orc" in str(kind.options):
        found = values_of(column.type).filter(lambda drawn: 0 <= drawn < 2**32 * 10**3)  # ORC here refuses times before 1970 or after 2262
    else:
        found = values_of(column.type)
    return st.none() | found if column.nullable else found


def row(kind: TableKind, columns: list[Column]) -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries({column.name: value(kind, column) for column in columns})


@st.composite
def writing(draw: st.DrawFn, world: World, name: str) -> Step:
    kind, side = world.kind, world.sides[name]
    columns = side.state.columns
    rows = draw(st.lists(row(kind, columns), min_size=1, max_size=8))
    kinds = None
    if kind.takes_deletes and not kind.rowkind and draw(st.booleans()):
        kinds = draw(st.lists(st.sampled_from(KINDS), min_size=len(rows), max_size=len(rows)))
        if kind.engine in {"partial-update", "aggregation"} and not kind.ignores_deletes:
            kept = {column.name for column in columns if column.ident in {*kind.keys, *kind.partitions}}
            rows = [
                found if of != "-D" else {name: value if name in kept else None for name, value in found.items()}
                for found, of in zip(rows, kinds, strict=True)
            ]
    names = None
    if kind.engine == "partial-update" and draw(st.booleans()):
        free = [column.name for column in columns if column.ident not in kind.keys + kind.partitions]
        left = draw(st.sets(st.sampled_from(free))) if free else set()
        names = [column.name for column in columns if column.name not in left]
        rows = [{name: value if name in names else None for name, value in found.items()} for found in rows]
    options = draw(st.sampled_from([None, None, None, {"write-only": "true"}])) if kind.keys else None
    return writes.Write(
        rows, kinds, names, draw(st.sampled_from(CONTAINERS)), draw(st.sampled_from([False, False, False, True])), options, name
    )


@st.composite
def overwriting(draw: st.DrawFn, world: World, name: str) -> Step:
    kind, side = world.kind, world.sides[name]
    columns = side.state.columns
    rows = draw(st.lists(row(kind, columns), max_size=4))
    if kind.rowkind:
        rows = [{**found, side_name(side, kind.rowkind): "+I"} for found in rows]
    partition = None
    if kind.partitions and draw(st.booleans()):
        chosen = draw(st.sets(st.sampled_from(kind.partitions), min_size=1))
        partition = {part: draw(value(kind, side.state.column(part))) for part in sorted(chosen)}
        rows = [{**found, **partition} for found in rows]
    return writes.Overwrite(rows, partition, name)


@st.composite
def bulk(draw: st.DrawFn, world: World, name: str) -> Step | None:
    """Rows in bulk, with few values in the columns that options or partitions name."""
    kind = world.kind
    columns = []
    for column in world.sides[name].state.columns:
        few = column.ident in {*kind.partitions, *kind.sums, kind.rowkind}
        if few and column.ident != kind.rowkind and column.type in {"STRING", "BOOLEAN", "TINYINT"}:
            columns.append((column.name, "BOOLEAN" if column.type == "BOOLEAN" else column.type, False))
        elif few or (not column.nullable and column.type in {"MAP<INT, ARRAY<DOUBLE>>", "ARRAY<ROW<a INT, b STRING>>"}):
            return None
        else:
            columns.append((column.name, column.type, column.nullable))
    return writes.Bulk(draw(st.integers(0, 3)), draw(st.sampled_from([100, 300])), columns, name)


@st.composite
def late(draw: st.DrawFn, world: World, name: str) -> Step | None:
    """A writer that another step overtakes, or a write that is repeated."""
    rows = draw(st.lists(row(world.kind, world.sides[name].state.columns), min_size=1, max_size=5))
    world.counts["names"] = number = world.counts.get("names", 0) + 1
    if world.kind.crosses_partitions:
        return None
    if draw(st.sampled_from([False, False, True])):
        return writes.Late(rows, None, str(uuid.UUID(int=number)), name)
    inner = draw(st.one_of(writing(world, name), changing(world, name), maintaining(world, name)))
    if isinstance(inner, writes.Write | writes.Delete | writes.Update | writes.DeleteKeys | upkeep.Upkeep):
        return writes.Late(rows, inner, side=name)
    return None


def side_name(side: Side, ident: str) -> str:
    return next(column.name for column in side.state.columns if column.ident == ident)


@st.composite
def condition_in(draw: st.DrawFn, side: Side) -> tuple[Condition, str]:
    """A condition, and a language that can say it."""
    condition = draw(conditions(side.state.columns))
    return condition, draw(st.sampled_from(sorted(condition.languages() - {"polars"})))


def key_rows(kind: TableKind, side: Side) -> st.SearchStrategy[list[Row]]:
    """Rows of the key's columns alone."""
    columns = [next(column for column in side.state.columns if column.ident == ident) for ident in kind.keys]
    return st.lists(row(kind, columns), min_size=1, max_size=5)


@st.composite
def changing(draw: st.DrawFn, world: World, name: str) -> Step:
    kind, side = world.kind, world.sides[name]
    condition, language = draw(condition_in(side))
    free = [column for column in side.state.columns if column.ident not in kind.fixed | set(kind.sums)]
    how = draw(st.sampled_from(["keys", "dry run", "delete", "update", "update", "partitions"]))
    if how == "keys" and kind.keys:
        return writes.DeleteKeys(draw(key_rows(kind, side)), name)
    if how == "dry run":
        return writes.DryRun(condition, name)
    if how == "partitions" and kind.partitions:
        chosen = draw(st.sets(st.sampled_from(kind.partitions), min_size=1))
        return writes.DropPartitions({part: draw(value(kind, side.state.column(part))) for part in sorted(chosen)}, name)
    if not free or how == "delete":
        return writes.Delete(condition, language, name)
    columns = draw(st.lists(st.sampled_from(free), min_size=1, max_size=2, unique=True))
    return writes.Update(condition, {column.name: draw(value(kind, column)) for column in columns}, language, name)


@st.composite
def merging(draw: st.DrawFn, world: World, name: str) -> Step:
    kind, side = world.kind, world.sides[name]
    rows = draw(st.lists(row(kind, side.state.columns), min_size=1, max_size=5))
    on = [column.name for column in side.state.columns if column.ident in kind.keys]
    return writes.Merge(rows, on, draw(st.sampled_from(["update", "delete", "keep"])), draw(st.booleans()), name)


@st.composite
def maintaining(draw: st.DrawFn, world: World, name: str) -> Step:
    side = world.sides[name]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("compact", {}),
        ("compact", {"full": True}),
        ("compact", {"full": True}),
        ("rewrite_file_index", {}),
        ("analyze", {}),
        ("maintenance", {}),
    ]
    chosen = draw(st.sampled_from([*calls, "expire", "orphans", "reopen"]))
    if chosen == "expire" and side.snapshots:
        return upkeep.Expire(draw(st.integers(1, 3)), name)
    if chosen == "orphans":
        return upkeep.Orphans(name)
    if isinstance(chosen, str):
        return upkeep.Reopen(name)
    return upkeep.Upkeep(*chosen, name)


ALTERED = {
    **SMALL_OPTIONS,
    **{
        key: [value for value in values if "orc" not in value]
        for key, values in OTHER_OPTIONS.items()
        if not key.startswith(("data-file", "partition", "deletion"))
    },
}


@st.composite
def option_changes(draw: st.DrawFn, kind: TableKind) -> dict[str, str | None]:
    key = draw(st.sampled_from([key for key in ALTERED if ALTERED[key]]))
    return {key: draw(st.sampled_from([None, *ALTERED[key]]))}


@st.composite
def altering(draw: st.DrawFn, world: World, name: str) -> Step:
    kind, side = world.kind, world.sides[name]
    world.counts["names"] = number = world.counts.get("names", 0) + 1
    new = draw(st.sampled_from([f"n{number}", f"n {number}.ä", *sorted(world.freed - set(side.state.names))]))
    columns = side.state.columns
    how = draw(st.sampled_from(["add", "drop", "rename", "widen", "options", "options"]))
    if how == "options":
        return upkeep.AlterOptions(draw(option_changes(world.kind)), name)
    free = [column for column in columns if column.ident not in kind.fixed and column.nullable]
    if how == "drop" and len(free) > 1:
        return upkeep.ChangeColumn(draw(st.sampled_from(free)).name, "drop", side=name)
    if how == "rename":
        named = [column for column in columns if column.ident not in kind.partitions]
        return upkeep.ChangeColumn(draw(st.sampled_from(named)).name, "rename", new, name)
    wider = [column for column in columns if column.type in upkeep.CASTS and column.ident not in kind.fixed]
    if how == "widen" and wider:
        chosen = draw(st.sampled_from(wider))
        casts = upkeep.CASTS[chosen.type]
        folded = kind.engine == "aggregation" or f"fields.{chosen.ident}.aggregate-function" in kind.options
        if folded and casts[0] == "STRING":  # folds of text are others
            return upkeep.AddColumn(Column(f"added{number}", new, "INT"), name)
        return upkeep.ChangeColumn(chosen.name, "widen", casts[0] if folded else draw(st.sampled_from(casts)), name)
    return upkeep.AddColumn(
        Column(f"added{number}", new, draw(st.sampled_from([kind for kind in (*SCALARS, *NESTED) if kind != "TIMESTAMP(9)"]))), name
    )


@st.composite
def asking(draw: st.DrawFn, world: World, name: str) -> Step:
    kind, side = world.kind, world.sides[name]
    names = side.state.names
    how = draw(st.sampled_from(["scan", "scan", "scan", "lookup", "reader", "aggregate", "order", "follow"]))
    if how == "lookup" and kind.keys:
        return questions.Lookup(draw(key_rows(kind, side)), name)
    if how == "reader":
        return questions.OtherReader(
            draw(st.sampled_from(["batches", "reader", "dataset", "duckdb", "polars", "dictionaries", "splits"])), name
        )
    producer = kind.options.get("changelog-producer", "none")
    if (
        how == "follow"
        and kind.engine == "deduplicate"
        and (producer in {"lookup", "full-compaction"} or not (kind.sequence or kind.ignores_deletes))
    ):
        return questions.Follow(name)
    plain = [column.name for column in side.state.columns if column.type in SCALARS and not column.type.startswith(("BYTES", "VARBINARY"))]
    if how == "aggregate" and plain:
        by = draw(st.sets(st.sampled_from(kind.partitions))) if kind.partitions else set()
        asked = draw(st.none() | conditions(side.state.columns).filter(lambda drawn: "sql" in drawn.languages()))
        return questions.Aggregate(draw(st.sampled_from(plain)), sorted(by), asked, name)
    if how == "order" and plain:
        items = draw(st.lists(st.tuples(st.sampled_from(plain), st.booleans()), min_size=1, max_size=2, unique_by=lambda item: item[0]))
        asked = draw(st.none() | conditions(side.state.columns).filter(lambda drawn: "sql" in drawn.languages()))
        return questions.Ordered(asked, items, draw(st.sampled_from([None, 1, 3])), name)
    condition, language = draw(condition_in(side))
    if "polars" in condition.languages() and draw(st.sampled_from([False, False, True])):
        return questions.PolarsFilter(condition, name)
    chosen = draw(st.none() | st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    return questions.Scan(condition, language, chosen, draw(st.sampled_from([None, None, 0, 1, 3])), name)


def _tells_changes(kind: TableKind) -> bool:
    """Whether the changelog between any two snapshots leads from one to the other."""
    producer = kind.options.get("changelog-producer", "none")
    return bool(kind.keys) and (
        producer == "none" or (producer == "input" and kind.engine == "deduplicate" and not kind.sequence and not kind.ignores_deletes)
    )


@st.composite
def remembering(draw: st.DrawFn, world: World, name: str) -> Step | None:
    """A tag, a way back, or a look back; None if there is nothing to remember."""
    side = world.sides[name]
    if not side.snapshots:
        return None
    world.counts["names"] = number = world.counts.get("names", 0) + 1
    snapshots, tags = st.sampled_from(sorted(side.snapshots)), st.sampled_from(sorted(side.tags)) if side.tags else None
    how = draw(st.sampled_from(["tag", "tag", "travel", "travel", "retag", "untag", "rename", "rollback", "restore", "changelog"]))
    match how:
        case "tag":
            return upkeep.Tag(f"t{number}", "create", draw(st.none() | snapshots), side=name)
        case "retag" if tags is not None:
            return upkeep.Tag(draw(tags), "replace", draw(st.none() | snapshots), side=name)
        case "untag" if tags is not None:
            return upkeep.Tag(draw(tags), "delete", side=name)
        case "rename" if tags is not None:
            return upkeep.Tag(draw(tags), "rename", new=f"t{number}", side=name)
        case "changelog" if _tells_changes(world.kind):
            first, last = sorted([draw(snapshots), draw(snapshots)])
            return questions.Changelog(first, last, name) if first < last else None
    place = {"tag": draw(tags)} if tags is not None and draw(st.booleans()) else {"snapshot": draw(snapshots)}
    if how in {"rollback", "restore"}:
        return upkeep.GoBack(how, **place, side=name)
    return upkeep.Travel(**place, side=name)


@st.composite
def branching(draw: st.DrawFn, world: World) -> Step | None:
    main = world.sides[MAIN]
    others = sorted(name for name in world.sides if name != MAIN)
    if others and draw(st.booleans()):
        return upkeep.Branch(draw(st.sampled_from(others)), draw(st.sampled_from(["forward", "delete"])))
    if not main.tags or len(others) > 1:
        return None
    world.counts["names"] = number = world.counts.get("names", 0) + 1
    return upkeep.Branch(f"b{number}", "create", draw(st.sampled_from(sorted(main.tags))))
