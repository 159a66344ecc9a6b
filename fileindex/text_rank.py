"""Sorting many texts at once: by the UTF-8 bytes, eight at a time as one machine word, instead of text against text."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.hashing import text_buffers

_Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
_Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

MAX_WORDS = 8
"""Texts that are still equal after so many words are left to Arrow's comparison sort."""


def rank_texts(texts: Any) -> tuple[Any, _Longs]:
    """The distinct texts of a large_string array without nulls, ascending, and for each element the number of its text in them.

    >>> distinct, ranks = rank_texts(pa.array(["b", "a", "b"], pa.large_string()))
    >>> distinct.to_pylist(), ranks.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    if not len(texts):
        return texts, np.zeros(0, dtype=np.int64)
    order, opens = _sort_by_words(texts) or _sort_by_comparison(texts)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(opens) - 1
    return texts.take(pa.array(order[opens])), ranks


def _sort_by_comparison(texts: Any) -> tuple[_Longs, _Flags]:
    order = pc.array_sort_indices(texts)
    ordered = texts.take(order)
    opens = np.ones(len(texts), dtype=bool)
    opens[1:] = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    return order.to_numpy().astype(np.int64), opens


def _sort_by_words(texts: Any) -> tuple[_Longs, _Flags] | None:
    """Order, and where in it another text begins; None if words do not tell the texts apart soon enough.

    Each round sorts the runs of texts that are equal so far by their next word. Behind its end a text reads as zeros, so
    in the last round the lengths tell a text from the same with zero bytes behind it.
    """
    offsets, data = text_buffers(texts)
    padded = np.append(data, np.zeros(8, dtype=np.uint8))
    view: Any = np.ndarray((len(data) + 1,), dtype=">u8", buffer=padded, strides=(1,))
    starts, lengths = offsets[:-1], np.diff(offsets)
    count = len(starts)
    order, active = np.arange(count), np.arange(count)
    opens = np.zeros(count + 1, dtype=bool)
    opens[[0, count]] = True
    for number in range(MAX_WORDS + 1):
        members = order[active]
        left = lengths[members] - 8 * number
        is_last = bool((left <= 0).all())
        words = lengths[members].astype(np.uint64) if is_last else _next_words(view, starts[members] + 8 * number, left)
        chosen = _sort_in_runs(words, opens[active])
        order[active] = members[chosen]
        words = words[chosen]
        opens[active[1:]] |= words[1:] != words[:-1]
        if is_last:
            return order, opens[:-1]
        active = np.flatnonzero(~(opens[:-1] & opens[1:]))
        if not len(active):
            return order, opens[:-1]
    return None


def _next_words(view: Any, at: _Longs, left: _Longs) -> _Words:
    """Eight bytes from ``at`` on as a big-endian number; those beyond the ``left`` ones count as zeros."""
    words = view[np.where(left > 0, at, 0)].astype(np.uint64)
    bits = np.clip(left, 0, 8).astype(np.uint64) * np.uint64(8)
    missing = np.uint64(64) - bits
    words = np.where(bits == 0, np.uint64(0), words >> np.minimum(missing, np.uint64(63)))
    return np.asarray(words << np.minimum(missing, np.uint64(63)))


def _sort_in_runs(words: _Words, opens: _Flags) -> _Longs:
    """Positions that sort the words inside each run; ``opens`` says where runs begin."""
    order = np.argsort(words)
    runs = np.cumsum(opens)
    if int(runs[-1]) == 1:
        return order
    packed = (runs[order].astype(np.uint64) << np.uint64(32)) | np.arange(len(order), dtype=np.uint64)
    packed.sort()
    return order[(packed & np.uint64(0xFFFFFFFF)).astype(np.int64)]
