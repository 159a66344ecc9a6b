"""The rows that every file here holds, by formula. Standard library only: it runs where old writers run."""

import datetime as dt
from decimal import Decimal

COUNT = 360
GROUP = 128
FLAT = ("id", "s", "t", "n", "d", "f", "day", "ts", "dec")
NESTED = ("l", "m", "r")
TYPES = {
    "id": "BIGINT",
    "s": "STRING",
    "t": "STRING",
    "n": "INT",
    "d": "DOUBLE",
    "f": "BOOLEAN",
    "day": "DATE",
    "ts": "TIMESTAMP(6)",
    "dec": "DECIMAL(10, 2)",
    "l": "ARRAY<BIGINT>",
    "m": "MAP<STRING, BIGINT>",
    "r": "ROW<a BIGINT, b STRING>",
}
HELD = {
    "polars-2.1": (*FLAT, "l", "r"),
    "fastparquet-2026.9": ("id", "s", "t", "n", "d", "f"),
}
"""The columns of files that have not all of them: what the writer cannot write is left out."""
BLOOMS = ("s", "t")
"""Columns with a Bloom filter, where the writer makes such."""
_EPOCH = dt.datetime(2024, 1, 1)  # noqa: DTZ001  # TIMESTAMP has no zone


def held(file):
    """The columns of a file."""
    return HELD.get(file, (*FLAT, *NESTED))


def row(i):
    return {
        "id": i,
        "s": None if i % 7 == 0 else f"s{i % 5}",
        "t": f"text-{i * 7919 % 10007:05}",
        "n": None if i % 11 == 0 else i * 37 % 1000 - 500,
        "d": i / 4,
        "f": i % 3 == 0,
        "day": _EPOCH.date() + dt.timedelta(days=i % 60),
        "ts": _EPOCH + dt.timedelta(microseconds=i * 1000001),
        "dec": Decimal(i * 101).scaleb(-2),
        "l": None if i % 13 == 0 else [i, None, i + 1][: i % 4],
        "m": {f"k{i % 3}": i},
        "r": {"a": i, "b": f"b{i % 2}"},
    }


def columns(names):
    made = [row(i) for i in range(COUNT)]
    return {name: [one[name] for one in made] for name in names}
