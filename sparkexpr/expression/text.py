"""String functions, in Unicode code points.

Patterns are literals.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import InvalidFilter
from sparkexpr.expression.arithmetic import Arrays
from sparkexpr.values.column_type import STRINGS, ColumnType, Plain

_WHITESPACE_OF_TRIM = " "  # Spark trims spaces only


def lower(values: Arrays, _: ColumnType) -> Any:
    """``lower(a)``, by Unicode's full mapping, as in Spark."""
    return _map_case(values[0], pc.ascii_lower, str.lower)


def upper(values: Arrays, _: ColumnType) -> Any:
    """``upper(a)``, by Unicode's full mapping, as in Spark.

    The German sharp s becomes SS.
    """
    return _map_case(values[0], pc.ascii_upper, str.upper)


def _map_case(texts: Any, ascii_kernel: Any, mapping: Callable[[str], str]) -> Any:
    """Map the case of texts."""
    # Arrow maps one letter to one letter, which is correct only for ASCII.
    is_ascii = pc.string_is_ascii(texts)
    if pc.all(is_ascii, min_count=0).as_py():
        return ascii_kernel(texts)
    coded = texts.dictionary_encode()  # maps each distinct text once
    mapped = pa.array(list(map(mapping, coded.dictionary.to_pylist())), texts.type)
    return mapped.take(coded.indices)


def length(values: Arrays, _: ColumnType) -> Any:
    """``length(a)``.

    Code points of a text, bytes of a binary.
    """
    (value,) = values
    is_text = pa.types.is_large_string(value.type) or pa.types.is_string(value.type)
    return (pc.utf8_length(value) if is_text else pc.binary_length(value)).cast(pa.int32())


def octet_length(values: Arrays, _: ColumnType) -> Any:
    """``octet_length(a)``, in bytes."""
    return pc.binary_length(values[0]).cast(pa.int32())


def trim(values: Arrays, _: ColumnType) -> Any:
    """``trim(a)``, of spaces only."""
    return pc.utf8_trim(values[0], characters=_WHITESPACE_OF_TRIM)


def ltrim(values: Arrays, _: ColumnType) -> Any:
    """``ltrim(a)``."""
    return pc.utf8_ltrim(values[0], characters=_WHITESPACE_OF_TRIM)


def rtrim(values: Arrays, _: ColumnType) -> Any:
    """``rtrim(a)``."""
    return pc.utf8_rtrim(values[0], characters=_WHITESPACE_OF_TRIM)


def reverse(values: Arrays, _: ColumnType) -> Any:
    """``reverse(a)``, code point by code point."""
    return pc.utf8_reverse(values[0])


def concat(values: Arrays, _: ColumnType) -> Any:
    """``concat(a, b, ...)``.

    Null if an argument is null.
    """
    return pc.binary_join_element_wise(*values, pa.scalar("", values[0].type), null_handling="emit_null")


def substring(value: Any, start: int, size: int | None) -> Any:
    """``substring(a, start, size)``.

    The first letter has position 1; 0 means 1. A negative start counts from the end.
    """
    if size is not None and size <= 0:
        return pc.if_else(value.is_valid(), pa.scalar("", value.type), pa.scalar(None, value.type))
    if start >= 0:
        first = max(start - 1, 0)
        return pc.utf8_slice_codeunits(value, first, None if size is None else first + size)
    end = None if size is None or start + size >= 0 else start + size
    return pc.utf8_slice_codeunits(value, start, end)


def concat_with(values: Arrays, result: ColumnType) -> Any:
    """``concat_ws(separator, a, b, ...)``, without nulls."""
    separator, *parts = values
    joined = pa.nulls(len(separator), separator.type)
    for part in parts:  # Arrow's own join without nulls loses rows that are all null
        joined = pc.coalesce(concat([joined, separator, part], result), joined, part)
    return pc.if_else(separator.is_valid(), joined.fill_null(""), separator)


def replace(value: Any, search: str, instead: str) -> Any:
    """``replace(a, search, instead)``; an empty ``search`` is nowhere."""
    return pc.replace_substring(value, search, instead) if search else value


def repeat(value: Any, times: int) -> Any:
    """``repeat(a, times)``."""
    return pc.binary_repeat(value, max(times, 0))


