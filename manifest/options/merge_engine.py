"""Merge engines and their traits.

Other modules use traits instead of comparing names. Only two modules compare names: ``manifest.schema.merge_options`` reads the options of
each engine, and ``lsm.merge.function`` selects its function. ``tests/test_one_place.py`` checks this.
"""

from __future__ import annotations

from dataclasses import dataclass

DEDUPLICATE, FIRST_ROW, PARTIAL_UPDATE, AGGREGATION = ENGINES = ("deduplicate", "first-row", "partial-update", "aggregation")
AGGREGATE_REMOVE = "aggregation.remove-record-on-delete"
PARTIAL_REMOVE = "partial-update.remove-record-on-delete"


@dataclass(frozen=True, slots=True)
class EngineTraits:
    """Properties of a merge engine, independent of options and columns.

    Args:
        name: Value of ``merge-engine``.
        is_built: Whether its rows can be merged.
        newest_replaces: The newest version is the whole row. Updates and deletes are possible, and a stream of versions gives the rows.
        first_row_wins: The oldest version is the row for ever. What compaction has put above level 0 is final.
        folds_values: A row combines several versions, so it may match a filter that no version matches.
        remove_option: Option by which a ``-D`` version removes the row anyway. None: no such option.
    """

    name: str
    is_built: bool = True
    newest_replaces: bool = False
    first_row_wins: bool = False
    folds_values: bool = False
    remove_option: str | None = None


_TRAITS = (
    EngineTraits(DEDUPLICATE, newest_replaces=True),
    EngineTraits(FIRST_ROW, first_row_wins=True),
    EngineTraits(PARTIAL_UPDATE, folds_values=True, remove_option=PARTIAL_REMOVE),
    EngineTraits(AGGREGATION, folds_values=True, remove_option=AGGREGATE_REMOVE),
)
_BY_NAME = {traits.name: traits for traits in _TRAITS}


def engine_traits(name: str) -> EngineTraits:
    """Return the traits of an engine.

    Unsupported engines have none.

    >>> engine_traits("first-row").first_row_wins, engine_traits("someone's").is_built
    (True, False)
    """
    return _BY_NAME.get(name) or EngineTraits(name, is_built=False)
