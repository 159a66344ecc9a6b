"""Merge engines and their traits: what the rest of the product asks of a table's engine instead of comparing its name.

Only two modules below look at names: ``manifest.schema.merge_options`` reads the options of each engine, and
``lsm.merge.engines`` chooses its function. ``tests/test_one_place.py`` sees to it.
"""

from __future__ import annotations

from dataclasses import dataclass

DEDUPLICATE, FIRST_ROW, PARTIAL_UPDATE, AGGREGATION = ENGINES = ("deduplicate", "first-row", "partial-update", "aggregation")
AGGREGATE_REMOVE = "aggregation.remove-record-on-delete"
PARTIAL_REMOVE = "partial-update.remove-record-on-delete"


@dataclass(frozen=True, slots=True)
class EngineTraits:
    """What follows from a merge engine, whatever its options and columns.

    Args:
        name: the value of ``merge-engine``.
        is_built: we can merge its rows.
        newest_replaces: a newer version is the whole row, so that it can update and delete, and a stream of versions tells the rows.
        first_row_wins: the oldest version is the row for ever; what compaction has once put above level 0 is final.
        folds_values: a row is made of several versions, so that it can match a filter although no version does.
        remove_option: the option by which a ``-D`` version removes the row all the same; None if there is none.
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
    """The traits of an engine; of one that is not built, none.

    >>> engine_traits("first-row").first_row_wins, engine_traits("someone's").is_built
    (True, False)
    """
    return _BY_NAME.get(name) or EngineTraits(name, is_built=False)


__all__ = [
    "AGGREGATE_REMOVE",
    "AGGREGATION",
    "DEDUPLICATE",
    "ENGINES",
    "FIRST_ROW",
    "PARTIAL_REMOVE",
    "PARTIAL_UPDATE",
    "EngineTraits",
    "engine_traits",
]
