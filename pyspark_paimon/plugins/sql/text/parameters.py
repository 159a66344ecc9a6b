"""Values of ``:name`` and ``?`` in a statement.

They become literals of the text, so that every statement takes them, and filters with them reach indexes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from paimon_base.errors import InvalidArgument
from paimon_base.texts import count_text
from pyspark_paimon.frames.spark_functions import text_sql
from pyspark_paimon.plugins.sql.text.words import Word, tokens_of

Parameter: TypeAlias = "bool | int | float | str | bytes | date | Decimal | Sequence[Parameter] | None"
Parameters: TypeAlias = Mapping[str, Parameter] | Sequence[Parameter]
_OPERANDS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET}


def with_parameters(text: str, args: Parameters, escapes: Callable[[], bool] = lambda: True) -> str:
    """Return a statement with literals in place of its parameters.

    Raises ``InvalidArgument`` for a parameter without a value, a value without a parameter, or one of an unsupported type.

    Args:
        text: One statement.
        args: Values by name, or by position.
        escapes: Returns whether backslashes in text literals are escapes.

    >>> with_parameters("SELECT ':a' FROM t WHERE s = :a AND n IN (:n, :n + 1)", {"a": "it's", "n": 5})
    "SELECT ':a' FROM t WHERE s = 'it''s' AND n IN (5, 5 + 1)"
    >>> with_parameters("DELETE FROM t WHERE day = ?", [date(2026, 1, 31)])
    "DELETE FROM t WHERE day = DATE'2026-01-31'"
    """
    if isinstance(args, str | bytes) or not isinstance(args, Mapping | Sequence):
        raise InvalidArgument(f"args must be a dict of values by name, or a list of values, not {args!r:.60}")
    pairs = args.items() if isinstance(args, Mapping) else enumerate(args)
    values = dict[str | int, Parameter](pairs)
    parts, end, used = list[str](), 0, set[str | int]()
    for name, start, until in _parameters(tokens_of(text), named=isinstance(args, Mapping)):
        if name not in values and isinstance(name, str) and text[start - 1 : start].isalnum():
            continue  # a field of STRUCT<date:STRING>
        if name not in values:
            shown = f"':{name}'" if isinstance(name, str) else f"'?' number {name + 1}"
            raise InvalidArgument(f"{shown} at position {start + 1} has no value in args: {', '.join(map(str, args)) or 'args is empty'}")
        used.add(name)
        literal = literal_sql(name, values[name], escapes)
        joined = _joins(text[start - 1 : start], literal[0]), _joins(literal[-1], text[until : until + 1])
        parts += [text[end:start], " " * joined[0], literal, " " * joined[1]]
        end = until
    if unused := [str(name) for name in values if name not in used and isinstance(name, int)]:
        raise InvalidArgument(f"the statement has {len(used)} '?', but args has {count_text(len(values), 'value')}: remove {len(unused)}")
    return "".join([*parts, text[end:]])


def _parameters(words: Sequence[Word], *, named: bool) -> Iterator[tuple[str | int, int, int]]:
    """Yield name or number, start and end of each parameter."""
    count = 0
    for before, word, after in zip([None, *words], words, [*words[1:], None], strict=False):
        if not named and word.kind is TokenType.PLACEHOLDER:
            yield count, word.start, word.end + 1
            count += 1
        elif named and word.kind is TokenType.COLON and after is not None and after.start == word.end + 1 and after.text.isidentifier():
            is_path = before is not None and before.kind in _OPERANDS and before.end + 1 == word.start
            if not is_path:
                yield after.text, word.start, after.end + 1


def _joins(left: str, right: str) -> bool:
    """Return whether two characters would be of one word, or begin a comment."""
    return (left == right == "-") or all(each.isalnum() or each == "_" for each in (left, right))


def literal_sql(name: str | int, value: Parameter, escapes: Callable[[], bool]) -> str:
    """Return a value as a literal of Spark SQL that filters can read, too."""
    item = getattr(value, "item", None)
    plain = item() if callable(item) and getattr(value, "shape", None) == () else value  # a NumPy scalar
    if not isinstance(plain, int) or getattr(getattr(value, "dtype", None), "kind", "") not in {"M", "m"}:
        value = plain  # a NumPy time in nanoseconds would become a number
    match value:
        case None | bool():
            return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
        case int():
            return str(value)
        case float():
            return f"{value!r}{'' if 'e' in repr(value) else 'E0'}" if math.isfinite(value) else f"double('{value}')"
        case Decimal() if value.is_finite():
            digits, scale = len(value.as_tuple().digits), max(0, -int(value.as_tuple().exponent))
            precision = max(digits + max(0, int(value.as_tuple().exponent)), scale, 1)
            return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"
        case str():
            if "\\" in value and not escapes():
                return text_sql(value)
            return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            zone = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP_LTZ"
            return f"{zone}'{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case list() | tuple():
            return f"array({', '.join(literal_sql(name, each, escapes) for each in value)})"
    raise InvalidArgument(
        f"args: the value of {name!r} is {type(value).__name__}: give None, bool, int, float, str, bytes, Decimal, date or list"
    )
