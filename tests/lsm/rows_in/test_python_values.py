"""Python values arrive unchanged in every container and at every entrance, or are refused by row and column."""

from __future__ import annotations

import datetime as dt
import enum
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.rows_in.arrow import python_column
from lsm.rows_in.conform import conform
from lsm.rows_in.python_types import InvalidValue
from lsm.rows_in.python_values import python_array
from manifest.io.errors import SchemaMismatch
from manifest.schema.validation import build_schema
from paimon_base.errors import InvalidArgument, PaimonError
from pyspark_paimon import Table
from pyspark_paimon.request.assignments import Assignments
from pyspark_paimon.request.inputs import rows_of
from pyspark_paimon.request.keys import keys_of
from pyspark_paimon.request.merge import Join, clause_of, sides_of
from pyspark_paimon.request.partition_spec import spec_of, values_of
from sparkexpr.values.plain_value import to_scalar
from tests.build import ids

DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, 30, 15, 123000)  # noqa: DTZ001  # a wall clock
MIDNIGHT = dt.datetime(2024, 2, 29)  # noqa: DTZ001  # as above
BERLIN = NOON.replace(tzinfo=ZoneInfo("Europe/Berlin"))
NANO = pd.Timestamp("2024-02-29 12:30:15.123456789")


class Color(enum.IntEnum):
    RED = 3


REFUSED = object()
with warnings.catch_warnings(action="ignore"):
    NOT_A_TIME = np.datetime64("NaT")  # without a unit, which NumPy 2.5 warns of: users have such values


class Opaque:
    """A value of no known kind, with a name that is the same in every process."""

    def __repr__(self) -> str:
        return "Opaque()"


