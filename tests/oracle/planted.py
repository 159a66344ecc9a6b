"""Faults that the oracle must find: each replaces one function of the product by a wrong one.

There is one in each place that prunes, skips, converts, folds, caches, counts from metadata, or resolves a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.oracle import faults_of_indexes, faults_of_pruning, faults_of_rows, faults_of_secondary
from tests.oracle.patching import Fault, forget_lazy_attributes, restore

FAULTS: dict[str, Fault] = {**faults_of_pruning.FAULTS, **faults_of_indexes.FAULTS, **faults_of_rows.FAULTS, **faults_of_secondary.FAULTS}
"""Each planted fault by its name."""


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The product with one fault."""
    patches = list(FAULTS[name]())
    assert patches, f"nothing is replaced by {name}"
    for one in patches:
        one.start()
    forget_lazy_attributes()
    try:
        yield
    finally:
        for one in patches:
            one.stop()
        restore(patches)
