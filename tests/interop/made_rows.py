"""Random rows in the JSON form of the engine's driver: ordinary values of the usual columns, extremes of every type."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Pool: TypeAlias = Sequence[Any] | Callable[[random.Random], Any]
"""Where a column's values come from."""

BASE = {
    "id": "BIGINT NOT NULL",
    "name": "STRING",
    "city": "STRING",
    "flag": "BOOLEAN",
    "qty": "INT",
    "price": "DECIMAL(12, 2)",
    "amount": "DOUBLE",
    "day": "DATE",
    "ts": "TIMESTAMP(6)",
}
NULLS = 0.08


def text_map(value: Any) -> dict[str, Any]:
    """The type of a map with text keys."""
    return {"type": "MAP", "key": "STRING NOT NULL", "value": value}


def array(element: Any) -> dict[str, Any]:
    """The type of an array."""
    return {"type": "ARRAY", "element": element}


def struct(**fields: Any) -> dict[str, Any]:
    """The type of a row; the engine numbers its fields anew."""
    return {"type": "ROW", "fields": [{"id": number, "name": name, "type": kind} for number, (name, kind) in enumerate(fields.items())]}


ALL_TYPES = {
    "id": "BIGINT NOT NULL",
    "c_bool": "BOOLEAN",
    "c_tiny": "TINYINT",
    "c_small": "SMALLINT",
    "c_int": "INT",
    "c_big": "BIGINT",
    "c_float": "FLOAT",
    "c_double": "DOUBLE",
    "c_dec9": "DECIMAL(9, 3)",
    "c_dec18": "DECIMAL(18, 0)",
    "c_dec38": "DECIMAL(38, 10)",
    "c_char": "CHAR(5)",
    "c_varchar": "VARCHAR(60)",
    "c_string": "STRING",
    "c_binary": "BINARY(4)",
    "c_varbinary": "VARBINARY(30)",
    "c_bytes": "BYTES",
    "c_date": "DATE",
    "c_time": "TIME(3)",
    "c_ts0": "TIMESTAMP(0)",
    "c_ts3": "TIMESTAMP(3)",
    "c_ts6": "TIMESTAMP(6)",
    "c_ts9": "TIMESTAMP(9)",
    "c_ltz3": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "c_ltz6": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "c_array": array("STRING"),
    "c_map": text_map("DOUBLE"),
    "c_imap": {"type": "MAP", "key": "INT NOT NULL", "value": "STRING"},
    "c_row": struct(x="INT", y=array("DECIMAL(20, 2)")),
    "c_deep": array(struct(k="STRING", v="TIMESTAMP(6)")),
}


def _after(start: dt.datetime, micros: int) -> str:
    return (start + dt.timedelta(microseconds=micros)).isoformat(timespec="microseconds")


NAMED: dict[str, Pool] = {
    "name": lambda draw: f"name-{draw.randrange(60)}",
    "city": ["Oslo", "Bergen", "Tromsø", "São Paulo", "", "🙂 smile"],
    "flag": [True, False],
    "qty": lambda draw: draw.randrange(-999, 1000),
    "price": lambda draw: f"{draw.randrange(-99900, 99900) / 100:.2f}",
    "amount": lambda draw: draw.randrange(-2000, 2000) / 8 or 0.5,
    "day": lambda draw: (dt.date(2021, 12, 29) + dt.timedelta(days=draw.randrange(21))).isoformat(),
    "ts": lambda draw: _after(dt.datetime(2020, 9, 13, 12, 26, 40), draw.randrange(10**9)),  # noqa: DTZ001  # a column without zone
    "extra": lambda draw: f"extra-{draw.randrange(9)}",
}

_INTEGERS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_TEXTS = ["", " ", "a", "twelve bytes", "more than sixteen characters here", "äöüß€", "日本語 🙂", "z\x00z", "a/b=c%2F"]
_INSTANTS = {
    0: ["1969-12-31T23:59:59", "1970-01-01T00:00:00", "2026-01-02T03:04:05"],
    3: ["1960-01-01T00:00:00.001", "1969-12-31T23:59:59.999", "2026-01-02T03:04:05.678"],
    6: ["1600-02-29T00:00:00.000001", "1969-12-31T23:59:59.999999", "2026-01-02T03:04:05.678901", "9999-12-31T23:59:59.999999"],
    9: ["1969-12-31T23:59:59.999999999", "2026-01-02T03:04:05.678901234", "1970-01-01T00:00:00.000000001"],
}


