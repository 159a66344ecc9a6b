"""Queries on Paimon tables.

Each Paimon table in the text, also with VERSION or TIMESTAMP AS OF, is replaced by a DataFrame. Spark runs the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from fileindex.predicate.tree import TRUE
from manifest.schema.metadata_columns import METADATA_NAMES
from paimon_base.errors import InvalidArgument
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.plugins.sql.join_keys import TableScan, prune_joins
from pyspark_paimon.plugins.sql.metadata_answers import metadata_answer
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.pushdown import Usage, usages
from pyspark_paimon.plugins.sql.small_scans import frame_of_small, plain_answer, small_rows
from pyspark_paimon.plugins.sql.system_database import system_frame
from pyspark_paimon.plugins.sql.table_functions import function_frame
from pyspark_paimon.plugins.sql.text.relations import has_alias, insert_targets, relations, skip_sample
from pyspark_paimon.plugins.sql.text.words import NameParts, TokenCursor
from pyspark_paimon.plugins.sql.view_text import expand_views
from pyspark_paimon.spark.wire.session_settings import has_settings
from pyspark_paimon.table.table import Table

_COMPUTED = "IDENTIFIER"
_SIGNS = ("+", "-", "*", "/")
_WRITTEN = {TokenType.STRING, TokenType.NUMBER}
_VERSIONS, _TIMES = ("VERSION", "SYSTEM_VERSION"), ("TIMESTAMP", "SYSTEM_TIME")


def run_query(names: KnownTables, text: str) -> Any:
    """Run a query with its Paimon tables replaced by DataFrames.

    Raises the errors of ``spark.sql`` and ``scan``.
    """
    text = f"{names.common} SELECT * FROM ({text})" if names.common else text  # noqa: S608  # both are the user's own SQL
    text = with_views(names, text)
    return replace_tables(names, text).run(names.spark)


def with_views(names: KnownTables, text: str) -> str:
    """Return a query without TABLE as a query, and with the queries of the catalog's views in their places."""
    return expand_views(names, text, lambda query: run_query(names, query).columns)


@dataclass(frozen=True)
class ReplacedQuery:
    """A query whose Paimon tables are parameters of ``spark.sql``.

    frames: DataFrame of each parameter.
    is_answer: The only frame is the result of the query.
    """

    text: str
    frames: dict[str, Any]
    is_answer: bool = False

    def run(self, spark: Any) -> Any:
        """Return the result. Raises the errors of ``spark.sql``."""
        if self.is_answer:
            return next(iter(self.frames.values()))
        return spark.sql(self.text, **self.frames)


def replace_tables(names: KnownTables, text: str) -> ReplacedQuery:
    """Replace Paimon tables in a query by parameters of ``spark.sql``.

    Tables that Spark's catalog can read stay. The text has no views of the catalog.
    """
    words = TokenCursor(text)
    for target in insert_targets(words):
        if names.has_table(target):
            written = ".".join(target)
            raise InvalidArgument(f"this form of INSERT cannot write {written} of the catalog; write one INSERT INTO a table and one query")
    source_by_start: dict[int, TableScan | Any] = {}
    used = usages(text)
    parts: list[str] = []
    end = 0
    for relation in relations(words):
        if relation.is_common:
            continue
        start, words.at = relation.start, relation.word
        name = words.name()
        if names.catalog is not None and name[-1].upper() == _COMPUTED and words.peek() == "(":
            raise InvalidArgument("IDENTIFIER of an expression cannot be looked up in the catalog; write the name of the table as a text")
        source = function_frame(names, name, words) or system_frame(names, name)
        if source is None:
            source = _scan(names, name, words, used.get(start, Usage()))
        if source is None:
            continue
        key = f"paimon_{len(source_by_start)}"
        source_by_start[start] = source
        named = words.tokens[words.at - 1].end + 1
        skip_sample(words)
        alias = "" if has_alias(words) else f" AS {quote_name(name[-1])}"
        parts += [_escape(text[end:start]), f"{{{key}}}"]
        end = words.tokens[words.at - 1].end + 1
        parts += [_escape(text[named:end]), alias]
    query = "".join([*parts, _escape(text[end:])])
    source_by_start |= prune_joins(text, {start: source for start, source in source_by_start.items() if isinstance(source, TableScan)})
    only = next(iter(source_by_start.values())) if len(source_by_start) == 1 else None
    exact_scan = only.scan if isinstance(only, TableScan) and only.exact else None
    answer = None if exact_scan is None else metadata_answer(names.spark, text, exact_scan, query)
    frames = dict[int, Any]()
    for start, source in source_by_start.items() if answer is None else ():
        rows = small_rows(source) if isinstance(source, TableScan) else None
        if rows is None:
            frames[start] = source.scan.to_spark(exact=False) if isinstance(source, TableScan) else source
            continue
        answer = None if exact_scan is None else plain_answer(names.spark, text, exact_scan, rows)
        if answer is None:
            frames[start] = frame_of_small(names.spark, source.scan, rows)
    if answer is not None:
        return ReplacedQuery(text, {"paimon_0": answer}, is_answer=True)
    named_metadata = [METADATA_NAMES.intersection(frame.columns) for start, frame in frames.items() if used.get(start, Usage()).metadata]
    hidden = set().union(*named_metadata)
    return ReplacedQuery(
        _without_hidden(query, hidden, len(frames)) if frames else text,
        {f"paimon_{number}": frame for number, frame in enumerate(frames.values())},
    )


