"""Keys that cross partitions, record by record in plain Python: where each lives, and its versions there."""

from __future__ import annotations

import random
from typing import Any

from tests.lsm.merge_model import Model, Record

Row = dict[str, Any]
COLUMNS = {"id": "INT", "name": "STRING", "day": "INT", "v": "INT", "w": "STRING"}
KEYS = ("id", "name")
PARTITION = "day"
ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
}


class Places:
    """What a table with one of ``ENGINES`` holds, a record after the other."""

    def __init__(self, engine: str) -> None:
        self.engine, self.model = engine, Model(COLUMNS, KEYS, dict(ENGINES[engine]))
        self.versions: dict[tuple[Any, ...], list[Record]] = {}

    def take(self, kind: str, row: Row) -> None:
        """One record: a newer one moves its key, goes where that is, or is dropped."""
        key = tuple(row[name] for name in KEYS)
        if self.engine == "deduplicate" or key not in self.versions:
            self.versions[key] = [(kind, 0, row)]
        elif self.engine != "first-row":
            at_home = {**row, PARTITION: self.versions[key][0][2][PARTITION]}
            self.versions[key].append((kind, 0, at_home))

    @property
    def rows(self) -> dict[tuple[Any, ...], Row]:
        """The rows by their keys."""
        merged = {key: self.model.merge(versions) for key, versions in self.versions.items()}
        return {key: record[2] for key, record in merged.items() if record is not None and record[0] in {"+I", "+U"}}

    def batch(self, chance: random.Random, most: int = 30) -> list[Row]:
        """Rows with ``_kind`` to write, which it has taken."""
        kinds = ["+I", "+I", "-D", "+U", "-U"] if self.engine == "deduplicate" else ["+I"]
        rows = [
            {
                "_kind": chance.choice(kinds),
                "id": chance.randrange(30),
                "name": chance.choice("ab"),
                "day": chance.choice([None, 1, 2, 3]),
                "v": chance.choice([None, chance.randrange(100)]),
                "w": chance.choice([None, "x", "y"]),
            }
            for _ in range(chance.randrange(1, most))
        ]
        for row in rows:
            self.take(row["_kind"], {name: row[name] for name in COLUMNS})
        return rows
