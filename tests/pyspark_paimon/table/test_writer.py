"""A writer of many commits: what it commits is what single writes would, its compactions change no row, and no bucket outgrows the brake."""

from __future__ import annotations

import tempfile
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.io.errors import SchemaMismatch, SystemTableReadOnly
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Table
from pyspark_paimon.spark.client.engine import SparkEngine
from tests.examples import some

COMPACTED = {"bucket": "2", "num-sorted-run.compaction-trigger": "2", "num-sorted-run.stop-trigger": "3"}
KINDS = {
    "keys": (["id"], COMPACTED),
    "vectors": (["id"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "changelog": (["id"], {"bucket": "1", "changelog-producer": "lookup", "num-sorted-run.compaction-trigger": "2"}),
    "dynamic": (["id"], {"dynamic-bucket.target-row-num": "3", "num-sorted-run.compaction-trigger": "2"}),
    "sum": (["id"], {**COMPACTED, "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}),
    "append": ([], {"bucket": "1", "bucket-key": "id", "compaction.min.file-num": "2"}),
    "unaware": ([], {}),
}


def made(kind: str, directory: str) -> Table:
    keys, options = KINDS[kind]
    return Table.create(f"{directory}/t", "id BIGINT NOT NULL, n BIGINT", keys, options=options)


def held(table: Table) -> Counter[tuple[int, int]]:
    return Counter((row["id"], row["n"]) for row in table.scan().to_arrow().to_pylist())


def folded(kind: str, state: Counter[tuple[int, int]], rows: list[tuple[int, int]]) -> Counter[tuple[int, int]]:
    """What a table of the kind holds after a commit of ``rows``."""
    if not KINDS[kind][0]:
        return state + Counter(rows)
    values = dict(state.keys())
    for key, n in rows:
        values[key] = values.get(key, 0) + n if kind == "sum" else n
    return Counter(list(values.items()))


STEPS = st.lists(
    st.one_of(
        st.lists(st.tuples(st.integers(0, 9), st.integers(-5, 5)), min_size=1, max_size=4), st.sampled_from(["commit", "commit", "discard"])
    ),
    max_size=14,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=some(3), deadline=None)
@given(steps=STEPS)
def test_any_turns_leave_what_single_writes_would(kind, steps):
    with tempfile.TemporaryDirectory() as directory:
        table = made(kind, directory)
        state: Counter[tuple[int, int]] = Counter()
        waiting: list[tuple[int, int]] = []
        with table.writer() as writer:
            for step in steps:
                if step == "commit":
                    assert writer.commit().rows == len(waiting)
                    state, waiting = folded(kind, state, waiting), []
                    assert held(table) == state
                elif step == "discard":
                    writer.discard()
                    waiting = []
                else:
                    writer.write({"id": [key for key, _ in step], "n": [n for _, n in step]})
                    waiting += step
        assert held(table) == folded(kind, state, waiting)
        assert table.fsck("deep").clean
        assert table.list_orphan_files(older_than="2100-01-01") == []


def test_no_bucket_gets_more_sorted_runs_than_the_brake_lets_it(tmp_path):
    table = made("keys", str(tmp_path))
    with table.writer() as writer:
        for number in range(12):
            writer.write({"id": list(range(8)), "n": [number] * 8})
            assert writer.commit().compact_snapshot_id is None
            level0 = Counter(file["bucket"] for file in table.files().to_pylist() if file["level"] == 0)
            assert max(level0.values(), default=0) <= 4
    assert table.snapshots()["commit_kind"].to_pylist().count("COMPACT") >= 3
    assert len(table.files()) <= 4


def test_a_table_that_leaves_compaction_to_others_is_not_compacted(tmp_path):
    table = made("keys", str(tmp_path))
    with table.writer(options={"write-only": "true"}) as writer:
        for number in range(5):
            writer.write({"id": [0], "n": [number]})
            writer.commit()
    assert table.snapshots()["commit_kind"].to_pylist() == ["APPEND"] * 5


def test_an_error_discards_what_was_not_committed(tmp_path):
    table = made("keys", str(tmp_path))
    writer = table.writer()
    writer.write({"id": [1], "n": [1]})
    writer.commit()
    writer.write({"id": [2], "n": [2]})
    with pytest.raises(ZeroDivisionError), writer:
        raise ZeroDivisionError
    with table.writer() as writer:
        writer.write({"id": [3], "n": [3]})
        with pytest.raises(SchemaMismatch):
            writer.write({"id": ["no number"], "n": [4]})
    assert held(table) == Counter([(1, 1)])
    assert table.list_orphan_files(older_than="2100-01-01") == []


def test_rows_have_kinds_and_the_next_commit_sees_new_columns(tmp_path):
    table = made("keys", str(tmp_path))
    with table.writer() as writer:
        writer.write({"id": [1, 2], "n": [1, 2]})
        writer.write({"id": [1], "n": [1], "_row_kind": ["-D"]})
        writer.commit()
        table.add_column("more", "STRING")
        writer.write({"id": [3], "n": [3], "more": ["x"]})
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [{"id": 2, "n": 2, "more": None}, {"id": 3, "n": 3, "more": "x"}]


def test_a_numbered_commit_that_is_repeated_is_answered_and_counts_once(tmp_path):
    table = made("sum", str(tmp_path))
    for _ in range(2):
        with table.writer(commit_id="job") as writer:
            replays = []
            for number in range(3):
                writer.write({"id": [1], "n": [10**number]})
                replays.append(writer.commit(number).replayed)
    assert replays == [True] * 3
    assert held(table) == Counter([(1, 111)])
    with table.writer(commit_id="job") as writer, pytest.raises(InvalidArgument, match="give batch_id"):
        writer.commit()
    with table.writer() as writer, pytest.raises(InvalidArgument, match="commit_id"):
        writer.commit(3)


def test_it_is_refused_where_nothing_can_be_written(tmp_path):
    table = made("keys", str(tmp_path))
    writer = table.writer()
    writer.close()
    writer.close()
    for late in (writer.commit, lambda: writer.write({"id": [1], "n": [1]})):
        with pytest.raises(InvalidArgument, match="closed"):
            late()
    with pytest.raises(InvalidArgument, match="over Spark"):
        SparkEngine(table.path, None).writer("name")
    with pytest.raises(SystemTableReadOnly), Table.open(f"{table.path}$files").writer() as writer:
        writer.write({"id": [1]})
