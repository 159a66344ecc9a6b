"""``Table.merge`` row by row: what becomes of each row, by clauses that are said in SQL text and in Python."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

DDL = "id INT NOT NULL, part STRING, n BIGINT, f DOUBLE, s STRING"
NAMES = ["id", "part", "n", "f", "s"]
SOURCE = pa.schema([("id", pa.int64()), ("part", pa.string()), ("n", pa.int32()), ("f", pa.float64()), ("s", pa.string())])
Row = dict[str, Any]

CONDITIONS = {
    "matched": {
        None: lambda t, s: True,
        "s.n > 2": lambda t, s: s["n"] is not None and s["n"] > 2,
        "t.n = s.n OR s.s IS NULL": lambda t, s: (None not in (t["n"], s["n"]) and t["n"] == s["n"]) or s["s"] is None,
    },
    "not matched": {None: lambda t, s: True, "s.n IS NOT NULL": lambda t, s: s["n"] is not None},
    "not matched by source": {None: lambda t, s: True, "t.n < 3": lambda t, s: t["n"] is not None and t["n"] < 3},
}
UPDATES = {
    "matched": [
        (
            {"n": "coalesce(t.n, 0) + coalesce(source.n, 100)", "s": "s.s"},
            lambda t, s: {"n": (t["n"] or 0) + (100 if s["n"] is None else s["n"]), "s": s["s"]},
        ),
        ({"f": 1, "s": None}, lambda t, s: {"f": 1.0, "s": None}),
    ],
    "not matched by source": [({"n": "t.n + 1000"}, lambda t, s: {"n": None if t["n"] is None else t["n"] + 1000})],
}
INSERTS = [
    (None, lambda s: s),
    (
        {"id": "s.id", "part": "'p'", "s": "concat('<', s.s, '>')"},
        lambda s: {"id": s["id"], "part": "p", "n": None, "f": None, "s": None if s["s"] is None else f"<{s['s']}>"},
    ),
]
JOINS = {
    "id": lambda t, s: t["id"] == s["id"],
    "t.id = s.id AND t.n < 4": lambda t, s: t["id"] == s["id"] and t["n"] is not None and t["n"] < 4,
    "source.f = target.f": lambda t, s: None not in (t["f"], s["f"]) and (t["f"] == s["f"] or (math.isnan(t["f"]) and math.isnan(s["f"]))),
}


class Refused(Exception):
    """The model has no answer."""


def model(table: list[Row], source: list[Row], on: str, clauses: list[tuple[Any, ...]], *, keyed: bool = True) -> list[Row]:
    matched_sources: set[int] = set()
    after: list[Row] = []
    for row in table:
        mates = [at for at, other in enumerate(source) if JOINS[on](row, other)]
        matched_sources.update(mates)
        when = "matched" if mates else "not matched by source"
        applied = []
        for mate in [source[at] for at in mates] or [{}]:
            clause = next((one for one in clauses if one[0] == when and CONDITIONS[when][one[2]](row, mate)), None)
            applied += [] if clause is None else [(clause, mate)]
        if len(applied) > 1:
            raise Refused
        new: Row | None = dict(row)
        for (_, action, _, values), mate in applied:
            new = None if action == "delete" else {**row, **values(row, mate)}
        if new is not None:
            after.append(new)
    taken = {row["id"] for row in table}
    inserted: set[int] = set()
    for at, row in enumerate(source):
        if at in matched_sources:
            continue
        clause = next((one for one in clauses if one[0] == "not matched" and CONDITIONS["not matched"][one[2]](None, row)), None)
        if clause is not None:
            if keyed and (row["id"] in taken or row["id"] in inserted):
                raise Refused
            inserted.add(row["id"])
            after.append(clause[3](row))
    return after


def said(merge: Any, clause: tuple[Any, ...]) -> Any:
    when, action, condition, _, values = clause
    name = f"when_{when.replace(' ', '_')}_{action}"
    if action == "delete":
        return getattr(merge, name)(condition)
    return getattr(merge, f"{name}_all")(condition) if values is None else getattr(merge, name)(values, condition)


def comparable(rows: list[Row]) -> list[str]:
    return sorted(repr([row[name] for name in NAMES]) for row in rows)
