"""Aggregate functions value by value, in plain Python: what the functions over whole columns must give.

A map is a list of pairs here.
"""

from __future__ import annotations

import math
import struct
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from pyroaring import BitMap

Row = dict[str, Any]
INT_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


class CannotMerge(Exception):
    """What raises in Paimon."""


def order_of(value: Any, kind: str) -> Any:
    """Something that compares as the value does: null first, NaN last, -0.0 before 0.0."""
    if value is None:
        return (0,)
    if kind in {"FLOAT", "DOUBLE"}:
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value, not math.isnan(value) and math.copysign(1, value) > 0)
    return (1, value.encode() if isinstance(value, str) else value)


class Aggregator:
    """One column of one key: ``agg`` and ``retract`` as Paimon's aggregators do them."""

    def __init__(self, name: str, kind: str, options: dict[str, str], function: str) -> None:
        self.name, self.kind, self.options = name, kind, options
        self.function = {"first_not_null_value": "first_non_null_value"}.get(function, function)
        self.started = False

    def option(self, suffix: str, default: str = "") -> str:
        return self.options.get(f"fields.{self.name}.{suffix}", default)

    def agg(self, acc: Any, value: Any) -> Any:
        return getattr(self, "_" + self.function)(acc, value)

    def agg_reversed(self, acc: Any, value: Any) -> Any:
        return self.agg(acc, value) if self.function == "collect" else self.agg(value, acc)

    def retract(self, acc: Any, value: Any) -> Any:
        if self.option("ignore-retract", "false") == "true":
            return acc
        method = getattr(self, f"_retract_{self.function}", None)
        if method is None:
            raise CannotMerge(self.function)
        return method(acc, value)

    def fit(self, value: Any) -> Any:
        """A number in the column's type."""
        if self.kind in INT_BITS:
            if not -(1 << INT_BITS[self.kind] - 1) <= value < 1 << INT_BITS[self.kind] - 1:
                raise CannotMerge("overflow")
            return value
        if self.kind == "FLOAT":
            try:
                return struct.unpack("f", struct.pack("f", value))[0]
            except OverflowError:
                return math.copysign(math.inf, value)
        if self.kind.startswith("DECIMAL"):
            precision, scale = (int(part) for part in self.kind[len("DECIMAL(") : -1].split(","))
            rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=120))
            if rounded.copy_abs() >= Decimal(10) ** (precision - scale):
                raise CannotMerge("overflow")
            return rounded
        return value

    def _sum(self, acc: Any, value: Any) -> Any:
        return value if acc is None else acc if value is None else self.fit(exact_add(acc, value))

    def _retract_sum(self, acc: Any, value: Any) -> Any:
        if value is None:
            return acc
        negated = value.copy_negate() if isinstance(value, Decimal) else -value
        return self.fit(negated if acc is None else exact_add(acc, negated))

    def _product(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return value if acc is None else acc
        return self.fit(Context(prec=120).multiply(acc, value) if isinstance(acc, Decimal) else acc * value)

    def _retract_product(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return acc
        if isinstance(acc, float):
            if value == 0:
                return math.nan if acc == 0 or math.isnan(acc) else math.copysign(math.inf, acc) * math.copysign(1, value)
            return self.fit(acc / value)
        if value == 0:
            raise CannotMerge("division by zero")
        if isinstance(acc, Decimal):
            return self.fit(Context(prec=38, rounding=ROUND_HALF_UP).divide(acc, value))
        return self.fit(abs(acc) // abs(value) * (1 if (acc < 0) == (value < 0) else -1))

    def _max(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return value if acc is None else acc
        return acc if order_of(acc, self.kind) >= order_of(value, self.kind) else value

    def _min(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return value if acc is None else acc
        return acc if order_of(acc, self.kind) < order_of(value, self.kind) else value

    def _bool_and(self, acc: Any, value: Any) -> Any:
        return value if acc is None else acc if value is None else acc and value

    def _bool_or(self, acc: Any, value: Any) -> Any:
        return value if acc is None else acc if value is None else acc or value

    def _last_value(self, acc: Any, value: Any) -> Any:
        return value

    def _retract_last_value(self, acc: Any, value: Any) -> Any:
        return None

    def _last_non_null_value(self, acc: Any, value: Any) -> Any:
        return acc if value is None else value

    def _retract_last_non_null_value(self, acc: Any, value: Any) -> Any:
        return acc if value is None else None

    def _first_value(self, acc: Any, value: Any) -> Any:
        if not self.started:
            self.started = True
            return value
        return acc

    def _first_non_null_value(self, acc: Any, value: Any) -> Any:
        if not self.started and value is not None:
            self.started = True
            return value
        return acc

    def _listagg(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return value if acc is None else acc
        if not value.strip():
            return acc
        if not acc.strip():
            return value
        delimiter = self.option("list-agg-delimiter", ",")
        if self.option("distinct", "false") != "true":
            return acc + delimiter + value
        seen = acc.split(delimiter)
        for token in value.split(delimiter):
            if token and token not in seen:
                seen.append(token)
                acc += delimiter + token
        return acc

    def _collect(self, acc: Any, value: Any) -> Any:
        if acc is None and value is None:
            return None
        joined = [*(acc or []), *(value or [])]
        return joined if self.option("distinct", "false") != "true" else unique(joined)

    def _retract_collect(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return acc
        left = list(acc)
        for element in value:
            at = next((i for i, other in enumerate(left) if same(other, element)), None)
            if at is not None:
                del left[at]
        return left

    def _merge_map(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return value if acc is None else acc
        return list({**dict(acc), **dict(value)}.items())

    def _retract_merge_map(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return acc
        gone = dict(value)
        return [(key, item) for key, item in acc if key not in gone]

    def _merge_map_with_keytime(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return value if acc is None else acc
        held = dict(acc)

        def time(row: Row) -> Any:
            return row[self.option("ts-field") or list(row)[-1]]

        for key, row in value:
            if row is None:
                held.pop(key, None)
            elif time(row) is not None and (key not in held or ((held[key] and time(held[key])) or "") < time(row)):
                held[key] = row
        return list(held.items())

    def nested_rows(self, rows: Any) -> list[Row]:
        keys = [key for key in self.option("nested-key").split(",") if key]
        strategy = self.option("nested-key-null-strategy", "merge")
        kept = []
        for row in rows or []:
            if row is None:
                continue
            if strategy != "merge" and any(row[key] is None for key in keys):
                if strategy == "error":
                    raise CannotMerge("null in nested key")
                continue
            kept.append(row)
        return kept

    def _nested_update(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return value if acc is None else acc
        keys = [key for key in self.option("nested-key").split(",") if key]
        sequence = [key for key in self.option("nested-sequence-field").split(",") if key]
        limit = int(self.option("count-limit", "1000000"))
        held: list[Row] = []
        old = self.nested_rows(acc)
        for number, row in enumerate([*old, *self.nested_rows(value)]):
            at = next((i for i, other in enumerate(held) if all(same(other[k], row[k]) for k in keys)), None) if keys else None
            if at is None:
                if number < len(old) or len(held) < limit:
                    held.append(row)
            elif [order_of(row[s], "") for s in sequence] >= [order_of(held[at][s], "") for s in sequence]:
                held[at] = row
        return held

    def _retract_nested_update(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return acc
        keys = [key for key in self.option("nested-key").split(",") if key]
        return [
            row
            for row in self._nested_update(acc, [])
            if not any(same([row[k] for k in keys or row], [other[k] for k in keys or row]) for other in self.nested_rows(value))
        ]

    def _nested_partial_update(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return value if acc is None else acc
        keys = self.option("nested-key").split(",")
        held: list[Row] = []
        for row in [*self.nested_rows(acc), *self.nested_rows(value)]:
            at = next((i for i, other in enumerate(held) if all(same(other[k], row[k]) for k in keys)), None)
            if at is None:
                held.append(dict(row))
            else:
                held[at] |= {name: item for name, item in row.items() if item is not None}
        return held

    def _rbm32(self, acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return value if acc is None else acc
        union = BitMap.deserialize(acc) | BitMap.deserialize(value)
        union.run_optimize()
        return union.serialize()


def exact_add(one: Any, other: Any) -> Any:
    return Context(prec=120).add(one, other) if isinstance(one, Decimal) else one + other


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


def unique(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(same(value, other) for other in found):
            found.append(value)
    return found
