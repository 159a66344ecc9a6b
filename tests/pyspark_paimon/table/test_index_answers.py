"""With indexes, without them, and by brute force: the same rows, counts, first rows and aggregates, on tables of every layout."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op, all_of, any_of, negate
from lsm.aggregate.names import AGGREGATES
from lsm.aggregate.summary import RowSummary, can_aggregate
from lsm.arrow.text_form import coded_texts
from lsm.keys.order_by import RowOrder
from lsm.keys.sort import SortColumn
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.request.plan_json import summaries_from_json, summaries_to_json
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.request.state import Snapshots
from pyspark_paimon.request.validate import text_columns
from sparkexpr.values.column_type import BINARIES, Kind
from sparkexpr.values.float_order import spark_order_key
from sparkexpr.values.plain_value import from_scalar
from tests.examples import some
from tests.golden_rows import GOLDEN

DDL = "id INT NOT NULL, city STRING, n INT, price DOUBLE, day DATE, attrs MAP<STRING, INT>"
INDEXES = {
    "file-index.bloom-filter.columns": "city,n",
    "file-index.bitmap.columns": "city,attrs[k]",
    "file-index.bsi.columns": "n",
    "file-index.range-bitmap.columns": "price,day",
    "file.block-size": "1 kb",
    "write-only": "true",
}
EMBEDDED, SIDECAR = {"file-index.in-manifest-threshold": "1 mb"}, {"file-index.in-manifest-threshold": "1 b"}
OWN = {
    "append, sidecar": ((), SIDECAR),
    "append, embedded": ((), EMBEDDED),
    "levels, sidecar": (("id",), {"bucket": "2", **SIDECAR}),
    "levels, embedded": (("id",), {"bucket": "1", **EMBEDDED}),
    "compacted": (("id",), {"bucket": "1", **SIDECAR}),
    "deletion vectors": (("id",), {"bucket": "1", "deletion-vectors.enabled": "true", **SIDECAR}),
    "widened": ((), SIDECAR),
    "vectors of 64 bits": (
        ("id",),
        {"bucket": "1", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true", **EMBEDDED},
    ),
}
PAIMONS = [
    "append_bitmap_v1",
    "append_bsi",
    "append_map",
    "append_range_bitmap",
    "pk_dv",
    "pk_dv64",
    "pk_dv_embedded",
    "evolved",
    "evolved_append",
]
NO_INDEX = {"file-index.read.enabled": "false"}


@pytest.fixture(autouse=True)
def small_pages(set_thresholds):
    """Look through page indexes of small row groups too."""
    set_thresholds(paged_rows=16)
    set_thresholds(sparse=2)
    set_thresholds(pages_pay=1)


def made(start, seed, count=400):
    draw = random.Random(seed)
    prices = [math.nan, -0.0, 0.0, math.inf, None, *(draw.randrange(-50, 50) / 4 for _ in range(20))]
    return pa.table(
        {
            "id": pa.array(range(start, start + count), pa.int32()),
            "city": draw.choices(["Oslo", "Lima", "Rome", "", None, "Åbo", "Åndalsnes in Møre og Romsdal"], k=count),
            "n": pa.array(draw.choices([None, -1, 0, *range(5, 60)], k=count), pa.int32()),
            "price": draw.choices(prices, k=count),
            "day": pa.array(draw.choices([None, *range(19_000, 19_020)], k=count), pa.int32()).cast(pa.date32()),
            "attrs": pa.array(
                draw.choices([None, [], [("k", 1)], [("k", 2), ("z", 1)], [("k", None)], [("z", 2)]], k=count),
                pa.map_(pa.string(), pa.int32()),
            ),
        }
    )


def fill(path, name):
    keys, options = OWN[name]
    table = Table.create(path, DDL, primary_keys=keys, options={**INDEXES, **options})
    table.write(made(0, 1))
    table.write(made(300, 2))
    if name == "compacted" or "vectors" in name:
        table.compact(full=True)
    newest = made(200, 3, 150)
    if name == "widened":
        table.change_type("n", "BIGINT")
        table.add_column("later", "INT")
        newest = newest.append_column("later", pa.array([number % 3 for number in range(150)], pa.int32()))
    table.write(newest)
    if keys:
        table.delete("id BETWEEN 100 AND 130")
    if name == "compacted":
        table.compact(full=True)
    if "vectors" in name:
        table.compact()
    return path


class Opened:
    """A table, and all its rows as a scan without filter and index gives them."""

    def __init__(self, path):
        self.engine = LocalEngine(str(path))
        snapshot = self.engine.ask(Snapshots())[-1]
        schema = self.engine.schema()
        self.names, self.types = schema.names, schema.column_types
        self.flat = [field.name for field in schema.fields if not field.type.is_nested]
        self.request = ScanRequest(columns=schema.names, snapshot_id=snapshot.id, options=NO_INDEX)
        self.arrow = schema.arrow
        self.rows = self.read(self.request)
        self.trees = trees_of(self)

    def read(self, request):
        return pa.Table.from_batches(self.engine.read(request), self.arrow)

    def asked(self, predicate, **changes):
        request = ScanRequest(predicate=predicate, columns=tuple(self.names), snapshot_id=self.request.snapshot_id)
        return request.model_copy(update=changes)


@pytest.fixture(scope="module", params=[*OWN, *PAIMONS])
def opened(request, tmp_path_factory):
    name = request.param
    return Opened(GOLDEN / name / "table" if name in PAIMONS else fill(tmp_path_factory.mktemp("answers") / "t", name))


def leaves_of(opened):
    """Leaves on the table's columns and map entries, with values that it has."""
    found = []
    for name, column_type in opened.types.items():
        array = opened.rows[name].combine_chunks()
        if column_type.kind is Kind.MAP and column_type.key.kind is Kind.VARCHAR and column_type.value.kind is Kind.INT:
            keys = [*sorted(set(array.keys.to_pylist()))[:3], "nobody"]
            found.append(
                (st.sampled_from([ColumnRef(name, key) for key in keys]), [-7, *sorted({v for v in array.items.to_pylist() if v})[:20]])
            )
        elif name in opened.flat and column_type.kind not in BINARIES:
            values = [from_scalar(value, column_type) for value in array.take(pa.array(range(0, len(array), 7))) if value.is_valid]
            if values:
                found.append((st.just(ColumnRef(name)), values))

    def leaf(choice):
        columns, values = choice
        value = st.sampled_from(values)
        compared = st.builds(Compare, columns, st.sampled_from(list(Op)), value)
        listed = st.builds(In, columns, st.lists(value, max_size=3).map(tuple), st.booleans())
        return compared | compared | listed | st.builds(IsNull, columns, st.booleans())

    return st.sampled_from(found).flatmap(leaf)


