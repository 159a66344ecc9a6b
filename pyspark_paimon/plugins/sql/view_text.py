"""Queries with the views of a catalog replaced by their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from paimon_base.errors import InvalidArgument
from paimon_base.texts import count_text
from pyspark_paimon.catalog.view import View
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.text.relations import has_alias, relations, skip_sample, without_table_words
from pyspark_paimon.plugins.sql.text.words import NameParts, TokenCursor, replace_qualifiers

ColumnsOf = Callable[[str], Sequence[str]]
"""Returns the names of a query's columns."""
_TRAVELS = {"VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME", "FOR"}
_HIDDEN = "__paimon_column_"


@dataclass(frozen=True)
class _Source:
    """A table or view in a text, at ``start`` to ``end``.

    name_end: End of its name, before TABLESAMPLE.
    aliased: Whether an alias follows, or a version or time, which an alias must not precede.
    """

    name: NameParts
    start: int
    name_end: int
    end: int
    aliased: bool
    view: View | None


def expand_views(names: KnownTables, text: str, columns_of: ColumnsOf, above: tuple[str, ...] = ()) -> str:
    """Return a query with subqueries in place of the catalog's views.

    Names without a database get the current one beside a view, and inside one: an outer WITH must not capture them.

    above: Views whose texts contain this one.
    Raises ``InvalidArgument`` for a view that reads itself, and for a version or time of a view.
    """
    text = _unqualify_columns(names, without_table_words(text))
    if names.catalog is None or not names.catalog.has_views:
        return text
    sources = list(_sources(names, text))
    if not above and not any(source.view for source in sources):
        return text
    parts, end = list[str](), 0
    for source in sources:
        if source.view is not None:
            new = f"({_view_query(names, source.view, columns_of, above)})"
        elif (qualified := _qualified(names, source.name)) is not None:
            new = qualified
        else:
            continue
        alias = "" if source.aliased else f" AS {quote_name(source.name[-1])}"
        parts += [text[end : source.start], new, text[source.name_end : source.end], alias]
        end = source.end
    return "".join([*parts, text[end:]])


def views_read_by(names: KnownTables, text: str) -> set[str]:
    """Return the names of the views that a query reads, also through other views."""
    view_names: set[str] = set()
    waiting = [text]
    while waiting:
        for source in _sources(names, without_table_words(waiting.pop())):
            if source.view is not None and source.view.name not in view_names:
                view_names.add(source.view.name)
                waiting.append(source.view.text())
    return view_names


def qualify_names(names: KnownTables, text: str) -> str:
    """Return a query whose names of the catalog have a database."""
    text = _unqualify_columns(names, without_table_words(text))
    parts, end = list[str](), 0
    for source in _sources(names, text):
        qualified = _qualified(names, source.name, is_view=source.view is not None)
        if qualified is not None:
            alias = "" if source.aliased else f" AS {quote_name(source.name[-1])}"
            parts += [text[end : source.start], qualified, text[source.name_end : source.end], alias]
            end = source.end
    return "".join([*parts, text[end:]])


def _sources(names: KnownTables, text: str) -> Iterator[_Source]:
    """Yield the tables and views of a text that may be those of the catalog."""
    words = TokenCursor(text)
    for relation in relations(words):
        start, words.at = relation.start, relation.word
        name = words.name()
        if words.peek() == "(" or relation.is_common:
            continue
        view = None if "$" in name[-1] else names.view(name)
        travels = words.peek() in _TRAVELS and words.peek(1) in {"AS", "VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME"}
        if view is not None and travels:
            raise InvalidArgument(f"{view.name} is a view, which has no versions; write VERSION AS OF behind the tables in its query")
        name_end = words.tokens[words.at - 1].end + 1
        skip_sample(words)
        yield _Source(name, start, name_end, words.tokens[words.at - 1].end + 1, travels or has_alias(words), view)