CASES: list[tuple[str, Any, Any]] = [
    ("TINYINT", 127, 127),
    ("TINYINT", 128, REFUSED),
    ("INT", -(2**31), -(2**31)),
    ("INT", 2**31, REFUSED),
    ("INT", 2.0, 2),
    ("INT", 2.7, REFUSED),
    ("INT", math.nan, REFUSED),
    ("INT", True, REFUSED),
    ("INT", np.bool_(True), REFUSED),
    ("INT", "1", REFUSED),
    ("INT", b"1", REFUSED),
    ("INT", Decimal(1), 1),
    ("INT", Decimal("1.5"), REFUSED),
    ("INT", np.int8(5), 5),
    ("INT", np.float32(2.5), REFUSED),
    ("INT", Color.RED, 3),
    ("INT", DAY, REFUSED),
    ("INT", np.timedelta64(1, "s"), REFUSED),
    ("BIGINT", 2**63 - 1, 2**63 - 1),
    ("BIGINT", 2**63, REFUSED),
    ("BIGINT", 2.0**63, REFUSED),
    ("BIGINT", np.uint64(2**64 - 1), REFUSED),
    ("BIGINT", NOON, REFUSED),
    ("FLOAT", 0.5, 0.5),
    ("FLOAT", 0.1, REFUSED),
    ("FLOAT", 1e300, REFUSED),
    ("FLOAT", np.float32(0.1), float(np.float32(0.1))),
    ("FLOAT", math.inf, math.inf),
    ("FLOAT", 2**24 + 1, REFUSED),
    ("DOUBLE", 0.1, 0.1),
    ("DOUBLE", 7, 7.0),
    ("DOUBLE", 2**53 + 1, REFUSED),
    ("DOUBLE", 2**70 + 1, REFUSED),
    ("DOUBLE", "0.5", REFUSED),
    ("DOUBLE", Decimal("0.5"), REFUSED),
    ("DOUBLE", True, REFUSED),
    ("DECIMAL(5, 2)", Decimal("1.50"), Decimal("1.50")),
    ("DECIMAL(5, 2)", Decimal("1.555"), REFUSED),
    ("DECIMAL(5, 2)", Decimal("1E+2"), Decimal("100.00")),
    ("DECIMAL(5, 2)", Decimal(1000), REFUSED),
    ("DECIMAL(5, 2)", Decimal("NaN"), REFUSED),
    ("DECIMAL(5, 2)", 12, Decimal("12.00")),
    ("DECIMAL(5, 2)", 1.5, REFUSED),
    ("DECIMAL(38, 0)", 10**37, Decimal(10**37)),
    ("DECIMAL(38, 0)", 10**38, REFUSED),
    ("BOOLEAN", True, True),
    ("BOOLEAN", np.bool_(False), False),
    ("BOOLEAN", 1, REFUSED),
    ("BOOLEAN", "true", REFUSED),
    ("STRING", "tä", "tä"),
    ("STRING", "\ud800", REFUSED),
    ("STRING", b"x", REFUSED),
    ("STRING", 1, REFUSED),
    ("STRING", np.str_("x"), "x"),
    ("BYTES", b"\x00\xff", b"\x00\xff"),
    ("BYTES", bytearray(b"ab"), b"ab"),
    ("BYTES", "ab", REFUSED),
    ("DATE", DAY, DAY),
    ("DATE", MIDNIGHT, DAY),
    ("DATE", NOON, REFUSED),
    ("DATE", 19000, REFUSED),
    ("DATE", "2024-02-29", REFUSED),
    ("DATE", np.datetime64("2024-02-29"), DAY),
    ("DATE", BERLIN, REFUSED),
    ("TIMESTAMP(3)", NOON, NOON),
    ("TIMESTAMP(3)", NOON.replace(microsecond=123456), REFUSED),
    ("TIMESTAMP(3)", DAY, MIDNIGHT),
    ("TIMESTAMP(3)", BERLIN, REFUSED),
    ("TIMESTAMP(3)", 1, REFUSED),
    ("TIMESTAMP(6)", NOON.replace(microsecond=1), NOON.replace(microsecond=1)),
    ("TIMESTAMP(6)", NANO, REFUSED),
    ("TIMESTAMP(6)", np.datetime64("2024-02-29T12:30:15.123456789"), REFUSED),
    ("TIMESTAMP(6)", np.datetime64("2024-02-29T12:30:15.123"), NOON),
    ("TIMESTAMP(6)", np.datetime64("2024-02-29T12"), REFUSED),
    ("TIMESTAMP(6)", "2024-02-29", REFUSED),
    ("TIMESTAMP(9)", NANO, NANO),
    ("TIMESTAMP(9)", dt.datetime(2500, 1, 1), REFUSED),  # noqa: DTZ001  # as above
    ("TIMESTAMP_LTZ(6)", BERLIN, BERLIN),
    ("TIMESTAMP_LTZ(6)", NOON, REFUSED),
    ("TIMESTAMP_LTZ(6)", DAY, REFUSED),
    ("TIMESTAMP_LTZ(6)", NANO.tz_localize("UTC"), REFUSED),
    ("TIME(3)", dt.time(1, 2, 3, 4000), dt.time(1, 2, 3, 4000)),
    ("TIME(3)", dt.time(1, 2, 3, 4), REFUSED),
    ("TIME(3)", dt.time(1, tzinfo=dt.UTC), REFUSED),
    ("TIME(3)", 1, REFUSED),
    ("ARRAY<STRING>", ["ab"], ["ab"]),
    ("ARRAY<STRING>", ("a", None), ["a", None]),
    ("ARRAY<STRING>", "ab", REFUSED),
    ("ARRAY<STRING>", {"a"}, REFUSED),
    ("ARRAY<STRING>", {"a": 1}, REFUSED),
    ("ARRAY<INT>", b"ab", REFUSED),
    ("ARRAY<INT>", np.array([1, 2]), [1, 2]),
    ("ARRAY<INT>", np.array([1.5]), REFUSED),
    ("ARRAY<INT>", [1, 2.7], REFUSED),
    ("ARRAY<INT>", [[1]], REFUSED),
    ("ARRAY<FLOAT>", [0.1], REFUSED),
    ("ARRAY<ARRAY<DATE>>", [[DAY], [NOON]], REFUSED),
    ("MAP<STRING, INT>", {"a": 1, "b": None}, [("a", 1), ("b", None)]),
    ("MAP<STRING, INT>", [("a", 1)], [("a", 1)]),
    ("MAP<STRING, INT>", {"a": 1.5}, REFUSED),
    ("MAP<STRING, INT>", {1: 1}, REFUSED),
    ("MAP<STRING, INT>", {None: 1}, REFUSED),
    ("MAP<STRING, INT>", [("a", 1, 2)], REFUSED),
    ("MAP<STRING, INT>", "ab", REFUSED),
    ("MAP<STRING, INT>", np.array(5), REFUSED),
    ("ARRAY<INT>", np.array(5), REFUSED),
    ("ARRAY<INT>", np.array([[1]]), REFUSED),
    ("MULTISET<STRING>", Counter("aab"), [("a", 2), ("b", 1)]),
    ("ROW<a INT, b STRING>", {"a": 1, "b": "x"}, {"a": 1, "b": "x"}),
    ("ROW<a INT, b STRING>", {"a": 1}, {"a": 1, "b": None}),
    ("ROW<a INT, b STRING>", {"A": 1}, REFUSED),
    ("ROW<a INT, b STRING>", {"a": 1, "c": 2}, REFUSED),
    ("ROW<a INT, b STRING>", (1, "x"), REFUSED),
    ("ROW<a INT, b STRING>", {"a": 1.5}, REFUSED),
    ("ROW<m MAP<STRING, ARRAY<DECIMAL(4, 1)>>>", {"m": {"k": [5]}}, {"m": [("k", [Decimal("5.0")])]}),
    ("ROW<m MAP<STRING, ARRAY<DECIMAL(4, 1)>>>", {"m": {"k": [Decimal("0.55")]}}, REFUSED),
    ("INT", pa.scalar(7, pa.int64()), 7),
    ("INT", pa.scalar(7.5), REFUSED),
    ("INT", Opaque(), REFUSED),
    ("STRING", pd.NA, None),
    ("TIMESTAMP(3)", pd.NaT, None),
    ("TIMESTAMP(3)", NOT_A_TIME, None),
    ("ROW<a INT, b STRING>", None, None),
]


