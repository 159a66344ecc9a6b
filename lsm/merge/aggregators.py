"""Fold of one column (Paimon's ``FieldAggregator`` family)."""

from __future__ import annotations

from typing import Any

from lsm.merge import agg_collect as nested
from lsm.merge import agg_first_last as choice
from lsm.merge import agg_nested_update as tables
from lsm.merge import agg_sum_product as number
from lsm.merge.agg_sketch import union_sketches
from lsm.merge.version_groups import GroupFold, VersionHistory
from manifest.io.errors import UnmergeableRows
from manifest.options.aggregate_functions import FUNCTIONS
from manifest.schema.merge_options import FieldAggregate

_PICKS = frozenset({"last_value", "first_value", "last_non_null_value", "first_non_null_value", "max", "bool_or", "min", "bool_and"})
"""Functions whose results are positions of versions."""


def fold_column(folding: GroupFold, name: str, rule: FieldAggregate, history: VersionHistory) -> Any:
    """Return the merged column, with the keys that have one version.

    Raises:
        UnmergeableRows: The function does not support retracts, or the result does not fit.
    """
    if history.retract is not None:
        reason = retract_refusal(name, rule)
        if reason is not None and history.retract.any():
            raise UnmergeableRows(reason)
        history = history.without_retracts() if rule.ignore_retract else history
    versions, column = folding.versions, folding.rows.column(name)
    match rule.function:
        case "last_value":
            return folding.gather(name, versions.rows_at(choice.last_value(history)))
        case "first_value":
            return folding.gather(name, versions.rows_at(choice.first_value(history)))
    valid = versions.valid(column)
    match rule.function:
        case "last_non_null_value":
            return folding.gather(name, versions.rows_at(choice.last_non_null_value(history, valid)))
        case "first_non_null_value":
            return folding.gather(name, versions.rows_at(choice.first_non_null_value(history, valid)))
        case "max" | "bool_or":
            return folding.gather(name, versions.rows_at(choice.greatest(history, column, valid)))
        case "min" | "bool_and":
            return folding.gather(name, versions.rows_at(choice.least(history, column, valid)))
    return folding.with_values(name, _compute(history, column, rule, name))


def _compute(history: VersionHistory, column: Any, rule: FieldAggregate, name: str) -> Any:
    valid = history.versions.valid(column)
    match rule.function:
        case "sum":
            return number.total(history, column, valid, name)
        case "product":
            return number.product_of(history, column, valid, name)
        case "listagg":
            return nested.listagg(history, column, valid, rule)
        case "collect":
            return nested.collect(history, column, valid, rule)
        case "merge_map":
            return nested.merge_map(history, column, valid)
        case "merge_map_with_keytime":
            return nested.merge_map_with_keytime(history, column, valid, rule)
        case "nested_update":
            return tables.nested_update(history, column, valid, rule, name)
        case "nested_partial_update":
            return tables.nested_partial_update(history, column, valid, rule, name)
        case "theta_sketch" | "hll_sketch":
            return union_sketches(history, column, valid, name, rule.function)
        case _:
            return nested.union_bitmaps(history, column, valid, name)


def copies_value(rule: FieldAggregate) -> bool:
    """Return whether the function picks the value of one version.

    >>> copies_value(FieldAggregate("max")), copies_value(FieldAggregate("sum"))
    (True, False)
    """
    return rule.function in _PICKS


def retract_refusal(name: str, rule: FieldAggregate) -> str | None:
    """Return why the column does not accept retracts.

    None: retracts are supported or ignored.
    """
    if rule.ignore_retract or FUNCTIONS[rule.function].retracts:
        return None
    return f"column '{name}': '{rule.function}' cannot retract a value; set 'fields.{name}.ignore-retract' to ignore retracts"


__all__ = ["copies_value", "fold_column", "retract_refusal"]
