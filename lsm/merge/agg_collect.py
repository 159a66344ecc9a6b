"""Aggregate functions over arrays, maps, texts and bitmaps.

``listagg``, ``collect``, ``merge_map``, ``merge_map_with_keytime`` and ``rbm32``. Elements are numbered, sorted and chosen in
bulk. Keys are processed version by version only where a step depends on the state left by the step before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lsm.keys.encoding import WordColumn, one_array
from lsm.keys.sort import sort_rows
from lsm.merge.agg_first_last import last_non_null_value
from lsm.merge.elements import Elements, codes_of, combine_codes
from lsm.merge.version_groups import VersionHistory
from manifest.io.errors import UnmergeableRows
from manifest.schema.merge_options import FieldAggregate
from sparkexpr.values.arrays import Int64s, Mask


def listagg(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate) -> Any:
    """Join texts by the delimiter.

    Blank texts are skipped unless all texts of the key are blank; then the first one stays.
    With ``distinct`` the tokens of the first text stay as they are, and later tokens are added only once.
    """
    texts = one_array(column).take(pa.array(history.versions.rows))
    filled = pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(pc.fill_null(texts, ""))), 0).to_numpy(zero_copy_only=False)
    provided = history.sets & valid
    is_blank = history.versions.last_where(provided & filled) < 0  # all texts of the key are blank: keep the first
    positions = in_joined_order(history, np.flatnonzero(provided & (filled | is_blank[history.versions.keys])))
    positions = positions[~is_blank[history.versions.keys[positions]] | _starts(history.versions.keys[positions])]
    chosen_texts = texts.take(pa.array(positions))
    keys = history.versions.keys[positions]
    if rule.distinct:
        chosen_texts, keys = _distinct_tokens(chosen_texts, keys, rule.delimiter)
    counts = np.bincount(keys, minlength=len(history.versions.starts))
    lists = pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(counts)).astype(np.int32)), chosen_texts.cast(pa.string()))
    joined = pc.binary_join(lists, rule.delimiter)
    return pc.if_else(pa.array(counts == 0), pa.scalar(None, joined.type), joined)


def _starts(keys: Int64s) -> Mask:
    """Return where a new key begins."""
    return np.append(True, keys[1:] != keys[:-1])[: len(keys)]


def in_joined_order(history: VersionHistory, positions: Int64s) -> Int64s:
    """Return the positions in join order.

    Within a key, late versions come first, the latest of them in front.
    """
    if history.older is None:
        return positions
    late = history.older[positions]
    return positions[np.lexsort((np.where(late, -positions, positions), ~late, history.versions.keys[positions]))]


def _distinct_tokens(texts: Any, keys: Int64s, delimiter: str) -> tuple[Any, Int64s]:
    """Return the first text's tokens and new tokens, per key."""
    lists = pc.split_pattern(texts, delimiter)
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    tokens, owners = lists.flatten(), np.repeat(np.arange(len(keys)), lengths)
    is_first_text = _starts(keys)[owners]
    codes = codes_of(tokens)
    by = np.lexsort((np.arange(len(codes)), codes, keys[owners]))
    is_new = np.zeros(len(codes), np.bool_)
    is_new[by] = np.append(True, (np.diff(codes[by]) != 0) | (np.diff(keys[owners][by]) != 0))[: len(codes)]
    mask = is_first_text | (is_new & pc.not_equal(tokens, "").to_numpy(zero_copy_only=False))
    return tokens.filter(pa.array(mask)), keys[owners][mask]


def collect(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate) -> Any:
    """Concatenate all elements in order.

    With ``distinct`` each element occurs once, if anything was added. A retract removes one occurrence of each of its elements.
    """
    with_elements = history.in_order if history.older is None else history.in_order | history.older
    elements = Elements.of(history, column, with_elements & valid)
    codes = codes_of(elements.values) if rule.distinct or history.retract is not None else np.empty(0, np.int64)
    mask = elements.first_of_each(codes) if rule.distinct else np.ones(len(elements.positions), np.bool_)
    if rule.distinct and history.seed is not None:
        added = history.newer if history.older is None else history.newer | history.older
        mask |= history.seed[elements.positions] & (history.versions.last_where(added) < 0)[elements.keys]
    if history.retract is not None:
        takes_back = np.unique(history.versions.keys[history.retract & valid])
        bounds = np.searchsorted(elements.keys, np.stack([takes_back, takes_back + 1]))
        for low, high in bounds.T.tolist():
            mask[low:high] = _collect_key(history, elements.positions[low:high], codes[low:high], distinct=rule.distinct)
    is_null = history.versions.last_where(history.sets & valid) < 0
    element_indices = np.flatnonzero(mask)
    return elements.pack(element_indices[~is_null[elements.keys[element_indices]]], is_null)


