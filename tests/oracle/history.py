"""Questions about other states of a table: earlier snapshots and tags, branches, changes between snapshots, streams."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

from pyspark_paimon import Table
from tests.oracle.answers import bag, bags_differ, differ, matching, on_a_copy, rows_of, text_of
from tests.oracle.changing import source_row
from tests.oracle.conditions import Condition, Params
from tests.oracle.tables import Built
from tests.oracle.values import Row, bits


def travel(built: Built, condition: Condition, draw: random.Random) -> str | None:
    """The rows of an earlier snapshot, in its own columns."""
    moments = [moment for moment in built.moments if moment.columns.covers(condition.idents)]
    if not moments:
        return None
    moment, params = draw.choice(moments), Params()
    text = condition.sql(moment.columns, params)
    answer = built.table.scan(text, params=dict(params) or None, snapshot=moment.snapshot).to_arrow().to_pylist()
    expected = bag(row for row in moment.rows if condition.matches(row))
    return bags_differ(f"snapshot {moment.snapshot}", bag(moment.columns.by_ident(row) for row in answer), expected)


def branch(built: Built, condition: Condition, draw: random.Random) -> str | None:
    """A branch has the rows of its tag and its own, and changes nothing in the table."""
    if not built.moments:
        return None
    text, params = text_of(built, condition)
    rows = [source_row(built, draw, number) for number in draw.sample(range(40), 6)]

    def question(table: Table) -> str | None:
        table.create_tag("base")
        table.create_branch("trial", "base")
        trial = Table.open(table.path, branch="trial")
        if trial.schema != table.schema:
            return None  # a branch has the schemas up to that of its tag
        trial.write(built.arrow(rows))
        expected = bag(row for row in built.after(rows) if condition.matches(row))
        for name, opened, there in (("main", table, bag(matching(built, condition))), ("branch", trial, expected)):
            if wrong := bags_differ(name, rows_of(built, opened, filter=text, params=params), there):
                return wrong
        tagged = rows_of(built, trial, filter=text, params=params, tag="base")
        return bags_differ("tag", tagged, bag(matching(built, condition)))

    return on_a_copy(built, question)


def changes(built: Built, condition: Condition, draw: random.Random) -> str | None:
    """The changes of the last write, folded over the rows before, are the rows after; a filter takes those that match."""
    if built.spec.is_postponed or built.spec.evolves_data or not built.moments:
        return None
    if built.spec.producer == "input" and built.spec.engine != "deduplicate":
        return None  # the changes are rows as they were written, not as they were folded
    rows = [source_row(built, draw, number) for number in draw.sample(range(40), 6)]
    text, params = text_of(built, condition)

    def question(table: Table) -> str | None:
        before = table.scan().snapshot_id
        table.write(built.arrow(rows))
        if built.spec.producer in {"lookup", "full-compaction"}:
            table.compact(full=True)
        made = [(row.pop("_row_kind"), built.columns.by_ident(row)) for row in table.changelog(before).to_arrow().to_pylist()]
        whole = bags_differ("changes", bag(_fold(built, built.expected, made)), bag(built.after(rows)))
        if whole is not None:
            return whole
        some = table.changelog(before, filter=text, params=params).to_arrow().to_pylist()
        answer = Counter((row.pop("_row_kind"), bits(built.columns.by_ident(row))) for row in some)
        return bags_differ("filtered changes", answer, Counter((kind, bits(row)) for kind, row in made if condition.matches(row)))

    return on_a_copy(built, question)


def _fold(built: Built, rows: list[Row], changed: Iterable[tuple[str, Row]]) -> list[Row]:
    if not built.spec.keys:
        return [*rows, *(row for _, row in changed)]
    by_key = {row["id"]: row for row in rows}
    for kind, row in changed:
        if kind in {"+I", "+U"}:
            by_key[row["id"]] = row
        else:
            by_key.pop(row["id"], None)
    return list(by_key.values())


def follow(built: Built, condition: Condition, draw: random.Random) -> str | None:
    """A stream begins with the rows that match."""
    if built.spec.evolves_data or (built.spec.producer == "none" and built.spec.engine not in {"append", "deduplicate"}):
        return None
    params = Params()
    text = condition.sql(built.columns, params)
    if params:
        return None  # a stream takes none
    state = [row for batch in built.table.follow(filter=text, max_rows=draw.choice([None, 4])) for row in batch.rows.to_pylist()]
    kinds = {row.pop("_row_kind") for row in state}
    answer = bag(built.columns.by_ident(row) for row in state)
    return differ("follow", kinds | {"+I"}, {"+I"}) or bags_differ("follow", answer, bag(matching(built, condition)))
