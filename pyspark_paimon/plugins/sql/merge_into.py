"""Statement MERGE INTO, run by ``Table.merge``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from lsm.rows_in.policy import SchemaMode
from paimon_base.errors import InvalidArgument
from pyspark_paimon.filter.columns import StatementText
from pyspark_paimon.plugins.sql.alter import assigned_value, assignments, qualifiers
from pyspark_paimon.plugins.sql.answers import frame_of_result
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.queries import run_query
from pyspark_paimon.plugins.sql.text.words import NameParts, TokenCursor, replace_qualifiers
from pyspark_paimon.table.merge import Merge

_STOPS = ("WHEN",)
CalledSides: TypeAlias = Mapping[NameParts, str]
"""Side of the merge (``t``, ``s``) for each qualifier of columns."""


def merge_into(names: KnownTables, words: TokenCursor, schema_mode: SchemaMode | None = None) -> Any:
    """Run MERGE INTO; None if Spark should.

    Syntax: ``MERGE [WITH SCHEMA EVOLUTION] INTO t [a] USING s [b] ON condition WHEN [NOT] MATCHED [BY SOURCE] [AND condition] THEN ...``.
    """
    target = words.name()
    table = names.find(target)
    if table is None:
        return None
    sides = dict.fromkeys(_called_names(words, target, "USING"), "t")
    words.expect("USING")
    source, called = _source(words)
    source_names = _called_names(words, called, "ON")
    if not sides.keys().isdisjoint(source_names):
        raise InvalidArgument(
            f"MERGE INTO {'.'.join(target)}: target and source are both named '{source_names[-1][-1]}'; give one of them an alias, AS x"
        )
    sides |= dict.fromkeys(source_names, "s")
    words.expect("ON")
    on = replace_qualifiers(words.until(_STOPS), sides)
    merge = table.merge(run_query(names, source), on, schema_mode=schema_mode)
    while words.take("WHEN"):
        merge = _clause(merge, words, sides)
    words.end()
    return frame_of_result(names.spark, merge.execute())


def _source(words: TokenCursor) -> tuple[str, NameParts]:
    """Return a query of the source, and its name."""
    if words.take("("):
        query = words.until()
        words.expect(")")
        return query, ()
    start = words.here
    name = words.name()
    if words.peek() in {"VERSION", "TIMESTAMP", "FOR"}:
        words.until(("AS",))
        words.expect("AS", "OF")
        words.take("TIMESTAMP")
        words.literal()
    return f"FROM {words.text[start : words.here]} SELECT *", name


def _called_names(words: TokenCursor, name: NameParts, stop: str) -> list[NameParts]:
    """Return the lower-case qualifiers of a side's columns."""
    if words.take("AS") or words.peek() != stop:
        return [(words.part().lower(),)]
    return qualifiers(name)


def _clause(merge: Merge, words: TokenCursor, sides: CalledSides) -> Merge:
    matched = not words.take("NOT")
    words.expect("MATCHED")
    by_source = not matched and words.take("BY", "SOURCE")
    if not matched and not by_source:
        words.take("BY", "TARGET")
    condition = replace_qualifiers(words.until(("THEN",)), sides) if words.take("AND") else None
    words.expect("THEN")
    if not matched and not by_source:
        return _insert(merge, words, sides, condition)
    if words.take("DELETE"):
        return (merge.when_matched_delete if matched else merge.when_not_matched_by_source_delete)(condition)
    words.expect("UPDATE", "SET")
    if matched and words.take("*"):
        return merge.when_matched_update_all(condition)
    target = [called for called, side in sides.items() if side == "t"]
    values = {name: StatementText(replace_qualifiers(text, sides)) for name, text in assignments(words, _STOPS, target).items()}
    return (merge.when_matched_update if matched else merge.when_not_matched_by_source_update)(values, condition)


def _insert(merge: Merge, words: TokenCursor, sides: CalledSides, condition: str | None) -> Merge:
    words.expect("INSERT")
    if words.take("*"):
        return merge.when_not_matched_insert_all(condition)
    columns = [words.name()[-1] for _ in words.items()]
    words.expect("VALUES")
    values = [StatementText(replace_qualifiers(assigned_value(words, (",",)), sides)) for _ in words.items()]
    if len(columns) != len(values):
        raise words.error(f"a value for each of the {len(columns)} columns")
    return merge.when_not_matched_insert(dict(zip(columns, values, strict=True)), condition)