def of_table(column_type: str) -> Any:
    return build_schema(f"id BIGINT, v {column_type}", primary_keys=["id"], options={"bucket": "1"})


def written(data: Any, schema: Any) -> list[Any]:
    return conform(rows_of(data, schema).reader.read_all(), schema)["v"].to_pylist()


def objects(value: Any) -> pd.Series:
    series = pd.Series([None], dtype=object)
    series.iat[0] = value  # noqa: PD009  # iloc spreads lists
    return series


def as_key(value: Any, column_type: str) -> list[Any]:
    schema = build_schema(f"v {column_type}", primary_keys=["v"], options={"bucket": "1"})
    return keys_of({"v": [value]}, schema, "lookup").rows["v"].to_pylist()


def set_to(value: Any, column_type: str) -> list[Any]:
    schema = of_table(column_type)
    old = pa.table({"id": [1], "v": pa.nulls(1, schema.arrow.field("v").type)})
    return Assignments.of({"v": value}, schema).apply(old)["v"].to_pylist()


def as_source(value: Any, column_type: str) -> list[Any]:
    schema = of_table(column_type)
    source = rows_of([{"id": 1, "v": value}], schema).reader.read_all()
    return conform(source, schema)["v"].to_pylist()


def in_clause(value: Any, column_type: str) -> list[Any]:
    schema = of_table(column_type)
    sides = sides_of(schema, schema.arrow)
    clause = clause_of("matched", "update", {"v": value}, None, schema=schema, sides=sides, join=Join(pairs=(("id", "id"),)))
    return [dict(clause)["values"]["v"].as_py()]