def _collect_key(history: VersionHistory, positions: Int64s, codes: Int64s, *, distinct: bool) -> list[bool]:
    """Return which elements of one key remain."""
    # Process version by version: a retracted element may be added again.
    remains = [False] * len(codes)
    indices_by_code: dict[int, list[int]] = {}
    assert history.retract is not None
    seeded = False
    start = 0
    while start < len(codes):
        position = int(positions[start])
        end = int(np.searchsorted(positions, position, side="right"))
        version_codes = codes[start:end].tolist()
        if history.sets[position]:
            once = distinct and not (history.seed is not None and history.seed[position])
            if once and seeded:  # duplicates of a seed remain until the first add
                for double in (index for ats in indices_by_code.values() for index in ats[1:]):
                    remains[double] = False
                indices_by_code = {code: ats[:1] for code, ats in indices_by_code.items()}
            seeded = not once
            for index, code in enumerate(version_codes, start):
                if not (once and indices_by_code.get(code)):
                    indices_by_code.setdefault(code, []).append(index)
                    remains[index] = True
        if history.retract[position]:
            for code, count in Counter(version_codes).items():
                gone, indices_by_code[code] = indices_by_code.get(code, [])[:count], indices_by_code.get(code, [])[count:]
                for index in gone:
                    remains[index] = False
        start = end
    return remains


def merge_map(history: VersionHistory, column: Any, valid: Mask) -> Any:
    """Merge the entries of all maps.

    The last entry of a key wins. A retracted map removes its keys.
    """
    with_entries = history.in_order if history.older is None else history.in_order | history.older
    elements = Elements.of(history, column, with_entries & valid)
    is_null = history.versions.last_where(history.sets & valid) < 0
    by, versions = elements.group(codes_of(elements.values.field(0)))
    element_indices = np.empty(0, np.int64)
    if len(by):
        positions = elements.positions[by]
        masks = (None if mask is None else mask[positions] for mask in (history.older, history.retract, history.seed))
        entry = VersionHistory(versions, history.newer[positions], *masks)
        element_indices = by[(newest_entry := last_non_null_value(entry, np.ones(len(by), np.bool_)))[newest_entry >= 0]]
    return elements.pack(element_indices[~is_null[elements.keys[element_indices]]], is_null)


def merge_map_with_keytime(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate) -> Any:
    """Merge the entries of all maps by their time.

    The entry with the greatest time wins. An entry without a value removes its key.
    """
    provided = history.sets & valid
    elements = Elements.of(history, column, provided)
    codes = codes_of(elements.values.field(0))
    rows = elements.values.field(1)
    time_index = rows.type.num_fields - 1 if rule.ts_field is None else rows.type.get_field_index(rule.ts_field)
    has_row = rows.is_valid().to_numpy(zero_copy_only=False)
    times = rows.flatten()[time_index].cast(pa.string()).to_pylist()
    positions = np.flatnonzero(provided)
    bounds = np.searchsorted(elements.positions, np.stack([positions, positions + 1])).T.tolist()
    is_first = _starts(history.versions.keys[positions])
    is_late = np.zeros(len(positions), np.bool_) if history.older is None else history.older[positions]

    def overlaid(entry_by_code: dict[int, int], entries: dict[int, int]) -> dict[int, int]:
        for code, element in entries.items():
            if not has_row[element]:
                entry_by_code.pop(code, None)
            elif times[element] is not None and (code not in entry_by_code or (times[entry_by_code[code]] or "") < times[element]):
                entry_by_code[code] = element
        return entry_by_code

    element_indices: list[int] = []
    entry_by_code: dict[int, int] = {}
    for (low, high), starts, late in zip(bounds, is_first.tolist(), is_late.tolist(), strict=True):
        entries = dict(zip(codes[low:high].tolist(), range(low, high), strict=True))
        if starts:
            element_indices.extend(entry_by_code.values())
            entry_by_code = entries
        else:
            entry_by_code = overlaid(entries, entry_by_code) if late else overlaid(entry_by_code, entries)
    element_indices.extend(entry_by_code.values())
    return elements.pack(np.array(element_indices, np.int64), history.versions.last_where(provided) < 0)