def made_row(
    draw: random.Random, fields: Mapping[str, Any], keys: Sequence[str], pools: Mapping[str, Pool], *, number: int, deletes: float
) -> dict[str, Any]:
    """A row with ``number`` as id; ``deletes`` is the share of rows that take their key away."""
    row = {name: number if name == "id" else made_cell(draw, name, kind, keys, pools) for name, kind in fields.items()}
    return {"_kind": "-D", **row} if draw.random() < deletes else row


def made_cell(draw: random.Random, name: str, kind: Any, keys: Sequence[str], pools: Mapping[str, Pool]) -> Any:
    """A value of a column, or null where it may be."""
    required = name in keys or (isinstance(kind, str) and kind.endswith("NOT NULL"))
    if not required and name not in pools and draw.random() < NULLS:
        return None
    pool = pools.get(name, NAMED.get(name))
    if pool is None:
        return made_value(draw, kind)
    return pool(draw) if callable(pool) else draw.choice(pool)


def made_value(draw: random.Random, kind: Any) -> Any:
    """A value of a type, often one of its extremes."""
    if isinstance(kind, dict):
        return _nested(draw, kind)
    name, _, rest = kind.removesuffix(" NOT NULL").partition("(")
    sizes = [int(size) for size in rest.partition(")")[0].split(",")] if rest else []
    if name in _INTEGERS:
        top = 1 << _INTEGERS[name]
        return draw.choice([-top, 1 - top, -3, -1, 0, 1, 5, top - 1])
    match name:
        case "BOOLEAN":
            return draw.random() < 0.5
        case "FLOAT":
            return draw.choice([1.4e-45, -1.5, 0.25, 3.4028234663852886e38, "NaN", "Infinity", "-Infinity", 16777216.0])
        case "DOUBLE":
            return draw.choice([5e-324, -1.5, 0.1, 1.7976931348623157e308, "NaN", "Infinity", "-Infinity", 1e100])
        case "DECIMAL":
            return _decimal(draw, *sizes)
        case "CHAR" | "VARCHAR" | "STRING":
            return draw.choice(_TEXTS) if not sizes else draw.choice([text for text in _TEXTS if len(text) <= sizes[0]])
        case "BINARY":
            return draw.choice(["00", "ff", "7f"]) * sizes[0]
        case "VARBINARY" | "BYTES":
            return draw.randbytes(draw.randrange(sizes[0] if sizes else 40)).hex()
        case "DATE":
            return draw.choice(["1600-02-29", "1969-12-31", "1970-01-01", "2026-11-21", "9999-12-31"])
        case "TIME":
            return draw.choice(["00:00:00.000", "12:34:56.789", "23:59:59.999"])
        case "TIMESTAMP":
            return draw.choice(_INSTANTS[sizes[0] if sizes else 6]) + ("Z" if "LOCAL" in kind else "")
    raise AssertionError(kind)


def _decimal(draw: random.Random, precision: int, scale: int) -> str:
    unscaled = draw.choice([1, 0, -1, 12340, 10**precision - 1, 1 - 10**precision, draw.randrange(10**precision)])
    digits = f"{abs(unscaled):0{scale + 1}}"
    return ("-" if unscaled < 0 else "") + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)


def _nested(draw: random.Random, kind: Mapping[str, Any]) -> Any:
    """Empty, short, and with nulls inside."""

    def part(of: Any) -> Any:
        return None if draw.random() < NULLS and not str(of).endswith("NOT NULL") else made_value(draw, of)

    match kind["type"].removesuffix(" NOT NULL"):
        case "ARRAY":
            return [part(kind["element"]) for _ in range(draw.randrange(4))]
        case "MAP":
            keys = {str(key): key for key in (_key(draw, kind["key"]) for _ in range(draw.randrange(4)))}
            return [[key, part(kind["value"])] for key in keys.values()]
        case "MULTISET":
            return [[key, draw.randrange(1, 9)] for key in {_key(draw, kind["element"]) for _ in range(draw.randrange(4))}]
        case "ROW":
            return {field["name"]: part(field["type"]) for field in kind["fields"]}
    raise AssertionError(kind)


def _key(draw: random.Random, kind: str) -> Any:
    return draw.randrange(5) if kind.startswith(("INT", "BIGINT")) else draw.choice("abcde")
