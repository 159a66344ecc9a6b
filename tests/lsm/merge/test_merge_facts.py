"""Merge engines, record by record: what Paimon makes of these versions, our folds make of them, and so does the model."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import pytest

from lsm.merge.function import merge_function_for
from manifest.io.errors import UnmergeableRows
from manifest.schema.validation import build_schema
from tests.lsm.aggregate_model import CannotMerge
from tests.lsm.merge_kit import fold, shown
from tests.lsm.merge_model import Model, Record

X = None  # a null in the tables below


def of(count: int, **options: Any) -> Model:
    """INT columns f0 (the key), f1, ...; ``__`` in an option's name stands for a dot."""
    return Model({f"f{i}": "INT" for i in range(count)}, ("f0",), named(options))


def named(options: dict[str, Any]) -> dict[str, str]:
    return {key.replace("__", "."): str(value) for key, value in options.items()}


def records(model: Model, *rows: Any) -> list[Record]:
    """Rows as tuples, kinds in front of those that are not ``+I``; numbered from 0."""
    found = []
    for number, row in enumerate(rows):
        kind, values = (row[0], row[1:]) if isinstance(row[0], str) and row[0] in {"+I", "-U", "+U", "-D"} else ("+I", row)
        found.append((kind, number, dict(zip(model.types, values, strict=True))))
    return found


def both(model: Model, *rows: Any) -> Record | None:
    """The result of product and model, which must agree."""
    given = records(model, *rows)
    expected, found = model.merge(given), fold(model, given)
    assert [shown(record, model.types) for record in found] == [shown(expected, model.types)]
    return expected


def row(model: Model, *rows: Any) -> tuple[Any, ...]:
    result = both(model, *rows)
    assert result is not None
    return tuple(result[2].values())


def steps(model: Model, *pairs: tuple[tuple[Any, ...], tuple[Any, ...] | None]) -> None:
    """After each record (left) the row (right) that the records so far give; None: not looked at."""
    so_far: list[Any] = []
    for record, expected in pairs:
        so_far.append(record)
        if expected is not None:
            assert row(model, *so_far) == expected


def refused(model: Model, *rows: Any) -> None:
    with pytest.raises(CannotMerge):
        model.merge(records(model, *rows))
    with pytest.raises(UnmergeableRows):
        fold(model, records(model, *rows))


@pytest.mark.parametrize("engine", ["deduplicate", "first-row", "partial-update", "aggregation"])
@pytest.mark.parametrize("kind", ["+I", "-U", "+U", "-D"])
def test_a_key_with_one_version_is_returned_as_it_is(engine: str, kind: str) -> None:
    model = Model({"f0": "INT", "f1": "INT"}, ("f0",), {"merge-engine": engine, "ignore-delete": "true"})
    assert both(model, (kind, 1, 2)) == (kind, 0, {"f0": 1, "f1": 2})


def test_deduplicate_takes_the_last_version_and_may_skip_retracts() -> None:
    assert both(of(2), (1, 1), ("-D", 1, 2))[0] == "-D"
    keeping = of(2, **{"ignore-delete": "true"})
    assert both(keeping, (1, 1), ("-D", 1, 2)) == ("+I", 0, {"f0": 1, "f1": 1})
    assert both_nothing(keeping, ("-D", 1, 1), ("-U", 1, 2))


def both_nothing(model: Model, *rows: Any) -> bool:
    given = records(model, *rows)
    return model.merge(given) is None and fold(model, given) == []


def test_first_row_takes_the_first_add() -> None:
    model = Model({"f0": "INT", "f1": "INT"}, ("f0",), {"merge-engine": "first-row"})
    assert both(model, (1, 5), (1, 6))[2]["f1"] == 5
    refused(model, (1, 5), ("-D", 1, 5))
    keeping = Model(model.types, ("f0",), {"merge-engine": "first-row", "ignore-delete": "true"})
    assert both(keeping, ("-D", 1, 4), (1, 5), ("-U", 1, 5)) == ("+I", 1, {"f0": 1, "f1": 5})
    assert both_nothing(keeping, ("-D", 1, 1), ("-U", 1, 2))