def union_bitmaps(history: VersionHistory, column: Any, valid: Mask, name: str) -> Any:
    """Return the union of serialised 32-bit roaring bitmaps."""
    positions = np.flatnonzero(history.sets & valid)
    keys = history.versions.keys[positions]
    parts = one_array(column).take(pa.array(history.versions.rows[positions])).to_pylist()
    united: list[bytes | None] = [None] * len(history.versions.starts)
    starts = np.flatnonzero(_starts(keys)).tolist()
    for start, end in pairwise([*starts, len(keys)]):
        if end - start == 1:
            united[keys[start]] = parts[start]
            continue
        try:
            union = BitMap.union(*(BitMap.deserialize(part) for part in parts[start:end]))
        except ValueError as error:
            raise UnmergeableRows(f"column '{name}': a value is not a 32-bit roaring bitmap ({error})") from error
        union.run_optimize()
        united[keys[start]] = union.serialize()
    return pa.array(united, one_array(column).type)


def nested_update(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate, name: str) -> Any:
    """Concatenate rows, or keep one row per nested key.

    With a nested key the last row wins, or the one with the greatest sequence. Retracts remove rows.
    """
    elements, lone = _rows(history, column, valid, rule, name)
    codes, ranks = _codes(elements, rule), _ranks(elements, rule.nested_sequence)
    if history.retract is not None or rule.count_limit is not None:
        element_indices = _Loop(elements, codes, ranks, rule, _steps(elements, valid)).choose()
    elif rule.nested_key:
        by, versions = elements.group(codes, ranks * (len(codes) + 1) + _join_positions(elements))
        element_indices = by[versions.last] if len(by) else by
    else:
        element_indices = np.argsort(_join_positions(elements))
    return _with_lone(elements, element_indices, lone, history.versions.last_where(history.sets & valid) < 0)


def nested_partial_update(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate, name: str) -> Any:
    """Merge rows with the same nested key.

    Each field takes its last value that is not null.
    """
    elements, lone = _rows(history, column, valid, rule, name)
    is_null = history.versions.last_where(history.sets & valid) < 0
    by, versions = elements.group(_codes(elements, rule), _join_positions(elements))
    if not len(by):
        return _with_lone(elements, by, lone, is_null)
    every = VersionHistory(versions, np.ones(len(by), np.bool_))
    fields = []
    for part in elements.values.flatten():
        newest_rows = versions.rows_at(last_non_null_value(every, versions.valid(part)))
        fields.append(part.take(pa.array(newest_rows, mask=newest_rows < 0)))
    merged = pa.StructArray.from_arrays(fields, fields=list(elements.values.type))
    united = Elements(merged, elements.positions[by[versions.starts]], history, elements.kind)
    return _with_lone(united, np.arange(len(merged)), lone, is_null)


def _with_lone(elements: Elements, element_indices: Int64s, lone: Elements, is_null: Mask) -> Any:
    """Return the arrays of ``element_indices`` and of unmerged rows."""
    joined = Elements(
        pa.concat_arrays([elements.values, lone.values]),
        np.concatenate([elements.positions, lone.positions]),
        elements.history,
        elements.kind,
    )
    element_indices = np.concatenate([element_indices, np.arange(len(lone.positions)) + len(elements.positions)])
    element_indices = element_indices[~is_null[joined.keys[element_indices]]]
    return joined.pack(element_indices[np.argsort(joined.keys[element_indices], kind="stable")], is_null)


