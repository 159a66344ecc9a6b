"""Tables on a real cluster of HDFS: every kind of change, catalogs, lost answers, races of processes."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from manifest.io.errors import PathNotAllowed, StorageError, TableExists
from manifest.storage.session_options import refuse_server_credentials
from manifest.storage.storage_options import StorageOptions
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Catalog, Table
from tests.build import cities
from tests.stores.cut_proxy import CutProxy
from tests.stores.racing import ROOT, WRITER

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def place(hdfs):
    return f"{hdfs.uri()}/{uuid.uuid4()}"


def made(path, **options):
    settings = {"bucket": "2", "file-index.bloom-filter.columns": "city", "file-index.in-manifest-threshold": "1 b"}
    return Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options=settings | options)


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}, {"file.format": "orc", "bucket": "-1"}], ids=str)
def test_a_table_s_whole_life(place, options):
    table = made(f"{place}/t", **options)
    table.write(cities(range(100)))
    table.write(cities(range(50, 150), "Lima"))
    assert table.scan("city = 'Lima-70'").to_arrow().to_pylist() == [{"id": 70, "city": "Lima-70"}]
    assert table.delete("id < 10").rows == 10
    table.create_tag("kept")
    table.create_branch("trial", "kept")
    Table.open(table.path, branch="trial").write(cities([1000]))
    table.compact(full=True)
    table.rollback_to(tag="kept")
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert (table.scan().count(), table.scan(tag="kept").count()) == (140, 140)
    table.replace_tag("kept")
    assert table.fsck("deep").problems == ()
    stray = f"{table.path}/bucket-0/data-{uuid.uuid4()}-0.parquet"
    table._engine._file_io.write(stray, b"left behind")
    (orphan,) = table.remove_orphan_files(older_than=datetime.now(UTC) + timedelta(minutes=1))
    assert stray.endswith(orphan.path.rpartition("/")[2])
    assert not table._engine._file_io.exists(stray)
    assert table.scan().count() == 140


def test_consumers_keep_their_place(place):
    table = made(f"{place}/t")
    for number in range(3):
        table.write(cities([number]))
    table.reset_consumer("c", 2)
    snapshots = table._engine.store().snapshots
    assert [snapshots.advance_consumer("c", following, lambda held: held["nextSnapshot"] > 3) for following in (3, 4, 5)] == [
        True,
        True,
        False,
    ]
    assert table.consumers().column("next_snapshot_id").to_pylist() == [4]


def test_a_catalog_renames_and_drops(place):
    catalog = Catalog(place)
    catalog.create_database("sales")
    catalog.create_table("sales.t", "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "1"}).write(cities([1]))
    catalog.create_table("sales.u", "id BIGINT")
    with pytest.raises(TableExists):
        catalog.rename_table("sales.t", "sales.u")
    catalog.rename_table("sales.t", "sales.moved")
    assert (catalog.list_tables("sales"), catalog.table("sales.moved").count()) == (["moved", "u"], 1)
    catalog.drop_table("sales.u")
    catalog.drop_table("sales.moved")
    catalog.drop_database("sales")
    assert catalog.list_databases() == []


def test_a_large_file_is_written_and_one_that_is_given_up_is_not_there(place):
    table = Table.create(f"{place}/t", "id BIGINT, data BYTES", options={"file.compression": "none", "parquet.enable.dictionary": "false"})
    random = np.random.default_rng(0)
    batches = [pa.record_batch({"id": [at], "data": [random.bytes(1 << 20)]}) for at in range(24)]

    def broken():
        yield from batches
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        table.write(broken())
    assert table._engine._file_io.list(f"{place}/t/bucket-0") == []
    table.write(pa.Table.from_batches(batches))
    assert table.scan().count() == 24
    assert table.scan("id = 20").to_arrow().column("data")[0].as_py() == batches[20].column("data")[0].as_py()
    assert table.fsck("deep").problems == ()


def test_roots_bound_it(hdfs, place, monkeypatch):
    made(f"{place}/t")
    monkeypatch.setenv("PYSPARK_PAIMON_ROOTS", f"{place}/t")
    assert Table.open(f"{place}/t").count() == 0
    with pytest.raises(PathNotAllowed):
        Table.open(f"{place}/t/../u")


def test_a_cluster_that_is_not_there_is_named():
    with pytest.raises(StorageError, match=r"HDFS cannot be reached \(.*Connection refused.*hdfs://127.0.0.1:1"):
        Table.open("hdfs://127.0.0.1:1/t", storage_options={"storage.max-retries": "1"})
    with pytest.raises(InvalidArgument, match=r"hdfs://none: HDFS cannot be opened .No NameNode hosts found.; name a name node"):
        Table.open("hdfs://none/t")


def test_a_client_of_a_session_names_no_directory_of_the_server():
    with pytest.raises(InvalidArgument, match="may not have roles or files"):
        refuse_server_credentials(StorageOptions.of({"hadoop-conf-dir": "/etc/hadoop"}))


def test_of_writers_that_race_and_do_not_hear_of_their_success_none_loses(hdfs):
    name, processes, commits = f"{uuid.uuid4()}/t", 4, 10
    options = {"bucket": "1", "commit.max-retries": "200", "snapshot.num-retained.min": "500", "snapshot.num-retained.max": "1000"}
    made(f"{hdfs.uri()}/{name}", **options)
    seen = []

    def rule(data):
        if b"rename2" not in data or b"snapshot-" not in data:
            return False
        seen.append(1)
        return len(seen) % 3 == 0

    with CutProxy(hdfs.port) as proxy:
        proxy.rule = rule
        told = {"path": f"{hdfs.uri(proxy.port)}/{name}", "options": {}, "commits": commits}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        writers = [subprocess.Popen([sys.executable, "-c", WRITER], cwd=ROOT, text=True, **pipes) for _ in range(processes)]
        for number, writer in enumerate(writers):
            writer.stdin.write(json.dumps(told | {"writer": number}))
            writer.stdin.close()
            writer.stdin = None
        acknowledged = []
        for writer in writers:
            out, err = writer.communicate(timeout=800)
            assert writer.returncode == 0, err[-2000:]
            acknowledged += map(int, out.split())
        assert proxy.cuts["answers"] >= commits
    assert len(acknowledged) == processes * commits
    table = Table.open(f"{hdfs.uri()}/{name}")
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == sorted(acknowledged)
    assert table.fsck("deep").problems == ()
