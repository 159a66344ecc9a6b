"""Sorting of many texts.

Texts are compared by their UTF-8 bytes, eight at a time as one machine word.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.keys.hashing import text_buffers
from paimon_base.thresholds import thresholds

_Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
_Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


def rank_texts(texts: Any) -> tuple[Any, _Longs]:
    """Return the distinct texts, and each element's position among them.

    ``texts`` is a large_string array without nulls. The distinct texts ascend.

    >>> distinct, ranks = rank_texts(pa.array(["b", "a", "b"], pa.large_string()))
    >>> distinct.to_pylist(), ranks.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    if not len(texts):
        return texts, np.zeros(0, dtype=np.int64)
    order, opens = _sort_by_words(texts) or _sort_by_comparison(texts)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(opens) - 1
    return take_texts(texts, order[opens]), ranks


def take_texts(texts: Any, positions: _Longs) -> Any:
    """Return the elements of a large_string array at ``positions``.

    The array has no nulls.

    >>> take_texts(pa.array(["b", "a"], pa.large_string()), np.array([1, 0, 1])).to_pylist()
    ['a', 'b', 'a']
    """
    offsets, data = text_buffers(texts)
    width = common_length(offsets)
    if not width:
        return texts.take(pa.array(positions))
    # Texts of one length are moved as fixed-size blocks, which is much faster.
    block = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(texts), [None, pa.py_buffer(data[offsets[0] : offsets[-1]])])
    blocks = block.take(pa.array(positions))
    bounds = np.arange(len(positions) + 1, dtype=np.int64) * width
    return pa.LargeStringArray.from_buffers(len(positions), pa.py_buffer(bounds), blocks.buffers()[1])


def common_length(offsets: _Longs) -> int:
    """Return the common length of values, else 0.

    0 if lengths differ, or without values.

    >>> common_length(np.array([0, 2, 4])), common_length(np.array([0, 2, 5]))
    (2, 0)
    """
    if len(offsets) < 2:
        return 0
    lengths = np.diff(offsets)
    return int(lengths[0]) if bool((lengths == lengths[0]).all()) else 0


def _sort_by_comparison(texts: Any) -> tuple[_Longs, _Flags]:
    order = pc.array_sort_indices(texts)
    ordered = texts.take(order)
    opens = np.ones(len(texts), dtype=bool)
    opens[1:] = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    return order.to_numpy().astype(np.int64), opens


def _sort_by_words(texts: Any) -> tuple[_Longs, _Flags] | None:
    """Return the order, and the positions where another text begins.

    None if too many words would be needed to distinguish the texts. Each round sorts the runs of equal prefixes by their next word.
    Beyond its end a text counts as zeros. So the last round sorts by length, to distinguish a text from the same text with zero bytes.
    """
    offsets, data = text_buffers(texts)
    padded = np.append(data, np.zeros(8, dtype=np.uint8))
    view: Any = np.ndarray((len(data) + 1,), dtype="<u8", buffer=padded, strides=(1,))
    skipped = _common_prefix(texts)
    starts, lengths = offsets[:-1] + skipped, np.diff(offsets) - skipped
    count = len(starts)
    order: Any = None
    active = np.arange(count)
    opens = np.zeros(count + 1, dtype=bool)
    opens[[0, count]] = True
    for number in range(thresholds.text_sort_words + 1):
        members = active if order is None else order[active]
        left = lengths[members] - 8 * number
        is_last = bool((left <= 0).all())
        # Texts that are still equal differ in trailing zero bytes only: the shorter one is first.
        words = lengths[members].astype(np.uint64) if is_last else _next_words(view, starts[members] + 8 * number, left)
        sorted_members = _sort_in_runs(words, opens[active])
        if order is None:
            order = sorted_members
        else:
            order[active] = members[sorted_members]
        words = words[sorted_members]
        opens[active[1:]] |= words[1:] != words[:-1]
        if is_last:
            return order, opens[:-1]
        active = np.flatnonzero(~(opens[:-1] & opens[1:]))
        if not len(active):
            return order, opens[:-1]
    return None


def _common_prefix(texts: Any) -> int:
    """Return the length of the texts' common prefix."""
    # The smallest and the greatest text share it.
    ends = pc.min_max(texts)
    least, greatest = (np.frombuffer(ends[end].as_buffer(), dtype=np.uint8) for end in ("min", "max"))
    length = min(len(least), len(greatest))
    differ = np.flatnonzero(least[:length] != greatest[:length])
    return int(differ[0]) if len(differ) else length


def _next_words(view: Any, starts: _Longs, left: _Longs) -> _Words:
    """Return eight bytes from ``starts`` on as a big-endian number.

    Bytes beyond the ``left`` remaining ones count as zeros.
    """
    shortest = int(left.min())
    words = view[starts if shortest > 0 else np.where(left > 0, starts, 0)].byteswap(inplace=True)
    if shortest >= 8:
        return np.asarray(words)
    bits = np.clip(left, 0, 8).astype(np.uint64) * np.uint64(8)
    missing = np.uint64(64) - bits
    words = np.where(bits == 0, np.uint64(0), words >> np.minimum(missing, np.uint64(63)))
    return np.asarray(words << np.minimum(missing, np.uint64(63)))


def _sort_in_runs(words: _Words, opens: _Flags) -> _Longs:
    """Return positions that sort the words inside each run.

    ``opens`` is the mask of the starts of runs.
    """
    order = _sorted_positions(words)
    runs = np.cumsum(opens)
    if int(runs[-1]) == 1:
        return order
    # One integer sort: the run, and in it the rank by words.
    packed = (runs[order].astype(np.uint64) << np.uint64(32)) | np.arange(len(order), dtype=np.uint64)
    packed.sort()
    return order[(packed & np.uint64(0xFFFFFFFF)).astype(np.int64)]


def _sorted_positions(words: _Words) -> _Longs:
    """Return positions that sort the words.

    >>> _sorted_positions(np.array([9, 7, 8], dtype=np.uint64)).tolist()
    [1, 2, 0]
    """
    bits = len(words).bit_length()
    least = int(words.min())
    spare = _trailing_zeros(words)
    # Word and position packed into one word sort several times faster.
    if ((int(words.max()) - least) >> spare).bit_length() + bits > 64:
        return np.argsort(words)
    packed = words - np.uint64(least)
    packed >>= np.uint64(spare)
    packed <<= np.uint64(bits)
    packed |= np.arange(len(words), dtype=np.uint64)
    packed.sort()
    packed &= np.uint64(2**bits - 1)
    return packed.view(np.int64)


def _trailing_zeros(words: _Words) -> int:
    """Return the number of common trailing zero bits.

    Ends of short texts cause them.
    """
    union = int(np.bitwise_or.reduce(words))
    return (union & -union).bit_length() - 1 if union else 0
