"""Statements on tags: ALTER TABLE ... TAG, and SHOW TAGS."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from paimon_base.errors import InvalidArgument
from pyspark_paimon.plugins.sql.answers import frame_of_result, frame_of_rows
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.text.words import TokenCursor
from pyspark_paimon.table.table import Table

_UNITS = {"DAYS": "days", "DAY": "days", "HOURS": "hours", "HOUR": "hours", "MINUTES": "minutes", "MINUTE": "minutes"}


def alter_tag(names: KnownTables, table: Table, words: TokenCursor) -> Any:
    """Run what follows ``ALTER TABLE t``, if it changes a tag.

    Syntax: ``CREATE TAG [IF NOT EXISTS] | CREATE OR REPLACE TAG | REPLACE TAG name [AS OF VERSION n] [RETAIN n DAYS | HOURS | MINUTES]``,
    ``RENAME TAG name TO name``, ``DELETE TAG [IF EXISTS] name`` (also several, with commas). None for other statements.
    """
    if words.take("CREATE", "TAG"):
        return _create(names, table, words, quiet=words.take("IF", "NOT", "EXISTS"))
    if words.take("CREATE", "OR", "REPLACE", "TAG"):
        return _create(names, table, words, replaces=True)
    if words.take("REPLACE", "TAG"):
        name, snapshot, retained = _options(words)
        return frame_of_result(names.spark, table.replace_tag(name, snapshot, time_retained=retained))
    if words.take("RENAME", "TAG"):
        old = words.part()
        words.expect("TO")
        new = words.part()
        words.end()
        return frame_of_result(names.spark, table.rename_tag(old, new))
    if words.take("DELETE", "TAG"):
        quiet = words.take("IF", "EXISTS")
        name, tag_names = words.part(), _names(table)
        words.end()
        for tag in [name] if name in tag_names else [part.strip() for part in name.split(",")]:
            if tag in tag_names or not quiet:
                table.delete_tag(tag)
        return frame_of_result(names.spark, None)
    return None


def show_tags(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``SHOW TAGS t``."""
    table = names.find(words.name())
    if table is None:
        return None
    words.end()
    return frame_of_rows(names.spark, table.tags())


def _create(names: KnownTables, table: Table, words: TokenCursor, *, quiet: bool = False, replaces: bool = False) -> Any:
    name, snapshot, retained = _options(words)
    exists = (quiet or replaces) and name in _names(table)
    if exists and quiet:
        return frame_of_result(names.spark, None)
    act = table.replace_tag if exists else table.create_tag
    return frame_of_result(names.spark, act(name, snapshot, time_retained=retained))


def _options(words: TokenCursor) -> tuple[str, int | None, timedelta | None]:
    """Read the name, the snapshot and the retention of a tag, to the end."""
    name = words.part()
    snapshot = words.whole_number() if words.take("AS", "OF", "VERSION") else None
    retained = None
    if words.take("RETAIN"):
        count, unit = words.whole_number(), _UNITS.get(words.peek())
        if unit is None:
            raise words.error("DAYS, HOURS or MINUTES")
        words.part()
        try:
            retained = timedelta(**{unit: count})
        except OverflowError:
            raise InvalidArgument(f"tag '{name}': RETAIN {count} {unit} is too long; no tag was changed") from None
    words.end()
    return name, snapshot, retained


def _names(table: Table) -> list[str]:
    tag_names: list[str] = table.tags()["tag_name"].to_pylist()
    return tag_names