def _without_hidden(query: str, hidden: set[str], tables: int) -> str:
    """Leave metadata columns out of ``*``.

    Raises ``InvalidArgument`` where it is not clear of which table a star has them.

    >>> _without_hidden("SELECT *, b FROM t", {"b"}, 1), _without_hidden("SELECT * EXCEPT (a), b FROM t", {"b"}, 1)
    ('SELECT * EXCEPT (b), b FROM t', 'SELECT * EXCEPT (b, a), b FROM t')
    """
    stars = list(_stars(query)) if hidden else []
    if not stars:
        return query
    if tables > 1 or len(re.findall(r"(?i)\bSELECT\b", query)) > 1 or re.search(r"(?i)\bJOIN\b", query):
        raise InvalidArgument(
            f"a query of several tables or with subqueries has '*' and {', '.join(sorted(hidden))}: name the columns instead of '*'"
        )
    parts, end = list[str](), 0
    for star in stars:
        more = re.compile(r"\s*EXCEPT\s*\(", re.IGNORECASE).match(query, star + 1)
        parts += [query[end : star + 1], f" EXCEPT ({', '.join(sorted(hidden))}{', ' if more else ')'}"]
        end = more.end() if more else star + 1
    return "".join([*parts, query[end:]])


def _stars(query: str) -> Iterator[int]:
    """Yield the positions of stars that stand for all columns."""
    tokens = TokenCursor(query).tokens
    for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        ends = after is None or after.text.upper() in {",", "FROM", ")", "EXCEPT"}
        if token.text == "*" and ends and before.text.upper() in {"SELECT", "DISTINCT", "ALL", ",", "."}:
            yield token.start


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _scan(names: KnownTables, name: NameParts, words: TokenCursor, usage: Usage) -> TableScan | None:
    """Return the scan of a table; None: Spark reads it."""
    table_and_travel = _find_table(names, name, words, usage)
    if table_and_travel is None:
        return None
    scan, pushed = usage.scan(*table_and_travel, lambda: _zone(names))
    return TableScan(scan, filtered=pushed.inclusive != TRUE, exact=pushed.exact)


def _zone(names: KnownTables) -> str:
    return str(names.spark.conf.get("spark.sql.session.timeZone"))


def _find_table(names: KnownTables, name: NameParts, words: TokenCursor, usage: Usage) -> tuple[Table, dict[str, Any]] | None:
    """Return a table and the arguments of its scan; None: Spark reads it.

    Spark reads tables that its catalog knows, unless the query has a version, a system table or a Paimon session setting.
    """
    behind = words.at
    travel = _travel(words, names.spark)
    path = names.path(name)
    if path is not None:
        table: Table | None = Table.open(path, names.spark)
    else:
        table = names.of_catalog(name)
        if table is None and (travel or "$" in name[-1] or usage.metadata or has_settings(names.spark)):
            table = names.find(name)
    if table is None:
        words.at = behind
        return None
    return table, travel


def _travel(words: TokenCursor, spark: Any) -> dict[str, Any]:
    """Parse VERSION or TIMESTAMP AS OF to ``scan`` arguments."""
    start = words.at
    words.take("FOR")
    kind = words.peek()
    if kind not in {*_VERSIONS, *_TIMES} or (words.peek(1), words.peek(2)) != ("AS", "OF"):
        words.at = start
        return {}
    words.at += 3
    if kind in _VERSIONS:
        version = str(words.literal())
        return {"snapshot": int(version)} if version.isdecimal() else {"tag": version}
    start = words.at
    words.take("TIMESTAMP")
    written = not words.done and words.tokens[words.at].kind in _WRITTEN
    value = words.literal()
    if not written or words.peek() in _SIGNS:
        words.at = start
        return {"timestamp": _evaluate_timestamp(spark, _operands(words))}
    if not isinstance(value, int | str):
        raise InvalidArgument(f"TIMESTAMP AS OF takes a text, a timestamp, or seconds since 1970, not {value}")
    return {"timestamp": value * 1000 if isinstance(value, int) else value}


def _operands(words: TokenCursor) -> str:
    """Return the text of an arithmetic expression of values."""
    # Stop after the last operand: an alias of the table may follow.
    start = words.here
    while True:
        if words.take("INTERVAL"):
            words.literal()
            words.part()
        else:
            words.take("DATE") or words.take("TIMESTAMP")
            words.literal()
        if words.take("("):
            words.until()
            words.expect(")")
        if not any(words.take(sign) for sign in _SIGNS):
            return words.text[start : words.tokens[words.at - 1].end + 1]


def _evaluate_timestamp(spark: Any, text: str) -> int:
    """Let Spark compute a timestamp; return milliseconds since 1970.

    Raises ``InvalidArgument`` for null, and the errors of ``spark.sql``.
    """
    millis = spark.sql(f"SELECT unix_millis(CAST({text} AS TIMESTAMP))").first()[0]
    if millis is None:
        raise InvalidArgument(f"TIMESTAMP AS OF {text}: the expression is null, not a timestamp")
    return int(millis)
