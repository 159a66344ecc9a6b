"""Conversion of Python values to a given Arrow type.

Nested types are converted part by part.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.rows_in.lossless_cast import first_row, lossless_cast, may_cast
from lsm.rows_in.policy import DEFAULT_POLICY, RowPolicy
from lsm.rows_in.python_types import ARROW_TYPES, CONVERSION_ERRORS, Family, InvalidValue, family_of, infer_type, without_pandas_nulls
from paimon_base.errors import InvalidArgument
from sparkexpr.values.plain_value import fixed_array
from sparkexpr.values.variant_type import is_variant_type
from sparkexpr.variant.values import variant_column

_SHOWN = 60
_FEW = 64


def python_array(values: Sequence[Any], target: pa.DataType | None, policy: RowPolicy = DEFAULT_POLICY) -> Any:
    """Convert values to an Array of type ``target``. None: the type that holds all values.

    A ChunkedArray if texts are too long for one Array. Numbers and structs that ``target`` cannot have get an inferred type where the policy
    widens types or adds fields.

    Raises:
        InvalidValue: A value would change. It is the first such value.

    >>> python_array([{"x": 1}, None], pa.struct([("x", pa.int8())])).to_pylist()
    [{'x': 1}, None]
    >>> python_array([[1], [2, 2.5]], pa.list_(pa.int32()))
    Traceback (most recent call last):
    lsm.rows_in.python_types.InvalidValue: (1, '[1]', '2.5 (float) does not fit int32: Float value 2.500000 was truncated converting to int32')
    """
    if target is None:
        target = infer_type(values)
    values, kinds = without_pandas_nulls(values)
    families = {family_of(kind) for kind in kinds}
    if is_variant_type(target):
        return _variants(values)
    if pa.types.is_nested(target) and Family.ARROW not in families:
        return _convert_nested(values, target, policy)
    groups = list(_groups(values, kinds, families))
    if not groups:
        return pa.nulls(len(values), target)
    parts, errors = [], []
    for group in groups:
        try:
            parts.append(_leaf(group, target))
        except InvalidValue as error:
            errors.append(error)
    if errors:
        if policy.widens and is_number_type(target) and (wider := _wider(values)) is not None:
            return wider
        raise min(errors, key=attrgetter("row"))
    return parts[0] if len(parts) == 1 else pc.coalesce(*parts)


def _wider(values: Sequence[Any]) -> pa.Array | None:
    """Return numbers in their inferred type. None: not only numbers."""
    try:
        array = python_array(values, None)
    except InvalidValue:
        return None
    return array if is_number_type(array.type) else None


def is_number_type(kind: pa.DataType) -> bool:
    """Return whether a type is one of integers, floats or decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


@dataclass(frozen=True)
class _Group:
    """Values of one family, with None for other values."""

    family: Family
    values: Sequence[Any]
    unit: str = ""
    zoned: bool = False

    def part(self, start: int, stop: int) -> _Group:
        return _Group(self.family, self.values[start:stop], self.unit, self.zoned)


def _groups(values: Sequence[Any], kinds: frozenset[type], families: set[Family]) -> Iterator[_Group]:
    for family in sorted(families):
        family_kinds = {kind for kind in kinds if family_of(kind) is family}
        family_values = values if len(families) == 1 else [value if type(value) in family_kinds else None for value in values]
        if family is Family.DATETIME:
            yield from _datetimes(family_values, family_kinds)
        elif family is Family.DATETIME64:
            yield from _split(family, family_values, lambda value: (np.datetime_data(value)[0], False))
        elif family is Family.ARROW:
            for kind in {value.type for value in family_values if value is not None}:
                yield _Group(
                    family, [value if value is not None and value.type == kind and value.is_valid else None for value in family_values]
                )
        else:
            yield _Group(family, family_values)


def _datetimes(values: Sequence[Any], kinds: set[type]) -> Iterator[_Group]:
    present = [value for value in values if value is not None]
    zones = set(map(attrgetter("tzinfo"), present))
    fine = any(hasattr(kind, "nanosecond") for kind in kinds)
    if not fine and zones == {None}:
        yield _Group(Family.DATETIME, values, "us")
        return

    def place(value: Any) -> tuple[str, bool]:
        return "ns" if getattr(value, "nanosecond", 0) else "us", value.utcoffset() is not None

    yield from _split(Family.DATETIME, values, place)


def _split(family: Family, values: Sequence[Any], form_of: Callable[[Any], tuple[str, bool]]) -> Iterator[_Group]:
    places = [None if value is None else form_of(value) for value in values]
    for form in sorted({value_form for value_form in places if value_form is not None}):
        yield _Group(family, [value if row_form == form else None for value, row_form in zip(values, places, strict=True)], *form)


