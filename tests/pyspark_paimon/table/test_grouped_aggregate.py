"""Aggregates by any column: against a model in Python, in groups of any size, and in every kind of table."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.io.errors import OutOfMemory
from manifest.schema.validation import build_schema
from paimon_base.errors import OutOfRange
from paimon_base.thresholds import use_thresholds
from pyspark_paimon.example import cities
from pyspark_paimon.filter.scope import ColumnScope
from pyspark_paimon.jobs.aggregates import Measures
from pyspark_paimon.jobs.grouping import Grouping
from tests.pyspark_paimon.table.test_nested_filters import KINDS, ROWS, field, table

__all__ = ["KINDS", "table"]
SCHEMA = build_schema(
    "f FLOAT, d DOUBLE, s STRING, b BOOLEAN, bin BYTES, day DATE, dec DECIMAL(38, 2), small DECIMAL(6, 3), l BIGINT, t TINYINT, ts TIMESTAMP(6)"
)
SCOPE = ColumnScope(SCHEMA)
FLOATS = [0.0, -0.0, math.nan, -math.nan, 1.5, -1.5, math.inf, -math.inf, None]
VALUES = {
    "f": st.sampled_from(FLOATS),
    "d": st.sampled_from(FLOATS),
    "s": st.sampled_from(["", "a", "é", "a\0", "\U0001f600", "￿", None]),
    "b": st.sampled_from([True, False, None]),
    "bin": st.sampled_from([b"", b"a", b"\xff", None]),
    "day": st.sampled_from([dt.date(1969, 12, 31), dt.date(2024, 1, 1), None]),
    "dec": st.sampled_from([Decimal("9" * 35 + ".99"), Decimal("-" + "9" * 34 + ".01"), Decimal("0.01"), None]),
    "small": st.decimals(-999, 999, places=3, allow_nan=False) | st.none(),
    "l": st.sampled_from([2**63 - 1, -(2**63), 2**32, -1, 0, 1, None]),
    "t": st.integers(-128, 127) | st.none(),
    "ts": st.sampled_from([dt.datetime(2024, 1, 1), dt.datetime(1960, 1, 1, microsecond=1), None]),  # noqa: DTZ001
}
ROW = st.fixed_dictionaries(VALUES)


def folded(value):
    """A value as a key of a dict: nulls, NaN and both zeros are one key each."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def order(value):
    if value is None:
        return (0,)
    return (2,) if value == "NaN" else (1, value.encode() if isinstance(value, str) else value)


