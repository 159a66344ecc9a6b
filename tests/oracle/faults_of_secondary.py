"""Planted faults where secondary indexes decide: ordinals, files, exactness, deleted rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyroaring import BitMap

from fileindex.predicate.tree import TRUE, Compare, Op
from fileindex.rowset.result import RowSet
from fileindex.sorted_index.payload_reader import SortedIndexReader
from lsm.secondary_index.answers import _Group
from lsm.secondary_index.selection import IndexSelection
from tests.oracle.patching import Fault, method


def _all_proven(right: Any, self: IndexSelection, file_name: str, predicate: Any) -> Any:
    answered = right(self, file_name, predicate)
    return None if answered is None else replace(answered, residual=TRUE)


def _unequal(right: Any, self: SortedIndexReader, question: Any) -> Any:
    result = right(self, question)
    if isinstance(question, Compare) and question.op is Op.NE and isinstance(result, RowSet):
        return RowSet(result.rows | self.nulls(), exact=True)
    return result


def _strict(right: Any, self: SortedIndexReader, question: Any) -> Any:
    strict = {Op.LE: Op.LT, Op.GE: Op.GT}
    return right(self, replace(question, op=strict.get(question.op, question.op)) if isinstance(question, Compare) else question)


def _first_term(right: Any, self: _Group, terms: Any) -> Any:
    results = right(self, terms)
    return [results[0]] * len(results)


def _last_ordinal(right: Any, self: SortedIndexReader, question: Any) -> Any:
    result = right(self, question)
    return RowSet(BitMap(list(result.rows)[:-1]), exact=result.exact) if isinstance(result, RowSet) else result


FAULTS: dict[str, Fault] = {
    "secondary-index-proves-all": lambda: method(IndexSelection, "answer", _all_proven),
    "secondary-index-unequal-takes-nulls": lambda: method(SortedIndexReader, "evaluate", _unequal),
    "secondary-index-excludes-bounds": lambda: method(SortedIndexReader, "evaluate", _strict),
    "secondary-index-answers-by-first-term": lambda: method(_Group, "answer", _first_term),
    "secondary-index-loses-a-row": lambda: method(SortedIndexReader, "evaluate", _last_ordinal),
}