def partial(count: int, **options: Any) -> Model:
    return of(count, **{"merge-engine": "partial-update", **options})


def group(**groups: str) -> dict[str, str]:
    """``f3="f1,f2"``: columns before the sign order those behind it; ``_`` separates several."""
    return {f"fields.{names.replace('_', ',')}.sequence-group": protected for names, protected in groups.items()}


def test_partial_update_fills_gaps() -> None:
    assert row(partial(7), (1, 1, 1, 1, 1, 1, 1), (1, 2, 2, 2, 2, 2, X)) == (1, 2, 2, 2, 2, 2, 1)


def test_partial_update_without_options_cannot_take_back() -> None:
    refused(partial(2), (1, 1), ("-D", 1, 1))
    refused(partial(2), ("-U", 1, 1), (1, 1))


@pytest.mark.parametrize("remove", [False, True])
def test_sequence_groups_go_each_their_way(remove: bool) -> None:
    options = {"partial-update.remove-record-on-sequence-group": "f6"} if remove else {}
    model = partial(7, **group(f3="f1,f2", f6="f4,f5"), **options)
    steps(
        model,
        ((1, 1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1)),
        ((1, 2, 2, 2, 2, 2, X), (1, 2, 2, 2, 1, 1, 1)),
        ((1, 3, 3, 1, 3, 3, 3), (1, 2, 2, 2, 3, 3, 3)),
        (("-D", 1, 1, 1, 3, 1, 1, X), (1, X, X, 3, 3, 3, 3)),
        (("-D", 1, 1, 1, 3, 1, 1, 4), (1, 1, 1, 3, 1, 1, 4) if remove else (1, X, X, 3, X, X, 4)),
        ((1, 4, 4, 4, 5, 5, 5), (1, 4, 4, 4, 5, 5, 5)),
        (("-D", 1, 1, 1, 6, 1, 1, 6), (1, 1, 1, 6, 1, 1, 6) if remove else (1, X, X, 6, X, X, 6)),
    )


def test_two_columns_can_order_a_group() -> None:
    model = partial(9, **group(f3_f4="f1,f2", f7_f8="f5,f6"))
    assert row(model, (1, X, X, X, X, 1, 1, 1, 3), (1, 2, 2, X, X, 2, 2, 1, 3)) == (1, X, X, X, X, 2, 2, 1, 3)
    steps(
        model,
        ((1, 1, 1, 1, 1, 1, 1, 1, 3), None),
        ((1, 2, 2, 2, 2, 2, 1, 1, X), (1, 2, 2, 2, 2, 1, 1, 1, 3)),
        ((1, 1, 3, 1, 3, 3, 3, 3, 2), (1, 2, 2, 2, 2, 3, 3, 3, 2)),
        (("-D", 1, 1, 1, 3, 3, 1, 1, X, X), (1, X, X, 3, 3, 3, 3, 3, 2)),
        (("-D", 1, 1, 1, 3, 1, 1, 1, 4, 4), (1, X, X, 3, 3, X, X, 4, 4)),
        ((1, 4, 4, 4, 4, 5, 5, 5, 5), (1, 4, 4, 4, 4, 5, 5, 5, 5)),
        (("-D", 1, 1, 1, 6, 1, 1, 1, 6, 1), (1, X, X, 6, 1, X, X, 6, 1)),
    )


def test_a_default_function_folds_protected_columns() -> None:
    model = partial(7, **group(f3="f1,f2", f6="f4,f5"), **{"fields.default-aggregate-function": "last_non_null_value"})
    given = [(1, 1, 1, 1, 1, 1, 1), (1, 2, 2, 2, 2, 2, X), (1, 3, 3, 1, 3, 3, 3), (1, 4, X, 4, 5, X, 5)]
    assert row(model, *given) == (1, 4, 2, 4, 5, 3, 5)


def test_first_and_last_value_in_a_group_follow_its_order() -> None:
    model = partial(4, **group(f1="f2,f3"), fields__f2__x="")
    model.options = {**group(f1="f2,f3"), "merge-engine": "partial-update"}
    model.options |= {"fields.f2.aggregate-function": "first_value", "fields.f3.aggregate-function": "last_value"}
    steps(model, ((1, 1, 1, 1), None), ((1, 2, 2, 2), (1, 2, 1, 2)), ((1, 0, 3, 3), (1, 2, 3, 2)))


