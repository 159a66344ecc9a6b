"""Clauses of SHOW statements: databases and patterns of names."""

from __future__ import annotations

import re

from pyspark_paimon.plugins.sql.names import SOURCES
from pyspark_paimon.plugins.sql.text.words import TokenCursor


def database_name(words: TokenCursor) -> str:
    """Read the name of a database."""
    name = words.name()
    return ".".join(name[1:] if len(name) > 1 and name[0].lower() in SOURCES else name)


def like_pattern(words: TokenCursor) -> re.Pattern[str]:
    """Parse an optional LIKE pattern to a regular expression."""
    # Spark's patterns: * matches any text, | separates alternatives, case is ignored.
    words.take("LIKE")
    if words.done:
        return re.compile(".*")
    text = str(words.literal())
    words.end()
    return compile_pattern(text)


def compile_pattern(text: str) -> re.Pattern[str]:
    """Return Spark's LIKE pattern of SHOW as a regular expression."""
    return re.compile("|".join(".*".join(map(re.escape, part.strip().split("*"))) for part in text.split("|")), re.IGNORECASE)