def as_partition(value: Any, column_type: str) -> list[Any]:
    schema = build_schema(f"id BIGINT, v {column_type}", partition_keys=["v"])
    (plain,) = values_of(spec_of({"v": value}, schema), schema)
    return [to_scalar(plain, schema.column_types["v"]).as_py()]


ENTRANCES: dict[str, Callable[[Any, str], list[Any]]] = {
    "list of dicts": lambda value, kind: written([{"id": 1, "v": value}], of_table(kind)),
    "generator": lambda value, kind: written(({"id": 1, "v": one} for one in [value]), of_table(kind)),
    "dict of lists": lambda value, kind: written({"id": [1], "v": [value]}, of_table(kind)),
    "pandas": lambda value, kind: written(pd.DataFrame({"id": [1], "v": objects(value)}), of_table(kind)),
    "key": as_key,
    "set": set_to,
    "merge source": as_source,
    "merge clause": in_clause,
    "partition": as_partition,
}
NO_KEYS = ("ARRAY", "MAP", "MULTISET", "ROW")


def differs(entrance: str, column_type: str, value: Any, expected: Any) -> bool:
    """Entrances that take such a value as something else."""
    if entrance == "key":
        return column_type.startswith(NO_KEYS) or expected is None
    if entrance == "partition":
        return column_type.startswith(NO_KEYS) or column_type == "BYTES" or isinstance(value, str)  # text is read as a filter reads it
    if entrance == "merge clause":
        return isinstance(value, str)  # SQL
    return entrance == "pandas" and isinstance(value, float | Decimal) and math.isnan(value)  # pandas' null


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_every_value_arrives_unchanged_or_is_refused(entrance: str) -> None:
    wrong = []
    for column_type, value, expected in CASES:
        if differs(entrance, column_type, value, expected):
            continue
        try:
            found: Any = ENTRANCES[entrance](value, column_type)[0]
        except PaimonError as error:
            found = REFUSED
            if "'v" not in str(error):
                wrong.append((column_type, value, str(error)))
        if found is not expected and (found is REFUSED or expected is REFUSED or found != expected or type(found) is not type(expected)):
            wrong.append((column_type, value, found))
    assert not wrong


@pytest.mark.parametrize(
    ("column_type", "values", "told"),
    [
        ("INT", [1, 2, 2.7, 5.5], r"column 'v', row 2: 2.7 \(float\) does not fit int32"),
        ("INT", [1, None, "x"], r"column 'v', row 2: 'x' \(str\)"),
        ("ARRAY<INT>", [[], [1], None, [1, 2, "x"]], r"column 'v\[2\]', row 3: 'x' \(str\)"),
        ("MAP<STRING, ROW<a INT>>", [{}, {"k": {"a": 1}, "l": {"a": 1.5}}], r"column 'v\['l'\].a', row 1: 1.5 \(float\)"),
        ("ROW<a ROW<b DATE>>", [None, {"a": {"b": NOON}}], r"column 'v.a.b', row 1: datetime.datetime"),
        ("ROW<a INT>", [{"a": 1}, {"A": 1}], r"column 'v', row 1: field 'A' is unknown; the fields are a"),
        ("TIMESTAMP_LTZ(6)", [BERLIN, NOON], r"row 1: .*give datetime"),
        ("VARIANT", [1, {2}], r"column 'v', row 1: \{2\} of type set cannot be stored"),
    ],
)
def test_a_refusal_names_row_and_path(column_type: str, values: list[Any], told: str) -> None:
    schema = build_schema(f"id BIGINT, v {column_type}")
    for data in ({"v": values}, [{"v": value} for value in values], pd.DataFrame({"v": pd.Series(values, dtype=object)})):
        with pytest.raises(SchemaMismatch, match=told):
            written(data, schema)


