"""Translation of ``pyarrow.compute.Expression`` to conditions.

Python has no access to the tree of an expression, so this module pickles it. Arrow writes the expression as an IPC file.
Its schema metadata is the tree in prefix order (``call``, ``field_ref``, ``literal``, ``options``, ``end``); its columns are
the literals and options with their exact types.
"""

# The metadata repeats its keys, which pyarrow's dict of metadata would drop: read it through the Arrow C data interface.

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.column_type import ColumnType, Kind
from fileindex.base.errors import InvalidFilter
from fileindex.predicate.tree import ColumnRef, Op
from pyspark_paimon.filter.arrow_values import literal_of_scalar
from pyspark_paimon.filter.ast import (
    MIRRORED,
    And,
    Casting,
    Comparison,
    Computation,
    ComputedCondition,
    Condition,
    Constant,
    GivenValue,
    Membership,
    NanTest,
    Not,
    NullTest,
    Or,
    Prefix,
    Term,
    Truth,
)
from pyspark_paimon.filter.sql_terms import like

_OPS = {
    "equal": Op.EQ,
    "not_equal": Op.NE,
    "less": Op.LT,
    "less_equal": Op.LE,
    "greater": Op.GT,
    "greater_equal": Op.GE,
}
_TESTS = {"is_null", "is_valid", "is_nan", "is_in", "starts_with", "match_like"}
_FUNCTIONS = {
    **{name: op.value for name, op in _OPS.items()},
    **{f"{name}{checked}": sign for name, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*")) for checked in ("", "_checked")},
    "divide": "quotient",
    "divide_checked": "quotient",
    "negate": "negative",
    "negate_checked": "negative",
    "abs": "abs",
    "abs_checked": "abs",
    "coalesce": "coalesce",
    "invert": "not",
    "and_kleene": "and",
    "or_kleene": "or",
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
    "match_substring": "contains",
    "ends_with": "endswith",
    "starts_with": "startswith",
    "match_like": "like",
}
_CASTS = (
    *(ColumnType(kind) for kind in (Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DOUBLE, Kind.DATE)),
    ColumnType(Kind.VARCHAR, length=2**31 - 1),
    *(ColumnType(Kind.TIMESTAMP, precision=precision) for precision in (3, 6, 9)),
)
_NULL_MATCHES, _NULL_IS_SKIPPED = 0, 1


@dataclass(frozen=True)
class _Call:
    name: str
    arguments: tuple[_Node, ...]
    options: dict[str, Any]


@dataclass(frozen=True)
class _Value:
    scalar: Any


_Node = _Call | _Value | ColumnRef
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
    return _translate(expression, _condition)


def arrow_term(expression: pc.Expression, reference: Callable[[str], ColumnRef]) -> Term:
    """Return the unbound term of an Arrow expression.

    reference: Resolver of the column names in the expression.
    Raises ``InvalidFilter`` as ``arrow_condition`` does.
    """
    return _translate(expression, lambda tree: _term(_read(tree, reference)))


def _read(node: _Node, reference: Callable[[str], ColumnRef]) -> _Node:
    match node:
        case ColumnRef(name, None):
            return reference(name)
        case _Call(name, arguments, options):
            return _Call(name, tuple(_read(argument, reference) for argument in arguments), options)
    return node


def _translate(expression: pc.Expression, use: Callable[[_Node], T]) -> T:
    """Parse the pickled expression and return ``use(tree)``."""
    try:
        _, (buffer,) = expression.__reduce__()
        with pa.ipc.open_file(buffer) as reader:
            batch = reader.get_batch(0)
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        raise InvalidFilter(f"the expression {_shown(expression)} cannot be read: {error}") from error
    tokens = _metadata(batch.schema)
    try:
        tree = _node(tokens, *next(tokens), batch)
        return use(tree)
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


def _node(tokens: Iterator[tuple[str, str]], kind: str, value: str, batch: Any) -> _Node:
    if kind == "literal":
        return _Value(batch.column(int(value))[0])
    if kind == "field_ref":
        return ColumnRef(value)
    if kind != "call":
        raise InvalidFilter(f"a reference of kind '{kind}' is not a column name; write the column's name")
    arguments: list[_Node] = []
    options: dict[str, Any] = {}
    for following, text in tokens:
        if following == "end":
            return _Call(value, tuple(arguments), options)
        if following == "options":
            scalar = batch.column(int(text))[0]
            options = {name: scalar[name] for name in scalar.type.names}
        else:
            arguments.append(_node(tokens, following, text, batch))
    raise InvalidFilter(f"the serialized call of '{value}' is incomplete")


def _condition(node: _Node) -> Condition:
    match node:
        case ColumnRef():
            return Truth(node)
        case _Value(scalar):
            return Constant(_boolean(scalar))
        case _Call(name, (left, right), _) if name in _OPS:
            return _comparison(_OPS[name], left, right)
        case _Call("and_kleene" | "and", arguments, _):
            return And(tuple(_condition(argument) for argument in arguments))
        case _Call("or_kleene" | "or", arguments, _):
            return Or(tuple(_condition(argument) for argument in arguments))
        case _Call("invert", (child,), _):
            return Not(_condition(child))
        case _Call(name, (ColumnRef() | _Call("map_lookup", _, _) as argument,), options) if name in _TESTS:
            return _test(name, _column(argument), options)
    return ComputedCondition(_term(node))


def _comparison(op: Op, left: _Node, right: _Node) -> Condition:
    if isinstance(right, _Value) and _is_column(left):
        return Comparison(_column(left), op, literal_of_scalar(right.scalar))
    if isinstance(left, _Value) and _is_column(right):
        return Comparison(_column(right), MIRRORED[op], literal_of_scalar(left.scalar))
    return ComputedCondition(Computation(op.value, (_term(left), _term(right))))


def _is_column(node: _Node) -> bool:
    return isinstance(node, ColumnRef) or (isinstance(node, _Call) and node.name == "map_lookup")


def _term(node: _Node) -> Term:
    """Translate a node to a term.

    The rules are the same as for SQL text (Spark's ANSI mode): integer overflow is an error, and integer division truncates
    towards zero.
    """
    if _is_column(node):
        return _column(node)
    if isinstance(node, _Value):
        return GivenValue(literal_of_scalar(node.scalar))
    assert isinstance(node, _Call)
    options = node.options
    arguments = tuple(map(_term, node.arguments))
    match node.name:
        case "cast":
            return Casting(arguments[0], _column_type(options["to_type"].type))
        case "match_substring" | "ends_with" | "starts_with" | "match_like" if not options["ignore_case"].as_py():
            escape = (GivenValue("\\"),) if node.name == "match_like" else ()
            return Computation(_FUNCTIONS[node.name], (*arguments, GivenValue(options["pattern"].as_py()), *escape))
        case "utf8_trim" | "utf8_ltrim" | "utf8_rtrim" if options["characters"].as_py() == " ":
            return Computation(node.name.removeprefix("utf8_"), arguments)
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
        case "is_null" if not options or not options["nan_is_null"].as_py():
            return Computation("isnull", arguments)
        case "is_nan":
            return Computation("=", (*arguments, GivenValue(math.nan)))
        case name if name in _FUNCTIONS:
            return Computation(_FUNCTIONS[name], arguments)
    raise InvalidFilter(f"'{node.name}' is not supported in filters")


def _column_type(kind: pa.DataType) -> ColumnType:
    found = next((column_type for column_type in _CASTS if column_type.arrow == kind), None)
    if found is None and pa.types.is_decimal128(kind):
        found = ColumnType(Kind.DECIMAL, precision=kind.precision, scale=kind.scale)
    if found is None:
        raise InvalidFilter(f"a cast to {kind} is not supported in filters")
    return found


def _test(name: str, column: ColumnRef, options: dict[str, Any]) -> Condition:
    match name:
        case "is_null":
            null = NullTest(column)
            return Or((null, NanTest(column))) if options and options["nan_is_null"].as_py() else null
        case "is_valid":
            return Not(NullTest(column))
        case "is_nan":
            return Comparison(column, Op.EQ, math.nan)  # unlike Spark's, unknown for null
        case "is_in":
            return _membership(column, options["value_set"], int(options["null_matching_behavior"].as_py()))
        case "starts_with" if not options["ignore_case"].as_py():
            return Prefix(column, options["pattern"].as_py())
        case "match_like" if not options["ignore_case"].as_py():
            return like(column, options["pattern"].as_py())
    raise InvalidFilter(f"'{name}' with these options is not supported in filters")


def _membership(column: ColumnRef, values: Any, null_matching: int) -> Condition:
    listed = values.values
    if null_matching not in {_NULL_MATCHES, _NULL_IS_SKIPPED}:
        return Membership(column, listed)
    # Arrow's is_in returns false for null, not unknown.
    found = And((Not(NullTest(column)), Membership(column, listed.drop_null())))
    return Or((NullTest(column), found)) if listed.null_count and null_matching == _NULL_MATCHES else found


def _column(node: _Node) -> ColumnRef:
    match node:
        case ColumnRef():
            return node
        case _Call("map_lookup", (ColumnRef(name, None),), options) if isinstance(key := options["query_key"].as_py(), str):
            if options["occurrence"].as_py() in {0, 1}:  # first or last: a Paimon map has each key once
                return ColumnRef(name, key)
            raise InvalidFilter("map_lookup must have occurrence 'first' or 'last'")
        case _Call(name, _, _):
            raise InvalidFilter(f"'{name}' is used where a column is expected")
    raise InvalidFilter("a literal is used where a column is expected")


def _boolean(scalar: Any) -> bool | None:
    value = scalar.as_py()
    if value is None or isinstance(value, bool):
        return value
    raise InvalidFilter(f"the literal {value!r} is not a condition")


__all__ = ["arrow_condition", "arrow_term"]
