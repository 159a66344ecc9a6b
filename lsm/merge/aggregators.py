"""One column's fold by the function that its options name (Paimon's ``FieldAggregator`` family)."""

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


def folded(folding: GroupFold, name: str, rule: FieldAggregate, history: VersionHistory) -> Any:
    """The column ``name`` of the result, keys with one version included.

    Raises:
        UnmergeableRows: a value is to be taken back that the function cannot take back, or the result does not fit.
    """
    if history.retract is not None:
        reason = retract_refusal(name, rule)
        if reason is not None and history.retract.any():
            raise UnmergeableRows(reason)
        history = history.without_retracts() if rule.ignore_retract else history
    versions, column = folding.versions, folding.rows.column(name)
    match rule.function:
        case "last_value":
            return folding.picked(name, versions.taken(choice.last_value(history)))
        case "first_value":
            return folding.picked(name, versions.taken(choice.first_value(history)))
    valid = versions.valid(column)
    match rule.function:
        case "last_non_null_value":
            return folding.picked(name, versions.taken(choice.last_non_null_value(history, valid)))
        case "first_non_null_value":
            return folding.picked(name, versions.taken(choice.first_non_null_value(history, valid)))
        case "max" | "bool_or":
            return folding.picked(name, versions.taken(choice.greatest(history, column, valid)))
        case "min" | "bool_and":
            return folding.picked(name, versions.taken(choice.least(history, column, valid)))
    return folding.made(name, _made(history, column, rule, name))


def _made(history: VersionHistory, column: Any, rule: FieldAggregate, name: str) -> Any:
    valid = history.versions.valid(column)
    match rule.function:
        case "sum":
            return number.total(history, column, valid, name)
        case "product":
            return number.multiplied(history, column, valid, name)
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


def retract_refusal(name: str, rule: FieldAggregate) -> str | None:
    """Why a value of the column cannot be taken back; None if it can, or if that is ignored."""
    if rule.ignore_retract or FUNCTIONS[rule.function].retracts:
        return None
    return f"column '{name}': '{rule.function}' cannot take a value back; set 'fields.{name}.ignore-retract' to leave it as it is"


__all__ = ["folded", "retract_refusal"]
