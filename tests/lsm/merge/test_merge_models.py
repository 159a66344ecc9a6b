"""Any versions under any merge options: the folds in bulk give what the plain interpreter gives, record by record."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from lsm.merge.function import merge_function_for
from lsm.write.new_version import NewVersion
from manifest.io.errors import UnmergeableRows, UnsupportedTable
from manifest.schema.merge_options import MergeOptions
from paimon_base.errors import InvalidArgument, UnsupportedOption
from tests.lsm.aggregate_model import CannotMerge
from tests.lsm.merge_kit import KINDS, fold, schema_of, shown
from tests.lsm.merge_model import Model, Record

SMALL = st.integers(-3, 3)
TEXTS = st.sampled_from(["", " ", "\0", "a", "a\0", "b", "a,b", "b,c,,a", "ab"])
FLOATS = st.sampled_from([0.0, -0.0, 0.1, 0.2, 1e30, -1e30, float("nan"), float("inf"), 3.5])
PART = st.fixed_dictionaries({"a": st.none() | SMALL, "b": st.none() | SMALL, "t": st.none() | st.sampled_from(["1", "12", "2"])}).map(
    lambda row: {name: row[name] for name in ("a", "b", "t")}
)
VALUES: dict[str, Any] = {
    "TINYINT": st.sampled_from([-128, -2, -1, 0, 1, 2, 60, 127]),
    "BIGINT": st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 2**61, 2**63 - 1]) | SMALL,
    "INT": SMALL,
    "FLOAT": st.sampled_from([0.0, -0.0, 1.5, 16777216.0, 1.0, float("nan")]),
    "DOUBLE": FLOATS,
    "DECIMAL(4,2)": st.decimals(-99, 99, places=2),
    "DECIMAL(38,2)": st.sampled_from([Decimal("1.25"), Decimal("-0.01"), Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99")]),
    "BOOLEAN": st.booleans(),
    "STRING": TEXTS,
    "ARRAY<INT>": st.lists(st.none() | SMALL, max_size=3),
    "MAP<INT, STRING>": st.dictionaries(SMALL, st.none() | TEXTS, max_size=3).map(lambda entries: list(entries.items())),
    "MAP<INT, ROW<a INT, b INT, t STRING>>": st.dictionaries(SMALL, st.none() | PART, max_size=3).map(lambda e: list(e.items())),
    "ARRAY<ROW<a INT, b INT, t STRING>>": st.lists(st.none() | PART, max_size=3),
    "BYTES": st.frozensets(st.integers(0, 300), max_size=9).map(lambda numbers: BitMap(numbers).serialize()),
}
ANY = ("last_value", "last_non_null_value", "first_value", "first_non_null_value")
FUNCTIONS = {
    **dict.fromkeys(
        ["TINYINT", "BIGINT", "INT", "FLOAT", "DOUBLE", "DECIMAL(4,2)", "DECIMAL(38,2)"], ("sum", "product", "max", "min", *ANY)
    ),
    "BOOLEAN": ("bool_and", "bool_or", *ANY),
    "STRING": ("listagg", "max", "min", *ANY),
    "ARRAY<INT>": ("collect", *ANY),
    "MAP<INT, STRING>": ("merge_map", *ANY),
    "MAP<INT, ROW<a INT, b INT, t STRING>>": ("merge_map", "merge_map_with_keytime"),
    "ARRAY<ROW<a INT, b INT, t STRING>>": ("nested_update", "nested_partial_update", "collect"),
    "BYTES": ("rbm32",),
}

SMALLER = ("TINYINT", "BIGINT", "FLOAT", "DECIMAL(4,2)")
"""Folded as others are."""


@st.composite
def field_options(draw: st.DrawFn, name: str, kind: str) -> dict[str, str]:
    """A function for a column, with options of its own."""
    function = draw(st.sampled_from(FUNCTIONS[kind]))
    options = {"aggregate-function": function, "ignore-retract": draw(st.sampled_from(["true", "false"]))}
    if function in {"listagg", "collect"}:
        options["distinct"] = draw(st.sampled_from(["true", "false"]))
    if function == "nested_partial_update":
        options["nested-key"] = draw(st.sampled_from(["a", "a,b"]))
    if function == "nested_update":
        options |= draw(
            st.sampled_from(
                [
                    {},
                    {"nested-key": "a"},
                    {"nested-key": "a,b", "nested-key-null-strategy": "ignore"},
                    {"nested-key": "a", "nested-sequence-field": "b"},
                    {"nested-key": "a", "count-limit": "2"},
                    {"count-limit": "2"},
                ]
            )
        )
    if function == "merge_map_with_keytime" and draw(st.booleans()):
        options["ts-field"] = "t"
    return {f"fields.{name}.{option}": text for option, text in options.items()}


@st.composite
def aggregations(draw: st.DrawFn) -> Model:
    kinds = draw(st.lists(st.sampled_from(list(FUNCTIONS)), min_size=1, max_size=4))
    types = {f"c{at}": kind for at, kind in enumerate(kinds)}
    options = {"merge-engine": "aggregation"}
    for name, kind in types.items():
        options |= draw(field_options(name, kind))
    if draw(st.booleans()):
        options = {key: text for key, text in options.items() if not key.endswith("ignore-retract")}
        options["aggregation.remove-record-on-delete"] = draw(st.sampled_from(["true", "false"]))
    return Model({"k": "INT NOT NULL", **types}, ("k",), options)


@st.composite
def partial_updates(draw: st.DrawFn) -> Model:
    """Up to two sequence groups of one or two ordering columns, some columns outside, any functions."""
    types, options, groups = {"k": "INT NOT NULL"}, {"merge-engine": "partial-update"}, []
    for number in range(draw(st.integers(0, 2))):
        ordering = [f"g{number}_{at}" for at in range(draw(st.integers(1, 2)))]
        protected = {f"p{number}_{at}": draw(st.sampled_from(list(FUNCTIONS))) for at in range(draw(st.integers(1, 2)))}
        options[f"fields.{','.join(ordering)}.sequence-group"] = ",".join(protected)
        groups.append(ordering)
        columns = [*((name, draw(st.sampled_from(["INT", "STRING", "DOUBLE"]))) for name in ordering), *protected.items()]
        types |= dict(draw(st.permutations(columns)))
        for name, kind in protected.items():
            if draw(st.booleans()):
                options |= draw(field_options(name, kind))
    types |= {f"u{at}": draw(st.sampled_from(["INT", "STRING", "ARRAY<INT>"])) for at in range(draw(st.integers(0 if groups else 1, 2)))}
    chosen = draw(st.sampled_from(["none", "ignore", "remove"]))
    if chosen == "ignore":
        options["ignore-delete"] = "true"
    elif chosen == "remove" and not groups:
        options["partial-update.remove-record-on-delete"] = "true"
    elif chosen == "remove":
        removing = draw(st.lists(st.sampled_from(groups), min_size=1, max_size=2, unique_by=tuple))
        options["partial-update.remove-record-on-sequence-group"] = ",".join(group[0] for group in removing)
    if "u0" in types and draw(st.booleans()):
        options["fields.u0.aggregate-function"] = "last_non_null_value"
    return Model(types, ("k",), options)


@st.composite
def histories(draw: st.DrawFn, model: Model, number: int) -> list[Record]:
    kinds = st.sampled_from(draw(st.sampled_from([("+I",), ("+I", "+I", "+U", "-U", "-D"), KINDS])))
    found = []
    for sequence in range(draw(st.integers(1, 6))):
        values = {name: draw(st.none() | VALUES[kind]) for name, kind in model.types.items() if name != "k"}
        found.append((draw(kinds), sequence, {"k": number, **values}))
    return found


def check(model: Model, keys: list[list[Record]]) -> None:
    """One fold of all keys that the model can merge; those that it cannot are refused alone."""
    merged = []
    for key in keys:
        try:
            merged.append((key, model.merge(key)))
        except CannotMerge:
            try:
                found = fold(model, key)
            except UnmergeableRows:
                continue
            if any(option.split(".")[-1].startswith("remove-record") for option in model.options):
                continue  # what a removed row was made of is not looked at
            raise AssertionError(f"the product made {found} of what cannot be merged") from None
    expected = [shown(result, model.types) for _, result in merged if result is not None]
    assert [shown(record, model.types) for record in fold(model, *(key for key, _ in merged))] == expected


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.data())
def test_aggregation_is_the_models(data: st.DataObject) -> None:
    model = data.draw(aggregations())
    check(model, [data.draw(histories(model, number)) for number in range(data.draw(st.integers(1, 4)))])


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.data())
def test_partial_update_is_the_models(data: st.DataObject) -> None:
    check_partial_update(data)


@pytest.mark.parametrize(
    ("kind", "function"),
    [(kind, function) for kind, functions in FUNCTIONS.items() if kind not in SMALLER for function in functions],
)
@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.data())
def test_each_function_is_the_models_in_order_and_with_late_versions(kind: str, function: str, data: st.DataObject) -> None:
    options = {"fields.p.aggregate-function": function}
    if function == "nested_partial_update":
        options["fields.p.nested-key"] = "a"
    for engine in ({"merge-engine": "aggregation"}, {"merge-engine": "partial-update", "fields.g.sequence-group": "p"}):
        types = {"k": "INT NOT NULL", "p": kind} | ({"g": "INT"} if "fields.g.sequence-group" in engine else {})
        model = Model(types, ("k",), engine | options)
        check(model, [data.draw(histories(model, number)) for number in range(6)])


@pytest.mark.long
@settings(max_examples=1000, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.data())
def test_many_aggregations_and_partial_updates_are_the_models(data: st.DataObject) -> None:
    model = data.draw(aggregations())
    check(model, [data.draw(histories(model, number)) for number in range(data.draw(st.integers(1, 4)))])
    check_partial_update(data)


def check_partial_update(data: st.DataObject) -> None:
    model = data.draw(partial_updates())
    try:
        MergeOptions.of(schema_of(model))
    except UnsupportedOption as error:
        raise AssertionError(f"{model.options}: {error}") from None
    check(model, [data.draw(histories(model, number)) for number in range(data.draw(st.integers(1, 4)))])


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_new_version_sets_columns_and_leaves_the_others(data: st.DataObject) -> None:
    model = data.draw(aggregations() | partial_updates(), label="model")
    history = data.draw(histories(model, 4), label="history")
    try:
        kind, sequence, old = model.merge(history) or ("-D", 0, {})
        schema = schema_of(model)
        merge_function_for(schema)
    except (CannotMerge, UnsupportedTable):
        return
    names = data.draw(st.sets(st.sampled_from([name for name in model.types if name != "k"]), min_size=1, max_size=3), label="set")
    values = {name: data.draw(st.none() | VALUES[model.types[name]], label=name) for name in sorted(names)}
    unfolded = (function.agg(None, old.get(name)) != old.get(name) for name, function in model._functions().items())
    if kind in {"-U", "-D"} or any(unfolded):  # a single version's duplicates go with whatever comes next, where values are distinct
        return
    try:
        version = NewVersion.of(schema, names)
        assert version is not None
        before, after = (pa.Table.from_pylist([row], schema=schema.arrow) for row in (old, {**old, **values}))
        made = version.apply(before, after).to_pylist()[0]
    except (UnsupportedTable, InvalidArgument, UnmergeableRows):
        return
    result = model.merge([*history, ("+U", sequence + 1, made)])
    assert result is not None
    assert shown(("+I", 0, result[2]), model.types) == shown(("+I", 0, {**old, **values}), model.types)


@pytest.mark.parametrize(
    ("options", "names", "told"),
    [
        ({"merge-engine": "first-row"}, ["n"], "merge-engine 'first-row' keeps the first"),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "max"}, ["n"], "folds column 'n' by 'max'"),
        ({"merge-engine": "aggregation", "fields.f.aggregate-function": "sum"}, ["f"], "'sum' of floating point"),
        (
            {"merge-engine": "aggregation", "fields.a.aggregate-function": "collect"},
            ["n"],
            "column 'a' by 'collect', and it is ARRAY<INT> NOT NULL",
        ),
    ],
    ids=str,
)
def test_what_is_made_of_all_versions_is_not_set(options: dict[str, str], names: list[str], told: str) -> None:
    model = Model({"k": "INT NOT NULL", "n": "INT", "f": "DOUBLE", "a": "ARRAY<INT> NOT NULL"}, ("k",), options)
    with pytest.raises(UnsupportedTable, match=told):
        NewVersion.of(schema_of(model), names)


def test_columns_that_take_no_null_come_with_what_changes_nothing() -> None:
    functions = {"m": "max", "n": "sum", "s": "last_value", "t": "first_value"}
    options = {"merge-engine": "aggregation", **{f"fields.{name}.aggregate-function": function for name, function in functions.items()}}
    types = {"k": "INT NOT NULL", **dict.fromkeys("mnst", "INT NOT NULL")}
    version = NewVersion.of(schema_of(Model(types, ("k",), options)), ["n"])
    assert version is not None
    assert version.ways == {"m": "old", "n": "difference", "s": "new", "t": "old"}
    untouched = NewVersion.of(schema_of(Model(types, ("k",), options)), ["s"])
    old, new = (pa.table({"k": [1], "m": [5], "n": [6], "s": [s], "t": [8]}) for s in (7, 70))
    assert untouched.apply(old, new).to_pylist() == [{"k": 1, "m": 5, "n": 0, "s": 70, "t": 8}]


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["deduplicate", "first-row"]), st.sampled_from(["true", "false"]), st.data())
def test_engines_that_choose_a_version_are_the_models(engine: str, ignore: str, data: st.DataObject) -> None:
    model = Model({"k": "INT NOT NULL", "v": "INT"}, ("k",), {"merge-engine": engine, "ignore-delete": ignore})
    check(model, [data.draw(histories(model, number)) for number in range(data.draw(st.integers(1, 4)))])


ROWS_OF_ONE_KEY = [{"a": 3, "b": None, "t": None}, {"a": 3, "b": -1, "t": None}, {"a": 0, "b": 0, "t": None}]


@pytest.mark.parametrize(
    "arrays", [[[], ROWS_OF_ONE_KEY], [ROWS_OF_ONE_KEY, []], [ROWS_OF_ONE_KEY], [None, ROWS_OF_ONE_KEY, None]], ids=str
)
@pytest.mark.parametrize("another", ["+I", "-D"])
def test_an_empty_array_merges_what_it_meets_with_itself(arrays: list[Any], another: str) -> None:
    options = {"merge-engine": "aggregation"} | {
        f"fields.rows.{name}": value
        for name, value in [("aggregate-function", "nested_update"), ("nested-key", "a"), ("nested-sequence-field", "b")]
    }
    model = Model({"k": "INT NOT NULL", "rows": "ARRAY<ROW<a INT, b INT, t STRING>>"}, ("k",), options)
    history = [("+I", sequence, {"k": 1, "rows": rows}) for sequence, rows in enumerate(arrays)]
    check(model, [history, [("+I", 8, {"k": 2, "rows": []}), (another, 9, {"k": 2, "rows": []})]])


@pytest.mark.parametrize("kinds", [("-D", "+I"), ("-D", "-D", "+I"), ("+I", "-D"), ("-D", "+I", "-D"), ("-D", "+I", "+I")])
@pytest.mark.parametrize("arrays", [([], [None]), (None, [None]), ([None], [None]), (ROWS_OF_ONE_KEY, [None, *ROWS_OF_ONE_KEY])], ids=str)
def test_what_is_retracted_from_nothing_merges_nothing(kinds: tuple[str, ...], arrays: tuple[Any, Any]) -> None:
    """Checked with Java 1.4.2: an array that only retracts went before is kept as it is, null rows included."""
    rules = {"aggregate-function": "nested_update", "nested-key": "a", "count-limit": "2"}
    options = {"merge-engine": "aggregation", "aggregation.remove-record-on-delete": "false"}
    model = Model(
        {"k": "INT NOT NULL", "rows": "ARRAY<ROW<a INT, b INT, t STRING>>"},
        ("k",),
        options | {f"fields.rows.{name}": value for name, value in rules.items()},
    )
    check(model, [[(kind, place, {"k": 1, "rows": arrays[kind == "+I"]}) for place, kind in enumerate(kinds)]])


@pytest.mark.parametrize("function", ["sum", "last_value"])
@pytest.mark.parametrize("removes", [False, True], ids=["retracts", "removes"])
def test_all_short_histories_of_a_group_are_the_models(function: str, *, removes: bool) -> None:
    """Each history of up to three versions, in one fold: late ones, retracts, and ones before a removal."""
    options = {"merge-engine": "partial-update", "fields.g.sequence-group": "p,q", "fields.p.aggregate-function": function}
    options |= {"partial-update.remove-record-on-sequence-group": "g"} if removes else {}
    versions = list(itertools.product(["+I", "-D"], [1, 2], [False, True]))
    short = [history for length in (2, 3) for history in itertools.product(versions, repeat=length)]
    keys = [
        [
            (kind, place, {"k": key, "g": group, **dict.fromkeys("pqu", 10**place if is_set else None)})
            for place, (kind, group, is_set) in enumerate(history)
        ]
        for key, history in enumerate(short)
    ]
    check(Model({"k": "INT NOT NULL", **dict.fromkeys("gpqu", "INT")}, ("k",), options), keys)


@pytest.mark.parametrize("product", [4, -4, 7, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("factor", [2, -2, 3, -1, -(2**63), 2**63 - 1])
def test_a_factor_at_the_ends_of_the_range_is_taken_back(product: int, factor: int) -> None:
    options = {"merge-engine": "aggregation", "fields.c.aggregate-function": "product"}
    if (product, factor) == (-(2**63), -1):
        return  # no BIGINT: refused
    check(
        Model({"k": "INT NOT NULL", "c": "BIGINT"}, ("k",), options),
        [[("+I", 0, {"k": 1, "c": product}), ("-U", 1, {"k": 1, "c": factor})]],
    )
