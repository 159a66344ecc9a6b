"""Tables for taking turns: what each is made of, rows to write to it, and a plain-Python model of what it then holds.

Rows are objects in the golden tables' JSON form, ``_kind`` among them, so every writer gets the same; columns are of types that JSON knows.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.lsm.aggregate_model import order_of
from tests.lsm.merge_model import Model, Record

Row = dict[str, Any]
TEXTS = ("", "a", "a\0", "b", "Tromsø", "北京", "🙂", "x" * 40, "name-1")
PLACES = ("", "a=b", "ü/x", "%20", "dt", "__DEFAULT_PARTITION__x")


@dataclass(frozen=True)
class Configuration:
    """A kind of table.

    ``hidden``: level 0 is not read, so rows show only after compaction unless their writer compacts. ``bare_deletes``: a deletion carries
    only its key, since what else it carried would show in a later row of that key, or not, by whether a compaction came between.
    """

    name: str
    columns: Mapping[str, str]
    keys: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    kinds: tuple[str, ...] = ("+I",)
    key_space: int = 40
    changes_schema: bool = False
    bare_deletes: bool = False

    @property
    def hidden(self) -> bool:
        vectors = self.options.get("deletion-vectors.enabled") == "true"
        return bool(self.keys) and (vectors or self.options.get("merge-engine") == "first-row")

    @property
    def kind_column(self) -> str | None:
        return self.options.get("rowkind.field")

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON form in which all engines take a new table's schema."""
        fields = [{"name": name, "type": f"{kind} NOT NULL" if name in self.keys else kind} for name, kind in self.columns.items()]
        return {
            "fields": fields,
            "primaryKeys": list(self.keys),
            "partitionKeys": list(self.partitions),
            "options": {**self.options, "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "100"},
        }


PLAIN = {"id": "BIGINT", "v": "INT", "name": "STRING", "qty": "INT", "flag": "BOOLEAN", "amount": "DOUBLE"}
FIXED = {"bucket": "2", "num-sorted-run.compaction-trigger": "4"}
INDEXED = {"file-index.bitmap.columns": "name,flag", "file-index.bsi.columns": "qty", "file-index.bloom-filter.columns": "amount"}
VECTORS = {**FIXED, "deletion-vectors.enabled": "true"}
PARTIAL = {"merge-engine": "partial-update"}
REMOVING = "partial-update.remove-record-on-delete"
GROUPS = {
    **PARTIAL,
    "fields.v.sequence-group": "name,qty",
    "fields.w.sequence-group": "note",
    "fields.qty.aggregate-function": "sum",
}
SUMS = {
    "merge-engine": "aggregation",
    "fields.v.aggregate-function": "max",
    "fields.qty.aggregate-function": "sum",
    "fields.flag.aggregate-function": "bool_or",
}
RETRACTS = {
    "merge-engine": "aggregation",
    "fields.qty.aggregate-function": "sum",
    **{f"fields.{name}.ignore-retract": "true" for name in ("v", "name", "flag", "amount")},
}
WITH_GROUPS = {"id": "BIGINT", "v": "INT", "name": "STRING", "qty": "INT", "w": "INT", "note": "STRING", "flag": "BOOLEAN"}
ID = ("id",)
DELETES = ("+I", "+I", "+U", "-D")

CONFIGURATIONS = (
    Configuration("primary key, level 0", PLAIN, ID, options={**FIXED, "write-only": "true"}, kinds=DELETES, changes_schema=True),
    Configuration("primary key, compacted", PLAIN, ID, options={**FIXED, **INDEXED}, kinds=DELETES, changes_schema=True),
    Configuration("deletes by row kind", {**PLAIN, "op": "STRING"}, ID, options={**FIXED, "rowkind.field": "op"}, kinds=DELETES),
    Configuration("deletion vectors, 32 bit", PLAIN, ID, options={**VECTORS, **INDEXED}, kinds=DELETES, changes_schema=True),
    Configuration("deletion vectors, 64 bit", PLAIN, ID, options={**VECTORS, "deletion-vectors.bitmap64": "true"}, kinds=DELETES),
    Configuration("sequence.field", PLAIN, ID, options={**FIXED, "sequence.field": "v"}),
    Configuration("first-row", PLAIN, ID, options={**FIXED, "merge-engine": "first-row"}),
    Configuration("partial-update", PLAIN, ID, options={**FIXED, **PARTIAL}),
    Configuration("partial-update, sequence groups", WITH_GROUPS, ID, options={**FIXED, **GROUPS}),
    Configuration("partial-update, ignored deletes", PLAIN, ID, options={**FIXED, **PARTIAL, "ignore-delete": "true"}, kinds=DELETES),
    Configuration("partial-update, removing deletes", PLAIN, ID, options={**FIXED, **PARTIAL, REMOVING: "true"}, kinds=DELETES, bare_deletes=True),
    Configuration("aggregation", PLAIN, ID, options={**FIXED, **SUMS}),
    Configuration("aggregation, retracts", PLAIN, ID, options={**FIXED, **RETRACTS}, kinds=("+I", "+I", "-U")),
    Configuration("changelog-producer input", PLAIN, ID, options={**FIXED, "changelog-producer": "input"}, kinds=DELETES),
    Configuration("changelog-producer lookup", PLAIN, ID, options={**FIXED, "changelog-producer": "lookup"}, kinds=DELETES),
    Configuration("changelog-producer full-compaction", PLAIN, ID, options={**FIXED, "changelog-producer": "full-compaction"}, kinds=DELETES),
    Configuration("dynamic buckets", PLAIN, ID, options={"bucket": "-1", "dynamic-bucket.target-row-num": "9"}, kinds=DELETES),
    Configuration("partitions with odd values", {"place": "STRING", **PLAIN}, ("place", "id"), ("place",), {**FIXED}, kinds=DELETES, key_space=10),
    Configuration("append", PLAIN, options={"bucket": "-1", **INDEXED}, changes_schema=True),
    Configuration("append, deletion vectors", PLAIN, options={"bucket": "-1", "deletion-vectors.enabled": "true"}),
    Configuration("append, bucketed", PLAIN, options={"bucket": "2", "bucket-key": "id"}),
)  # fmt: skip
BY_NAME = {configuration.name: configuration for configuration in CONFIGURATIONS}


class World:
    """What a table of a configuration holds, kept as a dictionary (a list, without a key)."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        types = {name: kind.split("(")[0] for name, kind in configuration.columns.items()}
        self.columns = dict(configuration.columns)
        self.model = Model(types, configuration.keys, dict(configuration.options))
        self.records: dict[tuple[Any, ...], Record] = {}
        self.appended: list[Row] = []
        self.clock = 0
        self.keys_seen: set[tuple[Any, ...]] = set()

    def batch(self, rng: random.Random, *, only_adds: bool) -> list[Row]:
        """Rows to write, each key once; deletions and retracts only of keys that there are."""
        made: dict[Any, Row] = {}
        for _ in range(rng.randint(1, 12)):
            row = {name: self._value(rng, name, kind) for name, kind in self.columns.items()}
            key = tuple(row[name] for name in self.configuration.keys)
            kind = "+I" if only_adds else rng.choice(self.configuration.kinds)
            if kind in {"-D", "-U"} and key not in self._live():
                kind = "+I"
            if self.configuration.kind_column is not None:
                row[self.configuration.kind_column] = kind
            if kind == "-D" and self.configuration.bare_deletes:
                row = {name: row[name] if name in self.configuration.keys else None for name in row}
            if self.configuration.options.get("sequence.field"):
                row["v"] = rng.randint(0, 1000)
            made[key or len(made)] = {**row, "_kind": kind}
        return list(made.values())

    def _live(self) -> set[tuple[Any, ...]]:
        return {key for key, record in self.records.items() if record[0] in {"+I", "+U"}}

    def _value(self, rng: random.Random, name: str, kind: str) -> Any:
        if name == "id":
            return rng.randrange(self.configuration.key_space)
        if name == "place":
            return rng.choice(PLACES)
        if rng.random() < 0.15:
            return None
        values = {
            "INT": rng.randint(-5, 60),
            "BIGINT": rng.getrandbits(40),
            "BOOLEAN": rng.random() < 0.5,
            "DOUBLE": rng.randint(-99, 99) / 4,
        }
        return rng.choice(TEXTS) if kind == "STRING" else values[kind]

    def write(self, rows: list[Row]) -> None:
        """Rows that some engine wrote, in their order."""
        for row in rows:
            values = {name: row.get(name) for name in self.columns}
            if not self.configuration.keys:
                self.appended.append(values)
                continue
            self.clock += 1
            key = tuple(values[name] for name in self.configuration.keys)
            records = [record for record in (self.records.get(key), (row["_kind"], self.clock, values)) if record is not None]
            ordered = self.configuration.options.get("sequence.field")
            if ordered:
                records.sort(key=lambda record: order_of(record[2][ordered], self.model.types[ordered]))
            merged = self.model.merge(records)
            if merged is not None:
                self.records[key] = merged

    def replace(self, rows: list[Row]) -> None:
        """An overwrite of the whole table."""
        self.records.clear()
        self.appended.clear()
        self.write(rows)

    def delete(self, matches: Any) -> None:
        """The rows that match are gone."""
        self.appended = [row for row in self.appended if not matches(row)]
        for key, (kind, _, values) in list(self.records.items()):
            if kind in {"+I", "+U"} and matches(values):
                del self.records[key]

    def add_column(self, name: str, kind: str) -> None:
        self.columns[name] = self.model.types[name] = kind
        for row in [*self.appended, *(record[2] for record in self.records.values())]:
            row[name] = None

    def drop_column(self, name: str) -> None:
        del self.columns[name], self.model.types[name]
        for row in [*self.appended, *(record[2] for record in self.records.values())]:
            del row[name]

    def rows(self) -> list[Row]:
        """The rows a reader sees."""
        kept = [values for kind, _, values in self.records.values() if kind in {"+I", "+U"}]
        return [{name: row[name] for name in self.columns} for row in (kept if self.configuration.keys else self.appended)]
