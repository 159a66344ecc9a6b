"""What all questions share: the text of a condition, bags of rows, and how an answer differs from that of the model."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from pyspark_paimon import Table
from tests.oracle.conditions import Condition, Params
from tests.oracle.tables import Built
from tests.oracle.values import Row, bits

Question = Callable[[Built, Condition, random.Random], str | None]


def text_of(built: Built, condition: Condition) -> tuple[str, dict[str, Any] | None]:
    """The SQL text of a condition, and its parameters."""
    params = Params()
    return condition.sql(built.columns, params), dict(params) or None


def bag(rows: Iterable[Row]) -> Counter[Any]:
    return Counter(bits(row) for row in rows)


def differ(what: str, answer: Any, expected: Any) -> str | None:
    return None if answer == expected else f"{what}: {str(answer)[:600]} instead of {str(expected)[:600]}"


def bags_differ(what: str, answer: Counter[Any], expected: Counter[Any]) -> str | None:
    return differ(f"{what}, superfluous and missing", (answer - expected, expected - answer), (Counter(), Counter()))


def matching(built: Built, condition: Condition) -> list[Row]:
    return [row for row in built.expected if condition.matches(row)]


def rows_of(built: Built, table: Table, **scan: Any) -> Counter[Any]:
    """The rows of a scan of the table or of a copy."""
    return bag(built.columns.by_ident(row) for row in table.scan(**scan).to_arrow().to_pylist())


def on_a_copy(built: Built, question: Callable[[Table], str | None]) -> str | None:
    """Ask a question that changes the table, of a copy."""
    path = f"{built.table.path}-copy"
    shutil.copytree(built.table.path, path)
    try:
        return question(Table.open(path))
    finally:
        shutil.rmtree(path)


def changed(built: Built, change: Callable[[Table], object], expected: list[Row], what: str) -> str | None:
    """Change a copy of the table and compare all its rows."""

    def question(table: Table) -> str | None:
        change(table)
        return bags_differ(what, rows_of(built, Table.open(table.path)), bag(expected))

    return on_a_copy(built, question)
