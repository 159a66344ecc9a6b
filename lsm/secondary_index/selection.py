"""Rows of data files that the indexes of their levels selected."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel, ConfigDict
from pyroaring import BitMap

from fileindex.predicate.json import to_json
from fileindex.predicate.tree import Predicate, all_of, conjuncts
from fileindex.rowset.roaring import deserialize

_NAME_BYTES = 16


class IndexedRows(BaseModel):
    """Selected rows of one file.

    Args:
        rows: Their positions, a serialised bitmap.
        proven: Names of the filter's terms that all of these rows match.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    rows: bytes
    proven: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnsweredFilter:
    """What is left of a filter where an index selected ``rows``."""

    rows: BitMap
    residual: Predicate


class IndexSelection(BaseModel):
    """Selected rows of the files of a split, by file name. Other files are read as usual.

    Args:
        terms: Names of the filter's terms that the rows were selected by. A read without all of them needs other rows, too.
        files: Selected rows.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    terms: tuple[str, ...]
    files: dict[str, IndexedRows]

    def of_files(self, names: Iterable[str]) -> IndexSelection | None:
        """Return the selection of some files. None: it selects no rows of them."""
        files = {name: self.files[name] for name in names if name in self.files}
        return IndexSelection(terms=self.terms, files=files) if files else None

    def answer(self, file_name: str, predicate: Predicate) -> AnsweredFilter | None:
        """Return the rows of a file for a read with ``predicate``.

        None: the index selected no rows of the file, or for another filter.
        """
        indexed = self.files.get(file_name)
        if indexed is None:
            return None
        terms = dict(zip(term_names(predicate), conjuncts(predicate), strict=True))
        if not terms.keys() >= set(self.terms):
            return None
        left = all_of(*(term for name, term in terms.items() if name not in indexed.proven))
        return AnsweredFilter(deserialize(indexed.rows)[0], left)

    def __hash__(self) -> int:
        return hash((self.terms, tuple(self.files)))


def term_names(predicate: Predicate) -> tuple[str, ...]:
    """Return a name of each term of a filter, the same in each process.

    >>> from fileindex.predicate.tree import ColumnRef, IsNull
    >>> term_names(IsNull(ColumnRef("a"))) == term_names(IsNull(ColumnRef("b")))
    False
    """
    return tuple(map(_name, conjuncts(predicate)))


@lru_cache(maxsize=256)
def _name(term: Predicate) -> str:
    # A split has a name, not the term: a list of values may be long.
    return hashlib.blake2b(to_json(term).encode(), digest_size=_NAME_BYTES).hexdigest()
