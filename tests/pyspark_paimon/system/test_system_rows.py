"""``$audit_log``, ``$binlog`` and ``$ro``: rows of a table shown in another way. What the engine shows of the same writes is told beside."""

import pyarrow as pa
import pytest

from manifest.io.errors import SystemTableReadOnly
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Table

KINDS = [(1, 2, "+U"), (2, 2, "-D"), (3, 3, "-U"), (4, 3, "-D"), (5, 5, "+I")]
"""The engine's ``$audit_log`` of the table below."""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two commits of every kind of row, not compacted."""
    options = {"bucket": "1", "write-only": "true"}
    made = Table.create(tmp_path_factory.mktemp("rows") / "t", "k INT, v INT", primary_keys=["k"], options=options)
    write(made, (1, 1, "+I"), (2, 2, "+U"), (3, 3, "-U"), (4, 3, "-D"))
    write(made, (1, 1, "-U"), (1, 2, "+U"), (2, 2, "-D"), (5, 5, "+I"))
    return made


def write(table, *rows):
    keys, values, kinds = zip(*rows, strict=True)
    table.write(pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.int32()), "_row_kind": list(kinds)}))


def of(table, name):
    return Table.open(f"{table.path}${name}")


def test_the_audit_log_has_the_kind_of_the_newest_row_first(table):
    log = of(table, "audit_log")
    assert log.schema.names == ["rowkind", "k", "v"]
    assert [tuple(row.values()) for row in log.scan(columns=["k", "v", "rowkind"], order_by="k").to_arrow().to_pylist()] == KINDS
    assert log.scan("rowkind = '-D' AND v = 2", columns=["k"]).to_arrow().to_pylist() == [{"k": 2}]
    assert log.scan("v = 3 OR rowkind = '+I'").count() == 3
    assert log.scan("rowkind LIKE '-%'").aggregate({"n": "count", "v": ["sum"]}).to_pylist() == [{"n": 3, "v_sum": 8}]
    assert log.scan(snapshot=1, columns=["rowkind"], order_by="k").to_arrow()["rowkind"].to_pylist() == ["+I", "+U", "-U", "-D"]
    assert log.scan(columns=["rowkind"]).count() == 5
    assert table.count() == 2


def test_the_binlog_has_the_same_in_lists(table):
    log = of(table, "binlog")
    rows = log.scan(columns=["rowkind", "k", "v"]).to_arrow()
    assert rows.schema.field("k").type == pa.list_(pa.int32())
    assert sorted((row["k"], row["v"], row["rowkind"]) for row in rows.to_pylist()) == [([k], [v], kind) for k, v, kind in KINDS]
    assert log.scan("rowkind = '+U'", columns=["v"]).to_arrow().to_pylist() == [{"v": [2]}]


def test_tables_without_keys_have_inserts_only(tmp_path):
    made = Table.create(tmp_path / "t", "v INT NOT NULL")
    made.write(pa.table({"v": pa.array([7, 8], pa.int32())}))
    assert of(made, "audit_log").scan("v > 7").to_arrow().to_pylist() == [{"rowkind": "+I", "v": 8}]
    assert str(of(made, "binlog").table_schema.field("v").type) == "ARRAY<INT>"
    assert of(made, "ro").count() == made.scan(read_optimized=True).count() == 2


def test_read_optimized_rows_are_those_of_the_last_full_compaction(tmp_path):
    made = Table.create(tmp_path / "t", "k INT, v INT", primary_keys=["k"], options={"bucket": "1"})
    write(made, (1, 1, "+I"), (2, 2, "+I"))
    optimized = of(made, "ro")
    assert optimized.count() == 0
    made.compact(full=True)
    write(made, (1, 9, "+U"), (2, 2, "-D"), (3, 9, "+I"))
    made.analyze(["v"])  # what is true of all rows is not true of these
    for scan in (optimized.scan, lambda *filters, **more: made.scan(*filters, read_optimized=True, **more)):
        assert scan(order_by="k").to_arrow().to_pylist() == [{"k": 1, "v": 1}, {"k": 2, "v": 2}]
        assert (scan().count(), scan("v = 1").count(), scan("v = 9").count()) == (2, 1, 0)
        assert scan("v < 9").aggregate({"v": ["min", "sum"]}).to_pylist() == [{"v_min": 1, "v_sum": 3}]
        assert {file.level for split in scan().plan().splits for file in split.files} == {5}
    assert optimized.primary_keys == ("k",)
    with pytest.raises(InvalidArgument, match="read_optimized"):
        made.scan(incremental=(1, 2), read_optimized=True)


@pytest.mark.parametrize("name", ["audit_log", "binlog", "ro"])
def test_they_are_only_read(table, name):
    with pytest.raises(SystemTableReadOnly, match=rf"t\${name}"):
        of(table, name).write(of(table, name).scan().to_arrow())
    with pytest.raises(InvalidArgument, match="changelog"):
        of(table, name).scan(incremental=(1, 2)).to_arrow()