@pytest.mark.parametrize(
    ("column_type", "values"),
    [
        ("DOUBLE", [1, 2.5, np.float32(0.5), None]),
        ("DECIMAL(20, 3)", [1, Decimal("2.5"), 7]),
        ("TIMESTAMP(9)", [NOON, NANO, DAY, np.datetime64("2024-02-29T01:02:03")]),
        ("BIGINT", [1, 2.0, np.uint8(7), pa.scalar(9), pa.scalar(9, pa.int8()), pd.NA]),
        ("TIMESTAMP_LTZ(6)", [BERLIN, NOON.replace(tzinfo=dt.UTC), pd.Timestamp(NOON, tz="Asia/Tokyo")]),
    ],
)
def test_values_of_several_kinds_stand_in_one_column(column_type: str, values: list[Any]) -> None:
    found = written({"v": values}, build_schema(f"id BIGINT, v {column_type}"))
    plain = [None if value is pd.NA else value.as_py() if isinstance(value, pa.Scalar) else value for value in values]
    assert all(map(is_same, found, plain)), found


def test_a_vector_has_its_length() -> None:
    kind = pa.list_(pa.float32(), 2)
    assert python_column("v", [[1.0, 2], None], kind).to_pylist() == [[1.0, 2.0], None]
    with pytest.raises(SchemaMismatch, match="row 1: a list of 1 elements"):
        python_column("v", [[1.0, 2.0], [1.0]], kind)


@pytest.mark.parametrize("values", [["a", b"b"], [DAY, 5], [1, "x"], [True, 1], [NOON, BERLIN], [[1], "x"], [{1}]])
def test_a_source_column_of_several_kinds_is_refused(values: list[Any]) -> None:
    with pytest.raises(SchemaMismatch, match="column 'other'"):
        rows_of({"id": [1] * len(values), "other": values}, of_table("INT"))


def test_later_chunks_of_a_frame_are_checked(set_thresholds: Callable[..., None]) -> None:
    set_thresholds(pandas_rows=2)
    frame = pd.DataFrame({"id": range(5), "v": pd.Series([1, None, 3, 4, 5.5], dtype=object)})
    with pytest.raises(SchemaMismatch, match="column 'v', row 4"):
        written(frame, of_table("INT"))
    frame = pd.DataFrame({"id": range(5), "other": pd.Series([1, None, 3, 4, 5.5], dtype=object)})
    with pytest.raises(SchemaMismatch, match="column 'other'"):
        rows_of(frame, of_table("INT")).reader.read_all()


def test_nothing_is_written_deleted_or_updated_by_a_value_that_would_change(tmp_path: Any) -> None:
    table = Table.create(tmp_path / "t", "k BIGINT, v INT, l ARRAY<STRING>", primary_keys=["k"], options={"bucket": "1"})
    table.write([{"k": 1, "v": 1, "l": None}, {"k": 2, "v": 2, "l": ["x"]}])
    before = table.scan().to_arrow()
    for change in (
        lambda: table.delete(keys={"k": [1.9]}),
        lambda: table.lookup([{"k": 1.9}]),
        lambda: table.write([{"k": 2.7, "v": 5.9}]),
        lambda: table.update("k = 1", values={"l": "ab"}),
        lambda: table.update("k = 1", set={"v": 1.5}),
        lambda: table.merge([{"k": 1.5, "v": 1}], on="k").when_matched_update({"v": "s.v"}).execute(),
    ):
        with pytest.raises(SchemaMismatch):
            change()
    assert table.scan().to_arrow() == before


