"""Messages of Maxwell and Canal as batches."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from pyspark_paimon import InvalidMessage, Table, from_canal, from_maxwell


def maxwell(kind: str, data: Any, old: Any = None, position: str | None = "binlog.000001:4", **more: Any) -> dict[str, Any]:
    return {"database": "shop", "table": "t", "type": kind, "ts": 1, "data": data, "old": old, "position": position, **more}


def test_maxwell_completes_the_old_row() -> None:
    messages = [
        maxwell("bootstrap-start", {}),
        maxwell("bootstrap-insert", {"id": 1, "n": 1}),
        maxwell("table-alter", None),
        maxwell("update", {"id": 2, "n": 1}, {"id": 1}),
        maxwell("update", {"id": 2, "n": 2}, {"n": 1}),
        maxwell("delete", {"id": 2, "n": 2}),
    ]
    (batch,) = from_maxwell(messages, ["id"])
    rows = [(row["_row_kind"], row["id"], row["n"]) for row in batch.rows.to_pylist()]
    assert rows == [("+I", 1, 1), ("-D", 1, 1), ("+U", 2, 1), ("+U", 2, 2), ("-D", 2, 2)]
    assert (batch.table, batch.offset, batch.properties["feed.position"]) == ("shop.t", 6, "binlog.000001:4")


def test_positions_of_maxwell_compare_as_numbers() -> None:
    places = [("binlog.000001:99", 0), ("binlog.000001:100", 2), ("binlog.000001:100", 10), ("binlog.000002:4", 0)]
    messages = [maxwell("insert", {"id": 1}, None, position, xoffset=offset) for position, offset in places]
    (batch,) = from_maxwell(messages, ["id"])
    assert batch.rows["_position"].to_pylist() == sorted(set(batch.rows["_position"].to_pylist()))
    with pytest.raises(InvalidMessage, match="no position"):
        list(from_maxwell([maxwell("insert", {"id": 1}, None, None)], ["id"]))


@pytest.mark.parametrize("feed", [from_maxwell, from_canal])
def test_a_type_that_removes_rows_unseen_is_refused(feed: Any) -> None:
    with pytest.raises(InvalidMessage, match="message 0: type 'TRUNCATE' is not one of"):
        list(feed([{"type": "TRUNCATE", "table": "t"}], ["id"]))


def test_canal_rows_are_cast_by_the_write(tmp_path: Path) -> None:
    def canal(kind: str, data: list[Any], old: list[Any] | None = None) -> dict[str, Any]:
        return {"database": "shop", "table": "t", "type": kind, "data": data, "old": old, "es": 5, "id": 3, "isDdl": False}

    messages: list[Any] = [
        {"type": "ALTER", "isDdl": True, "data": None},
        canal("INSERT", [{"id": "1", "price": "5.18", "day": "2024-01-31"}, {"id": "2", "price": None, "day": None}]),
        canal("UPDATE", [{"id": "3", "price": "5.20", "day": "2024-01-31"}], [{"id": "1", "price": "5.18"}]),
        canal("DELETE", [{"id": "2", "price": None, "day": None}]),
    ]
    options = {"bucket": "1", "sequence.field": "_position", "delete.time-retained": "1 d"}
    table = Table.create(tmp_path / "t", "id BIGINT, price DECIMAL(5, 2), day DATE, _position BIGINT", primary_keys=["id"], options=options)
    for batch in from_canal(messages, ["id"]):
        table.write(batch.rows, cast=True)
    late = list(from_canal(messages, ["id"]))
    random.Random(1).shuffle(late)
    for batch in late:
        table.write(batch.rows, cast=True)
    assert [(row["id"], str(row["price"]), str(row["day"])) for row in table.scan().to_arrow().to_pylist()] == [(3, "5.20", "2024-01-31")]
