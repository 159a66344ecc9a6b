"""Questions about scans whose outputs have the names of stored columns, with a model of what each name means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

DDL = "id INT, v INT, w INT, r ROW<x INT, v INT>, m MAP<STRING, INT>, `a.b` INT"
Row = dict[str, Any]
Value = Callable[[Row], Any]


def rows(count: int = 12) -> list[Row]:
    """Rows of which no two columns order alike."""
    return [
        {
            "id": at,
            "v": None if at == 5 else at * 7 % count,
            "w": at * 5 % count,
            "r": {"x": at * 11 % count, "v": at % 2},
            "m": [("k", -at)],
            "a.b": at % 3,
        }
        for at in range(count)
    ]


def _negative(value: Value) -> Value:
    return lambda row: None if value(row) is None else -value(row)


STORED: dict[str, Value] = {name: (lambda row, name=name: row[name]) for name in ("id", "v", "w", "a.b")}
PARTS: dict[tuple[str, str], Value] = {
    ("r", "x"): lambda row: row["r"]["x"],
    ("r", "v"): lambda row: row["r"]["v"],
    ("m", "k"): lambda row: dict(row["m"])["k"],
}
OUTPUTS: tuple[Mapping[str, tuple[str, Value]] | None, ...] = (
    None,
    {"id": ("id", STORED["id"]), "v": ("-v", _negative(STORED["v"]))},
    {"V": ("-v", _negative(STORED["v"])), "id": ("id", STORED["id"])},
    {"v": ("w", STORED["w"]), "w": ("v", STORED["v"])},
    {"W": ("id", STORED["id"])},
    {"w": ("id + v", lambda row: None if row["v"] is None else row["id"] + row["v"]), "v": ("v", STORED["v"])},
    {"r": ("v", STORED["v"]), "x": ("r.x", PARTS["r", "x"])},
    {"a.b": ("-`a.b`", _negative(STORED["a.b"])), "id": ("id", STORED["id"])},
    {"r.x": ("r.x", PARTS["r", "x"]), "r.v": ("-r.v", _negative(PARTS["r", "v"]))},
    {"m": ("w", STORED["w"])},
)
"""Outputs by name: the expression, and its value. None: all stored columns."""
NAMES: dict[str, str | tuple[str, str]] = {
    "id": "id",
    "v": "v",
    "V": "v",
    "`v`": "v",
    "`W`": "w",
    "w": "w",
    "x": "x",
    "`a.b`": "a.b",
    "`A.B`": "a.b",
    "r.x": ("r", "x"),
    "R.X": ("r", "x"),
    "`r`.`x`": ("r", "x"),
    "r.v": ("r", "v"),
    "m['k']": ("m", "k"),
}
"""Column, or column and part, that each spelling means."""


@dataclass(frozen=True)
class Question:
    """A name in the clauses of a scan with some outputs."""

    outputs: Mapping[str, tuple[str, Value]] | None
    name: str

    def __str__(self) -> str:
        # An identifier of tests: the same in each process.
        return f"{self.columns}-{self.name}"

    @property
    def columns(self) -> dict[str, str] | None:
        """Argument of ``scan``."""
        return None if self.outputs is None else {name: sql for name, (sql, _) in self.outputs.items()}

    @property
    def meaning(self) -> Value | None:
        """Value that the name means. None: it means none."""
        outputs = {name.lower(): value for name, (_, value) in (self.outputs or {}).items()}
        target = NAMES[self.name]
        if isinstance(target, str):
            return outputs.get(target, STORED.get(target))
        # Only the exact spelling of an output with a dot means that output.
        exact = (self.outputs or {}).get(self.name)
        if exact is not None:
            return exact[1]
        return None if target[0] in outputs else PARTS[target]

    def shown(self, row: Row) -> Row:
        """Return the row of the scan."""
        return row if self.outputs is None else {name: value(row) for name, (_, value) in self.outputs.items()}


QUESTIONS = [Question(outputs, name) for outputs in OUTPUTS for name in NAMES]


def ordered(question: Question, stored: list[Row], *, descending: bool) -> list[Row]:
    """Return the rows in the order by the name, then by ``id``; nulls are least."""
    value = question.meaning
    assert value is not None
    return sorted(stored, key=lambda row: (value(row) is not None, value(row) or 0, row["id"]), reverse=descending)


def groups(question: Question, stored: list[Row]) -> list[Row]:
    """Return the number of rows of each group, in the order of the groups."""
    value, counts = question.meaning, defaultdict(int)
    assert value is not None
    for row in stored:
        counts[value(row)] += 1
    return [{"key": key, "n": counts[key]} for key in sorted(counts, key=lambda key: (key is not None, key or 0))]


def summary(question: Question, stored: list[Row]) -> list[Any]:
    """Return count, least, greatest, sum and number of distinct values."""
    value = question.meaning
    assert value is not None
    known = [value(row) for row in stored if value(row) is not None]
    return [len(known), min(known), max(known), sum(known), len(set(known))]


__all__ = ["DDL", "NAMES", "OUTPUTS", "QUESTIONS", "Question", "groups", "ordered", "rows", "summary"]
