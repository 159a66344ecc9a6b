"""Planted faults where rows decide: merges, folds, lookups, caches, deletion vectors, conversions, names and the binding of filters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.predicate import evaluate_rows, tree
from lsm.deletion_vectors.maintainer import BucketVectors
from lsm.merge import agg_first_last
from lsm.merge.function import Deduplicate, FirstRow
from lsm.read import key_candidates
from lsm.read.keyed_read import KeyedRead
from lsm.read.ordered_runs import OrderedRuns
from lsm.read.split import SplitRead
from lsm.scan import planned_splits, predicates
from lsm.schema import evolution
from lsm.write.copy_on_write import MatchingRows
from pyspark_paimon.filter import bind
from sparkexpr.expression import nested
from tests.oracle.patching import Fault, everywhere, method, value_of


def _unsigned(right: Any, array: Any, file: Any, read: Any) -> Any:
    found = right(array, file, read)
    is_wider = pa.types.is_int64(found.type) and pa.types.is_int32(array.type)
    return array.cast(pa.int32()).view(pa.uint32()).cast(pa.int64()) if is_wider else found


def _negated(right: Any, condition: Any, types: Any, *, negated: bool, depth: int = 0) -> Any:
    if negated and isinstance(condition, bind.And):
        return right(bind.Or(condition.children), types, negated=True, depth=depth)
    return right(condition, types, negated=negated, depth=depth)


def _neighbours(right: Any, rows: MatchingRows) -> Any:
    found = right(rows)
    return found if not len(found) else np.unique(np.maximum(found.astype(np.int64) - 1, 0)).astype(np.uint32)


def _latest_marks(right: Any, self: BucketVectors, file_name: str, rows: Any) -> int:
    self._stored.pop(file_name, None)
    return int(right(self, file_name, rows))


def _without_null(right: Any, column: Any, column_type: Any, given: Any, *, negated: bool) -> Any:
    return right(column, column_type, tuple(value for value in given if value is not None), negated=negated)


FAULTS: dict[str, Fault] = {
    "filter-before-merge": lambda: method(
        SplitRead,
        "_runs",
        lambda right, self, *given, **how: [[replace(r, wanted=self._filter) for r in run] for run in right(self, *given, **how)],
    ),
    "versions-of-whole-filter": lambda: everywhere(key_candidates, "version_filters", lambda right, fold, predicate, schema: (predicate,)),
    "older-version-wins": lambda: method(Deduplicate, "winners", lambda right, self, kinds, done: done.order[done.starts]),
    "last-row-is-first": lambda: method(FirstRow, "winners", lambda right, self, kinds, done: done.last),
    "nulls-overwrite": lambda: everywhere(
        agg_first_last, "last_non_null_value", lambda right, history, valid: right(history, np.ones_like(valid))
    ),
    "maximum-is-newest": lambda: everywhere(
        agg_first_last, "greatest", lambda right, history, column, valid: agg_first_last.last_non_null_value(history, valid)
    ),
    "runs-keep-older-versions": lambda: method(OrderedRuns, "_not_in", lambda right, self, files, rows: rows),
    "cached-keys-of-any-group": lambda: method(KeyedRead, "_place", lambda right, self, known, page: ("keys", 0, int(known.starts[page]))),
    "cached-forms-of-any-type": lambda: everywhere(tree, "derive", lambda right, values, form, make: right(values, form[0], make)),
    "vectors-of-other-files": lambda: everywhere(planned_splits, "_vectors_of", lambda right, *given: right(*given)[::-1]),
    "vector-forgets-older-deletes": lambda: method(BucketVectors, "mark", _latest_marks),
    "deletes-mark-neighbours": lambda: value_of(MatchingRows, "positions", _neighbours),
    "widened-values-lose-sign": lambda: everywhere(evolution, "to_read_schema", _unsigned),
    "struct-field-of-position": lambda: everywhere(nested, "struct_field", lambda right, array, name: right(array, array.type[0].name)),
    "negated-and-stays-and": lambda: everywhere(bind, "_bind", _negated),
    "not-in-forgets-null": lambda: everywhere(bind, "_member", _without_null),
    "literal-beyond-type-is-its-end": lambda: everywhere(
        bind, "_from", lambda right, column, bound, low, high: right(column, min(bound, high), low, high)
    ),
    "nan-is-no-number": lambda: everywhere(
        evaluate_rows, "_compare_floats", lambda right, array, op, value: evaluate_rows._KERNELS[op](array, value)
    ),
    "zeros-differ": lambda: everywhere(evaluate_rows, "_floats", lambda right, *given: replace(right(*given), zero=False)),
    "texts-of-first-value": lambda: everywhere(
        predicates, "required_texts", lambda right, *given: None if (found := right(*given)) is None else (found[0], found[1][:1])
    ),
}
