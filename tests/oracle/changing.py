"""Questions that change a copy of the table: delete, purge, update, the clauses of a merge, overwrite."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from tests.oracle.answers import changed, text_of
from tests.oracle.conditions import Condition, Params
from tests.oracle.drawing import Drawing
from tests.oracle.tables import Built
from tests.oracle.values import VALUES, Row


def _can_delete(built: Built) -> bool:
    return built.spec.engine == "deduplicate" or (built.spec.engine == "append" and not built.spec.evolves_data)


def _is_refused(condition: Condition, text: str) -> bool:
    """Whether a filter names no column, as ``NOT (TRUE)``: only ``TRUE`` may say that every row is meant."""
    return text != "TRUE" and not condition.idents


def _removal(built: Built, condition: Condition, verb: str) -> str | None:
    text, params = text_of(built, condition)
    if not _can_delete(built) or _is_refused(condition, text):
        return None
    expected = [row for row in built.expected if not condition.matches(row)]
    return changed(built, lambda table: getattr(table, verb)(text, params=params), expected, verb)


def delete(built: Built, condition: Condition, draw: random.Random) -> str | None:
    return _removal(built, condition, "delete")


def purge(built: Built, condition: Condition, draw: random.Random) -> str | None:
    return _removal(built, condition, "purge")


def update(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = text_of(built, condition)
    if built.spec.engine not in {"deduplicate", "append"} or _is_refused(condition, text):
        return None
    term = Drawing(draw, built.columns).term("i")
    if draw.random() < 0.5:
        expected = [{**row, "i": term.of(row)} if condition.matches(row) else row for row in built.expected]
        values = Params()
        computed = {built.names["i"]: term.sql(built.columns, values)}
        if values:
            return None
        return changed(built, lambda table: table.update(text, set=computed, params=params), expected, f"update {computed}")
    expected = [{**row, "i": 99} if condition.matches(row) else row for row in built.expected]
    return changed(built, lambda table: table.update(text, values={built.names["i"]: 99}, params=params), expected, "update")


@dataclass(frozen=True)
class Clause:
    """A clause of a merge. ``condition`` is about the row of the table, or about that of the source if there is no other."""

    when: str
    action: str
    condition: Condition | None

    def applies(self, row: Row) -> bool:
        return self.condition is None or self.condition.matches(row)


_CLAUSES = [
    ("matched", "update"),
    ("matched", "delete"),
    ("not_matched", "insert"),
    ("not_matched_by_source", "update"),
    ("not_matched_by_source", "delete"),
]


def merge(built: Built, condition: Condition, draw: random.Random) -> str | None:
    """A merge of random clauses. The first has the condition of the case, the others have drawn ones."""
    if not _can_delete(built):
        return None
    picked = draw.sample(_CLAUSES, draw.choice([1, 2, 3]))
    drawing = Drawing(draw, built.columns)
    clauses = [Clause(*pair, condition if not number else draw.choice([None, drawing.leaf()])) for number, pair in enumerate(picked)]
    source = [source_row(built, draw, number) for number in draw.sample(range(40), draw.choice([1, 4, 12]))]
    texts = []
    for clause in clauses:
        params = Params()
        prefix = "s." if clause.when == "not_matched" else "t."
        texts.append(None if clause.condition is None else clause.condition.sql(replace(built.columns, prefix=prefix), params))
        if params:
            return None  # conditions of a merge take no parameters

    def change(table: Any) -> None:
        on = [built.names[key] for key in built.spec.keys] or ["id"]
        made = table.merge(built.arrow(source), on=on)
        for clause, text in zip(clauses, texts, strict=True):
            add = getattr(made, f"when_{clause.when}_{clause.action}" + ("_all" if clause.action == "insert" else ""))
            made = add({built.names["i"]: _NEW[clause.when]}, text) if clause.action == "update" else add(text)
        made.execute()

    return changed(built, change, _merged(built.expected, {row["id"]: row for row in source}, clauses), f"merge {picked} {texts}")


_NEW = {"matched": "s.i", "not_matched_by_source": "t.id + 1"}


def source_row(built: Built, draw: random.Random, number: int) -> Row:
    row = {ident: draw.choice(VALUES[ident]) for ident in built.names if ident in VALUES}
    return built.conformed({**row, "id": number, "p": built.partition_of(number)})


def _merged(rows: list[Row], source: dict[int, Row], clauses: list[Clause]) -> list[Row]:
    merged: list[Row] = []
    for row in rows:
        other = source.get(row["id"])
        when = "not_matched_by_source" if other is None else "matched"
        clause = next((clause for clause in clauses if clause.when == when and clause.applies(row)), None)
        if clause is None:
            merged.append(row)
        elif clause.action == "update":
            merged.append({**row, "i": row["id"] + 1 if other is None else other["i"]})
    there = {row["id"] for row in rows}
    inserting = next((clause for clause in clauses if clause.when == "not_matched"), None)
    new = [row for number, row in source.items() if number not in there]
    return merged + [row for row in new if inserting is not None and inserting.applies(row)]


def overwrite(built: Built, condition: Condition, draw: random.Random) -> str | None:
    """Rows that replace one partition, the partitions that they belong to, or the whole table."""
    if dict(built.spec.options).get("bucket") == "-2":
        return None  # rows of postponed buckets are visible after a compaction
    numbers = draw.sample(range(30), draw.choice([1, 5]))
    rows = [source_row(built, draw, number) for number in numbers]
    static = bool(built.spec.partitions) and draw.random() < 0.5
    if static:
        rows = [row for row in rows if row["p"] == rows[0]["p"]]
    replaced = {row["p"] for row in rows} if built.spec.partitions else {row["p"] for row in built.expected}
    written = {row["id"] for row in rows}
    if not {row["p"] for row in built.expected if row["id"] in written} <= replaced:
        return None  # a key across partitions that stays in another one: the table refuses it
    partition = {built.names["p"]: rows[0]["p"]} if static else None
    expected = [row for row in built.expected if row["p"] not in replaced] + rows
    return changed(built, lambda table: table.write(built.arrow(rows), mode="overwrite", partition=partition), expected, "overwrite")
