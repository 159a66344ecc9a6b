"""Queries: every Paimon table of the text, also as of a version or a time, becomes a DataFrame in its place; all else is Spark's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.spark.client.binary_row_expr import quoted_name
from pyspark_paimon.spark.wire.session_settings import has_settings
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.words import NameParts, Words
from pyspark_paimon.table.table import Table

_SUBQUERIES = {"SELECT", "WITH", "FROM", "("}
_SIGNS = ("+", "-", "*", "/")
_WRITTEN = {TokenType.STRING, TokenType.NUMBER}
_VERSIONS, _TIMES = ("VERSION", "SYSTEM_VERSION"), ("TIMESTAMP", "SYSTEM_TIME")


def queried(names: KnownTables, text: str) -> Any:
    """What Spark makes of a text whose Paimon tables are put in their places. Raises what ``spark.sql`` and ``scan`` raise."""
    text = f"{names.common} SELECT * FROM ({text})" if names.common else text  # noqa: S608  # the statement's own words
    query, frames = placed(names, text)
    return names.spark.sql(query, **frames) if frames else names.spark.sql(text)


def placed(names: KnownTables, text: str) -> tuple[str, dict[str, Any]]:
    """The text with names of frames in the place of Paimon tables that Spark does not know, and the frames."""
    words = Words(text)
    common = _common_names(words)
    frames: dict[str, Any] = {}
    parts: list[str] = []
    end = 0
    for start in _places(words):
        name = words.name()
        if len(name) == 1 and name[0].lower() in common:
            continue
        frame = _read(names, name, words)
        if frame is None:
            continue
        key = f"paimon_{len(frames)}"
        frames[key] = frame
        alias = "" if _aliased(words) else f" AS {quoted_name(name[-1])}"
        parts += [_escaped(text[end:start]), f"{{{key}}}{alias}"]
        end = words.tokens[words.at - 1].end + 1
    return "".join([*parts, _escaped(text[end:])]), frames


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _common_names(words: Words) -> set[str]:
    """Return the names that WITH gives to queries, with or without a list of columns."""
    texts = [token.text for token in words.tokens]
    found: set[str] = set()
    for at, text in enumerate(texts):
        if at and text.upper() == "AS" and texts[at + 1 : at + 2] == ["("]:
            name = at - 1
            if texts[name] == ")" and " ".join(texts[at + 2 : at + 3]).upper() in _SUBQUERIES | {"VALUES", "TABLE"}:
                name = max((before for before in range(name) if texts[before] == "("), default=0) - 1
            if name >= 0:
                found.add(texts[name].lower())
    return found


def _places(words: Words) -> Iterator[int]:
    """Where names of tables begin; the cursor stands there, and whoever loops moves it behind what he reads."""
    queries, listing = [True], [False]
    while not words.done:
        word = words.word()
        if word == "(":
            queries.append(words.word(1) in _SUBQUERIES)
            listing.append(listing[-1] and queries[-1])
        elif word == ")" and len(queries) > 1:
            queries.pop()
            listing.pop()
        elif word == "FROM" and queries[-1] and words.tokens[words.at - 1].text.upper() != "DISTINCT":
            listing[-1] = True
        elif word in {"WHERE", "GROUP", "ORDER", "SELECT", "ON", "HAVING", "LIMIT", "UNION", "SET"}:
            listing[-1] = word == "ON" and listing[-1]
        words.at += 1
        expected = word in {"FROM", "JOIN"} or (word == "," and listing[-1])
        if expected and listing[-1] and words.word() not in {"(", "LATERAL", "VALUES", "SELECT"} and not words.done:
            before = words.at
            yield words.here
            if words.at == before:
                words.at += 1


def _read(names: KnownTables, name: NameParts, words: Words) -> Any:
    """The DataFrame of a table, if it is one of ours; Spark reads those that it knows, but not as of a version."""
    behind = words.at
    travel = _travel(words, names.spark)
    path = names.path(name)
    if path is not None:
        table: Table | None = Table.open(path, names.spark)
    else:
        table = names.of_catalog(name)
        if table is None and (travel or "$" in name[-1] or has_settings(names.spark)):
            table = names.find(name)
    if table is None:
        words.at = behind
        return None
    return table.scan(**travel).to_spark()


def _travel(words: Words, spark: Any) -> dict[str, Any]:
    """Arguments of ``scan`` for [FOR] VERSION AS OF and TIMESTAMP AS OF."""
    start = words.at
    words.take("FOR")
    kind = words.word()
    if kind not in {*_VERSIONS, *_TIMES} or (words.word(1), words.word(2)) != ("AS", "OF"):
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
    if not written or words.word() in _SIGNS:
        words.at = start
        return {"timestamp": _computed(spark, _operands(words))}
    if not isinstance(value, int | str):
        raise InvalidArgument(f"TIMESTAMP AS OF takes a text, a time, or seconds since 1970, not {value}")
    return {"timestamp": value * 1000 if isinstance(value, int) else value}


def _operands(words: Words) -> str:
    """The text of values with signs between them: an alias of the table may follow."""
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
            words.need(")")
        if not any(words.take(sign) for sign in _SIGNS):
            return words.text[start : words.tokens[words.at - 1].end + 1]


def _computed(spark: Any, text: str) -> int:
    """Milliseconds since 1970 of a time that Spark computes. Raises ``InvalidArgument`` for null, and what ``spark.sql`` raises."""
    millis = spark.sql(f"SELECT unix_millis(CAST({text} AS TIMESTAMP))").first()[0]
    if millis is None:
        raise InvalidArgument(f"TIMESTAMP AS OF {text}: that is null, and no time")
    return int(millis)


def _aliased(words: Words) -> bool:
    return words.word() == "AS" or (
        not words.done and words.tokens[words.at].kind in {TokenType.VAR, TokenType.IDENTIFIER} and words.word() != "TABLESAMPLE"
    )


__all__ = ["placed", "queried"]