def trees_of(opened):
    return st.recursive(
        leaves_of(opened),
        lambda inner: st.lists(inner, min_size=2, max_size=3).flatmap(
            lambda some: st.sampled_from([all_of(*some), any_of(*some), negate(all_of(*some))])
        ),
        max_leaves=4,
    )


def spelled(table):
    return sorted(map(repr, table.to_pylist()))


@settings(max_examples=some(3), deadline=None)
@given(data=st.data())
@pytest.mark.sampled(3)
def test_rows_and_counts_are_the_same_with_and_without_indexes(opened, data):
    predicate = data.draw(opened.trees)
    expected = opened.rows.filter(mask(predicate, opened.rows, opened.types))
    for options in ({}, NO_INDEX):
        request = opened.asked(predicate, options=options)
        assert spelled(opened.read(request)) == spelled(expected)
        assert opened.engine.count(request) == len(expected)
        assert opened.engine.cheap_count(request) in {None, len(expected)}
    texts = text_columns(True, opened.arrow)
    coded = coded_texts(opened.engine.read(opened.asked(predicate, dictionaries=texts)), opened.arrow, texts)
    assert spelled(coded) == spelled(expected)
    some = opened.asked(predicate, columns=opened.names[-1:])
    found = pa.Table.from_batches(opened.engine.read(some), pa.schema([opened.arrow.field(opened.names[-1])]))
    assert spelled(found) == spelled(expected.select(opened.names[-1:]))