def pad(value: Any, size: int, filler: str, *, left: bool) -> Any:
    """``lpad`` and ``rpad``, in code points. Longer texts are cut.

    >>> pad(pa.array(["7", "abcdef", None]), 4, "xy", left=True).to_pylist()
    ['xyx7', 'abcd', None]
    """
    size = max(size, 0)
    cut = pc.utf8_slice_codeunits(value, 0, size)
    if not filler:
        return cut
    repeated = filler * (size // len(filler) + 1)
    fillers = pa.array([repeated[:count] for count in range(size + 1)], value.type)
    missing = fillers.take(pc.subtract(size, pc.utf8_length(cut)))
    return pc.binary_join_element_wise(*((missing, cut) if left else (cut, missing)), pa.scalar("", value.type))


def position(value: Any, part: str) -> Any:
    """``instr(a, part)``: the code point, from 1, where the first ``part`` begins. 0: there is none.

    >>> position(pa.array(["häh", "x", None]), "h").to_pylist()
    [1, 0, None]
    """
    before = pc.struct_field(pc.extract_regex(value, f"(?s)\\A(?P<before>.*?){_regex(part)}"), "before")
    code_points = pc.add(pc.utf8_length(before), 1).fill_null(0)
    return pc.if_else(value.is_valid(), code_points, pa.scalar(None, code_points.type)).cast(pa.int32())


def split_part(value: Any, delimiter: str, number: int) -> Any:
    """``split_part(a, delimiter, number)``, counted from 1, or from the end by -1. Empty where there is no such part."""
    if not delimiter:
        return value if number in {1, -1} else substring(value, 1, 0)
    parts = pc.split_pattern(value, delimiter)
    counts = np.asarray(pc.list_value_length(parts).fill_null(0))
    part_index = number - 1 if number > 0 else counts + number
    exists = (part_index >= 0) & (part_index < counts)
    starts = np.asarray(parts.offsets)[:-1]
    part_texts = parts.values.take(pa.array(starts + part_index, mask=~exists))
    return pc.if_else(value.is_valid(), part_texts.fill_null(""), pa.scalar(None, value.type))


def contains(value: Any, part: str) -> Any:
    """``contains(a, part)``."""
    return pc.match_substring(value, part)


def startswith(value: Any, part: str) -> Any:
    """``startswith(a, part)``."""
    return pc.starts_with(value, part)


def endswith(value: Any, part: str) -> Any:
    """``endswith(a, part)``."""
    return pc.ends_with(value, part)


def matches_like(value: Any, pattern: str, escape: str) -> Any:
    """``a LIKE pattern ESCAPE escape``.

    ``%`` matches any text and ``_`` any code point, including line ends.
    """
    parts = like_parts(pattern, escape)
    texts = [part for part in parts if isinstance(part, str)]
    match parts:
        case [None, str(), None]:
            return contains(value, texts[0])
        case [None, str()]:
            return endswith(value, texts[0])
        case [str(), None]:
            return startswith(value, texts[0])
    return pc.match_substring_regex(value, f"(?s)\\A{''.join(_regex(part) for part in parts)}\\z")


def like_parts(pattern: str, escape: str) -> list[str | int | None]:
    r"""Split a LIKE pattern into its parts.

    str: a fixed text. None: a run of ``%``. int: the length of a run of ``_``.
    Raises ``InvalidFilter`` if the escape character is last, or precedes an ordinary character.

    >>> like_parts(r"a\%_%%b", "\\")
    ['a%', 1, None, 'b']
    """
    parts: list[str | int | None] = []
    indexes = iter(range(len(pattern)))
    for index in indexes:
        letter = pattern[index]
        if letter == escape:
            following = pattern[index + 1 : index + 2]
            if following not in {"%", "_", escape} or not following:
                raise InvalidFilter(f"LIKE '{pattern}': the escape '{escape}' must precede %, _ or itself")
            next(indexes)
        last = parts[-1] if parts else False
        if letter == "%" and letter != escape:
            if last is not None:
                parts.append(None)
        elif letter == "_" and letter != escape:
            parts[-1:] = [last + 1] if isinstance(last, int) and last is not False else [*parts[-1:], 1]
        else:
            text = pattern[index + 1] if letter == escape else letter
            parts[-1:] = [last + text] if isinstance(last, str) else [*parts[-1:], text]
    return parts


def _regex(part: str | int | None) -> str:
    if part is None:
        return ".*"
    return f".{{{part}}}" if isinstance(part, int) else re.escape(part).replace("\0", "\\x00")


def literal_text(value: Plain, column_type: ColumnType, what: str) -> str:
    """Return a pattern.

    Raises ``InvalidFilter`` if it is not a string literal.
    """
    if column_type.kind not in STRINGS or not isinstance(value, str):
        raise InvalidFilter(f"'{what}' takes a quoted text as its pattern")
    return value
