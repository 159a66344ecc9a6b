"""The life of a table that is measured under a limit, once with few rows: each step checks its own answer."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks import memory_limit


@pytest.mark.long
def test_every_step_finds_what_it_must(tmp_path, capsys):
    memory_limit.in_process(str(tmp_path), 1000, 1)
    steps = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines()[2:]]
    assert steps == [
        "5 writes", "full compaction", "20 lookups", "delete a tenth", "merged read", "compaction of the deletes", "read of all columns",
    ]  # fmt: skip


def test_each_id_comes_once_whatever_the_number_of_streams():
    parts = [batch for first, last in ((0, 400), (400, 1000)) for batch in memory_limit.rows(1000, first, last)]
    rows = pa.Table.from_batches(parts)
    assert sorted(rows["id"].to_pylist()) == list(range(1000))
    assert memory_limit.summed(rows.filter(pc.not_equal(rows["city"], "city 3")).to_batches()) == (900, 449_700)