def model(rows, keys, name):
    """Count, least, greatest and exact sum of ``name`` by key, ordered."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(folded(row[key]) for key in keys)].append(folded(row[name]))
    for key in sorted(groups, key=lambda values: tuple(map(order, values))):
        known = [value for value in groups[key] if value is not None]
        yield key, len(groups[key]), known


@given(
    st.lists(ROW, max_size=30),
    st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=2, unique=True),
    st.sampled_from([1, 3, 30]),
    st.booleans(),
)
def test_groups_are_those_of_a_model(rows, keys, batch_rows, tiny):
    wanted = dict.fromkeys(VALUES, ("count", "min", "max")) | dict.fromkeys(("t", "l", "small"), ("count", "min", "max", "avg"))
    wanted["t"] = (*wanted["t"], "sum")
    wanted["small"] = (*wanted["small"], "sum")
    grouping = Grouping.of(keys, Measures.of({**wanted, "n": "count"}, SCOPE), SCOPE, SCHEMA)
    whole = pa.Table.from_pylist(rows, SCHEMA.arrow)
    with use_thresholds(folded_bytes=1 if tiny else 1 << 20):
        found = grouping.result(grouping.fold_all(whole.to_batches(max_chunksize=batch_rows), "t"), {})
    for name in VALUES:
        expected = list(model(rows, keys, name))
        assert [tuple(folded(value) for value in row) for row in zip(*(found[key].to_pylist() for key in keys), strict=True)] == [
            one[0] for one in expected
        ]
        assert found["n"].to_pylist() == [one[1] for one in expected]
        assert found[f"{name}_count"].to_pylist() == [len(one[2]) for one in expected]
        for at, (_, _, known) in enumerate(expected):
            ordered = sorted(known, key=order)
            assert folded(found[f"{name}_min"][at].as_py()) == (ordered[0] if ordered else None)
            assert folded(found[f"{name}_max"][at].as_py()) == (ordered[-1] if ordered else None)
            if f"{name}_sum" in found.column_names:
                assert found[f"{name}_sum"][at].as_py() == (sum(known) if known else None)
            if f"{name}_avg" in found.column_names:
                assert found[f"{name}_avg"][at].as_py() == average(known, name)


def average(known, name):
    if not known:
        return None
    exact = sum(map(Fraction, known)) / len(known)
    if name != "small":
        return exact.numerator / exact.denominator
    with localcontext(prec=60):
        return (Decimal(exact.numerator) / Decimal(exact.denominator)).quantize(Decimal("1e-7"), ROUND_HALF_UP)


@given(st.lists(VALUES["l"], min_size=1, max_size=20), st.lists(VALUES["dec"], min_size=1, max_size=20))
def test_sums_are_exact_or_errors(longs, decimals):
    for name, values in (("l", longs), ("dec", decimals)):
        rows = pa.table({"b": pa.array([None] * len(values), pa.bool_()), name: pa.array(values, SCHEMA.field(name).type.arrow)})
        grouping = Grouping.of("b", Measures.of({name: "sum"}, SCOPE), SCOPE, SCHEMA)
        known = [value for value in values if value is not None]
        with localcontext(prec=60):
            total = sum(known) if known else None
        too_large = total is not None and (abs(total) >= 10**36 if name == "dec" else not -(2**63) <= total < 2**63)
        done = grouping.fold_all(rows.to_batches(max_chunksize=3), "t")
        if too_large:
            with pytest.raises(OutOfRange, match=f"the sum of column '{name}' is"):
                grouping.result(done, {})
        else:
            assert grouping.result(done, {}).to_pylist() == [{"b": None, f"{name}_sum": total}]


def test_sums_of_floats_have_nan_and_infinity():
    rows = pa.table({"s": ["a", "a", "b", "b", "c", "d"], "d": [math.inf, 1.0, math.inf, -math.inf, math.nan, None]})
    grouping = Grouping.of("s", Measures.of({"d": ("sum", "avg"), "n": "count"}, SCOPE), SCOPE, SCHEMA)
    found = grouping.result(grouping.fold_all(rows.to_batches(), "t"), {})
    assert [struct.pack("d", abs(v)) if v is not None else None for v in found["d_sum"].to_pylist()] == [
        struct.pack("d", math.inf),
        struct.pack("d", math.nan),
        struct.pack("d", math.nan),
        None,
    ]
    assert found["d_avg"].to_pylist()[0] == math.inf


def test_too_many_groups_are_an_error_with_the_way():
    rows = pa.table({"l": list(range(10_000))})
    grouping = Grouping.of("l", Measures.of({"n": "count"}, SCOPE), SCOPE, SCHEMA)
    with use_thresholds(folded_bytes=1000, grouped_bytes=50_000), pytest.raises(OutOfMemory, match=r"by=\['l'\].*to_duckdb"):
        grouping.fold_all(rows.to_batches(max_chunksize=500), "t")


@pytest.mark.parametrize("table", ["append", "keyed", "vectors", "orc"], indirect=True)
def test_tables_are_grouped_by_columns_parts_and_expressions(table) -> None:
    groups = defaultdict(list)
    for row in ROWS:
        if row["id"] > 20:
            groups[field(row, "s", "t")].append(row["id"])
    found = table.scan("id > 20").aggregate({"n": "count", "id": ["sum", "max"], "ar": "count"}, by="s.t")
    assert found.column_names == ["s.t", "n", "id_sum", "id_max", "ar_count"]
    assert [tuple(row.values())[:4] for row in found.to_pylist()] == [
        (key, len(ids), sum(ids), max(ids)) for key, ids in sorted(groups.items(), key=lambda item: item[0] or "")
    ]
    assert table.scan().aggregate({"n": "count"}, by={"odd": "id % 2 = 1", "size": "size(ar)"}).num_rows == 6
    assert table.scan("id < 0").aggregate({"n": "count"}, by="ID").to_pylist() == []
    assert table.scan("id < 0").aggregate({"n": "count"}, by="ID").column_names == ["id", "n"]


def test_no_keys_are_one_group() -> None:
    assert cities().scan().aggregate({"n": "count"}, by={}).equals(cities().scan().aggregate({"n": "count"}))
