"""Random tables: merge engines, buckets, layouts, indexes, formats and changes of the schema."""

from __future__ import annotations

import random
from collections.abc import Collection

from fileindex.build.options import option_key
from tests.oracle.tables import CHANGED, COLUMNS, OPTIONAL, Spec, Step
from tests.oracle.values import VALUES, Row

INDEXABLE = {
    "bitmap": ("i", "e", "b", "s", "t", "dt", "bo", "m[k]", "k", "h"),
    "bsi": ("i", "e", "b", "t", "dt", "n", "k", "h"),
    "range-bitmap": ("i", "e", "b", "s", "d", "n", "t", "dt", "bo", "k", "h"),
    "bloom-filter": ("i", "e", "b", "s", "d", "t", "dt", "m[k]", "k"),
    "ngram-filter": ("s",),
}

SECONDARY = ("id", "p", "i", "e", "b", "s", "d", "n", "t", "dt", "bo", "k", "h", "g")


def draw_spec(draw: random.Random) -> Spec:
    """A random table of about forty rows."""
    engine = draw.choice(["append", "append", "deduplicate", "deduplicate", "partial-update", "aggregation", "first-row"])
    is_keyed = engine != "append"
    partitions = draw.choice([(), (), ("p",)])
    crosses = engine == "deduplicate" and bool(partitions) and draw.random() < 0.3
    keys = (("id",) if crosses or not partitions else ("p", "id")) if is_keyed else ()
    options = {} if engine in {"append", "deduplicate"} else {"merge-engine": engine}
    if engine == "aggregation":
        options["fields.b.aggregate-function"] = "max"
    if is_keyed:
        options |= (
            {"bucket": "-1", "dynamic-bucket.target-row-num": "7"} if crosses else {"bucket": draw.choice(["1", "1", "2", "-1", "-2"])}
        )
    else:
        options |= draw.choice([{"bucket": "-1"}, {"bucket": "2", "bucket-key": "id"}])
    if engine != "first-row" and draw.random() < 0.4:
        options["deletion-vectors.enabled"] = "true"
    if draw.random() < 0.4:
        options["file.format"] = draw.choice(["orc", "avro"])
    if draw.random() < 0.3:
        options["metadata.stats-mode"] = draw.choice(["none", "full", "truncate(2)", "counts"])
    if draw.random() < 0.5:
        options["file-index.in-manifest-threshold"] = draw.choice(["1 b", "1 mb"])
    if is_keyed and draw.random() < 0.5:
        options["num-sorted-run.compaction-trigger"] = draw.choice(["2", "9"])
    if not is_keyed and draw.random() < 0.2 and options["bucket"] == "-1":
        options |= {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
        options.pop("deletion-vectors.enabled", None)
    if is_keyed and not crosses and draw.random() < 0.4:
        producers = ["lookup"] if engine == "first-row" else ["input", "lookup", "full-compaction"]
        options["changelog-producer"] = draw.choice(producers[:2] if "deletion-vectors.enabled" in options else producers)
    optional = tuple(ident for ident in OPTIONAL if draw.random() < 0.4 and (ident != "v" or "file.format" not in options))
    options |= draw_indexes(draw, COLUMNS + optional)
    steps = _draw_steps(draw, engine, COLUMNS + optional, crosses=crosses)
    options |= _draw_secondary_indexes(options, COLUMNS + optional, steps) if is_keyed else {}
    return Spec(engine, keys, partitions, tuple(options.items()), steps, draw.random() < 0.7, optional)


def _draw_secondary_indexes(options: dict[str, str], there: Collection[str], steps: tuple[Step, ...]) -> dict[str, str]:
    """Options of indexes that compactions build, on columns that keep name and type."""
    draw = random.Random(repr(steps))
    if options.get("deletion-vectors.enabled") != "true" or options["bucket"] == "-1" or draw.random() < 0.2:
        return {}
    changing = {{**CHANGED, "replace": "g", "rename": "s"}.get(step.verb) for step in steps}
    columns = [column for column in SECONDARY if column in there and column not in changing and draw.random() < 0.5]
    btrees = [column for column in columns if draw.random() < 0.5]
    lists = {"btree": btrees, "bitmap": [column for column in columns if column not in btrees]}
    sizes = {"btree-index.block-size": draw.choice(["1 b", "64 kb"]), "bitmap-index.dictionary-block-size": draw.choice(["1 b", "16 kb"])}
    return {f"pk-{kind}.index.columns": ",".join(chosen) for kind, chosen in lists.items() if chosen} | (sizes if columns else {})


def draw_indexes(draw: random.Random, there: Collection[str]) -> dict[str, str]:
    """Options of indexes on some columns of those that are there."""
    fitting = {kind: [column for column in fit if column in there or column == "m[k]"] for kind, fit in INDEXABLE.items()}
    columns = {kind: [column for column in fit if draw.random() < 0.35] for kind, fit in fitting.items() if draw.random() < 0.6}
    return {option_key(kind, "columns"): ",".join(chosen) for kind, chosen in columns.items() if chosen}


def _draw_steps(draw: random.Random, engine: str, there: Collection[str], *, crosses: bool) -> tuple[Step, ...]:
    steps: list[Step] = []
    columns = list(there)
    changes = ["add", "widen", "widen", "widen_small", "rescale", "rename", "replace", "nest", "move", "index"]
    draw.shuffle(changes)
    for _ in range(draw.choice([1, 2, 3, 4])):
        steps.append(Step("write", tuple(_draw_row(draw, columns, engine, crosses=crosses) for _ in range(draw.choice([3, 10, 20])))))
        chance = draw.random()
        if chance < 0.25:
            steps.append(Step("compact", full=draw.random() < 0.7))
        elif chance < 0.5 and engine in {"deduplicate", "append"}:
            steps.append(Step("delete", rows=tuple({"id": number} for number in draw.sample(range(30), 5))))
        if changes and draw.random() < 0.7:
            verb = changes.pop()
            changes = [change for change in changes if change != verb]
            columns += {"add": ["z"], "replace": ["g2"]}.get(verb, [])
            steps.append(Step(verb, options=tuple(draw_indexes(draw, there).items()) if verb == "index" else ()))
    if draw.random() < 0.2:
        steps.append(Step("rewrite"))
    return tuple(steps)


def _draw_row(draw: random.Random, columns: list[str], engine: str, *, crosses: bool) -> Row:
    number = draw.randrange(30)
    row: Row = {"id": number, "p": draw.randrange(3) if crosses else number % 3}
    if engine == "append" and number % 4 == 0:  # of other tables the key has the partition
        row["p"] = None
    row |= {ident: draw.choice(VALUES[ident]) for ident in columns if ident in VALUES}
    return row if row["r"] is None else row | {"r": row["r"] | {"w": draw.choice([None, 0, 1])}}
