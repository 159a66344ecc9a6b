# Wall clocks have no zone.
# ruff: noqa: DTZ001
"""Messages of Debezium as batches: types, kinds, positions, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from base64 import b64encode
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from paimon_base.thresholds import use_thresholds
from pyspark_paimon import InvalidArgument, InvalidMessage, SchemaMismatch, Table, from_debezium

UTC = dt.UTC


def event(op: str, before: Any = None, after: Any = None, lsn: int | None = 1, **source: Any) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"table": "t", "lsn": lsn, **source}}


def typed(message: dict[str, Any], **fields: dict[str, Any]) -> dict[str, Any]:
    """The message in an envelope with the schema of its rows."""
    parts = [{"field": name, "optional": True, **schema} for name, schema in fields.items()]
    rows = [{"field": name, "type": "struct", "fields": parts} for name in ("before", "after")]
    return {"schema": {"type": "struct", "fields": rows}, "payload": message}


def decimal(scale: int, precision: int | None = None) -> dict[str, Any]:
    parameters = {"scale": str(scale)} | ({} if precision is None else {"connect.decimal.precision": str(precision)})
    return {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}


def unscaled(number: int, length: int = 20) -> str:
    return b64encode(number.to_bytes(length, "big", signed=True)).decode()


def kinds(*messages: Any, keys: tuple[str, ...] = ("id",), **options: Any) -> list[list[tuple[Any, ...]]]:
    """The kind, the values and the position of each row, for each batch."""
    batches = from_debezium(messages, keys, **options)
    return [[(row.pop("_row_kind"), *row.values()) for row in batch.rows.to_pylist()] for batch in batches]


ZONED = {"type": "string", "name": "io.debezium.time.ZonedTimestamp"}
VARIABLE = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": []}
INSTANT = dt.datetime(2024, 2, 29, 12, 30, 1, 234567)
MICROS = int(INSTANT.replace(tzinfo=UTC).timestamp()) * 1_000_000 + 234567


@pytest.mark.parametrize(
    ("schema", "value", "arrow", "expected"),
    [
        ({"type": "int8"}, -5, pa.int8(), -5),
        ({"type": "int64"}, 2**62 + 1, pa.int64(), 2**62 + 1),
        ({"type": "float"}, 0.5, pa.float32(), 0.5),
        ({"type": "double"}, "-Infinity", pa.float64(), float("-inf")),
        ({"type": "double"}, 7, pa.float64(), 7.0),
        ({"type": "boolean"}, True, pa.bool_(), True),
        ({"type": "string", "name": "io.debezium.data.Json"}, '{"a": 1}', pa.string(), '{"a": 1}'),
        ({"type": "bytes"}, "AP8=", pa.binary(), b"\x00\xff"),
        ({"type": "int32", "name": "io.debezium.time.Date"}, -1, pa.date32(), dt.date(1969, 12, 31)),
        ({"type": "int32", "name": "org.apache.kafka.connect.data.Date"}, 0, pa.date32(), dt.date(1970, 1, 1)),
        ({"type": "int32", "name": "io.debezium.time.Time"}, 3_661_001, pa.time32("ms"), dt.time(1, 1, 1, 1000)),
        ({"type": "int64", "name": "io.debezium.time.MicroTime"}, 3_661_000_001, pa.time64("us"), dt.time(1, 1, 1, 1)),
        ({"type": "int64", "name": "io.debezium.time.Timestamp"}, MICROS // 1000, pa.timestamp("ms"), INSTANT.replace(microsecond=234000)),
        ({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}, MICROS, pa.timestamp("us"), INSTANT),
        (ZONED, "2024-02-29T14:30:01.234567+02:00", pa.timestamp("us", "UTC"), INSTANT.replace(tzinfo=UTC)),
        (ZONED, "2024-02-29T12:30:01Z", pa.timestamp("us", "UTC"), INSTANT.replace(tzinfo=UTC, microsecond=0)),
        (decimal(2, 5), unscaled(-22), pa.decimal128(5, 2), Decimal("-0.22")),
        (decimal(0), unscaled(10**37 + 1), pa.decimal128(38, 0), Decimal(10**37 + 1)),
        (decimal(4, 60), unscaled(10**45 + 1), pa.string(), f"1{'0' * 41}.0001"),
        (VARIABLE, {"scale": 30, "value": unscaled(10**35 + 7)}, pa.string(), f"100000.{'0' * 29}7"),
        ({"type": "array", "items": decimal(1, 3)}, [unscaled(15), None], pa.list_(pa.decimal128(3, 1)), [Decimal("1.5"), None]),
        ({"type": "array", "items": ZONED}, ["2024-02-29T12:30:01Z"], pa.list_(pa.timestamp("us", "UTC")), [INSTANT.replace(tzinfo=UTC, microsecond=0)]),
        ({"type": "map", "keys": {"type": "string"}, "values": decimal(1, 3)}, {"a": unscaled(15)}, pa.map_(pa.string(), pa.decimal128(3, 1)), [("a", Decimal("1.5"))]),
        ({"type": "map", "keys": {"type": "int32"}, "values": {"type": "bytes"}}, [[1, "AA=="]], pa.map_(pa.int32(), pa.binary()), [(1, b"\0")]),
        ({"type": "struct", "fields": [{"field": "x", "type": "bytes"}]}, {"x": "AA=="}, pa.struct([("x", pa.binary())]), {"x": b"\0"}),
    ],
)  # fmt: skip
def test_values_get_the_types_of_their_schema(schema: dict[str, Any], value: Any, arrow: pa.DataType, expected: Any) -> None:
    rows = [{"id": 1, "v": value}, {"id": 2, "v": None}]
    (batch,) = from_debezium([typed(event("c", None, row), id={"type": "int64"}, v=schema) for row in rows], ["id"])
    assert batch.rows.schema.field("v").type == arrow
    assert batch.rows["v"].to_pylist() == [expected, None]


def test_instants_with_seven_digits_keep_them() -> None:
    (batch,) = from_debezium([typed(event("c", None, {"v": "2024-02-29T12:30:01.1234567Z"}), v=ZONED)], [])
    assert batch.rows["v"].cast(pa.int64()).to_pylist() == [int(INSTANT.replace(tzinfo=UTC).timestamp()) * 10**9 + 123_456_700]


def test_each_op_has_its_kind() -> None:
    old, new = {"id": 1, "n": 1}, {"id": 1, "n": 2}
    messages = [
        event("r", None, old, 5),
        event("c", None, old, 6),
        event("u", old, new, 7),
        event("u", None, new, 8),
        event("d", new, None, 9),
    ]
    assert kinds(*messages) == [[("+I", 1, 1, 5), ("+I", 1, 1, 6), ("+U", 1, 2, 7), ("+U", 1, 2, 8), ("-D", 1, 2, 9)]]
    assert kinds(messages[2], before_images=True) == [[("-U", 1, 1, 7), ("+U", 1, 2, 7)]]


def test_an_update_of_the_key_deletes_the_old_row() -> None:
    message = event("u", {"id": 1, "day": "a", "n": 5}, {"id": 1, "day": "b", "n": 5}, 7)
    assert kinds(message, keys=("id", "day")) == [[("-D", 1, "a", 5, 7), ("+U", 1, "b", 5, 7)]]
    assert kinds(message) == [[("+U", 1, "b", 5, 7)]]


@pytest.mark.parametrize("empty", [None, "", b"", "null", {"schema": None, "payload": None}])
def test_tombstones_are_left_out_and_counted(empty: Any) -> None:
    (batch,) = from_debezium([event("d", {"id": 1}), empty], ["id"], offset=40)
    assert (batch.rows.num_rows, batch.offset) == (1, 42)


@pytest.mark.parametrize(
    "wrap", [lambda message: message, json.dumps, lambda message: json.dumps(message).encode(), lambda message: {"payload": message}]
)
def test_messages_are_texts_bytes_or_dicts(wrap: Any) -> None:
    assert kinds(wrap(event("c", None, {"id": 1, "s": "\N{SNOWMAN}"}))) == [[("+I", 1, "\N{SNOWMAN}", 1)]]


def test_a_batch_ends_where_columns_types_or_tables_change() -> None:
    rows = [{"id": 1, "v": 1}, {"id": 2, "v": None}, {"v": 2.5, "id": 3}, {"id": 4, "v": "x"}, {"id": 5}, {"id": 6, "v": True}]
    messages = [event("c", None, row) for row in rows]
    assert [len(batch) for batch in kinds(*messages)] == [3, 1, 1, 1]
    other = event("c", None, {"id": 7, "v": False}, table="u", db="shop")
    batches = list(from_debezium([*messages, other], ["id"]))
    assert [(batch.table, batch.offset) for batch in batches[-2:]] == [("t", 6), ("shop.u", 7)]
    small, large = ({"id": {"type": "int64"}, "v": {"type": kind}} for kind in ("int32", "int64"))
    feed = [typed(event("c", None, {"id": n, "v": n}), **(large if n > 2 else small)) for n in range(5)]
    assert [str(batch.rows.schema.field("v").type) for batch in from_debezium(feed, ["id"])] == ["int32", "int64"]


def test_batches_are_bounded_in_rows_and_bytes() -> None:
    feed = [json.dumps(event("c", None, {"id": n})) for n in range(10)]
    with use_thresholds(message_rows=4):
        assert [batch.rows.num_rows for batch in from_debezium(feed, ["id"])] == [4, 4, 2]
    with use_thresholds(message_bytes=len(feed[0]) * 5):
        assert [batch.offset for batch in from_debezium(feed, ["id"])] == [5, 10]


def test_values_that_the_log_lacks_are_left_out() -> None:
    lacking = event("u", None, {"id": 1, "n": 2, "body": "__debezium_unavailable_value"}, 2)
    batches = list(from_debezium([event("c", None, {"id": 1, "n": 1, "body": "long"}, 1), lacking], ["id"]))
    assert [batch.rows.column_names for batch in batches] == [
        ["id", "n", "body", "_row_kind", "_position"],
        ["id", "n", "_row_kind", "_position"],
    ]


def test_a_kept_value_survives_an_update_that_lacks_it(tmp_path: Any) -> None:
    table = Table.create(
        tmp_path / "t",
        "id BIGINT, n BIGINT, body STRING, _position BIGINT",
        primary_keys=["id"],
        options={"bucket": "1", "sequence.field": "_position"},
    )
    lacking = event("u", None, {"id": 1, "n": 2, "body": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}, 2)
    for batch in from_debezium([event("c", None, {"id": 1, "n": 1, "body": "long"}, 1), lacking], ["id"]):
        table.write(batch.rows, missing=batch.missing, commit_id="feed", batch_id=batch.offset)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "n": 2, "body": "long", "_position": 2}]


MYSQL = [("binlog.000009", 900, 1), ("binlog.000010", 4, 0), ("binlog.000010", 4, 2), ("binlog.000010", 4, 10), ("binlog.000010", 1000, 0), ("binlog.1000000", 4, 0)]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "positions"),
    [
        (("lsn",), [(9,), (10,), (2**62,)]),
        (("file", "pos", "row"), MYSQL),
        (("commit_lsn", "change_lsn", "event_serial_no"), [("00000027:00000ac0:0002", None, None), ("00000027:00000ac0:0002", "00000027:00000ab0:0002", 1), ("00000027:00000ac0:0002", "00000027:00000ab0:0002", 2)]),
        (("scn", "rs_id", "ssn"), [("999", None, None), ("1000", "a", 1)]),
    ],
)  # fmt: skip
def test_positions_compare_as_the_source_orders_them(fields: tuple[str, ...], positions: list[tuple[Any, ...]]) -> None:
    messages = [event("c", None, {"id": 1}, **{"lsn": None, **dict(zip(fields, values, strict=True))}) for values in positions]
    (batch,) = from_debezium(messages, ["id"])
    column = batch.rows["_position"].to_pylist()
    assert column == sorted(set(column))
    assert batch.properties[f"feed.{fields[0]}"] == str(positions[-1][0])


def test_messages_without_position_are_numbered_where_asked() -> None:
    messages = [event("c", None, {"id": 1}, None), event("c", None, {"id": 2}, None)]
    assert kinds(*messages, order="arrival", offset=7) == [[("+I", 1, 7), ("+I", 2, 8)]]
    assert kinds(*messages, sequence=None) == [[("+I", 1), ("+I", 2)]]
    with pytest.raises(InvalidMessage, match=r"message 7: .*no position.*order='arrival'"):
        kinds(*messages, offset=7)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (event("t"), "op 't' .*table.delete"),
        (event("m"), "op 'm' is not one of c, r, u, d"),
        ({"id": 1}, "op None .*ExtractNewRecordState"),
        ("{", "no JSON"),
        (b"\xff", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1]", "an object, not list"),
        ({"payload": 5}, "op None"),
        (7, "no JSON"),
        (event("c"), "op 'c' has no row 'after'"),
        (event("d"), "no row 'before'"),
        (event("d", {"id": None}), "no 'id' of the primary key"),
        (event("u", {"n": 1}, {"id": 1}), "no 'id' of the primary key"),
        (event("c", None, {"id": 1, "_position": 1}), "a column '_position'"),
        (event("c", None, {"id": 1, "_row_kind": 1}), "a column '_row_kind'"),
        (typed(event("c", None, {"id": 1}), id={"type": "int128"}), "unknown type 'int128'"),
        ({"schema": {"type": "struct", "fields": []}, "payload": event("c", None, {"id": 1})}, "no field 'after'"),
    ],
)
def test_a_message_that_is_no_change_is_named(message: Any, words: str) -> None:
    feed = from_debezium([event("c", None, {"id": 0}), message], ["id"], offset=10)
    with pytest.raises(InvalidMessage, match=f"message 11: .*{words}") as raised:
        list(feed)
    assert raised.value.number == 11
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "int32"}, 2**31),
        ({"type": "int32"}, "x"),
        (decimal(1, 3), "?"),
        (decimal(1, 3), unscaled(1000)),
        (ZONED, "2024-02-29 at noon"),
        ({"type": "double"}, "many"),
        ({"type": "array", "items": {"type": "bytes"}}, 5),
        ({"type": "struct", "fields": [{"field": "x", "type": "bytes"}]}, "text"),
    ],
)
def test_a_value_of_another_type_is_refused(schema: dict[str, Any], value: Any) -> None:
    with pytest.raises(SchemaMismatch, match="column 'v'"):
        list(from_debezium([typed(event("c", None, {"v": value}), v=schema)], []))


def test_arguments_are_checked() -> None:
    with pytest.raises(InvalidArgument, match="order must be one of"):
        list(from_debezium([], ["id"], order="time"))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"give \['id'\]"):
        list(from_debezium([], "id"))