@pytest.mark.parametrize(
    ("column_type", "value", "wrong"),
    [
        ("TIMESTAMP(6)", NOON, NOON.replace(tzinfo=dt.UTC)),
        ("TIMESTAMP_LTZ(6)", BERLIN, NOON),
        ("DATE", DAY, NOON),
        ("INT", 7, 7.5),
        ("STRING", "7", 7),
    ],
)
def test_a_partition_is_the_one_that_its_rows_are_in(tmp_path: Any, column_type: str, value: Any, wrong: Any) -> None:
    table = Table.create(tmp_path / "t", f"id BIGINT, v {column_type}", partition_keys=["v"])
    table.write([{"id": 1, "v": value}, {"id": 2, "v": None}])
    for change in (lambda: table.drop_partitions([{"v": wrong}]), lambda: table.write([], mode="overwrite", partition={"v": wrong})):
        with pytest.raises(InvalidArgument, match="'v'"):
            change()
    assert table.scan("v = :v", params={"v": value}).count() == 1
    table.write([{"id": 3, "v": value}], mode="overwrite", partition={"v": value})
    assert ids(table) == [2, 3]
    table.drop_partitions([{"v": value}])
    assert table.scan().to_arrow()["id"].to_pylist() == [2]
    table.drop_partitions([{"v": None}])
    assert table.count() == 0


PARAMETERS = [  # wall clocks
    ("TIMESTAMP(6)", pd.Timestamp(NOON), 1), ("TIMESTAMP(6)", np.datetime64(NOON, "us"), 1), ("TIMESTAMP(6)", np.datetime64(NOON, "ns"), 1),
    ("TIMESTAMP(6)", np.datetime64("2024-02-29T12"), None), ("TIMESTAMP(6)", pd.NaT, 0), ("TIMESTAMP(6)", NOT_A_TIME, 0),
    ("TIMESTAMP(6)", NANO, 0), ("TIMESTAMP(6)", pa.scalar(NOON), 1), ("TIMESTAMP(6)", 5, None), ("TIMESTAMP(6)", NOON.replace(year=9999, day=28), 0),
    ("TIMESTAMP_LTZ(6)", BERLIN, 1), ("TIMESTAMP_LTZ(6)", dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))), 0),
    ("DATE", np.datetime64(DAY), 1), ("DATE", NOON, 0), ("INT", np.int8(7), 1), ("INT", 7.5, 0), ("INT", pd.NA, 0), ("INT", "seven", None),
    ("FLOAT", np.float32(0.1), 1), ("FLOAT", 0.1, 0), ("STRING", np.str_("x"), 1), ("INT", {7}, None), ("INT", Opaque(), None),
]  # fmt: skip
STORED = {"TIMESTAMP(6)": NOON, "TIMESTAMP_LTZ(6)": BERLIN, "DATE": DAY, "INT": 7, "FLOAT": np.float32(0.1), "STRING": "x"}


@pytest.mark.parametrize(("column_type", "value", "found"), PARAMETERS, ids=lambda value: repr(value)[:40])
def test_parameters_of_filters_are_values_too(tmp_path: Any, column_type: str, value: Any, found: int | None) -> None:
    table = Table.create(tmp_path / "t", f"v {column_type}")
    table.write([{"v": STORED[column_type]}])
    for text, given_value in (("v = :v", value), ("v IN :v", [value])):
        if found is None:
            with pytest.raises(PaimonError):
                table.scan(text, params={"v": given_value})
        else:
            assert table.scan(text, params={"v": given_value}).count() == found


SIMPLE_TYPES = [
    "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "BOOLEAN", "STRING", "BYTES", "DATE", "TIMESTAMP(3)",
    "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(6)", "TIME(3)",
]  # fmt: skip
NESTED_TYPES = ["ARRAY<{}>", "MAP<STRING, {}>", "ROW<a {}, b ARRAY<{}>>", "{}", "{}"]
SIMPLE = (
    st.none() | st.booleans() | st.integers() | st.integers(-200, 200) | st.floats() | st.sampled_from([0.5, -0.0, 1e300, 2.0**53])
    | st.decimals(allow_nan=False, allow_infinity=False) | st.decimals(-1000, 1000, places=2) | st.text(max_size=3) | st.binary(max_size=3)
    | st.dates() | st.datetimes() | st.datetimes().map(lambda value: value.replace(microsecond=0)) | st.times()
    | st.datetimes(timezones=st.sampled_from([dt.UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("America/St_Johns")]))
    | st.integers(-(2**62), 2**62).map(pd.Timestamp) | st.integers(-(2**62), 2**62).map(lambda value: np.datetime64(value, "ns"))
    | st.integers(-128, 127).map(np.int8) | st.floats(width=32).map(np.float32)
)  # fmt: skip
VALUES = st.recursive(
    SIMPLE,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
        | st.fixed_dictionaries({"a": inner, "b": st.lists(inner, max_size=2)})
    ),
    max_leaves=5,
)


