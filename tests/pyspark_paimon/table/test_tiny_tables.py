"""Tables of 100 rows in five writes, with thresholds so small that everything rolls, spills, splits and changes its form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from functools import partialmethod
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from fileindex.base.thresholds import Thresholds, use_thresholds
from manifest.io.file_cache import SHARED
from pyspark_paimon import Table
from tests.tiny import tiny_options

Row = dict[str, Any]
COLUMNS = "id BIGINT NOT NULL, part STRING NOT NULL, city STRING, name STRING, n INT, price DECIMAL(9, 2), data BYTES"
INDEXES = {
    "file-index.bitmap.columns": "city",
    "file-index.bloom-filter.columns": "name,n",
    "file-index.bsi.columns": "n",
    "file-index.range-bitmap.columns": "price",
}
KINDS: dict[str, dict[str, Any]] = {
    "keyed": {"primary_keys": ["part", "id"], "partition_keys": ["part"], "options": {"bucket": "2", "changelog-producer": "lookup"}},
    "keyed with vectors": {"primary_keys": ["id"], "options": {"bucket": "3", "deletion-vectors.enabled": "true"}},
    "dynamic buckets": {"primary_keys": ["id"], "options": {"dynamic-bucket.target-row-num": "9", "file.format": "avro"}},
    "crossing partitions": {"primary_keys": ["id"], "partition_keys": ["part"], "options": {"dynamic-bucket.target-row-num": "20"}},
    "sums": {
        "primary_keys": ["id"],
        "options": {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "file.format": "orc"},
    },
    "append": {"partition_keys": ["part"], "options": {"bucket": "-1"}},
    "clustered": {"options": {"bucket": "-1", "clustering.columns": "n,id", "clustering.incremental": "true"}},
}


def _or(row: Row) -> bool:
    return row["n"] == 1 or (row["n"] == 2 and row["city"] == "Rome") or (row["price"] is not None and row["price"] < 1.5)


ELSEWHERE: dict[str, str] = {}
"""Thresholds that other tests cross."""
ONE_SIDE: set[str] = set()
"""Thresholds of which these tables see one side."""
FILTERS: list[tuple[str, Callable[[Row], Any]]] = [
    ("city = 'Oslo'", lambda row: row["city"] == "Oslo"),
    ("name = 'name 7'", lambda row: row["name"] == "name 7"),
    ("name IN ('name 1', 'name 2', 'name 3', 'name 99')", lambda row: row["name"] in {"name 1", "name 2", "name 3", "name 99"}),
    ("n > 3", lambda row: row["n"] is not None and row["n"] > 3),
    ("n >= 0 AND n <= 5 AND city IS NOT NULL", lambda row: row["n"] is not None and 0 <= row["n"] <= 5 and row["city"] is not None),
    ("id = 7 OR id = 8 OR id = 33", lambda row: row["id"] in {7, 8, 33}),
    ("id IN (1, 5, 9, 13, 44)", lambda row: row["id"] in {1, 5, 9, 13, 44}),
    ("id = 11", lambda row: row["id"] == 11),
    ("((n = 1) OR ((n = 2) AND (city = 'Rome'))) OR price < 1.5", _or),
    ("data IS NULL", lambda row: row["data"] is None),
    ("part = 'b' AND id < 20", lambda row: row["part"] == "b" and row["id"] < 20),
]


def rows_of(write: int) -> list[Row]:
    """Twenty rows; half of their keys were there before, and one value is much longer than the others."""
    return [
        {
            "id": (key := write * 10 + at),
            "part": "abc"[key % 3],
            "city": [None, "Oslo", "Rome", "Lima"][(key + write) % 4],
            "name": f"name {key}" if at else "a long name " * 20,
            "n": None if key % 7 == 3 else key % 6,
            "price": (Decimal(key * (write + 1)) / 4).quantize(Decimal("0.01")),
            "data": bytes([key]) * (key % 5) if key % 11 else None,
        }
        for at in range(20)
    ]


def merged(kind: str, rows: list[Row], new: list[Row]) -> list[Row]:
    """What a table of a kind has after a write."""
    if "primary_keys" not in KINDS[kind]:
        return [*rows, *new]
    found = {row["id"]: row for row in rows}
    for row in new:
        old = found.get(row["id"])
        if kind != "sums" or old is None:
            found[row["id"]] = row
            continue
        known = {name: old[name] if value is None else value for name, value in row.items()}
        found[row["id"]] = {**known, "n": old["n"] if row["n"] is None else row["n"] + (old["n"] or 0)}
    return list(found.values())


def in_order(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


class Limit(int):
    """A threshold that records what comes of comparisons with it, and with what is computed from it."""

    name: str
    notes: Notes

    @classmethod
    def of(cls, value: int, name: str, notes: Notes) -> Limit:
        made = cls(value)
        made.name, made.notes = name, notes
        return made

    def noted(self, found: Any) -> Any:
        if isinstance(found, bool):
            self.notes.outcomes[self.name].add(found)
        elif type(found) is int:
            return Limit.of(found, self.name, self.notes)
        return found

    __hash__ = int.__hash__


for _operator in ["lt", "le", "gt", "ge", "eq", "ne", "mul", "rmul", "add", "radd", "sub", "rsub", "floordiv", "rfloordiv"]:
    setattr(
        Limit, f"__{_operator}__", partialmethod(lambda self, does, other: self.noted(does(self, other)), getattr(int, f"__{_operator}__"))
    )


@dataclass
class Notes:
    """Thresholds that were read, and both sides of the comparisons with them that came out."""

    read: set[str] = field(default_factory=set)
    outcomes: defaultdict[str, set[bool]] = field(default_factory=lambda: defaultdict(set))


def recording(notes: Notes) -> Thresholds:
    """Tiny thresholds that tell ``notes`` what becomes of them."""

    class Recording(Thresholds):
        def __getattribute__(self, name: str) -> Any:
            value = object.__getattribute__(self, name)
            if not isinstance(value, int):
                return value
            notes.read.add(name)
            return Limit.of(int(value), name, notes)

    return Recording(**asdict(Thresholds.tiny()))


@pytest.fixture
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    yield f"memory://{uuid4().hex}" if request.param == "memory" else str(tmp_path)
    SHARED.clear()


def lived(home: str, kind: str) -> None:
    """Fill, change, maintain and read a table; its rows are those of a list all the time."""
    given = KINDS[kind]
    options = tiny_options({**INDEXES, **given["options"]})
    table = Table.create(f"{home}/t", COLUMNS, **{**given, "options": options})
    rows: list[Row] = []
    for number in range(5):
        new = rows_of(number)
        written = pa.Table.from_pylist(new, schema=table.schema)
        table.write(written.to_pandas(integer_object_nulls=True) if number == 1 else written)
        rows = merged(kind, rows, new)
        assert in_order(table.scan().to_arrow().to_pylist()) == in_order(rows)
        if number == 2:
            table.compact(full=True)
            check(table, rows)
    if "primary_keys" in given and kind != "sums":
        gone = [row for row in rows if row["city"] == "Lima"]
        assert table.delete("city = 'Lima'").rows == len(gone)
        rows = [row for row in rows if row["city"] != "Lima"]
        check(table, rows)
    table.alter_options({"file-index.bitmap.columns": "city,part", "file-index.bitmap.part.index-block-size": "64 b"})
    table.rewrite_file_index()
    assert table.rewrite_file_index().rewritten == 0
    check(table, rows)
    table.compact()
    ordered = table.scan(order_by="price DESC, id", limit=7, columns=["id", "price"]).to_arrow().to_pylist()
    best = sorted((row for row in rows), key=lambda row: (-row["price"], row["id"]))[:7]
    assert ordered == [{"id": row["id"], "price": row["price"]} for row in best]
    table.analyze()
    assert table.fsck("deep").problems == ()
    table.expire_snapshots(retain_min=1, retain_max=1)
    table.compact(full=True)
    check(Table.open(table.path), rows)
    assert table.fsck("deep").problems == ()


def check(table: Table, rows: list[Row]) -> None:
    """Whether reads and counts with and without filters find ``rows``."""
    assert in_order(table.scan().to_arrow().to_pylist()) == in_order(rows)
    for text, holds in FILTERS:
        wanted = sorted(row["id"] for row in rows if holds(row))
        scan = table.scan(text, columns=["id"])
        assert sorted(scan.to_arrow()["id"].to_pylist()) == wanted, text
        assert scan.count() == len(wanted), text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("home", ["disk", "memory"], indirect=True)
@pytest.mark.sampled(3)
@pytest.mark.usefixtures("tiny")
def test_a_tiny_table_has_the_rows_of_a_list(home: str, kind: str) -> None:
    lived(home, kind)


def test_tiny_tables_cross_all_thresholds(tmp_path: Path) -> None:
    notes = Notes()
    with use_thresholds(recording(notes)):
        notes.read.clear()
        lived(f"memory://{uuid4().hex}", "keyed")
        for kind in ("dynamic buckets", "sums", "clustered"):
            lived(str(tmp_path / kind), kind)
    assert {one.name for one in fields(Thresholds)} - notes.read == set(ELSEWHERE)
    assert {name for name, found in notes.outcomes.items() if len(found) == 1} == ONE_SIDE


@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_thresholds_have_tests_that_set_them(name: str) -> None:
    text = (Path(__file__).parents[3] / ELSEWHERE[name]).read_text()
    assert f"{name}=" in text
