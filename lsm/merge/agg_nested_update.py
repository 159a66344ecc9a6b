"""``nested_update`` and ``nested_partial_update``: arrays of rows as small tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s, Mask
from lsm.keys.encoding import WordColumn
from lsm.keys.sort import sort_rows
from lsm.merge.agg_collect import in_joined_order
from lsm.merge.agg_first_last import last_non_null_value
from lsm.merge.elements import Elements, codes_of, joined_codes
from lsm.merge.version_groups import VersionHistory
from manifest.io.errors import UnmergeableRows
from manifest.schema.merge_options import FieldAggregate


def nested_update(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate, name: str) -> Any:
    """Concatenate rows, or keep one row per nested key.

    With a nested key the last row wins, or the one with the greatest sequence. Retracts remove rows.
    """
    elements, lone = _rows(history, column, valid, rule, name)
    codes, ranks = _codes(elements, rule), _ranks(elements, rule.nested_sequence)
    if history.retract is not None or rule.count_limit is not None:
        chosen = _Loop(elements, codes, ranks, rule, _steps(elements, valid)).choose()
    elif rule.nested_key:
        by, versions = elements.grouped(codes, ranks * (len(codes) + 1) + _joined_places(elements))
        chosen = by[versions.last] if len(by) else by
    else:
        chosen = np.argsort(_joined_places(elements))
    return _with_lone(elements, chosen, lone, history.versions.last_where(history.sets & valid) < 0)


def nested_partial_update(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate, name: str) -> Any:
    """Merge rows with the same nested key.

    Each field takes its last value that is not null.
    """
    elements, lone = _rows(history, column, valid, rule, name)
    is_null = history.versions.last_where(history.sets & valid) < 0
    by, versions = elements.grouped(_codes(elements, rule), _joined_places(elements))
    if not len(by):
        return _with_lone(elements, by, lone, is_null)
    every = VersionHistory(versions, np.ones(len(by), np.bool_))
    fields = []
    for part in elements.values.flatten():
        found = versions.rows_at(last_non_null_value(every, versions.valid(part)))
        fields.append(part.take(pa.array(found, mask=found < 0)))
    merged = pa.StructArray.from_arrays(fields, fields=list(elements.values.type))
    united = Elements(merged, elements.places[by[versions.starts]], history, elements.kind)
    return _with_lone(united, np.arange(len(merged)), lone, is_null)


def _with_lone(elements: Elements, chosen: Int64s, lone: Elements, is_null: Mask) -> Any:
    """Return the arrays of ``chosen`` and of unmerged rows."""
    joined = Elements(
        pa.concat_arrays([elements.values, lone.values]),
        np.concatenate([elements.places, lone.places]),
        elements.history,
        elements.kind,
    )
    chosen = np.concatenate([chosen, np.arange(len(lone.places)) + len(elements.places)])
    chosen = chosen[~is_null[joined.keys[chosen]]]
    return joined.pack(chosen[np.argsort(joined.keys[chosen], kind="stable")], is_null)


def _rows(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate, name: str) -> tuple[Elements, Elements]:
    """Return the rows to merge, and the unmerged rows.

    Rows to merge exclude nulls and those dropped by ``nested-key-null-strategy``. Arrays of keys with one array pass unmerged.
    """
    wanted = (history.in_order if history.older is None else history.in_order | history.older) & valid
    elements = Elements.of(history, column, wanted)
    sets = history.sets & valid
    first = history.versions.first_where(sets)
    meets = history.versions.last_where(sets) > first
    if history.retract is not None:  # a retract before the first add has no effect
        meets |= history.versions.last_where(history.retract & valid) >= first
    is_merged = meets[elements.keys]
    lone, elements = elements.where(~is_merged & sets[elements.places]), elements.where(is_merged)
    keep = elements.values.is_valid().to_numpy(zero_copy_only=False)
    if rule.nested_key and rule.nested_key_nulls != "merge":
        complete = keep.copy()
        for part in rule.nested_key:
            complete &= elements.part(part).is_valid().to_numpy(zero_copy_only=False)
        if rule.nested_key_nulls == "error" and (keep & ~complete).any():
            raise UnmergeableRows(f"column '{name}': a row has a null in its nested key; see 'fields.{name}.nested-key-null-strategy'")
        keep = complete
    return (elements if keep.all() else elements.where(keep)), lone


def _codes(elements: Elements, rule: FieldAggregate) -> Int64s:
    if rule.nested_key:
        return joined_codes([codes_of(elements.part(part)) for part in rule.nested_key])
    return codes_of(elements.values)


def _ranks(elements: Elements, fields: tuple[str, ...]) -> Int64s:
    """Return the rank of each row by its sequence fields.

    Nulls come first. Without sequence fields all ranks are 0.
    """
    ranks = np.zeros(len(elements.places), np.int64)
    if fields and len(ranks):
        done = sort_rows([WordColumn.of(elements.part(name)) for name in fields], length=len(ranks))
        sizes = np.diff(np.append(done.starts, len(ranks)))
        ranks[done.order] = np.repeat(np.arange(len(done.starts)), sizes)
    return ranks


def _joined_places(elements: Elements) -> Int64s:
    """Return the position of each row in the join order.

    Rows of late versions come before all others. Rows of one version keep their order.
    """
    places = np.unique(elements.places)
    number = np.empty(len(places), np.int64)
    number[np.searchsorted(places, in_joined_order(elements.history, places))] = np.arange(len(places))
    by_version = number[np.searchsorted(places, elements.places)]
    position = np.empty(len(elements.places), np.int64)
    position[np.argsort(by_version, kind="stable")] = np.arange(len(elements.places))
    return position


def _steps(elements: Elements, valid: Mask) -> Int64s:
    """Return the places to process, of keys that have rows."""
    # Empty arrays count too: merging one removes duplicates from the held rows.
    history = elements.history
    wanted = history.sets & valid if history.retract is None else (history.sets | history.retract) & valid
    places = np.flatnonzero(wanted)
    return places[np.isin(history.versions.keys[places], elements.keys)]


@dataclass(frozen=True)
class _Loop:
    """Version-by-version merge, for limits and retracts."""

    elements: Elements
    codes: Int64s
    ranks: Int64s
    rule: FieldAggregate
    steps: Int64s

    def choose(self) -> Int64s:
        """Return the remaining rows, by key."""
        bounds = np.searchsorted(self.elements.places, np.stack([self.steps, self.steps + 1])).T.tolist()
        keys = self.elements.history.versions.keys[self.steps].tolist()
        found: list[int] = []
        held: list[int] | None = None
        before = -1
        for place, key, (low, high) in zip(self.steps.tolist(), keys, bounds, strict=True):
            if key != before:
                found.extend(held or ())
                held, before = None, key
            held = self._after(held, place, list(range(low, high)))
        return np.array([*found, *(held or ())], np.int64)

    def _after(self, held: list[int] | None, place: int, rows: list[int]) -> list[int] | None:
        history = self.elements.history
        if history.sets[place]:
            is_late = history.older is not None and history.older[place]
            held = rows if held is None else self._join(rows, held) if is_late else self._join(held, rows)
        if held is not None and history.retract is not None and history.retract[place]:
            gone = {int(self.codes[row]) for row in rows}
            held = [row for row in self._join(held, []) if int(self.codes[row]) not in gone]
        return held

    def _join(self, held: list[int], rows: list[int]) -> list[int]:
        limit = len(self.codes) if self.rule.count_limit is None else self.rule.count_limit
        if not self.rule.nested_key:
            return [*held, *rows[: max(0, limit - len(held))]]
        by_code: dict[int, int] = {}
        for at, row in enumerate((*held, *rows)):
            code = int(self.codes[row])
            if code in by_code:
                if self.ranks[row] >= self.ranks[by_code[code]]:
                    by_code[code] = row
            elif at < len(held) or len(by_code) < limit:
                by_code[code] = row
        return list(by_code.values())


__all__ = ["nested_partial_update", "nested_update"]
