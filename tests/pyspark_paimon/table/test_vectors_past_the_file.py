"""Deletion vectors that mark rows which their data file does not have: an error names the file, whatever is read or changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap

from lsm.deletion_vectors.writer import DeletionVectorWriter
from manifest.entry.index_manifest import DELETION_VECTORS, IndexManifestEntry
from manifest.io.paths import FileNames
from pyspark_paimon import Table
from tests.damaged_tables import Surgeon

pytestmark = pytest.mark.local_files
_ROWS = 20
MARKS = {
    "many rows past the end": BitMap(range(1_000_000)),
    "the row after the last": BitMap([1, _ROWS]),
    "only rows past the end": BitMap([_ROWS + 5, 10_000]),
    "the greatest position": BitMap([2**32 - 1]),
}
READS: dict[str, Callable[[Table], Any]] = {
    "count": lambda table: table.count(),
    "scan": lambda table: table.scan().to_arrow(),
    "limit": lambda table: table.scan(limit=3).to_arrow(),
    "filter": lambda table: table.scan("n = 3").to_arrow(),
    "count of a filter": lambda table: table.scan("n > 3").count(),
    "top": lambda table: table.scan(order_by="n", limit=2).to_arrow(),
    "aggregate": lambda table: table.scan().aggregate({"n": "sum"}),
    "positions": lambda table: table.scan(columns=["id", "__paimon_row_index"]).to_arrow(),
    "follow": lambda table: list(table.follow()),
    "delete": lambda table: table.delete("n = 3"),
    "delete of all": lambda table: table.delete("n >= 0"),
    "update": lambda table: table.update("n = 3", {"n": 4}),
    "compact": lambda table: table.compact(full=True),
}
_FROM_METADATA = {"count", "limit"}
"""Reads that trust a possible number of deleted rows. ``fsck`` finds what is wrong with it."""


def _table(path: Path, *, keyed: bool, marks: BitMap, recorded: bool) -> tuple[Table, str]:
    """A table of one file with a vector, and the name of the vector's file."""
    options = {"bucket": "1" if keyed else "-1", "deletion-vectors.enabled": "true"}
    table = Table.create(path, "id BIGINT, n INT", primary_keys=["id"] if keyed else (), options=options)
    table.write({"id": list(range(_ROWS)), "n": list(range(_ROWS))})
    if keyed:
        table.compact(full=True)
    surgeon = Surgeon(table.path)
    (entry,) = surgeon.live()
    writer = DeletionVectorWriter(surgeon.store, entry.partition, entry.bucket, FileNames("index-"), None)
    (file,) = writer.write({entry.file.file_name: marks})
    if not recorded:
        file = file.model_copy(update={"vectors": tuple(vector.model_copy(update={"cardinality": None}) for vector in file.vectors or ())})
    surgeon.reindex([IndexManifestEntry.of(file, entry.partition, entry.bucket, DELETION_VECTORS)])
    return Table.open(table.path), file.file_name


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("keyed", [False, True])
def test_rows_past_the_end_of_a_file_are_an_error_that_names_the_vector(tmp_path: Path, keyed: bool, marks: str, recorded: bool) -> None:
    table, name = _table(tmp_path / "t", keyed=keyed, marks=MARKS[marks], recorded=recorded)
    calls = READS | ({"lookup": lambda table: table.lookup([3])} if keyed else {})
    if recorded and len(MARKS[marks]) <= _ROWS:
        calls = {read: call for read, call in calls.items() if read not in _FROM_METADATA}
    outcomes = {read: _outcome(call, table) for read, call in calls.items()}
    assert {read: outcome for read, outcome in outcomes.items() if not (outcome.startswith("CorruptFile") and name in outcome)} == {}
    assert not table.fsck(depth="deep").clean


def _outcome(call: Callable[[Table], Any], table: Table) -> str:
    try:
        return f"an answer: {call(table)!r}"
    except Exception as error:  # noqa: BLE001  # the outcome is compared
        return f"{type(error).__name__}: {error}"
