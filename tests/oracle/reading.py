"""Questions that read: each compares the answer with that of the model, and returns what differs."""

from __future__ import annotations

import random
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from typing import Any

from tests.oracle.answers import bag, bags_differ, differ, matching, text_of
from tests.oracle.conditions import Condition, Params, Term
from tests.oracle.drawing import ADDED, Drawing
from tests.oracle.tables import Built
from tests.oracle.values import bits, order


def rows(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = text_of(built, condition)
    found = built.table.scan(text, params=params).to_arrow().to_pylist()
    return bags_differ("rows", bag(built.columns.by_ident(row) for row in found), bag(matching(built, condition)))


def some_columns(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = text_of(built, condition)
    idents = draw.sample(built.columns.idents, draw.choice([1, 2, 3]))
    found = built.table.scan(text, [built.names[ident] for ident in idents], params=params).to_arrow().to_pylist()
    expected = bag({ident: row[ident] for ident in idents} for row in matching(built, condition))
    return differ(f"columns {idents}", bag(built.columns.by_ident(row) for row in found), expected)


def count(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = text_of(built, condition)
    return differ("count", built.table.scan(text, params=params).count(), len(matching(built, condition)))


def limit(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = text_of(built, condition)
    most = draw.choice([0, 1, 3, 100])
    there = matching(built, condition)
    scan = built.table.scan(text, limit=most, params=params)
    found = [built.columns.by_ident(row) for row in scan.to_arrow().to_pylist()]
    wrong = bag(found) - bag(there)
    return differ(f"limit {most}", (len(found), scan.count(), wrong), (min(most, len(there)), min(most, len(there)), Counter()))


def top(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = text_of(built, condition)
    ident = draw.choice([one for one in ("id", "i", "e", "b", "s", "d", "n", "t", "dt", *ADDED) if built.columns.has(one)])
    descends, most = draw.random() < 0.5, draw.choice([1, 2, 5, None])
    name = built.names[ident]
    columns = draw.choice([None, [name], list(dict.fromkeys([name, "id"]))])
    found = built.table.scan(text, columns, limit=most, params=params, order_by=f"{name} {'DESC' if descends else 'ASC'}").to_arrow()
    expected = sorted((_placed(row[ident]) for row in matching(built, condition)), reverse=descends)[:most]
    return differ(f"top {most} by {ident}, columns {columns}", [_placed(value) for value in found[name].to_pylist()], expected)


def _placed(value: Any) -> Any:
    return (0, 0) if value is None else (1, order(value))  # nulls come first in ascending order, and last in descending order


def aggregates(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = text_of(built, condition)
    ident = draw.choice(["i", "e", "b", "n", "d", "s", "dt", "id"])
    name = built.names[ident]
    values = [row[ident] for row in matching(built, condition) if row[ident] is not None]
    functions = ["min", "max", "count", "count_distinct", *(["sum", "avg"] if ident in _SUMMED else [])]
    result = built.table.scan(text, params=params).aggregate({name: functions, "rows": "count"}).to_pylist()[0]
    answer = [None if (value := result[f"{name}_{function}"]) is None else order(value) for function in functions]
    expected = [_folded(function, values, built.scale) for function in functions]
    return differ(f"{functions} of {ident}, rows", [*answer, result["rows"]], [*expected, len(matching(built, condition))])


_SUMMED = {"i", "e", "id", "n"}
"""Columns whose sums do not overflow and do not depend on the order."""


def _folded(function: str, values: list[Any], scale: Decimal) -> Any:
    match function:
        case "count":
            return len(values)
        case "count_distinct":
            return len(set(map(order, values)))
    if not values:
        return None
    match function:
        case "min" | "max":
            return order((min if function == "min" else max)(values, key=order))
        case "sum":
            return order(sum(values))
    if isinstance(values[0], Decimal):
        return (sum(values) / len(values)).quantize(scale / 10_000, ROUND_HALF_UP)
    return order(sum(values) / len(values))


def groups(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = text_of(built, condition)
    counted = ["i", "e", "s", "bo", "p", "dt", "b", *(ident for ident in ADDED if built.columns.has(ident))]
    ident = draw.choice([*counted, *(one for one in counted if one in built.spec.indexed for _ in range(3))])
    name = built.names[ident]
    found = built.table.scan(text, params=params).aggregate({"rows": "count"}, by=name).to_pylist()
    expected = Counter(bits(row[ident]) for row in matching(built, condition))
    return differ(f"groups by {ident}", {bits(row[name]): row["rows"] for row in found}, dict(expected))


def splits(built: Built, condition: Condition, draw: random.Random) -> str | None:
    text, params = text_of(built, condition)
    scan = built.table.scan(text, params=params)
    found = [row for split in scan.plan().splits for batch in scan.read(split) for row in batch.to_pylist()]
    return differ("splits", bag(built.columns.by_ident(row) for row in found), bag(matching(built, condition)))


def two_groups(built: Built, condition: Condition, draw: random.Random) -> str | None:
    """Groups of two columns, or of a computed value, with more than counts."""
    text, params = text_of(built, condition)
    kind, ident = draw.choice(["i", "s", "p", "e"]), draw.choice(["i", "e", "n", "id"])
    term, values = Drawing(draw, built.columns).term(kind), Params()
    by = {"first": term.sql(built.columns, values), "second": draw.choice(["bo", "p"])}
    if values:
        return None
    name = built.names[ident]
    wanted = {name: ["min", "max", "sum", "count"]}
    result = built.table.scan(text, params=params).aggregate(wanted, by=by).to_pylist()
    groups: dict[Any, list[Any]] = {}
    for row in matching(built, condition):
        groups.setdefault((bits(term.of(row)), bits(row[by["second"]])), []).append(row[ident])
    expected = {}
    for key, members in groups.items():
        present = [value for value in members if value is not None]
        expected[key] = [_folded(function, present, built.scale) for function in wanted[name]]
    answer = {
        (bits(row["first"]), bits(row["second"])): [None if (one := row[f"{name}_{how}"]) is None else order(one) for how in wanted[name]]
        for row in result
    }
    return differ(f"{wanted} by {by}", answer, expected)


def computed(built: Built, condition: Condition, draw: random.Random) -> str | None:
    """Expressions for columns."""
    text, params = text_of(built, condition)
    drawing = Drawing(draw, built.columns)
    terms: dict[str, Term] = {}
    for number in range(draw.choice([1, 2, 3])):
        term, values = drawing.term(draw.choice(drawing.scalars)), Params()
        term.sql(built.columns, values)
        if not values:
            terms[f"x{number}"] = term
    if not terms:
        return None
    columns = {name: term.sql(built.columns, Params()) for name, term in terms.items()}
    most = draw.choice([None, None, 2])
    scan = built.table.scan(text, columns, params=params, limit=most)
    answer = bag(scan.to_arrow().to_pylist())
    expected = bag({name: term.of(row) for name, term in terms.items()} for row in matching(built, condition))
    if most is not None:
        return differ(f"computed {columns}, limit {most}", (answer.total(), answer - expected), (min(most, expected.total()), Counter()))
    return bags_differ(f"computed {columns}", answer, expected)


def point(built: Built, condition: Condition, draw: random.Random) -> str | None:
    """A filter that fixes the key, or lists keys, beside the condition."""
    numbers = draw.sample(range(35), draw.choice([1, 1, 3]))
    text, params = text_of(built, condition)
    fixed = f"id = {numbers[0]}" if len(numbers) == 1 else f"id IN ({', '.join(map(str, numbers))})"
    if built.spec.keys and built.spec.partitions and not built.spec.crosses and draw.random() < 0.7:
        fixed += f" AND {built.names['p']} IN ({', '.join(sorted({str(built.partition_of(number)) for number in numbers}))})"
    whole = f"({text}) AND {fixed}" if draw.random() < 0.5 else f"{fixed} AND ({text})"
    expected = bag(row for row in matching(built, condition) if row["id"] in numbers)
    answer = built.table.scan(whole, params=params).to_arrow().to_pylist()
    return bags_differ(f"point {fixed}", bag(built.columns.by_ident(row) for row in answer), expected)


def lookup(built: Built, condition: Condition, draw: random.Random) -> str | None:
    """Rows of keys, in the order of the keys; the condition has no part in it."""
    if not built.spec.keys:
        return None
    by_key = {row["id"]: row for row in built.expected}
    numbers = [draw.randrange(35) for _ in range(draw.choice([1, 3, 10]))]
    keys = [{key: number if key == "id" else built.partition_of(number) for key in built.spec.keys} for number in numbers]
    missing, idents = draw.choice(["drop", "null"]), draw.choice([list(built.names), draw.sample(list(built.names), 2)])
    found = draw.choice([built.table, built.table.reader()]).lookup(
        built.arrow(keys).select([built.names[key] for key in built.spec.keys]), [built.names[ident] for ident in idents], missing=missing
    )
    rows = [by_key.get(key["id"], None if missing == "drop" else {**dict.fromkeys(built.names), **key}) for key in keys]
    expected = [bits({ident: row[ident] for ident in idents}) for row in rows if row is not None]
    return differ(f"lookup of {numbers}, {missing}", [bits(built.columns.by_ident(row)) for row in found.to_pylist()], expected)


_FILE_STAGES = ["partition", "bucket", "level", "key range", "value stats", "embedded index"]


def explain(built: Built, condition: Condition, draw: random.Random) -> str | None:
    """What a stage keeps is what the next one has, and the rows are those of the result."""
    text, params = text_of(built, condition)
    stages = {stage.name: stage for stage in built.table.scan(text, params=params).explain().stages}
    negative = [stage for stage in stages.values() if stage.kept < 0 or stage.dropped < 0]
    chain = [stages[name] for name in _FILE_STAGES if name in stages]
    broken = [(one.name, two.name) for one, two in pairwise(chain) if one.kept != two.kept + two.dropped]
    rows = stages["rows"].kept if "rows" in stages else 0
    return differ(f"explain {negative} {broken}, rows", (len(negative) + len(broken), rows), (0, len(matching(built, condition))))