def test_functions_in_groups_take_back_or_ignore() -> None:
    model = partial(8, **group(f1="f2,f3,f4", f7="f6"))
    model.options |= {
        "fields.f2.aggregate-function": "sum",
        "fields.f4.aggregate-function": "last_value",
        "fields.f4.ignore-retract": "true",
        "fields.f6.aggregate-function": "last_non_null_value",
        "fields.f6.ignore-retract": "true",
    }
    steps(
        model,
        ((1, 1, 1, 1, 1, 1, 1, 1), None),
        ((1, 2, 1, 2, 2, 2, 2, 0), (1, 2, 2, 2, 2, 2, 1, 1)),
        ((1, 1, 1, 1, 1, 1, 2, 0), (1, 2, 3, 2, 2, 1, 1, 1)),
        ((1, 1, -1, 1, 1, 2, 2, 0), None),
        ((1, 3, X, X, X, X, X, 2), (1, 3, 2, X, X, 2, 1, 2)),
        ((1, 3, 1, 1, 1, 1, 1, 3), (1, 3, 3, 1, 1, 1, 1, 3)),
        (("-U", 1, 3, 2, 1, 1, 1, 1, 3), (1, 3, 1, X, 1, 1, 1, 3)),
        (("-D", 1, 3, 2, 1, 1, 1, 1, 3), (1, 3, -1, X, 1, 1, 1, 3)),
        (("-D", 1, 2, 2, 1, 1, 1, 1, 3), (1, 3, -3, X, 1, 1, 1, 3)),
    )


def test_remove_record_on_delete_starts_from_the_deleted_values() -> None:
    model = partial(4, **{"partial-update.remove-record-on-delete": "true"})
    assert both(model, (1, 3, 5, 7), ("-D", 1, 2, 2, X)) == ("-D", 1, {"f0": 1, "f1": 2, "f2": 2, "f3": X})
    assert both(model, (1, 3, 5, 7), ("-D", 1, 2, 2, X), (1, X, X, 9)) == ("+I", 2, {"f0": 1, "f1": 2, "f2": 2, "f3": 9})
    assert both(model, (1, 3, 5, 7), ("-D", 1, 2, 2, X), ("-U", 1, 0, 0, 0)) == ("+I", 2, {"f0": 1, "f1": 2, "f2": 2, "f3": X})


def test_ignored_deletes_still_seed_a_row() -> None:
    model = partial(2, **{"ignore-delete": "true"})
    assert row(model, ("-D", 1, 5), (1, X)) == (1, 5)
    assert both(model, ("-D", 1, 5), ("-D", 1, 6)) == ("-D", 0, {"f0": 1, "f1": 5})


def aggregating(types: dict[str, str], functions: dict[str, str] | None = None, **options: Any) -> Model:
    chosen = {f"fields.{name}.aggregate-function": function for name, function in (functions or {}).items()}
    return Model({"k": "INT", **types}, ("k",), {"merge-engine": "aggregation", **chosen, **named(options)})


def test_aggregation_folds_each_column_by_its_function() -> None:
    model = aggregating({"a": "INT", "b": "INT", "c": "INT", "d": "INT"}, {"b": "sum"})
    model.options["fields.default-aggregate-function"] = "first_non_null_value"
    assert row(model, (1, X, 1, 1, 1), (1, 2, X, 2, 2), (1, 3, 3, X, 3), (1, 4, 4, 4, X), (1, 5, 5, 5, 5)) == (1, 2, 13, 1, 1)


@pytest.mark.parametrize("delimiter", [",", "-", "/"])
def test_listagg_joins(delimiter: str) -> None:
    model = aggregating({"s": "STRING"}, {"s": "listagg"}, **{"fields.s.list-agg-delimiter": delimiter})
    assert row(model, *((1, str(i)) for i in range(1, 6))) == (1, delimiter.join("12345"))
    assert row(model, (1, " "), (1, "\u3000\u2000"), (1, "a"), (1, X), (1, ""), (1, "b")) == (1, f"a{delimiter}b")
    assert row(model, (1, X), (1, ""), (1, " ")) == (1, "")