@settings(max_examples=5, deadline=None)
@given(data=st.data())
@pytest.mark.sampled(3)
def test_the_first_rows_are_those_of_the_sorted_rows(opened, data):
    predicate = data.draw(st.none() | opened.trees)
    columns = st.builds(SortColumn, st.sampled_from(opened.flat), st.booleans(), st.booleans() | st.none())
    order = RowOrder(tuple(data.draw(st.lists(columns, min_size=1, max_size=2, unique_by=lambda column: column.name))))
    limit = data.draw(st.none() | st.integers(0, 12))
    expected = opened.rows if predicate is None else opened.rows.filter(mask(predicate, opened.rows, opened.types))
    model = order.sorted(expected).select(order.names)
    for options in ({}, NO_INDEX):
        request = opened.asked(predicate, options=options, order_by=order.columns, limit=limit)
        found = opened.read(request)
        assert str(found.select(order.names).to_pylist()).replace("-0.0", "0.0") == str(
            (model if limit is None else model.slice(0, limit)).to_pylist()
        ).replace("-0.0", "0.0")
        assert set(spelled(found)) <= set(spelled(expected))
        assert opened.engine.count(request) == len(found)


def model_of(rows, opened, wanted):
    """What Python's own arithmetic makes of the rows."""
    found = {}
    for name, functions in wanted.items():
        kind = opened.types.get(name)
        values = [value for value in rows[name] if value.is_valid]
        plain = [from_scalar(value, kind) for value in values] if name in opened.flat else values
        answers = {
            "count": lambda plain=plain: len(plain),
            "min": lambda plain=plain: min(plain, key=spark_order_key, default=None),
            "max": lambda plain=plain: max(plain, key=spark_order_key, default=None),
            "sum": lambda plain=plain: sum(plain) if plain else None,
        }
        found[name] = {function: answers[function]() for function in functions}
    return found


def same(found, expected):
    if isinstance(expected, float):
        return spark_order_key(found) == spark_order_key(expected) or math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12)
    return type(found) is type(expected) and found == expected


def check_aggregates(opened, predicate, wanted):
    types = {column.name: column.type for column in opened.engine.schema().fields}
    expected = opened.rows if predicate is None else opened.rows.filter(mask(predicate, opened.rows, opened.types))
    model = model_of(expected, opened, wanted)
    for options in ({}, NO_INDEX):
        request = opened.asked(predicate, options=options, columns=(), aggregates=wanted)
        for found in (opened.engine.aggregate(request), opened.engine.cheap_aggregate(request)):
            if found is None:
                continue
            whole = summaries_from_json([summaries_to_json(found)], wanted)
            total = RowSummary.of({name: frozenset(some) for name, some in wanted.items()}, types)
            for summary in whole.values():
                total.merge(summary)
            assert total.rows == len(expected)
            for name, answers in model.items():
                for function, value in answers.items():
                    assert same(total.columns[name].value(function), value), (name, function)


def functions_of(opened, name):
    types = {column.name: column.type for column in opened.engine.schema().fields}
    return [function for function in AGGREGATES if can_aggregate(function, types[name].kind)]


@settings(max_examples=4, deadline=None)
@given(data=st.data())
@pytest.mark.sampled(3)
def test_aggregates_are_those_of_the_rows(opened, data):
    columns = data.draw(st.lists(st.sampled_from(opened.names), max_size=3, unique=True))
    some = {name: st.lists(st.sampled_from(functions_of(opened, name)), min_size=1, unique=True).map(tuple) for name in columns}
    check_aggregates(opened, data.draw(opened.trees), data.draw(st.fixed_dictionaries(some)))


def test_aggregates_of_whole_columns_are_those_of_the_rows(opened):
    for functions in ({"count"}, {"min", "max"}, {"sum"}):
        wanted = {name: tuple(some) for name in opened.names if (some := functions.intersection(functions_of(opened, name)))}
        check_aggregates(opened, None, wanted)
