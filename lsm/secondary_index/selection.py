"""Rows of data files that the indexes of their levels selected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel, ConfigDict
from pyroaring import BitMap

from fileindex.predicate.json import from_json
from fileindex.predicate.tree import Predicate, all_of, conjuncts
from fileindex.rowset.roaring import deserialize


class IndexedRows(BaseModel):
    """Selected rows of one file.

    Args:
        rows: Their positions, a serialised bitmap.
        proven: Terms of the filter that all of these rows match, as JSON.
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
        terms: Terms of the filter that the rows were selected by, as JSON. A read without all of them needs other rows, too.
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
        terms = conjuncts(predicate)
        if not {_term(text) for text in self.terms}.issubset(terms):
            return None
        proven = {_term(text) for text in indexed.proven}
        return AnsweredFilter(deserialize(indexed.rows)[0], all_of(*(term for term in terms if term not in proven)))


@lru_cache(maxsize=256)
def _term(text: str) -> Predicate:
    return from_json(text)
