"""Translation of ``pyarrow.compute.Expression`` to conditions.

Python has no access to the tree of an expression, so this module pickles it. Arrow writes the expression as an IPC file.
Its schema metadata is the tree in prefix order (``call``, ``field_ref``, ``literal``, ``options``, ``end``); its columns are
the literals and options with their exact types.
"""

# The metadata repeats its keys, which pyarrow's dict of metadata would drop: read it through the Arrow C data interface.

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.predicate.tree import ColumnRef
from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter.arrow_values import literal_of_scalar
from pyspark_paimon.filter.ast import (
    And,
    Casting,
    Computation,
    Condition,
    GivenValue,
    Not,
    Or,
    Term,
    field_of,
    item_of,
)
from pyspark_paimon.filter.conditions import Node, among, combine, condition_of, terms_of
from sparkexpr.values.column_type import ColumnType, Kind

_FUNCTIONS = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    **{f"{name}{checked}": sign for name, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*")) for checked in ("", "_checked")},
    "divide": "quotient",
    "divide_checked": "quotient",
    "negate": "negative",
    "negate_checked": "negative",
    "abs": "abs",
    "abs_checked": "abs",
    "coalesce": "coalesce",
    "utf8_lower": "lower",
    "utf8_upper": "upper",
    "utf8_length": "length",
    "ascii_lower": "lower",
    "ascii_upper": "upper",
    "binary_length": "octet_length",
    "utf8_reverse": "reverse",
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute", "second")},
    "day_of_year": "dayofyear",
    "iso_week": "weekofyear",
}
_NAMES = re.compile(r"\.([^.\[\]\\]+)")
_PATTERNS = {"match_substring": "contains", "ends_with": "endswith", "starts_with": "startswith", "match_like": "like"}
_CONNECTIVES = {"and_kleene": "and", "and": "and", "or_kleene": "or", "or": "or", "invert": "not"}
_CASTS = (
    *(ColumnType(kind) for kind in (Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DOUBLE, Kind.DATE)),
    ColumnType(Kind.VARCHAR, length=2**31 - 1),
    *(ColumnType(Kind.TIMESTAMP, precision=precision) for precision in (3, 6, 9)),
)
_NULL_MATCHES, _NULL_IS_SKIPPED = 0, 1


Reference = Callable[[str], ColumnRef]
"""Resolver of a column's name."""
T = TypeVar("T")


def arrow_condition(expression: pc.Expression) -> Condition:
    """Return the unbound condition of an Arrow expression.

    Nulls behave as in Arrow: a comparison with null is unknown, and ``isin`` with a null among its values matches nulls.

    Raises:
        InvalidFilter: the expression calls a function that filters do not support.

    >>> arrow_condition((pc.field("k") > 3) & ~pc.field("city").is_null())
    And(children=(Comparison(column=ColumnRef(name='k', key=None), op=<Op.GT: '>'>, value=3),
                  Not(child=NullTest(column=ColumnRef(name='city', key=None)))))
    """
    return _translate(expression, ColumnRef, condition_of)


def arrow_term(expression: pc.Expression, reference: Reference) -> Term:
    """Return the unbound term of an Arrow expression.

    reference: Resolver of the column names in the expression.
    Raises ``InvalidFilter`` as ``arrow_condition`` does.
    """
    return _translate(expression, reference, _whole_term)


def _whole_term(node: Node) -> Term:
    if (terms := terms_of((node,))) is None:
        raise InvalidFilter("a test of a list is not supported here; compare with each value")
    return terms[0]


def _translate(expression: pc.Expression, reference: Reference, use: Callable[[Node], T]) -> T:
    """Parse the pickled expression and return ``use(tree)``."""
    try:
        _, (buffer,) = expression.__reduce__()
        with pa.ipc.open_file(buffer) as reader:
            batch = reader.get_batch(0)
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        raise InvalidFilter(f"the expression {_shown(expression)} cannot be read: {error}") from error
    tokens = _metadata(batch.schema)
    try:
        return use(_Reader(tokens, batch, reference).node(*next(tokens)))
    except InvalidFilter as error:
        raise InvalidFilter(f"the expression {_shown(expression)}: {error}") from error
    except (StopIteration, RecursionError, LookupError) as error:
        raise InvalidFilter(f"the expression {_shown(expression)} cannot be read; write the filter as SQL text") from error


def _shown(expression: pc.Expression) -> str:
    text = " ".join(str(expression).split())
    return text if len(text) <= 120 else text[:117] + "..."


class _ArrowSchema(ctypes.Structure):
    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield the schema's metadata pairs in order, with repeated keys."""
    # Layout of the C data interface: int32 count, then keys and values, each with an int32 length before it.
    capsule = schema.__arrow_c_schema__()
    address_of = ctypes.pythonapi.PyCapsule_GetPointer
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = address_of(capsule, b"arrow_schema")
    position = _ArrowSchema.from_address(address).metadata if address else None
    if not position:
        return
    count, position = ctypes.c_int32.from_address(position).value, position + 4
    words: list[str] = []
    for _ in range(2 * count):
        length = ctypes.c_int32.from_address(position).value
        words.append(ctypes.string_at(position + 4, length).decode())
        position += 4 + length
    yield from zip(words[::2], words[1::2], strict=True)


