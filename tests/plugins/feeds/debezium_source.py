"""A source database of one table, and the messages that Debezium makes of its changes."""

from __future__ import annotations

import datetime as dt
import json
import random
from base64 import b64encode
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DECIMAL = {
    "type": "bytes",
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "2", "connect.decimal.precision": "10"},
}
KINDS: dict[str, dict[str, Any]] = {
    "INT": {"type": "int32"},
    "BIGINT": {"type": "int64"},
    "STRING": {"type": "string"},
    "DOUBLE": {"type": "double"},
    "DECIMAL": DECIMAL,
    "DATE": {"type": "int32", "name": "io.debezium.time.Date"},
    "TIMESTAMP": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    "LTZ": {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
    "BYTES": {"type": "bytes"},
    "ARRAY": {"type": "array", "items": DECIMAL},
}
"""Schemas of Kafka Connect by the source's type."""
OF_JSON = ("STRING", "BIGINT", "DOUBLE")
"""Types whose values JSON has without a schema."""


def random_value(kind: str, rng: random.Random) -> Any:
    """A value of a type of the source."""
    number = rng.randrange(-(2**31), 2**31)
    match kind:
        case "INT":
            return number
        case "BIGINT":
            return number * 2**20
        case "DOUBLE":
            return rng.choice([0.5, 1.0, -2.25, 1e300])
        case "DECIMAL":
            return Decimal(number % 10**8).scaleb(-2) * rng.choice([1, -1])
        case "DATE":
            return dt.date(1970, 1, 1) + dt.timedelta(days=number % 40_000 - 20_000)
        case "TIMESTAMP" | "LTZ":
            instant = EPOCH + dt.timedelta(microseconds=number * 1001)
            return instant if kind == "LTZ" else instant.replace(tzinfo=None)
        case "BYTES":
            return rng.randbytes(3)
        case "ARRAY":
            return [random_value("DECIMAL", rng), None][: rng.randrange(3)]
    return rng.choice(["", "Oslo", "Lima", "\N{SNOWMAN}"])


def as_json(kind: str, value: Any) -> Any:
    """A value as Kafka Connect's converter writes it to JSON."""
    if value is None:
        return None
    match kind:
        case "DECIMAL":
            unscaled = int(value.scaleb(2))
            return b64encode(unscaled.to_bytes(8, "big", signed=True)).decode()
        case "DATE":
            return (value - dt.date(1970, 1, 1)).days
        case "TIMESTAMP":
            return (value.replace(tzinfo=dt.UTC) - EPOCH) // dt.timedelta(microseconds=1)
        case "LTZ":
            return value.isoformat().replace("+00:00", "Z")
        case "BYTES":
            return b64encode(value).decode()
        case "ARRAY":
            return [as_json("DECIMAL", item) for item in value]
    return value


class Source:
    """A table with the key ``id``. Each change appends a message."""

    def __init__(self, rng: random.Random, *, typed: bool) -> None:
        self.rng, self.typed = rng, typed
        self.kinds = {"id": "BIGINT", "name": "STRING"}
        self.rows: dict[int, dict[str, Any]] = {}
        self.messages: list[str | None] = []
        self._lsn, self._names = 1000, 0

    def change(self) -> None:
        """Make one change, chosen at random."""
        key, roll = self.rng.randrange(8), self.rng.random()
        old = self.rows.get(key)
        if roll < 0.12:
            self._change_schema()
        elif old is None:
            self.rows[key] = self._row(key)
            self._send(self.rng.choice("cr"), None, self.rows[key])
        elif roll < 0.3:
            del self.rows[key]
            self._send("d", old, None)
            self.messages.append(None)
        elif roll < 0.45 and (free := self.rng.randrange(8)) not in self.rows:
            self.rows[free] = {**self.rows.pop(key), "id": free}
            self._send("u", old, self.rows[free])
        else:
            self.rows[key] = self._row(key)
            self._send("u", old if self.rng.random() < 0.5 else None, self.rows[key])

    def _row(self, key: int) -> dict[str, Any]:
        values = {name: random_value(kind, self.rng) for name, kind in self.kinds.items()}
        optional = {name: None for name in values if self.typed and self.rng.random() < 0.2}
        return {**values, **optional, "id": key}

    def _change_schema(self) -> None:
        droppable = [name for name in self.kinds if name != "id"]
        narrow = [name for name, kind in self.kinds.items() if kind == "INT"]
        roll = self.rng.random()
        if narrow and roll < 0.3:
            self.kinds[self.rng.choice(narrow)] = "BIGINT"
        elif droppable and roll < 0.5:
            name = self.rng.choice(droppable)
            del self.kinds[name]
            for row in self.rows.values():
                del row[name]
        else:
            self._names += 1
            name = f"c{self._names}"
            self.kinds[name] = self.rng.choice([*KINDS] if self.typed else OF_JSON)
            for key, row in self.rows.items():
                if self.typed:
                    row[name] = None
                else:  # JSON's null has no type, so each row gets a value
                    old, self.rows[key] = row, {**row, name: random_value(self.kinds[name], self.rng)}
                    self._send("u", old, self.rows[key])

    def _send(self, op: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
        self._lsn += self.rng.randrange(1, 50)
        source = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "t", "lsn": self._lsn, "ts_ms": 1}
        images = [row and {name: as_json(self.kinds.get(name, ""), value) for name, value in row.items()} for row in (before, after)]
        payload = {"before": images[0], "after": images[1], "source": source, "op": op, "ts_ms": 2}
        message: dict[str, Any] = payload
        if self.typed:
            fields = [{"field": name, "optional": True, **KINDS[kind]} for name, kind in self.kinds.items()]
            rows = [{"field": name, "type": "struct", "optional": True, "fields": fields} for name in ("before", "after")]
            message = {"schema": {"type": "struct", "fields": rows}, "payload": payload}
        self.messages.append(json.dumps(message))
