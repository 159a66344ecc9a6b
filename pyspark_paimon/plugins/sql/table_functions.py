"""Paimon's functions in queries: tables of changes, and the greatest partition."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsm.arrow.row_kind import ROW_KIND
from manifest.options.tag_periods import TagPeriods
from paimon_base.errors import InvalidArgument
from paimon_base.texts import count_text
from pyspark_paimon.frames.spark_types import spark_type
from pyspark_paimon.plugins.sql.names import KnownTables, text_literal
from pyspark_paimon.plugins.sql.text.words import NameParts, TokenCursor

if TYPE_CHECKING:
    from pyspark_paimon.table.table import Table

_GREATEST = "MAX_PT"


@dataclass(frozen=True)
class TableFunction:
    """A function in FROM.

    arguments: Names of the arguments after the table.
    options: Returns the options of a scan for the table and the arguments. None: no rows.
    """

    arguments: tuple[str, ...]
    options: Callable[[Table, Sequence[str]], dict[str, str] | None]


def _to_auto_tag(table: Table, arguments: Sequence[str]) -> dict[str, str] | None:
    """Return the changes since the automatic tag before another one.

    None: one of them does not exist. Raises ``InvalidArgument`` for a name that automatic tags do not have.
    """
    name, periods = arguments[0], TagPeriods.of(table.options)
    end = periods.time(name)
    if end is None:
        raise InvalidArgument(f"paimon_incremental_to_auto_tag: '{name}' is not the name of an automatic tag of {table.path}")
    tags = {other: time for other in table.tags()["tag_name"].to_pylist() if (time := periods.time(other)) is not None}
    before = [other for other, time in tags.items() if time < end]
    return {"incremental-between": f"{max(before, key=tags.__getitem__)},{name}"} if before and name in tags else None


TABLE_FUNCTIONS: dict[str, TableFunction] = {
    "paimon_incremental_query": TableFunction(("start", "end"), lambda _, given: {"incremental-between": ",".join(given)}),
    "paimon_incremental_between_timestamp": TableFunction(
        ("start", "end"), lambda _, given: {"incremental-between-timestamp": ",".join(given)}
    ),
    "paimon_incremental_to_auto_tag": TableFunction(("tag",), _to_auto_tag),
}
UNSUPPORTED_FUNCTIONS = {
    "vector_search": "vector indexes are not supported; compute the distance in ORDER BY",
    "full_text_search": "full-text indexes are not supported; write WHERE text LIKE '%word%'",
    "hybrid_search": "vector and full-text indexes are not supported; compute the score in ORDER BY",
}
"""Paimon's other functions in FROM, and what to do instead."""


def function_frame(names: KnownTables, name: NameParts, words: TokenCursor) -> Any:
    """Return the frame of a function in FROM, whose name was read; None for others.

    Rows of the kinds ``-U`` and ``-D`` are left out, as in Paimon; ``t$audit_log`` and ``Table.changelog`` have them.
    """
    called = name[-1].lower()
    if len(name) > 1 or words.peek() != "(" or called not in TABLE_FUNCTIONS.keys() | UNSUPPORTED_FUNCTIONS.keys():
        return None
    if called in UNSUPPORTED_FUNCTIONS:
        raise InvalidArgument(f"function '{called}' is not supported: {UNSUPPORTED_FUNCTIONS[called]}")
    function = TABLE_FUNCTIONS[called]
    literals = [words.literal() for _ in words.items()]
    if len(literals) != 1 + len(function.arguments):
        raise InvalidArgument(
            f"{called} takes a table and {', '.join(function.arguments)}; the call has {count_text(len(literals), 'argument')}"
        )
    table = names.table(table_name(str(literals[0])))
    options = function.options(table, [str(value) for value in literals[1:]])
    if options is None:
        return table.scan(limit=0).to_spark()
    frame = table.scan(options=options).to_spark()
    return frame.filter(f"{ROW_KIND} IN ('+I', '+U')").drop(ROW_KIND)


def table_name(text: str) -> NameParts:
    """Parse a table in a text: a path, or a dotted name."""
    if text.startswith("/") or "://" in text:
        return ("paimon", text)
    words = TokenCursor(text)
    name = words.name()
    words.end()
    return name


def replace_max_pt(names: KnownTables, text: str) -> str:
    """Replace ``sys.max_pt('t')`` by the greatest value of the first partition column.

    Raises ``InvalidArgument`` for a table without partitions, or without rows.
    """
    if _GREATEST not in text.upper():
        return text
    try:
        words = TokenCursor(text)
    except InvalidArgument:  # Spark's error explains it better
        return text
    parts, end = list[str](), 0
    for index in range(len(words.tokens)):
        words.at = index
        start = words.here
        if index and words.tokens[index - 1].text == ".":
            continue
        words.take("PAIMON", ".")
        if not (words.take("SYS", ".", _GREATEST) or words.take(_GREATEST)) or words.peek() != "(":
            continue
        literals = [words.literal() for _ in words.items()]
        if len(literals) != 1:
            raise InvalidArgument(f"max_pt takes the name of a table; the call has {count_text(len(literals), 'argument')}")
        parts += [text[end:start], _greatest_partition(names, str(literals[0]))]
        end = words.tokens[words.at - 1].end + 1
    return "".join([*parts, text[end:]])


def _greatest_partition(names: KnownTables, text: str) -> str:
    """Return the greatest value of the first partition column as a SQL literal."""
    table = names.table(table_name(text))
    schema = table.table_schema
    if not schema.partition_keys:
        raise InvalidArgument(f"max_pt('{text}'): the table has no partitions")
    first = schema.partition_keys[0]
    greatest = table.scan().aggregate({first: ["max"]}).column(0)[0]
    if not greatest.is_valid:
        raise InvalidArgument(f"max_pt('{text}'): no partition has rows")
    kind, value = spark_type(schema.field(first).type).simpleString(), greatest.as_py()
    plain = value if isinstance(value, str) else re.sub(r"^(True|False)$", lambda match: match[0].lower(), str(value))
    return text_literal(plain) if isinstance(value, str) else f"CAST({text_literal(plain)} AS {kind})"
