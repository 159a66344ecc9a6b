"""Tables opened again: what was read before is not read twice, and never taken for what another table, branch or file holds."""

from __future__ import annotations

import gc
import multiprocessing
import shutil
import time
import tracemalloc

import pyarrow as pa
import pytest

import manifest.io.file_io
from manifest.avro.container import read_container
from manifest.entry.cache import entries_weight, nothing_held
from manifest.entry.columns import EntryColumns
from manifest.io.file_cache import SETTING, SHARED
from manifest.io.file_io import LocalFileIO
from manifest.io.wrapped import WrappedFileIO
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.request.state import Snapshots
from tests.build import keyed
from tests.children import run_python


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """Files count as settled at once, and nothing is held before."""
    monkeypatch.setattr(manifest.io.file_io, "_CLOCK_TICK_NANOS", 0)
    SHARED.clear()
    yield
    SHARED.clear()


@pytest.fixture
def read_names(monkeypatch):
    """The names of all files that are read from now on."""
    names = []
    for method in ("read", "read_range", "open_input"):
        inner = getattr(LocalFileIO, method)

        def noted(self, path, *args, inner=inner):
            names.append(path.rpartition("/")[2])
            return inner(self, path, *args)

        monkeypatch.setattr(LocalFileIO, method, noted)
    return names


def tick():
    time.sleep(0.03)


