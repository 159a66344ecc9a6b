"""Questions to a table: each compares the answer with that of the model, and returns what differs."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pyspark_paimon import Table
from tests.oracle.conditions import Condition, Params
from tests.oracle.tables import Built, value_of
from tests.oracle.values import Row, bits, order

Question = Callable[[Built, Condition, random.Random], str | None]


def _text(built: Built, condition: Condition) -> tuple[str, dict[str, Any] | None]:
    params = Params()
    return condition.sql(built.columns, params), dict(params) or None


def _bag(rows: Iterable[Row]) -> Counter[Any]:
    return Counter(bits(row) for row in rows)


def _differ(what: str, found: Any, expected: Any) -> str | None:
    return None if found == expected else f"{what}: {str(found)[:600]} instead of {str(expected)[:600]}"


def _matching(built: Built, condition: Condition) -> list[Row]:
    return [row for row in built.expected if condition.matches(row)]


def rows(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = _text(built, condition)
    found = built.table.scan(text, params=params).to_arrow().to_pylist()
    extra = _bag(value_of(built, row) for row in found)
    expected = _bag(_matching(built, condition))
    return _differ("rows, superfluous and missing", (extra - expected, expected - extra), (Counter(), Counter()))


def some_columns(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = _text(built, condition)
    idents = draw.sample(built.columns.idents, draw.choice([1, 2, 3]))
    found = built.table.scan(text, [built.names[ident] for ident in idents], params=params).to_arrow().to_pylist()
    expected = _bag({ident: row[ident] for ident in idents} for row in _matching(built, condition))
    return _differ(f"columns {idents}", _bag(value_of(built, row) for row in found), expected)


def count(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = _text(built, condition)
    return _differ("count", built.table.scan(text, params=params).count(), len(_matching(built, condition)))


def limit(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = _text(built, condition)
    most = draw.choice([0, 1, 3, 100])
    matching = _matching(built, condition)
    scan = built.table.scan(text, limit=most, params=params)
    found = [value_of(built, row) for row in scan.to_arrow().to_pylist()]
    wrong = _bag(found) - _bag(matching)
    return _differ(f"limit {most}", (len(found), scan.count(), wrong), (min(most, len(matching)), min(most, len(matching)), Counter()))


def top(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = _text(built, condition)
    ident = draw.choice([one for one in ("id", "i", "e", "b", "s", "d", "n", "t", "dt", "z") if built.columns.has(one)])
    descends, most = draw.random() < 0.5, draw.choice([1, 2, 5, None])
    name = built.names[ident]
    columns = draw.choice([None, [name], list(dict.fromkeys([name, "id"]))])
    found = built.table.scan(text, columns, limit=most, params=params, order_by=f"{name} {'DESC' if descends else 'ASC'}").to_arrow()
    expected = sorted((_placed(row[ident]) for row in _matching(built, condition)), reverse=descends)[:most]
    return _differ(f"top {most} by {ident}, columns {columns}", [_placed(value) for value in found[name].to_pylist()], expected)


def _placed(value: Any) -> Any:
    return (0, 0) if value is None else (1, order(value))  # nulls come first in ascending order, and last in descending order


def aggregates(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = _text(built, condition)
    ident = draw.choice(["i", "e", "b", "n", "d", "s", "dt"])
    name = built.names[ident]
    values = [row[ident] for row in _matching(built, condition) if row[ident] is not None]
    found = built.table.scan(text, params=params).aggregate({name: ["min", "max", "count"], "rows": "count"}).to_pylist()[0]
    ends = [order(end(values, key=order)) if values else None for end in (min, max)]
    answer = [
        *(None if found[f"{name}_{end}"] is None else order(found[f"{name}_{end}"]) for end in ("min", "max")),
        found[f"{name}_count"],
        found["rows"],
    ]
    return _differ(f"min, max, count of {ident}, rows", answer, [*ends, len(values), len(_matching(built, condition))])


def groups(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = _text(built, condition)
    counted = ["i", "e", "s", "bo", "p", "dt", "b"]
    ident = draw.choice([*counted, *(one for one in counted if one in built.spec.indexed for _ in range(3))])
    name = built.names[ident]
    found = built.table.scan(text, params=params).aggregate({"rows": "count"}, by=name).to_pylist()
    expected = Counter(bits(row[ident]) for row in _matching(built, condition))
    return _differ(f"groups by {ident}", {bits(row[name]): row["rows"] for row in found}, dict(expected))


def splits(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = _text(built, condition)
    scan = built.table.scan(text, params=params)
    found = [row for split in scan.plan().splits for batch in scan.read(split) for row in batch.to_pylist()]
    return _differ("splits", _bag(value_of(built, row) for row in found), _bag(_matching(built, condition)))


def _changed(built: Built, change: Callable[[Table], object], expected: list[Row], what: str) -> str | None:
    """Change a copy of the table and compare all its rows."""
    path = f"{built.table.path}-copy"
    shutil.copytree(built.table.path, path)
    try:
        table = Table.open(path)
        change(table)
        found = _bag(value_of(built, row) for row in Table.open(path).scan().to_arrow().to_pylist())
        there = _bag(expected)
        return _differ(f"{what}, superfluous and missing", (found - there, there - found), (Counter(), Counter()))
    finally:
        shutil.rmtree(path)


def _can_delete(built: Built) -> bool:
    return built.spec.engine == "deduplicate" or (
        built.spec.engine == "append" and "data-evolution.enabled" not in dict(built.spec.options)
    )


def _removal(built: Built, condition: Condition, verb: str) -> str | None:
    if not _can_delete(built):
        return None
    text, params = _text(built, condition)
    expected = [row for row in built.expected if not condition.matches(row)]
    return _changed(built, lambda table: getattr(table, verb)(text, params=params), expected, verb)


def delete(built: Built, condition: Condition, draw: random.Random) -> str | None:
    return _removal(built, condition, "delete")


def purge(built: Built, condition: Condition, draw: random.Random) -> str | None:
    return _removal(built, condition, "purge")


def update(built: Built, condition: Condition, draw: random.Random) -> str | None:
    if built.spec.engine not in {"deduplicate", "append"}:
        return None
    text, params = _text(built, condition)
    expected = [{**row, "i": 99} if condition.matches(row) else row for row in built.expected]
    return _changed(built, lambda table: table.update(text, values={"i": 99}, params=params), expected, "update")


def merge_by_source(built: Built, condition: Condition, draw: random.Random) -> str | None:
    params = Params()
    text = condition.sql(replace(built.columns, prefix="t."), params)
    if not _can_delete(built) or params:  # conditions of a merge take no parameters
        return None
    source = built.arrow([{"id": -1, "p": 0}])
    expected = [row for row in built.expected if not condition.matches(row)]
    change = lambda table: table.merge(source, on=["id"]).when_not_matched_by_source_delete(text).execute()  # noqa: E731
    return _changed(built, change, expected, "merge by source")


QUESTIONS: dict[str, Question] = {
    question.__name__: question
    for question in (rows, some_columns, count, limit, top, aggregates, groups, splits, delete, purge, update, merge_by_source)
}
DEAR = ["delete", "purge", "update", "merge_by_source"]
"""Questions that change a copy of the table."""
CHEAP = [name for name in QUESTIONS if name not in {"rows", *DEAR}]