def _unqualify_columns(names: KnownTables, text: str) -> str:
    """Return a query with ``t.a`` in place of ``db.t.a``: tables and views become subqueries named ``t``.

    Columns stay where another table or alias of the text may be named ``t``, too.
    """
    words, last_by_name, tables = TokenCursor(text), dict[NameParts, str](), set[int]()
    travelling = list[str]()
    for relation in relations(words):
        first = words.at = relation.word
        name = words.name()
        if words.peek() == "(" or relation.is_common:
            continue
        last = words.at - 1
        skip_sample(words)
        if words.peek() in _TRAVELS:
            travelling.append(name[-1].lower())
        elif not has_alias(words):
            tables |= {*range(first, last + 1)}
            qualified = name if len(name) > 1 else (names.database, *name)
            last_by_name[tuple(part.lower() for part in qualified)] = name[-1]
    dots = [token.text == "." for token in words.tokens]
    plain_words = [
        token.text.lower()
        for index, token in enumerate(words.tokens)
        if index not in tables
        and token.kind is not TokenType.STRING
        and not (index and dots[index - 1])
        and dots[index + 1 : index + 2] != [True]
    ]
    lasts = [*plain_words, *travelling, *(name.lower() for name in last_by_name.values())]
    return replace_qualifiers(
        text, {qualified: quote_name(last) for qualified, last in last_by_name.items() if lasts.count(last.lower()) == 1}
    )


def _qualified(names: KnownTables, name: NameParts, *, is_view: bool = False) -> str | None:
    """Return a name of the catalog with its database. None: it has one, or the catalog has no such table."""
    if len(name) > 1 or not (is_view or names.has_table(name)):
        return None
    return f"{quote_name(names.database)}.{quote_name(name[0])}"


def _view_query(names: KnownTables, view: View, columns_of: ColumnsOf, above: tuple[str, ...]) -> str:
    """Return the text of a view, whose columns have the names of the view."""
    if view.name in above:
        raise InvalidArgument(f"view {view.name} reads itself: {' -> '.join((*above, view.name))}; create one of them again, without it")
    # Other engines store texts as they were typed: a comment or semicolon at the end would hide the bracket after it.
    text = expand_views(names, TokenCursor(view.text()).rest(), columns_of, (*above, view.name))
    view_columns = [field.name for field in view.fields]
    output_names = _output_names(text)
    if output_names is None or len(output_names) != len(view_columns):
        output_names = list(columns_of(text))
    if output_names == view_columns:
        return text
    if len(output_names) < len(view_columns):
        raise InvalidArgument(
            f"view {view.name} has {count_text(len(view_columns), 'column')}, and its query {len(output_names)}: {', '.join(output_names)}; create it again from the current tables"
        )
    refuse_moved(view.name, text, output_names, view_columns)
    # A star has the columns that its tables got after the view.
    names_by_position = [*view_columns, *(f"{_HIDDEN}{position}" for position in range(len(view_columns), len(output_names)))]
    selected, every = (", ".join(map(quote_name, columns)) for columns in (view_columns, names_by_position))
    return f"SELECT {selected} FROM ({text}) AS {quote_name(view.name.rpartition('.')[2])}({every})"  # noqa: S608  # the user's own SQL


def refuse_moved(name: str, text: str, output_names: Sequence[str], view_columns: Sequence[str]) -> None:
    """Raise ``InvalidArgument`` if a star gives a column of the view at another position.

    output_names: Columns of the query now. view_columns: Columns of the view.
    """
    if _output_names(text) is not None:
        return
    lower = [column.lower() for column in output_names]
    for position, column in enumerate(view_columns[: len(output_names)]):
        if lower[position] != column.lower() and column.lower() in lower:
            raise InvalidArgument(
                f"view {name}: its query has '*', whose column {position + 1} is '{output_names[position]}', and the view's is '{column}'; "
                "create it with names of columns in place of '*'"
            )


def _output_names(text: str) -> list[str] | None:
    """Return the names of a query's columns. None: they depend on the tables."""
    try:
        query = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        return None
    if not isinstance(query, exp.Query) or query.is_star:
        return None
    return list(query.named_selects)