def made(path, first=0, count=100, **columns):
    table = keyed(path, "id INT NOT NULL, v STRING")
    table.write(rows(first, count))
    table.write(rows(first, count // 2, "new"))
    table.compact(full=True)
    return table


def rows(first, count, text="old"):
    return pa.table({"id": pa.array(range(first, first + count), pa.int32()), "v": [f"{text} {first} {n}" for n in range(count)]})


def content(path, **options):
    return Table.open(path, **options).scan().to_arrow().sort_by("id")["v"].to_pylist()


@pytest.mark.parametrize(("held", "more"), [(0, {"data"}), (1 << 20, set())], ids=["large files", "small files"])
def test_a_second_open_reads_hints_snapshots_and_pages_but_no_schema_manifest_or_footer(tmp_path, read_names, set_thresholds, held, more):
    set_thresholds(held_file_bytes=held)
    made(tmp_path / "t")
    first = content(tmp_path / "t")
    read_names.clear()
    assert content(tmp_path / "t") == first
    assert {name.split("-")[0] for name in read_names} == {"LATEST", "ROLLBACK", "snapshot", *more}
    assert not any(name.startswith("manifest") for name in read_names)


def test_a_table_dropped_and_made_anew_at_its_path_is_read_anew(tmp_path):
    for first in (0, 1000, 2000):
        made(tmp_path / "t", first)
        assert content(tmp_path / "t") == [f"new {first} {n}" for n in range(50)] + [f"old {first} {n}" for n in range(50, 100)]
        shutil.rmtree(tmp_path / "t")


def test_files_of_the_same_names_put_in_the_place_of_a_table_are_read_anew(tmp_path):
    made(tmp_path / "t")
    shutil.copytree(tmp_path / "t", tmp_path / "saved")
    before = content(tmp_path / "t")
    table = Table.open(tmp_path / "t")
    table.add_column("later", "INT")
    table.write(pa.table({"id": pa.array([0], pa.int32()), "v": ["newest"], "later": pa.array([1], pa.int32())}))
    assert content(tmp_path / "t")[0] == "newest"
    shutil.rmtree(tmp_path / "t")
    shutil.copytree(tmp_path / "saved", tmp_path / "t")
    assert content(tmp_path / "t") == before
    assert Table.open(tmp_path / "t").schema.names == ["id", "v"]


def test_a_rollback_and_other_commits_after_it_are_seen_by_tables_opened_before(tmp_path):
    made(tmp_path / "t")
    opened = Table.open(tmp_path / "t")
    before = opened.scan().to_arrow().sort_by("id")["v"].to_pylist()
    first = opened.scan().snapshot_id
    opened.write(rows(0, 1, "gone"))
    assert content(tmp_path / "t")[0] == "gone 0 0"
    opened.rollback_to(first)
    assert content(tmp_path / "t") == before == opened.scan().to_arrow().sort_by("id")["v"].to_pylist()
    opened.write(rows(0, 1, "again"))
    assert content(tmp_path / "t")[0] == "again 0 0"


def test_two_tables_and_a_branch_hold_their_own(tmp_path):
    made(tmp_path / "a", 0)
    made(tmp_path / "b", 500)
    Table.open(tmp_path / "a").create_branch("trial")
    Table.open(tmp_path / "a", branch="trial").write(rows(0, 1, "branch"))
    for _ in range(2):
        assert content(tmp_path / "a")[0] == "new 0 0"
        assert content(tmp_path / "b")[0] == "new 500 0"
        assert content(tmp_path / "a", branch="trial")[0] == "branch 0 0"


def damage(path):
    """Change bytes in place: the same file, the same size."""
    tick()
    data = bytearray(path.read_bytes())
    data[-20:] = bytes(20)
    path.write_bytes(data)


@pytest.mark.parametrize("pattern", ["manifest/manifest-[0-9a-f]*", "bucket-0/data-*.parquet"])
def test_damage_in_place_is_found_although_the_file_was_read_before(tmp_path, pattern):
    made(tmp_path / "t")
    content(tmp_path / "t")
    for path in tmp_path.glob(f"t/{pattern}"):
        damage(path)
    with pytest.raises(CorruptFile):
        content(tmp_path / "t")


def test_a_missing_data_file_is_an_error_that_names_it(tmp_path):
    made(tmp_path / "t")
    content(tmp_path / "t")
    for path in tmp_path.glob("t/bucket-0/data-*.parquet"):
        path.unlink()
    with pytest.raises(CorruptFile, match="missing"):
        content(tmp_path / "t")


def test_fsck_takes_nothing_for_known_not_even_where_no_time_of_a_file_tells_of_damage(tmp_path, monkeypatch):
    made(tmp_path / "t")
    monkeypatch.setattr(LocalFileIO, "identity", lambda self, path: (1,))
    before = content(tmp_path / "t")
    for path in (*tmp_path.glob("t/manifest/manifest-[0-9a-f]*"), *tmp_path.glob("t/bucket-0/data-*.parquet")):
        damage(path)
    assert Table.open(tmp_path / "t").scan(limit=0).to_arrow().num_rows == 0, "what is held answers"
    assert before
    assert Table.open(tmp_path / "t").fsck().problems


def test_what_is_held_stays_within_its_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(SHARED, "capacity", 100_000)
    for number in range(5):
        made(tmp_path / f"t{number}", number)
        content(tmp_path / f"t{number}")
        assert 0 < SHARED.held_bytes <= 100_000
    assert content(tmp_path / "t0")[0] == "new 0 0"


@pytest.mark.slow
def test_many_open_tables_stay_within_one_bound(tmp_path, monkeypatch):
    made(tmp_path / "t")
    tables = []
    for number in range(50):
        shutil.copytree(tmp_path / "t", tmp_path / f"t{number}")
    SHARED.clear()
    monkeypatch.setattr(SHARED, "capacity", 200_000)
    for number in range(50):
        table = Table.open(tmp_path / f"t{number}")
        assert table.scan("v = 'new 0 0'").to_arrow().num_rows == 1
        assert table.files().num_rows == 1
        tables.append(table)
        assert 0 < SHARED.held_bytes <= 200_000
    held = sum(weight for _, weight in SHARED.uses())
    assert held == SHARED.held_bytes
    assert len({key for key in SHARED._held if str(tmp_path) in str(key)}) < 50, "the tables hold nothing besides"
    assert tables[0].scan().count() == 100


@pytest.mark.parametrize("opened_anew", [False, True])
def test_manifests_that_were_joined_for_one_scan_are_not_joined_for_the_next(tmp_path, monkeypatch, opened_anew):
    made(tmp_path / "t")
    Table.open(tmp_path / "t").write(rows(100, 5))
    SHARED.clear()
    table = Table.open(tmp_path / "t")
    assert table.scan().count() == 105
    joins, concat = [], EntryColumns.concat
    monkeypatch.setattr(EntryColumns, "concat", lambda parts: joins.append(parts) or concat(parts))
    table = Table.open(tmp_path / "t") if opened_anew else table
    assert table.scan("id >= 2").to_arrow().num_rows == 103
    assert not joins


def test_a_manifest_weighs_what_it_takes_in_memory(tmp_path):
    made(tmp_path / "t")
    store = FileStore.open(tmp_path / "t", cache=nothing_held())
    (path,) = [path for meta in store.manifest_metas(store.snapshots.latest())[:1] for path in [store.paths.manifest(meta.file_name)]]
    content = LocalFileIO().read(path)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    parts = [EntryColumns.from_container(read_container(path, content)) for _ in range(100)]
    joined = EntryColumns.concat(parts)
    joined.files()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    counted = sum(map(entries_weight, parts)) * 2
    assert 0.2 < taken / counted < 4


@pytest.mark.slow
def test_what_a_table_held_in_a_store_without_identities_goes_with_it(tmp_path):
    made(tmp_path / "t")
    SHARED.clear()
    table = Table(LocalEngine(tmp_path / "t", file_io=WrappedFileIO(LocalFileIO())))
    assert table.scan().count() == 100
    assert SHARED.held_bytes > 0
    del table
    gc.collect()
    SHARED.put("another", 1, 1)
    assert {key for key in SHARED._held if key[0] != "schema text"} == {"another"}, "what is parsed of a text is no table's"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_holds_the_lock_goes_on(tmp_path):
    made(tmp_path / "t")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with SHARED._lock:
        child = context.Process(target=lambda: answers.put(SHARED.get("x") or SHARED.held_bytes))
        child.start()
    child.join(20)
    assert child.exitcode == 0
    assert answers.get() == 0


def test_the_bound_is_a_setting_of_the_environment():
    code = "from manifest.io.file_cache import SHARED; print(SHARED.capacity)"
    for given, found in (("1 mb", "1048576"), ("0", "0")):
        done = run_python(code, variables={SETTING: given})
        assert done.stdout.strip() == found
    done = run_python(code, check=False, variables={SETTING: "much"})
    assert SETTING in done.stderr


def test_a_wrapped_store_is_asked_for_every_file(tmp_path):
    made(tmp_path / "t")
    SHARED.clear()
    inner = WrappedFileIO(LocalFileIO())
    engine = LocalEngine(tmp_path / "t", file_io=inner)
    assert engine.ask(Snapshots())
    assert Table(engine).scan().count() == 100
    assert not [key for key in SHARED._held if str(tmp_path) in str(key)], "nothing is held for other tables"
