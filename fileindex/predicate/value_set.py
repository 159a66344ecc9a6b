"""The literals of an IN list: a tuple whose hash, and whatever stages of pruning make of it, is made once however many files are asked."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from fileindex.base.column_type import Plain

_Form = TypeVar("_Form")


class ValueSet(tuple[Plain, ...]):  # noqa: SLOT001  # what is kept lies in its __dict__
    """Equal to the tuple of its values, and hashed like it; ``In`` turns what it is given into one.

    >>> ValueSet((3, 1)) == (3, 1), hash(ValueSet((3, 1))) == hash((3, 1))
    (True, True)
    """

    def __hash__(self) -> int:
        found: int | None = self.__dict__.get("hash")
        if found is None:
            found = self.__dict__["hash"] = super().__hash__()
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueSet, (tuple(self),)


def derived(values: tuple[Plain, ...], form: Hashable, make: Callable[[tuple[Plain, ...]], _Form]) -> _Form:
    """``make(values)``, kept under ``form`` for as long as a ``ValueSet`` lives; made anew for any other tuple.

    >>> values = ValueSet((3, 1))
    >>> derived(values, "sorted", sorted) is derived(values, "sorted", sorted)
    True
    """
    if not isinstance(values, ValueSet):
        return make(values)
    forms: dict[Any, Any] = values.__dict__
    if form not in forms:
        forms[form] = make(values)
    found: _Form = forms[form]
    return found


__all__ = ["ValueSet", "derived"]
