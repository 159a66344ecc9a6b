"""Statements of other table formats, which are not done for tables of ours, and what does the same."""

from __future__ import annotations

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.words import Words

WAYS = {
    "OPTIMIZE": "CALL sys.compact(table => '{name}')",
    "VACUUM": "CALL sys.expire_snapshots(table => '{name}', retain_max => 10), then CALL sys.remove_orphan_files(table => '{name}')",
    "RESTORE TABLE": "CALL sys.restore(table => '{name}', version => '3')",
    "RESTORE": "CALL sys.restore(table => '{name}', version => '3')",
    "DESCRIBE DETAIL": "DESCRIBE EXTENDED {name}, or SELECT * FROM {name}$files",
}
"""By first words: a statement of ours."""


def other_way(names: KnownTables, words: Words) -> None:
    """None for what is no table of ours, which Spark is asked about. Raises ``InvalidArgument`` with the way."""
    first = words.text[words.tokens[0].start : words.tokens[words.at - 1].end + 1].upper()
    name = words.name()
    if names.find(name) is not None:
        way = WAYS[" ".join(first.split())].format(name=".".join(name))
        raise InvalidArgument(f"{first} is no statement for Paimon tables; write {way}")


__all__ = ["WAYS", "other_way"]
