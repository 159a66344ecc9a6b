"""Scans whose hits are spread over all pages: the same rows from the decoder that filters, and broken pages are errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lsm.read.row_group import RowGroupRead
from lsm.read.text_search import TextRows
from paimon_base.errors import CorruptFile
from pyspark_paimon import Table

pytestmark = pytest.mark.sizes

ROWS = 4000
FILTERS = [
    "few = 3",
    "label = 'label 17'",
    "label IN ('label 17', 'label 3999', 'none')",
    "label = 'label 17' AND few >= 0",
    "few = 2 AND NOT label = 'label 9'",
    "(label = 'label 17' OR few = 1) AND kind = 'b'",
    "kind = 'a' AND few < 1",
    "tags['x'] = 'x7' AND few = 0",
]


@pytest.fixture(autouse=True)
def filtering_always(set_thresholds: Callable[..., None]) -> None:
    """Have the filtering decoder read whatever it can, even if that does not pay."""
    set_thresholds(paged_rows=1)
    set_thresholds(masked_chunk_bytes=0)
    set_thresholds(sparse=10**9)
    set_thresholds(dense=1)


def rows() -> pa.Table:
    few = np.random.default_rng(5).integers(0, 4, ROWS)
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "few": pa.array([None if at % 50 == 0 else value for at, value in enumerate(few.tolist())], pa.int32()),
            "label": pa.array([f"label {at * 7919 % ROWS}" for at in range(ROWS)]),
            "kind": pa.array(["abc"[value % 3] for value in few.tolist()]),
            "tags": pa.array([[("x", f"x{at % 9}")] for at in range(ROWS)], pa.map_(pa.string(), pa.string())),
        }
    )


def create(path: Path, **options: str) -> Table:
    settings = {
        "bucket": "1",
        "write-only": "true",
        **{name.replace("__", ".").replace("_", "-"): value for name, value in options.items()},
    }
    return Table.create(path, rows().schema, primary_keys=["id"], options=settings)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often the filtering decoder gave rows, and how often rows of texts."""
    calls = {"mask": 0, "texts": 0}
    by_mask, strike = RowGroupRead._by_mask, TextRows.strike_others

    def masked(*args: object) -> object:
        found = by_mask(*args)  # type: ignore[arg-type]
        calls["mask"] += found is not None
        return found

    def texts(*args: object) -> bool:
        found = strike(*args)  # type: ignore[arg-type]
        calls["texts"] += found
        return found

    monkeypatch.setattr(RowGroupRead, "_by_mask", masked)
    monkeypatch.setattr(TextRows, "strike_others", texts)
    return calls


@pytest.mark.parametrize("condition", FILTERS)
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.sampled(2)
def test_the_rows_are_those_of_a_scan_that_decodes_everything(
    tmp_path: Path, condition: str, indexed: bool, counted: dict[str, int], set_thresholds: Callable[..., None]
) -> None:
    indexes = {"file_index__bitmap__columns": "few,kind", "file_index__bloom_filter__columns": "label"} if indexed else {}
    table = create(tmp_path / "t", parquet__block__size="20000", **indexes)
    table.write(rows())
    table.delete("id BETWEEN 100 AND 300")
    table.compact(full=True)
    found = table.scan(condition).to_arrow()
    assert counted["mask"]
    assert counted["texts"] or "label = 'label 17'" not in condition or " OR " in condition
    set_thresholds(paged_rows=10**9)
    assert found == table.scan(condition).to_arrow()
    assert found.num_rows


@pytest.mark.parametrize("condition", ["label = 'label 17'", "few = 3"])
def test_a_broken_page_is_an_error(tmp_path: Path, condition: str) -> None:
    table = create(tmp_path / "t", file__compression="none")
    table.write(rows())
    (path,) = (tmp_path / "t").rglob("data-*.parquet")
    group = pq.read_metadata(path).row_group(0)
    (chunk,) = (chunk for chunk in map(group.column, range(group.num_columns)) if chunk.path_in_schema == "label")
    damaged = bytearray(path.read_bytes())
    damaged[chunk.data_page_offset + chunk.total_compressed_size - 5] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(CorruptFile, match=path.name):
        table.scan(condition).to_arrow()
