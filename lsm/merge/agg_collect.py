"""Aggregate functions over arrays, maps, texts and bitmaps.

``listagg``, ``collect``, ``merge_map``, ``merge_map_with_keytime`` and ``rbm32``. Elements are numbered, sorted and chosen in
bulk. Keys are processed version by version only where a step depends on the state left by the step before.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from fileindex.base.arrays import Int64s, Mask
from lsm.keys.encoding import one_array
from lsm.merge.agg_first_last import last_non_null_value
from lsm.merge.elements import Elements, codes_of
from lsm.merge.version_groups import VersionHistory
from manifest.io.errors import UnmergeableRows
from manifest.schema.merge_options import FieldAggregate


def listagg(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate) -> Any:
    """Join texts by the delimiter.

    Blank texts are skipped unless all texts of the key are blank; then the first one stays.
    With ``distinct`` the tokens of the first text stay as they are, and later tokens are added only once.
    """
    texts = one_array(column).take(pa.array(history.versions.rows))
    filled = pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(pc.fill_null(texts, ""))), 0).to_numpy(zero_copy_only=False)
    known = history.sets & valid
    is_blank = history.versions.last_where(known & filled) < 0  # all texts of the key are blank: keep the first
    places = in_joined_order(history, np.flatnonzero(known & (filled | is_blank[history.versions.keys])))
    places = places[~is_blank[history.versions.keys[places]] | _starts(history.versions.keys[places])]
    chosen = texts.take(pa.array(places))
    keys = history.versions.keys[places]
    if rule.distinct:
        chosen, keys = _distinct_tokens(chosen, keys, rule.delimiter)
    counts = np.bincount(keys, minlength=len(history.versions.starts))
    lists = pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(counts)).astype(np.int32)), chosen.cast(pa.string()))
    joined = pc.binary_join(lists, rule.delimiter)
    return pc.if_else(pa.array(counts == 0), pa.scalar(None, joined.type), joined)


def _starts(keys: Int64s) -> Mask:
    """Return where a new key begins."""
    return np.append(True, keys[1:] != keys[:-1])[: len(keys)]


def in_joined_order(history: VersionHistory, places: Int64s) -> Int64s:
    """Return the places in join order.

    Within a key, late versions come first, the latest of them in front.
    """
    if history.older is None:
        return places
    late = history.older[places]
    return places[np.lexsort((np.where(late, -places, places), ~late, history.versions.keys[places]))]


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
    kept = is_first_text | (is_new & pc.not_equal(tokens, "").to_numpy(zero_copy_only=False))
    return tokens.filter(pa.array(kept)), keys[owners][kept]


def collect(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate) -> Any:
    """Concatenate all elements in order.

    With ``distinct`` each element occurs once, if anything was added. A retract removes one occurrence of each of its elements.
    """
    wanted = history.in_order if history.older is None else history.in_order | history.older
    elements = Elements.of(history, column, wanted & valid)
    codes = codes_of(elements.values) if rule.distinct or history.retract is not None else np.empty(0, np.int64)
    kept = elements.first_of_each(codes) if rule.distinct else np.ones(len(elements.places), np.bool_)
    if rule.distinct and history.seed is not None:
        added = history.newer if history.older is None else history.newer | history.older
        kept |= history.seed[elements.places] & (history.versions.last_where(added) < 0)[elements.keys]
    if history.retract is not None:
        takes_back = np.unique(history.versions.keys[history.retract & valid])
        bounds = np.searchsorted(elements.keys, np.stack([takes_back, takes_back + 1]))
        for low, high in bounds.T.tolist():
            kept[low:high] = _collect_key(history, elements.places[low:high], codes[low:high], distinct=rule.distinct)
    is_null = history.versions.last_where(history.sets & valid) < 0
    chosen = np.flatnonzero(kept)
    return elements.pack(chosen[~is_null[elements.keys[chosen]]], is_null)


def _collect_key(history: VersionHistory, places: Int64s, codes: Int64s, *, distinct: bool) -> list[bool]:
    """Return which elements of one key remain."""
    # Process version by version: a retracted element may be added again.
    kept = [False] * len(codes)
    held: dict[int, list[int]] = {}
    assert history.retract is not None
    seeded = False
    start = 0
    while start < len(codes):
        place = int(places[start])
        end = int(np.searchsorted(places, place, side="right"))
        some = codes[start:end].tolist()
        if history.sets[place]:
            once = distinct and not (history.seed is not None and history.seed[place])
            if once and seeded:  # duplicates of a seed remain until the first add
                for double in (at for ats in held.values() for at in ats[1:]):
                    kept[double] = False
                held = {code: ats[:1] for code, ats in held.items()}
            seeded = not once
            for at, code in enumerate(some, start):
                if not (once and held.get(code)):
                    held.setdefault(code, []).append(at)
                    kept[at] = True
        if history.retract[place]:
            for code, count in Counter(some).items():
                gone, held[code] = held.get(code, [])[:count], held.get(code, [])[count:]
                for at in gone:
                    kept[at] = False
        start = end
    return kept


def merge_map(history: VersionHistory, column: Any, valid: Mask) -> Any:
    """Merge the entries of all maps.

    The last entry of a key wins. A retracted map removes its keys.
    """
    wanted = history.in_order if history.older is None else history.in_order | history.older
    elements = Elements.of(history, column, wanted & valid)
    is_null = history.versions.last_where(history.sets & valid) < 0
    by, versions = elements.grouped(codes_of(elements.values.field(0)))
    chosen = np.empty(0, np.int64)
    if len(by):
        places = elements.places[by]
        masks = (None if mask is None else mask[places] for mask in (history.older, history.retract, history.seed))
        entry = VersionHistory(versions, history.newer[places], *masks)
        chosen = by[(found := last_non_null_value(entry, np.ones(len(by), np.bool_)))[found >= 0]]
    return elements.pack(chosen[~is_null[elements.keys[chosen]]], is_null)


def merge_map_with_keytime(history: VersionHistory, column: Any, valid: Mask, rule: FieldAggregate) -> Any:
    """Merge the entries of all maps by their time.

    The entry with the greatest time wins. An entry without a value removes its key.
    """
    wanted = history.sets & valid
    elements = Elements.of(history, column, wanted)
    codes = codes_of(elements.values.field(0))
    rows = elements.values.field(1)
    at = rows.type.num_fields - 1 if rule.ts_field is None else rows.type.get_field_index(rule.ts_field)
    has_row = rows.is_valid().to_numpy(zero_copy_only=False)
    times = rows.flatten()[at].cast(pa.string()).to_pylist()
    places = np.flatnonzero(wanted)
    bounds = np.searchsorted(elements.places, np.stack([places, places + 1])).T.tolist()
    is_first = _starts(history.versions.keys[places])
    is_late = np.zeros(len(places), np.bool_) if history.older is None else history.older[places]

    def overlaid(held: dict[int, int], entries: dict[int, int]) -> dict[int, int]:
        for code, element in entries.items():
            if not has_row[element]:
                held.pop(code, None)
            elif times[element] is not None and (code not in held or (times[held[code]] or "") < times[element]):
                held[code] = element
        return held

    chosen: list[int] = []
    held: dict[int, int] = {}
    for (low, high), starts, late in zip(bounds, is_first.tolist(), is_late.tolist(), strict=True):
        entries = dict(zip(codes[low:high].tolist(), range(low, high), strict=True))
        if starts:
            chosen.extend(held.values())
            held = entries
        else:
            held = overlaid(entries, held) if late else overlaid(held, entries)
    chosen.extend(held.values())
    return elements.pack(np.array(chosen, np.int64), history.versions.last_where(wanted) < 0)


def union_bitmaps(history: VersionHistory, column: Any, valid: Mask, name: str) -> Any:
    """Return the union of serialised 32-bit roaring bitmaps."""
    places = np.flatnonzero(history.sets & valid)
    keys = history.versions.keys[places]
    parts = one_array(column).take(pa.array(history.versions.rows[places])).to_pylist()
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


__all__ = ["collect", "in_joined_order", "listagg", "merge_map", "merge_map_with_keytime", "union_bitmaps"]
