"""MERGE INTO, by ``Table.merge``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.statements.answers import frame_of_result
from pyspark_paimon.statements.change import assignments, qualifiers, renamed
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.queries import queried
from pyspark_paimon.statements.words import NameParts, Words
from pyspark_paimon.table.merge import Merge

_STOPS = ("WHEN",)
CalledSides: TypeAlias = Mapping[NameParts, str]
"""What stands before a column, and the side that it means."""


def merge_into(names: KnownTables, words: Words) -> Any:
    """``MERGE INTO t [a] USING s [b] ON condition WHEN [NOT] MATCHED [BY SOURCE] [AND condition] THEN ...``."""
    target = words.name()
    table = names.find(target)
    if table is None:
        return None  # of Spark's own
    sides = dict.fromkeys(_called(words, target, "USING"), "t")
    words.need("USING")
    source, called = _source(words)
    others = _called(words, called, "ON")
    if not sides.keys().isdisjoint(others):
        raise InvalidArgument(
            f"MERGE INTO {'.'.join(target)}: target and source are both called '{others[-1][-1]}'; give one another name, AS x"
        )
    sides |= dict.fromkeys(others, "s")
    words.need("ON")
    on = renamed(words.until(_STOPS), sides)
    merge = table.merge(queried(names, source), on)
    while words.take("WHEN"):
        merge = _clause(merge, words, sides)
    words.end()
    return frame_of_result(names.spark, merge.execute())


def _source(words: Words) -> tuple[str, NameParts]:
    """A query of the source's rows, and what its columns are called by."""
    if words.take("("):
        query = words.until()
        words.need(")")
        return query, ()
    start = words.here
    name = words.name()
    if words.word() in {"VERSION", "TIMESTAMP", "FOR"}:
        words.until(("AS",))
        words.need("AS", "OF")
        words.take("TIMESTAMP")
        words.literal()
    return f"FROM {words.text[start : words.here]} SELECT *", name


def _called(words: Words, name: NameParts, stop: str) -> list[NameParts]:
    """What the columns of a side are called by, in small letters."""
    if words.take("AS") or words.word() != stop:
        return [(words.part().lower(),)]
    return qualifiers(name)


def _clause(merge: Merge, words: Words, sides: CalledSides) -> Merge:
    matched = not words.take("NOT")
    words.need("MATCHED")
    by_source = not matched and words.take("BY", "SOURCE")
    if not matched and not by_source:
        words.take("BY", "TARGET")
    condition = renamed(words.until(("THEN",)), sides) if words.take("AND") else None
    words.need("THEN")
    if not matched and not by_source:
        return _insert(merge, words, sides, condition)
    if words.take("DELETE"):
        return (merge.when_matched_delete if matched else merge.when_not_matched_by_source_delete)(condition)
    words.need("UPDATE", "SET")
    if matched and words.take("*"):
        return merge.when_matched_update_all(condition)
    target = [called for called, side in sides.items() if side == "t"]
    values = {name: renamed(text, sides) for name, text in assignments(words, _STOPS, target).items()}
    return (merge.when_matched_update if matched else merge.when_not_matched_by_source_update)(values, condition)


def _insert(merge: Merge, words: Words, sides: CalledSides, condition: str | None) -> Merge:
    words.need("INSERT")
    if words.take("*"):
        return merge.when_not_matched_insert_all(condition)
    columns = [words.name()[-1] for _ in words.listed()]
    words.need("VALUES")
    values = [renamed(words.until((",",)), sides) for _ in words.listed()]
    if len(columns) != len(values):
        raise words.wrong(f"a value for each of the {len(columns)} columns")
    return merge.when_not_matched_insert(dict(zip(columns, values, strict=True)), condition)


__all__ = ["merge_into"]
