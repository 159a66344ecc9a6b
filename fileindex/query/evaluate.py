"""Evaluation of a predicate with a file's indexes.

The result is REMAIN (unknown), SKIP (no row matches), or a set of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from fileindex.format.container import NGRAMS, ContainerEntry, ContainerReader
from fileindex.format.ngram_filter import NgramFilterReader
from fileindex.format.registry import INDEX_TYPES
from fileindex.predicate.projection import Projection
from fileindex.predicate.required_texts import AllOf, AnyOf, Contains, Requirement, required_texts
from fileindex.predicate.tree import And, Compare, ComputedPredicate, In, IsNull, Leaf, Op, Or, Predicate, StartsWith, derive
from fileindex.query.metrics import IndexMetrics
from fileindex.query.reader import MAX_ROWS, FileIndexes
from fileindex.rowset.result import REMAIN, SKIP, FileIndexResult
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import ColumnType, Plain
from sparkexpr.values.plain_value import is_plain


def evaluate(
    predicate: Predicate, container: ContainerReader, types: Mapping[str, ColumnType], row_count: int, notes: IndexMetrics
) -> FileIndexResult:
    """Return the result for a whole file.

    Never raises: an index that cannot be used is counted in ``notes``.

    Args:
        predicate: On the data file's columns, with literals of their types.
        container: The file's indexes.
        types: The data file's columns.
        row_count: The data file's rows. An index of another number of rows is ignored.
        notes: Receives what was read, used, and could not be used.

    >>> from fileindex.predicate.tree import ColumnRef
    >>> notes = IndexMetrics()
    >>> evaluate(Compare(ColumnRef("a"), Op.EQ, 1), ContainerReader.of(b"nonsense"), {"a": ColumnType("INT")}, 3, notes)
    <Verdict.REMAIN: 'remain'>
    >>> notes.warnings.total()
    1
    """
    (result,) = evaluate_terms([Projection(predicate, exact=True)], container, types, row_count, notes)
    return result


def evaluate_terms(
    terms: Sequence[Projection], container: ContainerReader, types: Mapping[str, ColumnType], row_count: int, notes: IndexMetrics
) -> list[FileIndexResult]:
    """Return the result of each term of a conjunction.

    A result is exact only for the condition that the term was projected from. All results are SKIP once no row is left.
    The other arguments are those of ``evaluate``, which also never raises.
    """
    if row_count > MAX_ROWS:
        return [REMAIN] * len(terms)
    indexes = FileIndexes(container, types, row_count, notes)
    results, together = answer_terms(terms, partial(_leaf, indexes), partial(_computed, indexes))
    indexes.record_usage(together)
    return results


def answer_terms(
    terms: Sequence[Projection], leaf: Callable[[Leaf], FileIndexResult], computed: Callable[[ComputedPredicate], FileIndexResult]
) -> tuple[list[FileIndexResult], FileIndexResult]:
    """Return the result of each term of a conjunction, from those of its ends, and that of all terms.

    A result is exact only for the condition that the term was projected from. All results are SKIP once no row is left.
    """
    results: list[FileIndexResult] = []
    together: FileIndexResult = REMAIN
    for term in terms:
        result = term.answer(_tree(term.inclusive, leaf, computed))
        together = together.and_(result)
        if not together.remains:
            return [SKIP] * len(terms), SKIP
        results.append(result)
    return results, together


def _tree(
    predicate: Predicate, leaf: Callable[[Leaf], FileIndexResult], computed: Callable[[ComputedPredicate], FileIndexResult]
) -> FileIndexResult:
    match predicate:
        case And(children):
            return _all_of(_tree(child, leaf, computed) for child in children)
        case Or(children):
            return _any_of(_tree(child, leaf, computed) for child in children)
        case ComputedPredicate():
            return computed(predicate)
        case _:
            return leaf(predicate)


def _computed(indexes: FileIndexes, predicate: ComputedPredicate) -> FileIndexResult:
    required = required_texts(predicate)
    return REMAIN if required is None else _texts(required, indexes)


def _all_of(results: Iterator[FileIndexResult]) -> FileIndexResult:
    """Intersect results, up to one that leaves no row."""
    result: FileIndexResult = REMAIN
    for number, child_result in enumerate(results):
        result = result.and_(child_result) if number else child_result
        if not result.remains:
            return SKIP
    return result


def _any_of(results: Iterator[FileIndexResult]) -> FileIndexResult:
    """Unite results, up to one that leaves all rows."""
    result: FileIndexResult = SKIP
    for child_result in results:
        result = result.or_(child_result)
        if result is REMAIN:
            return result
    return result


def _texts(required: Requirement, indexes: FileIndexes) -> FileIndexResult:
    """Evaluate what a computed predicate requires of texts."""
    match required:
        case AllOf(children):
            return _all_of(_texts(child, indexes) for child in children)
        case AnyOf(children):
            return _any_of(_texts(child, indexes) for child in children)
        case Contains(column, texts):
            indexed = indexes.of(column)
            entry = None if indexed is None else next((entry for entry in indexed[1] if entry.index_type == NGRAMS), None)
            if indexed is None or entry is None:
                return REMAIN
            return indexes.evaluate(
                entry, indexed[0], lambda reader: reader.candidates(texts) if isinstance(reader, NgramFilterReader) else REMAIN
            )


def _leaf(indexes: FileIndexes, leaf: Leaf) -> FileIndexResult:
    """Evaluate a leaf with all indexes of its column."""
    indexed = indexes.of(leaf.column)
    if indexed is None:
        return REMAIN
    column_type, entries = indexed
    if not entries:
        return REMAIN
    if not derive(_literals(leaf), ("plain", column_type), partial(_are_plain, column_type)):
        return indexes.warn(str(leaf.column), f"a literal is not of type {column_type.kind}")
    result: FileIndexResult = REMAIN
    for entry in entries:
        if _costs_more_than_rows(entry, leaf):
            continue
        entry_result = _evaluate_entry(entry, leaf, column_type, indexes)
        if not entry_result.remains:
            return SKIP
        if entry_result.exact:  # no other index can improve it
            return entry_result
        result = result.and_(entry_result)
    return result


def _costs_more_than_rows(entry: ContainerEntry, leaf: Leaf) -> bool:
    """Return whether comparing the rows is faster than the index."""
    # Such an index makes a row set for every literal of a long list.
    index_type = INDEX_TYPES.get(entry.index_type)
    return isinstance(leaf, In) and len(leaf.values) > thresholds.row_sets and index_type is not None and index_type.grouping is not None


def _are_plain(column_type: ColumnType, literals: tuple[Plain, ...]) -> bool:
    return all(is_plain(value, column_type) and value is not None for value in literals)


def _evaluate_entry(entry: ContainerEntry, leaf: Leaf, column_type: ColumnType, indexes: FileIndexes) -> FileIndexResult:
    if not entry.is_empty:
        return indexes.evaluate(entry, column_type, lambda reader: reader.evaluate(leaf))
    result = _empty(leaf)
    indexes.record_answer(entry, result)
    return result


def _literals(leaf: Leaf) -> tuple[Plain, ...]:
    match leaf:
        case Compare(_, _, value):
            return (value,)
        case In(_, values, _):
            return values
        case StartsWith(_, prefix, _):
            return (prefix,)
        case IsNull():
            return ()


def _empty(leaf: Leaf) -> FileIndexResult:
    """Evaluate an empty index: no row has a value."""
    match leaf:
        case Compare(_, Op.NE, _) | In(_, _, True) | IsNull(_, False):
            return REMAIN
        case _:
            return SKIP