def _leaf(group: _Group, target: pa.DataType) -> Any:
    try:
        return _convert(group, target)
    except CONVERSION_ERRORS as error:
        first = error

    row = first_row(len(group.values), lambda start, stop: _convert(group.part(start, stop), target), CONVERSION_ERRORS)
    try:
        _convert(group.part(row, row + 1), target)
    except CONVERSION_ERRORS as error:
        first = error
    value = group.values[row]
    raise InvalidValue(row, "", f"{_short(value)} ({_kind_name(value)}) does not fit {target}{_reason(first)}") from first


def _short(value: Any) -> str:
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001  # a value's own repr may raise anything
        return "a value"
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


def _kind_name(value: Any) -> str:
    zoned = getattr(value, "tzinfo", None) is not None
    return f"{type(value).__name__}{' with time zone' if zoned else ''}"


def _reason(error: Exception) -> str:
    return f": {error}" if str(error) else ""


def _convert(group: _Group, target: pa.DataType) -> Any:
    """Convert the group's values to the target type.

    Raises one of ``CONVERSION_ERRORS``.
    """
    family, values = group.family, group.values
    if family is Family.INT and pa.types.is_decimal(target):
        return _integer_decimals(values).cast(target)
    if family is Family.DECIMAL and pa.types.is_decimal(target):
        return pa.array(values, target)
    if family is Family.TEXT and pa.types.is_string(target):
        return _flat_array(values, target)
    natural = _natural(group)
    if not may_cast(natural.type, target):
        if natural.null_count == len(natural):
            return pa.nulls(len(natural), target)
        raise TypeError
    return lossless_cast(natural, target)


def _flat_array(values: Sequence[Any], arrow_type: pa.DataType) -> Any:
    # The keys of a lookup are few: without pandas a fresh process answers sooner.
    return fixed_array(values, arrow_type) if len(values) <= _FEW else pa.array(values, arrow_type)


def _natural(group: _Group) -> Any:
    """Convert the group's values to their natural Arrow type.

    Raises one of ``CONVERSION_ERRORS``.
    """
    family, values = group.family, group.values
    match family:
        case Family.INT:
            return _flat_array(values, pa.int64())
        case Family.DECIMAL:
            return pa.array(values)
        case Family.FLOAT:
            return pa.array(values, pa.float64())
        case Family.DATETIME:
            return pa.array(values, pa.timestamp(group.unit, "UTC" if group.zoned else None))
        case Family.DATETIME64:
            if group.unit not in {"D", "s", "ms", "us", "ns", "generic"}:
                raise TypeError(f"NumPy's unit '{group.unit}' has no Arrow type")
            unit = "D" if group.unit == "generic" else group.unit  # NaT alone has no unit
            missing = np.array(["NaT"], f"datetime64[{unit}]")[0]
            # A NaT without a unit is replaced, too: NumPy 2.5 warns of such values.
            plain = [missing if value is None or np.isnat(value) else value for value in values]
            return pa.array(np.array(plain, f"datetime64[{unit}]"))
        case Family.TIME:
            if any(value is not None and value.tzinfo is not None for value in values):
                raise TypeError("a time with a zone is not a time of day")
            return pa.array(values, pa.time64("us"))
        case Family.ARROW:
            array = pa.array(values)
            array.validate(full=True)
            return array
        case Family.OTHER | Family.LIST | Family.MAPPING | Family.VARIANT | Family.NULL:
            if any(value is not None for value in values):
                raise TypeError
            return pa.nulls(len(values))
    return pa.array(values, ARROW_TYPES[family])


def _integer_decimals(values: Sequence[Any]) -> Any:
    return pa.array([None if value is None else Decimal(int(value)) for value in values], pa.decimal128(38, 0))


def _variants(values: Sequence[Any]) -> Any:
    try:
        return variant_column(values)
    except InvalidArgument as error:
        row = first_row(len(values), lambda start, stop: variant_column(values[start:stop]), InvalidArgument)
        raise InvalidValue(row, "", str(error)) from error


def _convert_nested(values: Sequence[Any], target: pa.DataType, policy: RowPolicy) -> Any:
    types = pa.types
    if types.is_struct(target):
        return _structs(values, target, policy)
    if types.is_map(target):
        return _maps(values, target, policy)
    return _lists(values, target, policy)


def _refuse_others(values: Sequence[Any], accepted: frozenset[Family], target: pa.DataType) -> None:
    """Raise ``InvalidValue`` for the first value of another family."""
    wrong = {kind for kind in set(map(type, values)) if family_of(kind) not in accepted}
    if wrong:
        row, value = next((row, value) for row, value in enumerate(values) if type(value) in wrong)
        raise InvalidValue(row, "", f"{_short(value)} ({_kind_name(value)}) does not fit {target}")


def _present(values: Sequence[Any]) -> tuple[Sequence[Any], list[int], Any]:
    """Return the non-null values, list offsets and null mask."""
    if type(None) not in set(map(type, values)):
        return values, list(accumulate(map(len, values), initial=0)), None
    offsets = list(accumulate((0 if value is None else len(value) for value in values), initial=0))
    return [value for value in values if value is not None], offsets, _mask(values)