@dataclass(frozen=True)
class _Reader:
    """Reader of a serialized expression."""

    tokens: Iterator[tuple[str, str]]
    batch: Any
    reference: Reference

    def node(self, kind: str, value: str) -> Node:
        """Return the node that begins with a token."""
        if kind == "literal":
            return GivenValue(literal_of_scalar(self.batch.column(int(value))[0]))
        if kind == "field_ref":
            return self.reference(value)
        if kind == "nested_field_ref":
            first, *names = [next(self.tokens)[1] for _ in range(int(value))]
            return field_of(self.reference(first), names)
        if kind != "call":
            raise InvalidFilter(f"a reference of kind '{kind}' is not a column name; write the column's name")
        arguments: list[Node] = []
        options: dict[str, Any] = {}
        for following, text in self.tokens:
            if following == "end":
                return _call(value, tuple(arguments), options)
            if following == "options":
                scalar = self.batch.column(int(text))[0]
                options = {name: scalar[name] for name in scalar.type.names}
            else:
                arguments.append(self.node(following, text))
        raise InvalidFilter(f"the serialized call of '{value}' is incomplete")


def _call(name: str, arguments: tuple[Node, ...], options: dict[str, Any]) -> Node:
    if name in _CONNECTIVES:
        return combine(_CONNECTIVES[name], arguments)
    match name, arguments:
        case "is_in", (value,) if (terms := terms_of((value,))) is not None:
            return _membership(terms[0], options["value_set"], int(options["null_matching_behavior"].as_py()))
        case "map_lookup", (whole,) if (terms := terms_of((whole,))) is not None:
            if options["occurrence"].as_py() in {0, 1}:  # first or last: a Paimon map has each key once
                return item_of(terms[0], GivenValue(literal_of_scalar(options["query_key"])))
            raise InvalidFilter("map_lookup must have occurrence 'first' or 'last'")
    terms = terms_of(arguments)
    if terms is None:
        raise InvalidFilter(f"a test of a list inside '{name}' is not supported in filters")
    return _function(name, terms, options)


def _function(name: str, arguments: tuple[Term, ...], options: dict[str, Any]) -> Term:
    """Return a function call.

    The rules are the same as for SQL text (Spark's ANSI mode): integer overflow is an error, and integer division truncates
    towards zero.
    """
    match name:
        case "struct_field" if (names := _NAMES.findall(options["field_ref"].as_py())) and "[" not in options["field_ref"].as_py():
            return field_of(arguments[0], names)
        case "list_element":  # raises for a list without the element, as Spark's index does
            return Computation("item", arguments)
        case "list_value_length":
            return Computation("size", arguments)
        case "cast":
            return Casting(arguments[0], _column_type(options["to_type"].type))
        case name if name in _PATTERNS:
            if options["ignore_case"].as_py():
                raise InvalidFilter(f"'{name}' with these options is not supported in filters")
            escape = (GivenValue("\\"),) if name == "match_like" else ()
            return Computation(_PATTERNS[name], (*arguments, GivenValue(options["pattern"].as_py()), *escape))
        case "utf8_trim" | "utf8_ltrim" | "utf8_rtrim" if options["characters"].as_py() == " ":
            return Computation(name.removeprefix("utf8_"), arguments)
        case "utf8_slice_codeunits" if options["step"].as_py() == 1 and options["start"].as_py() >= 0:
            start, stop = options["start"].as_py(), options["stop"].as_py()
            size = () if stop is None or stop >= 2**31 else (GivenValue(max(stop - start, 0)),)
            return Computation("substring", (*arguments, GivenValue(start + 1), *size))
        case "binary_join_element_wise" if arguments[-1] == GivenValue(""):
            return Computation("concat", arguments[:-1])
        case "if_else":
            return Computation("case", arguments)
        case "is_valid":
            return Computation("not", (Computation("isnull", arguments),))
        case "is_null":
            null = Computation("isnull", arguments)
            return Computation("or", (null, Computation("isnan", arguments))) if options and options["nan_is_null"].as_py() else null
        case "is_nan":  # unlike Spark's, unknown for null
            return Computation("=", (*arguments, GivenValue(math.nan)))
        case name if name in _FUNCTIONS:
            return Computation(_FUNCTIONS[name], arguments)
    raise InvalidFilter(f"the function '{name}' is not supported in filters; filter the result")


def _column_type(kind: pa.DataType) -> ColumnType:
    matching_type = next((column_type for column_type in _CASTS if column_type.arrow == kind), None)
    if matching_type is None and pa.types.is_decimal128(kind):
        matching_type = ColumnType(Kind.DECIMAL, precision=kind.precision, scale=kind.scale)
    if matching_type is None:
        raise InvalidFilter(
            f"a cast to {kind} is not supported in filters; cast to a BOOLEAN, number, text, DATE or TIMESTAMP type, or filter the result"
        )
    return matching_type


def _membership(value: Term, values: Any, null_matching: int) -> Condition:
    listed = values.values
    if null_matching not in {_NULL_MATCHES, _NULL_IS_SKIPPED}:
        return among(value, listed)
    # Arrow's is_in returns false for null, not unknown.
    null = condition_of(Computation("isnull", (value,)))
    condition = And((Not(null), among(value, listed.drop_null())))
    return Or((null, condition)) if listed.null_count and null_matching == _NULL_MATCHES else condition
