"""Conditions on one column as ranges of its keys.

A set of keys is a sorted list of cuts: it begins at the first, ends before the second, and so on. Conditions on the same column
become one set, so that ``x >= 5 AND x < 9`` is one range, and ``<>`` all but one key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fileindex.predicate.tree import And, Compare, ComputedPredicate, In, IsNull, Leaf, Op, Or, Predicate, StartsWith, derive
from fileindex.sorted_index.key_codec import Key, KeyCodec
from sparkexpr.values.column_type import Plain

Cut: TypeAlias = tuple[Any, ...]
"""``(1, key)`` is before a key, LEAST and GREATEST are before and after all keys."""
Cuts: TypeAlias = tuple[Cut, ...]
LEAST: Cut = (0,)
GREATEST: Cut = (2,)
ALL: Cuts = (LEAST, GREATEST)


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """Keys that a condition allows, and whether it allows null.

    Without ``exact`` not all of these values satisfy it.
    """

    cuts: Cuts
    nulls: bool
    exact: bool = True


def key_after(key: Key) -> Key:
    r"""Return the least key that is greater, whether or not the column can have it.

    >>> key_after(7), key_after(b"a")
    (8, b'a\x00')
    """
    return key + 1 if isinstance(key, int) else key + b"\0"


def intersection(*parts: Cuts) -> Cuts:
    """Return the keys that are in all parts.

    >>> intersection(((1, 2), (1, 9)), ((1, 5), GREATEST))
    ((1, 5), (1, 9))
    """
    return _combine(parts, len(parts))


def complement(cuts: Cuts) -> Cuts:
    """Return all other keys.

    >>> complement(((1, 2), (1, 3)))
    ((0,), (1, 2), (1, 3), (2,))
    """
    return tuple(sorted({*cuts} ^ {*ALL}))


def key_ranges(predicate: Predicate, codec: KeyCodec) -> KeyRanges | None:
    """Return the key ranges of a condition on one column.

    None if nothing is known of it: a computed condition, or a literal that the column cannot have.

    >>> from fileindex.predicate.tree import ColumnRef
    >>> from sparkexpr.values.column_type import ColumnType
    >>> codec, column = KeyCodec(ColumnType("INT")), ColumnRef("a")
    >>> key_ranges(And((Compare(column, Op.GE, 5), Compare(column, Op.LT, 9))), codec)
    KeyRanges(cuts=((1, 5), (1, 9)), nulls=False, exact=True)
    """
    match predicate:
        case And(children):
            parts = [key_ranges(child, codec) for child in children]
            usable_parts = [part for part in parts if part is not None]
            if parts and not usable_parts:
                return None
            exact = len(usable_parts) == len(parts) and all(part.exact for part in usable_parts)
            return KeyRanges(intersection(ALL, *(part.cuts for part in usable_parts)), all(part.nulls for part in usable_parts), exact)
        case Or(children):
            alternatives: list[KeyRanges] = []
            for child in children:
                ranges = key_ranges(child, codec)
                if ranges is None:
                    return None
                alternatives.append(ranges)
            exact = all(part.exact for part in alternatives)
            return KeyRanges(_combine([part.cuts for part in alternatives], 1), any(part.nulls for part in alternatives), exact)
        case ComputedPredicate():
            return None
        case leaf:
            return _leaf(leaf, codec)


def _leaf(leaf: Leaf, codec: KeyCodec) -> KeyRanges | None:
    match leaf:
        case IsNull(_, negated):
            return KeyRanges(ALL if negated else (), nulls=not negated)
        case Compare(_, Op.EQ | Op.NE as op, value):
            cuts, negated = _points((value,), codec), op is Op.NE
        case In(_, values, negated):
            cuts = derive(values, ("sorted-index", codec), lambda literals: _points(literals, codec))
        case Compare(_, op, value):
            cuts, negated = _range(op, value, codec), False
        case StartsWith(_, prefix, negated):
            cuts = _prefix(prefix, codec)
    if cuts is None:
        return None
    return KeyRanges(complement(cuts) if negated else cuts, nulls=False)


def _points(values: tuple[Plain, ...], codec: KeyCodec) -> Cuts | None:
    keys: set[Key] = set()
    for value in values:
        literal = codec.literals(value)
        if literal is None:
            return None
        keys.update(literal)
    return _combine([((1, key), (1, key_after(key))) for key in keys], 1)


def _range(op: Op, value: Plain, codec: KeyCodec) -> Cuts | None:
    """Return the keys of a comparison. Both zeros are on the same side of a bound."""
    keys = codec.literals(value)
    if keys is None:
        return None
    cut: Cut = (1, keys[0]) if op in {Op.LT, Op.GE} else (1, key_after(keys[-1]))
    return (LEAST, cut) if op in {Op.LT, Op.LE} else (cut, GREATEST)


def _prefix(prefix: str, codec: KeyCodec) -> Cuts | None:
    keys = codec.literals(prefix)
    if keys is None or not isinstance(keys[0], bytes):
        return None
    start = keys[0]
    if not start:
        return ALL
    return (1, start), (1, start[:-1] + bytes([start[-1] + 1]))  # no byte of UTF-8 is 255


def _combine(parts: Sequence[Cuts], depth: int) -> Cuts:
    """Return the keys that at least ``depth`` parts have."""
    changes: defaultdict[Cut, int] = defaultdict(int)
    for cuts in parts:
        for number, cut in enumerate(cuts):
            changes[cut] += 1 - 2 * (number % 2)
    combined: list[Cut] = []
    level = 0
    for cut in sorted(changes):
        level += changes[cut]
        if (level >= depth) != bool(len(combined) % 2):
            combined.append(cut)
    return tuple(combined)
