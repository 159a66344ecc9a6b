"""Parameters of filters.

Parameters have the values of ``params``, or of long IN lists. Long IN lists are cut out of the text before it is parsed, so
that the parser does not build a node for each literal.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from lsm.rows_in.python_types import Family, InvalidValue, family_of
from lsm.rows_in.python_values import python_array
from paimon_base.errors import InvalidFilter
from paimon_base.thresholds import thresholds
from pyspark_paimon.filter.arrow_values import literal_of_scalar
from pyspark_paimon.filter.ast import Literal, literal_from_python

_NUMBERS = r"-?\d+(?:\s*,\s*-?\d+){%d,}"
_TEXTS = r"'[^'\\]*'(?:\s*,\s*'[^'\\]*'){%d,}"
_OWN = "_listed_"
GIVEN = "given"
"""Key of a placeholder's value in the ``meta`` of its node."""


def extract_long_lists(text: str) -> tuple[str, dict[str, Any]]:
    """Replace long IN lists in ``text`` by parameters.

    Returns the new text, and the values of each parameter. Only lists of whole numbers or of plain texts are replaced.

    >>> text, lists = extract_long_lists(f"k IN ({', '.join(map(str, range(100)))}) AND b")
    >>> text, len(lists["_listed_0"])
    ('k IN :_listed_0 AND b', 100)
    """
    if len(text) < 2 * thresholds.listed_literals:
        return text, {}
    lists: dict[str, Any] = {}

    def replaced(match: re.Match[str]) -> str:
        numbers, texts = match["numbers"], match["texts"]
        if numbers is None and texts is None:
            return match[0]
        name = f"{_OWN}{len(lists)}"
        lists[name] = tuple(map(int, numbers.split(","))) if numbers is not None else tuple(re.findall(r"'([^']*)'", texts))
        return f"IN :{name}"

    return _lists(thresholds.listed_literals).sub(replaced, text), lists


@cache
def _lists(least: int) -> re.Pattern[str]:
    """Return a pattern that finds long IN lists."""
    # Texts, quoted names and comments match first: they may contain something that looks like an IN list.
    return re.compile(
        r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/"
        rf"|\bIN\s*\(\s*(?P<numbers>{_NUMBERS % (least - 1)})\s*\)|\bIN\s*\(\s*(?P<texts>{_TEXTS % (least - 1)})\s*\)",
        re.IGNORECASE | re.DOTALL,
    )


def parameter_values(params: Mapping[str, object]) -> dict[str, Any]:
    """Convert parameters to literals, tuples of literals or Arrow arrays.

    Raises ``InvalidFilter`` for a value that no column can be compared with.
    """
    return {name: _value(name, value) for name, value in params.items()}


def _value(name: Any, value: Any) -> Any:
    if not isinstance(name, str):
        raise InvalidFilter(f"the keys of params must be str, not {name!r}")
    if name.startswith(_OWN):
        raise InvalidFilter(f"a parameter cannot be named '{name}': names that begin with '{_OWN}' are reserved")
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return value
    if hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__"):
        return pa.chunked_array(value) if hasattr(value, "__arrow_c_stream__") else pa.array(value)
    if isinstance(value, np.ndarray) or type(value).__module__.split(".")[0] == "pandas":
        if getattr(value, "ndim", 0) == 1:
            return _array(name, value)
    elif isinstance(value, Collection) and not isinstance(value, str | bytes | bytearray | Mapping):
        return tuple(map(_literal, value))
    return _literal(value)


def _literal(value: Any) -> Literal:
    """Convert a Python, NumPy or pandas scalar to a literal."""
    if isinstance(value, pa.Scalar):
        return literal_of_scalar(value)
    if family_of(type(value)) is Family.NULL:
        return None
    if isinstance(value, np.datetime64):
        try:
            return literal_of_scalar(python_array([value], None)[0])
        except InvalidValue as error:
            raise InvalidFilter(error.reason) from error
    return literal_from_python(value.item() if isinstance(value, np.generic) else value)


def _array(name: str, value: Any) -> Any:
    try:
        return pa.array(value, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidFilter(f"the values of parameter ':{name}' are not of one type: {error}") from error


def set_placeholders(tree: exp.Expression, values: Mapping[str, Any]) -> None:
    """Set the value of every placeholder in ``tree``.

    Raises ``InvalidFilter`` for a placeholder without a value, and for a value without a placeholder.
    """
    missing, used = [], set()
    for node in tree.find_all(exp.Placeholder):
        name = node.name
        if name not in values:
            missing.append(name or "?")
            continue
        used.add(name)
        node.meta[GIVEN] = values[name]
    if missing:
        given_names = f"; given are: {', '.join(f':{name}' for name in values if not name.startswith(_OWN))}" if values else ""
        raise InvalidFilter(
            f"the filter's parameter ':{missing[0]}' has no value: write :name, and give params={{'name': ...}}{given_names}"
        )
    unused = [name for name in values if name not in used]
    if unused:
        raise InvalidFilter(f"params has '{unused[0]}', but the filter does not use :{unused[0]}; remove it from params")


def list_values(node: object) -> Any:
    """Return the values of ``IN :name``.

    Raises ``InvalidFilter`` if the parameter is not a list.
    """
    if not isinstance(node, exp.Placeholder) or GIVEN not in node.meta:
        raise InvalidFilter("IN takes a list in parentheses or a parameter: IN :name")
    value = node.meta[GIVEN]
    if not isinstance(value, tuple | pa.Array | pa.ChunkedArray):
        raise InvalidFilter(f"parameter ':{node.name}' after IN must be a list, a tuple, a set or an Arrow array, not {value!r}")
    return value