def _rows(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate, name: str) -> tuple[Elements, Elements]:
    """Return the rows to merge, and the unmerged rows.

    Rows to merge exclude nulls and those dropped by ``nested-key-null-strategy``. Arrays of keys with one array pass unmerged.
    """
    with_rows = (history.in_order if history.older is None else history.in_order | history.older) & valid
    elements = Elements.of(history, column, with_rows)
    sets = history.sets & valid
    first = history.versions.first_where(sets)
    meets = history.versions.last_where(sets) > first
    if history.retract is not None:  # a retract before the first add has no effect
        meets |= history.versions.last_where(history.retract & valid) >= first
    is_merged = meets[elements.keys]
    lone, elements = elements.where(~is_merged & sets[elements.positions]), elements.where(is_merged)
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
        return combine_codes([codes_of(elements.part(part)) for part in rule.nested_key])
    return codes_of(elements.values)


def _ranks(elements: Elements, fields: tuple[str, ...]) -> Int64s:
    """Return the rank of each row by its sequence fields.

    Nulls come first. Without sequence fields all ranks are 0.
    """
    ranks = np.zeros(len(elements.positions), np.int64)
    if fields and len(ranks):
        sorted_rows = sort_rows([WordColumn.of(elements.part(name)) for name in fields], length=len(ranks))
        sizes = np.diff(np.append(sorted_rows.starts, len(ranks)))
        ranks[sorted_rows.order] = np.repeat(np.arange(len(sorted_rows.starts)), sizes)
    return ranks


def _join_positions(elements: Elements) -> Int64s:
    """Return the position of each row in the join order.

    Rows of late versions come before all others. Rows of one version keep their order.
    """
    positions = np.unique(elements.positions)
    number = np.empty(len(positions), np.int64)
    number[np.searchsorted(positions, in_joined_order(elements.history, positions))] = np.arange(len(positions))
    by_version = number[np.searchsorted(positions, elements.positions)]
    position = np.empty(len(elements.positions), np.int64)
    position[np.argsort(by_version, kind="stable")] = np.arange(len(elements.positions))
    return position


def _steps(elements: Elements, valid: Mask) -> Int64s:
    """Return the positions to process, of keys that have rows."""
    # Empty arrays count too: merging one removes duplicates from the held rows.
    history = elements.history
    with_changes = history.sets & valid if history.retract is None else (history.sets | history.retract) & valid
    positions = np.flatnonzero(with_changes)
    return positions[np.isin(history.versions.keys[positions], elements.keys)]


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
        bounds = np.searchsorted(self.elements.positions, np.stack([self.steps, self.steps + 1])).T.tolist()
        keys = self.elements.history.versions.keys[self.steps].tolist()
        remaining_rows: list[int] = []
        current_rows: list[int] | None = None
        before = -1
        for position, key, (low, high) in zip(self.steps.tolist(), keys, bounds, strict=True):
            if key != before:
                remaining_rows.extend(current_rows or ())
                current_rows, before = None, key
            current_rows = self._after(current_rows, position, list(range(low, high)))
        return np.array([*remaining_rows, *(current_rows or ())], np.int64)

    def _after(self, current_rows: list[int] | None, position: int, rows: list[int]) -> list[int] | None:
        history = self.elements.history
        if history.sets[position]:
            is_late = history.older is not None and history.older[position]
            current_rows = rows if current_rows is None else self._join(rows, current_rows) if is_late else self._join(current_rows, rows)
        if current_rows is not None and history.retract is not None and history.retract[position]:
            gone = {int(self.codes[row]) for row in rows}
            current_rows = [row for row in self._join(current_rows, []) if int(self.codes[row]) not in gone]
        return current_rows

    def _join(self, current_rows: list[int], rows: list[int]) -> list[int]:
        limit = len(self.codes) if self.rule.count_limit is None else self.rule.count_limit
        if not self.rule.nested_key:
            return [*current_rows, *rows[: max(0, limit - len(current_rows))]]
        by_code: dict[int, int] = {}
        for index, row in enumerate((*current_rows, *rows)):
            code = int(self.codes[row])
            if code in by_code:
                if self.ranks[row] >= self.ranks[by_code[code]]:
                    by_code[code] = row
            elif index < len(current_rows) or len(by_code) < limit:
                by_code[code] = row
        return list(by_code.values())