def test_listagg_distinct_appends_unseen_tokens_only() -> None:
    model = aggregating({"s": "STRING"}, {"s": "listagg"}, **{"fields.s.distinct": "true"})
    assert row(model, *((1, user) for user in ("user1", "user2", "user1", "user3"))) == (1, "user1,user2,user3")
    assert row(model, (1, "abc,def,asd"), (1, "ab,xy")) == (1, "abc,def,asd,ab,xy")
    pairs = aggregating({"s": "STRING"}, {"s": "listagg"}, **{"fields.s.distinct": "true", "fields.s.list-agg-delimiter": ";"})
    assert row(pairs, (1, "k1=v1;k2=v2"), (1, "k1=v1;k3=v3")) == (1, "k1=v1;k2=v2;k3=v3")


def test_aggregation_may_remove_on_delete_and_builds_on_the_deleted_values() -> None:
    model = aggregating({"n": "INT"}, {"n": "sum"}, **{"aggregation.remove-record-on-delete": "true"})
    assert both(model, (1, 3), ("-D", 1, 5), (1, 2)) == ("+I", 2, {"k": 1, "n": 7})
    assert both(model, (1, 3), ("-D", 1, 5)) == ("-D", 1, {"k": 1, "n": 5})


@pytest.mark.parametrize(("kind", "bits"), [("TINYINT", 8), ("SMALLINT", 16), ("INT", 32), ("BIGINT", 64)])
def test_a_sum_or_product_that_overflows_is_an_error(kind: str, bits: int) -> None:
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    total = aggregating({"n": kind}, {"n": "sum"})
    refused(total, (1, most), (1, 1))
    refused(total, (1, most), (1, 1), (1, -5))
    refused(total, (1, 0), ("-U", 1, least))
    refused(total, ("-U", 1, least), (1, 0))
    assert row(total, (1, -1), ("-U", 1, least)) == (1, most)
    product = aggregating({"n": kind}, {"n": "product"})
    refused(product, (1, most // 2), (1, 3))
    refused(product, (1, least), ("-U", 1, -1))
    refused(product, (1, 4), ("-U", 1, 0))
    assert row(product, (1, most // 3), (1, 3)) == (1, most // 3 * 3)


def test_a_decimal_that_overflows_is_an_error() -> None:
    for precision in (5, 18, 19, 38):
        most = Decimal("9" * (precision - 2) + ".99")
        model = aggregating({"n": f"DECIMAL({precision},2)"}, {"n": "sum"})
        assert row(model, (1, most), (1, most.copy_negate()), (1, most)) == (1, most)
        assert row(model, ("-U", 1, most), ("-U", 1, Decimal("-0.01"))) == (1, Context(prec=50).subtract(Decimal("0.01"), most))
        refused(model, (1, most), (1, Decimal("0.01")))


def test_sum_and_product_take_values_back() -> None:
    product, total = aggregating({"n": "INT"}, {"n": "product"}), aggregating({"n": "INT"}, {"n": "sum"})
    assert row(product, (1, 10), ("-U", 1, 5)) == (1, 2)
    assert row(product, ("-U", 1, 5), ("-U", 1, 5)) == (1, X)
    assert row(product, (1, -7), ("-U", 1, 2)) == (1, -3)
    assert row(total, ("-U", 1, 5), ("-U", 1, X)) == (1, -5)
    decimal = aggregating({"n": "DECIMAL(5,2)"}, {"n": "product"})
    assert row(decimal, (1, Decimal("2.55")), (1, Decimal("0.50"))) == (1, Decimal("1.28"))


@pytest.mark.parametrize("function", ["max", "min", "first_value", "first_non_null_value"])
def test_functions_that_take_nothing_back_say_so(function: str) -> None:
    model = aggregating({"n": "INT"}, {"n": function})
    refused(model, (1, 1), ("-U", 1, 1))
    model.options["fields.n.ignore-retract"] = "true"
    assert row(model, (1, 1), ("-U", 1, 1)) == (1, 1)


def test_collect_keeps_all_or_each_once() -> None:
    plain, distinct = (aggregating({"a": "ARRAY<INT>"}, {"a": "collect"}, **{"fields.a.distinct": flag}) for flag in ("false", "true"))
    assert row(plain, (1, [1, 1, 2]), (1, [2, 3])) == (1, [1, 1, 2, 2, 3])
    assert row(distinct, (1, [1, 1, 2]), (1, [2, 3])) == (1, [1, 2, 3])
    assert row(distinct, (1, [1, 1, X, X]), (1, X)) == (1, [1, X])
    assert row(plain, (1, [1, 1, 2]), ("-U", 1, [1, 3]), (1, [3])) == (1, [1, 2, 3])
    assert row(plain, ("-U", 1, [1]), ("-U", 1, [1])) == (1, X)


def test_merge_map_lets_later_entries_win() -> None:
    model = aggregating({"m": "MAP<INT, STRING>"}, {"m": "merge_map"})
    merged = both(model, (1, [(1, "A")]), (1, [(1, "A"), (2, "B")]), (1, [(1, "a"), (3, "c")]))
    assert sorted(merged[2]["m"]) == [(1, "a"), (2, "B"), (3, "c")]
    assert row(model, (1, [(1, "a"), (2, "B"), (3, "c")]), ("-U", 1, [(1, "A"), (2, "A")])) == (1, [(3, "c")])


def test_functions_follow_paimons_order_of_floats() -> None:
    nan, types = float("nan"), {"a": "DOUBLE", "b": "FLOAT"}
    most, least = aggregating(types, {"a": "max", "b": "max"}), aggregating(types, {"a": "min", "b": "min"})
    both(most, (1, -0.0, 1.0), (1, 0.0, nan), (1, -0.0, float("inf")))
    both(least, (1, 0.0, nan), (1, -0.0, X), (1, 0.0, 2.5))


@pytest.mark.parametrize("function", ["sum", "product"])
@pytest.mark.parametrize("kind", ["BIGINT", "DOUBLE", "FLOAT", "DECIMAL(38,3)"])
def test_keys_with_hundreds_of_versions_are_folded_step_by_step(function: str, kind: str) -> None:
    model = aggregating({"n": kind}, {"n": function})
    numbers = {"BIGINT": (1, -1, 1), "DOUBLE": (1.1, 0.9, -1.0), "FLOAT": (1.5, 0.5, 1.25)}
    cycle = numbers.get(kind, (Decimal("1.500"), Decimal("0.700"), Decimal("-1.000")))
    keys = [
        records(model, *(("-U" if at % 7 == 5 else "+I", key, X if at % 11 == 3 else cycle[at % 3]) for at in range(size)))
        for key, size in enumerate((300, 2, 33, 40, 150))
    ]
    assert [shown(record, model.types) for record in fold(model, *keys)] == [shown(model.merge(key), model.types) for key in keys]


def test_a_long_sum_that_overflows_on_its_way_is_an_error() -> None:
    for kind, most in (("BIGINT", 2**63 - 1), ("TINYINT", 127)):
        model = aggregating({"n": kind}, {"n": "sum"})
        zeros = [(1, 0)] * 60
        refused(model, *zeros, (1, most), (1, 1), (1, -1), *zeros)
        assert row(model, *zeros, (1, most), (1, -1), (1, 1), *zeros) == (1, most)


LINES = {"rows": "ARRAY<ROW<a INT, b INT, t STRING>>"}


def line(a: Any, b: Any, t: Any) -> dict[str, Any]:
    return {"a": a, "b": b, "t": t}


def nested(function: str, **options: str) -> Model:
    return aggregating(LINES, {"rows": function}, **{f"fields.rows.{name.replace('_', '-')}": value for name, value in options.items()})


def lines_of(model: Model, *versions: Any) -> list[tuple[Any, ...]]:
    """The merged lines as tuples, sorted: their order is not promised."""
    found = row(model, *((1, version) for version in versions))[1]
    return sorted((tuple(one.values()) for one in found), key=repr)


def test_nested_rows_are_one_if_all_parts_of_their_key_are_equal() -> None:
    model = nested("nested_update", nested_key="a,b")
    merged = lines_of(model, [line(1, 1, "x"), line(1, 2, "y")], [line(1, 2, "z"), line(2, 1, "w")])
    assert merged == [(1, 1, "x"), (1, 2, "z"), (2, 1, "w")]
    assert lines_of(nested("nested_update", nested_key="a"), [line(1, 1, "x"), line(1, 2, "y")], [line(2, 2, "z")]) == [
        (1, 2, "y"),
        (2, 2, "z"),
    ]


def test_nested_rows_with_a_null_in_their_key_are_ignored_if_asked() -> None:
    model = nested("nested_update", nested_key="a,b", nested_key_null_strategy="ignore")
    assert lines_of(model, [line(1, 1, "x"), line(1, X, "y")], [line(X, 1, "z"), line(2, 1, "w"), X]) == [(1, 1, "x"), (2, 1, "w")]


def test_of_equal_nested_keys_the_greatest_sequence_stays() -> None:
    model = nested("nested_update", nested_key="a", nested_sequence_field="b")
    versions = (
        [line(1, 5, "new"), line(2, X, "first"), line(3, 1, "x")],
        [line(1, 4, "late"), line(2, 0, "known"), line(3, 1, "same, later")],
    )
    assert lines_of(model, *versions) == [(1, 5, "new"), (2, 0, "known"), (3, 1, "same, later")]
    assert lines_of(model, *reversed(versions)) == [(1, 5, "new"), (2, 0, "known"), (3, 1, "x")]


def test_each_field_of_a_nested_row_is_its_last_that_is_not_null() -> None:
    model = nested("nested_partial_update", nested_key="a")
    merged = lines_of(model, [line(1, 1, X), line(2, X, "p")], [line(1, X, "x"), line(2, 7, X)], [line(3, X, X), line(1, 2, X)])
    assert merged == [(1, 2, "x"), (2, 7, "p"), (3, X, X)]


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([(1, 1, [9]), ("-D", 1, 2, [1, 1, 2]), (1, X, [5])], [1, 1, 2]),
        ([(1, 1, [9]), ("-D", 1, 2, [1, 1, 2]), (1, 3, X)], [1, 2]),
        ([(1, 1, [9]), ("-D", 1, 2, [1, 1, 2]), (1, 3, [2, 3])], [1, 2, 3]),
        ([(1, 1, [9]), ("-D", 1, 2, [1, 1, 2]), (1, 3, [3]), ("-U", 1, 4, [1])], [2, 3]),
        ([(1, 1, [1, 1]), ("-U", 1, 2, [1]), (1, 3, [1])], [1]),
        ([(1, 1, [1, 2]), (1, 2, [2]), ("-U", 1, 3, [2]), (1, 4, [1])], [1]),
    ],
)
def test_a_delete_that_replaces_a_row_leaves_its_duplicates_until_something_is_added(versions: list[Any], expected: list[int]) -> None:
    options = {
        "merge-engine": "partial-update",
        "partial-update.remove-record-on-sequence-group": "g",
        "fields.g.sequence-group": "a",
        "fields.a.aggregate-function": "collect",
        "fields.a.distinct": "true",
    }
    model = Model({"k": "INT", "g": "INT", "a": "ARRAY<INT>"}, ("k",), options)
    assert row(model, *versions)[2] == expected


def test_listagg_of_a_last_key_without_texts_is_null() -> None:
    model = aggregating({"s": "STRING"}, {"s": "listagg"})
    histories = [records(model, (1, "a"), (1, "b")), records(model, (2, X), (2, X))]
    assert [record[2]["s"] for record in fold(model, *histories)] == ["a,b", X]


@pytest.mark.parametrize("engine", ["deduplicate", "first-row", "partial-update", "aggregation"])
def test_a_schema_makes_its_merge_function_once(engine: str) -> None:
    schema = build_schema("id INT, n INT", primary_keys=["id"], options={"bucket": "1", "merge-engine": engine})
    assert merge_function_for(schema) is merge_function_for(schema)
    other = schema.model_copy(update={"options": {**schema.options, "ignore-delete": "true"}})
    assert merge_function_for(other) is not merge_function_for(schema)
