"""Columns stored as differences (DELTA_BINARY_PACKED), read by other engines: every type, pattern of nulls, page and row-group edge."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.golden_rows import canonical_rows, golden_rows
from tests.interop.engine import Engine
from tests.interop.peers import Peer
from tests.lsm import packed_columns

pytestmark = [pytest.mark.interop, pytest.mark.long]


def test_java_reads_filters_and_merges_differences(engine: Engine, tmp_path: Path) -> None:
    table = packed_columns.packed_table(tmp_path / "t", **{"num-sorted-run.compaction-trigger": "99"})
    schema, expected = table.table_schema, golden_rows(packed_columns.rows(), table.table_schema)
    assert canonical_rows(engine.dump(tmp_path / "t"), schema) == expected
    row = packed_columns.rows().slice(5000, 1)
    for name in ("big_none", "int_none", "day_none", "tiny_none"):
        value = row[name][0].as_py()
        form = {"op": "=", "col": name, "value": str(value) if name == "day_none" else value}
        same = packed_columns.rows().filter(pc.equal(packed_columns.rows()[name], row[name][0]))
        assert canonical_rows(engine.dump(tmp_path / "t", form), schema) == golden_rows(same, schema)
    table.write(packed_columns.rows().slice(0, 10).append_column("_row_kind", pa.array(["-D"] * 10)))
    merged = golden_rows(packed_columns.rows().slice(10), schema)
    assert canonical_rows(engine.dump(tmp_path / "t"), schema) == merged
    engine.compact(tmp_path / "t", full=True)
    assert golden_rows(table.scan().to_arrow(), schema) == merged


@pytest.mark.parametrize("fixture", ["pypaimon", "pypaimon_rust"])
def test_pypaimon_reads_differences(fixture: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    peer: Peer = request.getfixturevalue(fixture)
    home = tmp_path / "peers.db"
    home.mkdir()
    table = packed_columns.packed_table(home / "t")
    expected = packed_columns.rows()
    peer.ask("taken_fallbacks")
    found = peer.read(home / "t").select(expected.column_names).cast(expected.schema)
    assert golden_rows(found, table.table_schema) == golden_rows(expected, table.table_schema)
    assert peer.ask("taken_fallbacks") == []
