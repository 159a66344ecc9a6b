"""The literals of an IN list, with cached derived forms.

The hash and the forms that pruning stages derive are computed once, however many files are read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from fileindex.base.column_type import Plain

_Form = TypeVar("_Form")


class ValueSet(tuple[Plain, ...]):  # noqa: SLOT001  # caches live in its __dict__
    """Tuple of values that caches its hash and derived forms.

    It equals the plain tuple. ``In`` converts its values to one.

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
    """Return ``make(values)``, cached under ``form``.

    A ``ValueSet`` keeps it for its lifetime. For any other tuple it is computed each time.

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
