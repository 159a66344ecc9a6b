"""All questions, by name."""

from __future__ import annotations

from tests.oracle import changing, handing, history, reading
from tests.oracle.answers import Question

_CHANGING = [changing.delete, changing.purge, changing.update, changing.merge, changing.overwrite, history.branch, history.changes]
_READING = [
    reading.rows,
    reading.some_columns,
    reading.computed,
    reading.count,
    reading.limit,
    reading.top,
    reading.aggregates,
    reading.groups,
    reading.two_groups,
    reading.splits,
    reading.point,
    reading.lookup,
    reading.explain,
    history.travel,
    history.follow,
    handing.duckdb_filter,
    handing.polars_filter,
    handing.arrow_filter,
]
QUESTIONS: dict[str, Question] = {question.__name__: question for question in [*_READING, *_CHANGING]}
DEAR = [question.__name__ for question in _CHANGING]
"""Questions that change a copy of the table."""
CHEAP = [name for name in QUESTIONS if name not in {"rows", *DEAR}]