def _mask(values: Sequence[Any]) -> Any:
    return pa.array([value is None for value in values], pa.bool_()) if type(None) in set(map(type, values)) else None


def _refuse_dimensions(values: Sequence[Any], target: pa.DataType) -> None:
    if np.ndarray not in set(map(type, values)):
        return
    row = next((row for row, value in enumerate(values) if isinstance(value, np.ndarray) and value.ndim != 1), None)
    if row is not None:
        raise InvalidValue(row, "", f"an array of {values[row].ndim} dimensions does not fit {target}; give lists of lists")


def _part(
    values: Sequence[Any],
    target: pa.DataType | None,
    offsets: Sequence[int] | None,
    step: Callable[[int, int], str],
    policy: RowPolicy = DEFAULT_POLICY,
) -> Any:
    """Convert the parts of nested values.

    ``step(row, at)`` returns the path of part ``at`` of a row. ``offsets`` None means that each row has one part.
    """
    try:
        parts = python_array(values, target, policy)
    except InvalidValue as error:
        row = error.row if offsets is None else bisect_right(offsets, error.row) - 1
        raise error.inside(row, step(row, error.row if offsets is None else error.row - offsets[row])) from error
    if isinstance(parts, pa.ChunkedArray):
        raise InvalidValue(0, "", "the texts inside this column take more than 2 GiB: write fewer rows at once")
    return parts


def _lists(values: Sequence[Any], target: pa.DataType, policy: RowPolicy) -> Any:
    _refuse_others(values, frozenset({Family.NULL, Family.LIST}), target)
    _refuse_dimensions(values, target)
    present, offsets, mask = _present(values)
    if pa.types.is_fixed_size_list(target):
        policy = DEFAULT_POLICY
    elements = _part(list(chain.from_iterable(present)), target.value_type, offsets, lambda _, index: f"[{index}]", policy)
    kind = pa.list_(target.value_field.with_type(elements.type))
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, type=kind, mask=mask)
    if not pa.types.is_fixed_size_list(target):
        return lists
    wrong = next((row for row, value in enumerate(values) if value is not None and len(value) != target.list_size), None)
    if wrong is not None:
        raise InvalidValue(wrong, "", f"a list of {len(values[wrong])} elements does not fit {target}")
    return lists.cast(target)


def _maps(values: Sequence[Any], target: pa.DataType, policy: RowPolicy) -> Any:
    _refuse_others(values, frozenset({Family.NULL, Family.LIST, Family.MAPPING}), target)
    _refuse_dimensions(values, target)
    present, offsets, mask = _present(values)
    pairs = list(chain.from_iterable(value.items() if isinstance(value, Mapping) else value for value in present))
    for index, pair in enumerate(pairs if set(map(type, pairs)) - {tuple} or set(map(len, pairs)) - {2} else ()):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            row = bisect_right(offsets, index) - 1
            raise InvalidValue(
                row, f"[{index - offsets[row]}]", f"{_short(pair)} ({_kind_name(pair)}) is not a pair; give a dict, or pairs (key, value)"
            )
    keys, items = [key for key, _ in pairs], [item for _, item in pairs]
    key_array = _part(keys, target.key_type, offsets, lambda row, index: f"[key {keys[offsets[row] + index]!r:.40}]")
    if key_array.null_count:
        row = bisect_right(offsets, int(pc.index(key_array.is_null(), True).as_py())) - 1  # returns an Arrow scalar
        raise InvalidValue(row, "", "a key is null")
    item_array = _part(items, target.item_type, offsets, lambda row, index: f"[{keys[offsets[row] + index]!r:.40}]", policy)
    kind = pa.map_(target.key_field, target.item_field.with_type(item_array.type), target.keys_sorted)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), key_array, item_array, type=kind, mask=mask)


def _structs(values: Sequence[Any], target: pa.DataType, policy: RowPolicy) -> Any:
    _refuse_others(values, frozenset({Family.NULL, Family.MAPPING}), target)
    names = [field.name for field in target]
    unknown = [name for name in dict.fromkeys(chain.from_iterable(value for value in values if value is not None)) if name not in names]
    parts = [_field(values, field.name, field.type, policy) for field in target]
    fields = [field.with_type(part.type) for field, part in zip(target, parts, strict=True)]
    for name in unknown:
        part = _field(values, name, None, policy) if policy.merges and isinstance(name, str) else pa.nulls(0)
        if pa.types.is_null(part.type):  # no type that a new field could get
            row = next(row for row, value in enumerate(values) if value is not None and name in value)
            raise InvalidValue(row, "", f"field {name!r} is unknown; the fields are {', '.join(names)}")
        parts.append(part)
        fields.append(pa.field(name, part.type))
    return pa.StructArray.from_arrays(parts, fields=fields, mask=_mask(values))


def _field(values: Sequence[Any], name: str, target: pa.DataType | None, policy: RowPolicy) -> Any:
    return _part([None if value is None else value.get(name) for value in values], target, None, lambda _, __: f".{name}", policy)