def is_same(found: Any, value: Any) -> bool:  # a case each
    if value is None:
        return found is None
    if isinstance(value, np.datetime64):
        return (
            found == value.astype(object)
            if not isinstance(found, pd.Timestamp | dt.datetime)
            else pd.Timestamp(found) == pd.Timestamp(value)
        )
    if isinstance(value, float | np.floating) and math.isnan(value):
        return isinstance(found, float) and math.isnan(found)
    if isinstance(found, dict):
        return set(value) <= set(found) and all(is_same(found[name], value.get(name)) for name in found)
    if isinstance(value, dict):
        return isinstance(found, list) and len(found) == len(value) and all(is_same(one, value[key]) for key, one in found)
    if isinstance(found, list):
        return isinstance(value, list) and len(found) == len(value) and all(map(is_same, found, value))
    if isinstance(value, bool) or isinstance(found, bool):
        return found is value
    if isinstance(found, dt.datetime) and isinstance(value, dt.datetime) and value.tzinfo is not None:
        return bool(found == value.astimezone(dt.UTC))  # Python holds hours that come twice unequal across zones
    if isinstance(found, dt.datetime) and not isinstance(value, dt.datetime):
        return found == dt.datetime.combine(value, dt.time())
    if isinstance(value, dt.datetime) and not isinstance(found, dt.datetime):
        return dt.datetime.combine(found, dt.time()) == value
    if isinstance(value, np.integer):
        return bool(found == int(value))  # Decimal cannot be compared with a scalar of numpy
    return bool(found == value)


@given(
    st.sampled_from(SIMPLE_TYPES).flatmap(lambda kind: st.sampled_from(NESTED_TYPES).map(lambda nested: nested.replace("{}", kind))),
    st.lists(VALUES, min_size=1, max_size=4),
)
@settings(deadline=None)
def test_what_is_stored_is_what_was_given(column_type: str, values: list[Any]) -> None:
    schema = build_schema(f"id BIGINT, v {column_type}")
    try:
        found = written({"v": values}, schema)
    except PaimonError:
        return
    assert all(map(is_same, found, values)), (found, values)


def rows(values: list[Any]) -> Iterator[dict[str, Any]]:
    return ({"v": value} for value in values)


@given(st.lists(VALUES, min_size=1, max_size=4), st.sampled_from(SIMPLE_TYPES))
@settings(deadline=None)
def test_all_containers_agree(values: list[Any], column_type: str) -> None:
    schema = build_schema(f"id BIGINT, v {column_type}")
    found = []
    for data in ({"v": values}, [{"v": value} for value in values], rows(values), {"v": np.array([*values, None], dtype=object)[:-1]}):
        try:
            found.append(repr(written(data, schema)))
        except PaimonError:
            found.append("refused")
    assert len(set(found)) == 1


@given(st.lists(VALUES, min_size=1, max_size=4))
@settings(deadline=None)
def test_an_inferred_column_holds_what_was_given(values: list[Any]) -> None:
    try:
        found = rows_of({"other": values}, None).reader.read_all()["other"].to_pylist()
    except PaimonError:
        return
    assert all(map(is_same, found, values)), (found, values)


def test_entries_of_a_map_are_pairs_in_any_sequence() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    entries = [("b", 2)]
    assert python_array([[["a", 1]], entries, {"c": 3}, None], kind).to_pylist() == [[("a", 1)], entries, [("c", 3)], None]
    for wrong in ([["a"]], [["a", 1, 2]], ["ab"]):
        with pytest.raises(InvalidValue, match="not a pair"):
            python_array([entries, wrong], kind)
