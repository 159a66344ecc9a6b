"""The predicate tree.

Filter languages produce it, and pruning stages read it. Literals are *plain* values of their column (``column_type.Plain``).
A filter language binds them to the table's types before it builds a tree. It follows Spark SQL: a comparison with null is
never true, NaN equals itself and is the greatest, -0.0 equals 0.0. There is no NOT node: ``negate`` pushes it to the leaves.

An IN list is a ``ValueSet``, which caches its hash and the forms that pruning stages derive from it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from sparkexpr.expression.tree import Expression, column_values
from sparkexpr.values.column_type import Plain

_Form = TypeVar("_Form")


@dataclass(frozen=True, slots=True, order=True)
class ColumnRef:
    """A column, or the entry ``key`` of a MAP column.

    For example ``attrs['clicks']``.
    """

    name: str
    key: str | None = None

    def __str__(self) -> str:
        return self.name if self.key is None else f"{self.name}[{self.key}]"


class Op(StrEnum):
    """Comparison operators."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def negated(self) -> Op:
        """The opposite operator: true where this one is false.

        Both are unknown for nulls.
        """
        return _NEGATED[self]


_NEGATED = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.GE: Op.LT, Op.GT: Op.LE, Op.LE: Op.GT}


@dataclass(frozen=True, slots=True)
class Compare:
    """``column op value``.

    ``value`` is never None.
    """

    column: ColumnRef
    op: Op
    value: Plain


@dataclass(frozen=True, slots=True)
class In:
    """``column [NOT] IN (values)``.

    ``values`` never contains None: a null in the list is resolved when the tree is built.
    """

    column: ColumnRef
    values: tuple[Plain, ...]
    negated: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.values, ValueSet):
            object.__setattr__(self, "values", ValueSet(self.values))


@dataclass(frozen=True, slots=True)
class IsNull:
    """``column IS [NOT] NULL``.

    An absent key of a map entry counts as null.
    """

    column: ColumnRef
    negated: bool = False


@dataclass(frozen=True, slots=True)
class StartsWith:
    """``column [NOT] LIKE 'prefix%'``."""

    column: ColumnRef
    prefix: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class ComputedPredicate:
    """A condition that is computed for each row.

    True where ``test``, of type BOOLEAN, is true. With ``negated``, true where it is false.
    It prunes nothing. The binder of a filter adds the conditions on single columns that it implies.
    """

    test: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of ``children``.

    Without children: true.
    """

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of ``children``.

    Without children: false.
    """

    children: tuple[Predicate, ...]


Leaf: TypeAlias = Compare | In | IsNull | StartsWith
Predicate: TypeAlias = Leaf | ComputedPredicate | And | Or
TRUE = And(())
FALSE = Or(())


def all_of(*children: Predicate | None) -> Predicate:
    """Return the AND of ``children``, flattened.

    None and TRUE are dropped. The result is FALSE if one child is.
    """
    flat: list[Predicate] = []
    for child in children:
        if child is None:
            continue
        flat.extend(child.children if isinstance(child, And) else (child,))
    if FALSE in flat:
        return FALSE
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(*children: Predicate) -> Predicate:
    """Return the OR of ``children``, flattened.

    FALSE is dropped. The result is TRUE if one child is.
    """
    flat: list[Predicate] = []
    for child in children:
        flat.extend(child.children if isinstance(child, Or) else (child,))
    if TRUE in flat:
        return TRUE
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def negate(predicate: Predicate) -> Predicate:
    """Return NOT ``predicate`` under three-valued logic.

    True where ``predicate`` is false, never where it is unknown.
    """
    match predicate:
        case And(children):
            return any_of(*(negate(child) for child in children))
        case Or(children):
            return all_of(*(negate(child) for child in children))
        case Compare(column, op, value):
            return Compare(column, op.negated, value)
        case _:
            return replace(predicate, negated=not predicate.negated)


def conjuncts(predicate: Predicate | None) -> tuple[Predicate, ...]:
    """Return the terms of the top-level AND.

    () without a filter.
    """
    if predicate is None:
        return ()
    return predicate.children if isinstance(predicate, And) else (predicate,)


def leaves(predicate: Predicate) -> list[Leaf]:
    """Return every leaf, left to right, without computed predicates."""
    return [node for node in _ends(predicate) if not isinstance(node, ComputedPredicate)]


def values_of(leaf: Leaf) -> tuple[Plain, ...] | None:
    """Return the values of ``=`` or ``IN``.

    None for every other leaf.

    >>> values_of(Compare(ColumnRef("a"), Op.EQ, 3)), values_of(IsNull(ColumnRef("a")))
    ((3,), None)
    """
    match leaf:
        case Compare(_, Op.EQ, value):
            return (value,)
        case In(_, values, False):
            return values
        case _:
            return None


def computed_predicates(predicate: Predicate) -> list[ComputedPredicate]:
    """Return every computed predicate, left to right."""
    return [node for node in _ends(predicate) if isinstance(node, ComputedPredicate)]


def _ends(predicate: Predicate) -> list[Leaf | ComputedPredicate]:
    """Return the nodes without children, left to right."""
    nodes: list[Leaf | ComputedPredicate] = []
    pending: list[Predicate] = [predicate]
    while pending:
        node = pending.pop()
        if isinstance(node, And | Or):
            pending.extend(reversed(node.children))
        else:
            nodes.append(node)
    return nodes


def columns_of(predicate: Predicate | None) -> tuple[str, ...]:
    """Return the names of the columns that the predicate reads.

    In order of appearance.
    """
    names: dict[str, None] = {}
    for end in () if predicate is None else _ends(predicate):
        for column in column_values(end.test) if isinstance(end, ComputedPredicate) else (end.column,):
            names[column.name] = None
    return tuple(names)


def map_leaves(
    predicate: Predicate, change: Callable[[Leaf], Predicate], change_computed: Callable[[ComputedPredicate], Predicate] | None = None
) -> Predicate:
    """Return the tree with ``change`` applied to every leaf.

    ``change_computed`` is applied to every computed predicate. None: they stay unchanged.
    """
    match predicate:
        case And(children):
            return all_of(*(map_leaves(child, change, change_computed) for child in children))
        case Or(children):
            return any_of(*(map_leaves(child, change, change_computed) for child in children))
        case ComputedPredicate():
            return predicate if change_computed is None else change_computed(predicate)
        case _:
            return change(predicate)


class ValueSet(tuple[Plain, ...]):  # noqa: SLOT001  # caches live in its __dict__
    """Tuple of values that caches its hash and derived forms.

    It equals the plain tuple. ``In`` converts its values to one.

    >>> ValueSet((3, 1)) == (3, 1), hash(ValueSet((3, 1))) == hash((3, 1))
    (True, True)
    """

    def __hash__(self) -> int:
        cached: int | None = self.__dict__.get("hash")
        if cached is None:
            cached = self.__dict__["hash"] = super().__hash__()
        return cached

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueSet, (tuple(self),)


def derive(values: tuple[Plain, ...], form: Hashable, make: Callable[[tuple[Plain, ...]], _Form]) -> _Form:
    """Return ``make(values)``, cached under ``form``.

    A ``ValueSet`` keeps it for its lifetime. For any other tuple it is computed each time.

    >>> values = ValueSet((3, 1))
    >>> derive(values, "sorted", sorted) is derive(values, "sorted", sorted)
    True
    """
    if not isinstance(values, ValueSet):
        return make(values)
    cache: dict[Any, Any] = values.__dict__
    if form not in cache:
        cache[form] = make(values)
    derived: _Form = cache[form]
    return derived
