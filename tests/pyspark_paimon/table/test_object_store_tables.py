"""Tables on a real S3 server: every kind of change, what is left, races under lost answers, and no secret anywhere."""

from __future__ import annotations

import io
import logging
import os
import threading
import time
import traceback
import uuid
from types import SimpleNamespace

import pyarrow as pa
import pytest

from manifest.io.errors import CredentialsRefused
from manifest.storage import faults
from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon import Catalog, Table
from pyspark_paimon.table.engine_choice import engine_for
from tests.build import cities
from tests.stores.fault_proxy import BUSY, EXPIRED, SKEWED
from tests.stores.racing import raced
from tests.stores.s3_server import IDENTITY, SECRET, S3Server

INDEXED = {"bucket": "2", "file-index.bloom-filter.columns": "city", "file-index.in-manifest-threshold": "1 b"}


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(faults, "_FIRST_WAIT", 0.001)


@pytest.mark.slow
def test_a_table_s_whole_life_on_a_store(s3, warehouse):
    path, options = f"{warehouse()}/db.db/t", s3.options()
    table = Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options=INDEXED, storage_options=options)
    table.write(cities(range(100)))
    table.write(cities(range(50, 150), "Lima"))
    assert table.scan("city = 'Lima-70'").to_arrow().to_pylist() == [{"id": 70, "city": "Lima-70"}]
    assert table.delete("id < 10").rows == 10
    assert table.update("id = 20", values={"city": "Rome"}).rows == 1
    table.create_tag("kept")
    table.create_branch("trial", "kept")
    table.add_column("n", "INT")
    branch = Table.open(path, branch="trial", storage_options=options)
    branch.write(cities([1000]))
    assert (branch.scan().count(), table.scan().count()) == (141, 140)
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    opened = Table.open(path, storage_options=options)
    assert opened.scan("id = 20").to_arrow().to_pylist() == [{"id": 20, "city": "Rome", "n": None}]
    assert opened.scan(tag="kept").count() == 140
    assert opened.fsck("deep").problems == ()
    opened.rollback_to(tag="kept")
    opened.delete_branch("trial")
    assert opened.fsck("deep").problems == ()
    assert opened.branches().num_rows == 0
    store = opened._engine.store()
    store.file_io.write(store.paths.latest_hint, b"77", overwrite=True)
    (mended,) = opened.fsck(repair=True).repairs
    assert (mended.path, store.file_io.read(mended.copies[0])) == (store.paths.latest_hint, b"77")
    assert opened.fsck("quick", repair=True).repairs == ()
    with pytest.raises(InvalidArgument, match="need a Spark Connect session"):
        engine_for(path, SimpleNamespace(range=0, read=0, conf=0), storage_options=options)


def test_a_catalog_on_a_store(s3, warehouse):
    catalog = Catalog(warehouse(), s3.options())
    catalog.create_database("empty")
    catalog.create_table("default.orders", "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "1"})
    assert (catalog.list_databases(), catalog.list_tables(), catalog.list_tables("empty")) == (["default", "empty"], ["orders"], [])
    orders = catalog.table("orders")
    orders.write(cities([1]))
    orders.create_branch("dev")
    assert catalog.table("default.orders$branch_dev").scan().count() == 0
    with pytest.raises(UnsupportedOption, match="an object store has no renames"):
        catalog.rename_table("orders", "purchases")
    catalog.drop_table("orders")
    catalog.drop_database("empty")
    assert (catalog.list_tables(), catalog.list_databases()) == ([], ["default"]), "a database stays, and is empty"


def test_an_upload_of_a_write_that_fails_leaves_nothing(s3, warehouse):
    path = f"{warehouse()}/t"
    table = Table.create(path, "id BIGINT, data BYTES", storage_options=s3.options(), options={"file.compression": "none"})
    before = s3.objects()

    def batches():
        for at in range(12):
            yield pa.record_batch({"id": pa.array([at], pa.int64()), "data": pa.array([os.urandom(2 << 20)], pa.binary())})
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        table.write(batches())
    assert s3.objects() == before


def test_no_secret_is_written_shown_or_logged(s3, warehouse, proxy, caplog, capfd):
    path, options = f"{warehouse()}/t", s3.options(proxy.port) | {"storage.max-retries": "2"}
    shown = io.StringIO()

    def show(*what):
        for one in what:
            print(repr(one), str(one), file=shown)

    def fails(call):
        with pytest.raises(Exception) as caught:  # whatever it is, it is looked at
            call()
        show(caught.value)
        traceback.print_exception(caught.value, file=shown)

    with caplog.at_level(logging.DEBUG):
        table = Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options=INDEXED, storage_options=options)
        show(table, table._engine, table._engine._file_io, table.write(cities(range(10))), table.compact(full=True))
        scan = table.scan("city = 'Oslo-1'")
        show(scan, scan.explain(), scan.to_arrow(), table.table_schema, table.table_schema.to_json(), table.option_effects().to_pylist())
        show(table.files().to_pylist(), table.snapshots().to_pylist(), Catalog(path, options), table.fsck("deep"))
        show(*vars(scan).values())
        proxy.rule = lambda request: BUSY
        fails(lambda: table.write(cities([1])))
        fails(lambda: Table.open(path, storage_options=options))
        proxy.rule = lambda _: None
        fails(lambda: Table.open(f"{path}-2", storage_options=options))
        fails(lambda: Table.create(f"{path}-2", "id INT", options={"s3.secret-key": SECRET}, storage_options=options))
        fails(lambda: Table.open(path, storage_options=options | {"s3.secret-kei": SECRET}))
        fails(lambda: Table.open(path, storage_options=SECRET))
        fails(lambda: Table.open(path, storage_options={"s3.secret-key": [SECRET]}))
        fails(lambda: Catalog(path, [SECRET]))
        fails(lambda: table.write(cities([1]), options={"s3.secret-key": SECRET}))
        for wrong in ({"s3.secret-key": SECRET[::-1]}, {"s3.access-key": IDENTITY[::-1]}):
            fails(lambda wrong=wrong: Table.open(path, storage_options=options | wrong))
    shown.write(caplog.text + "".join(capfd.readouterr()))
    text = shown.getvalue()
    for secret in (SECRET, SECRET[::-1], IDENTITY, IDENTITY[::-1]):
        assert secret not in text
    assert proxy.done[BUSY], "there were retries to be logged"
    for stored in s3.objects():
        assert SECRET.encode() not in stored.read_bytes(), stored


@pytest.mark.parametrize(
    ("fault", "says"), [pytest.param(SKEWED, "this machine's clock is wrong", marks=pytest.mark.long), (EXPIRED, "ExpiredToken")]
)
def test_credentials_that_are_refused_amid_a_write_are_named_and_lose_nothing(s3, warehouse, proxy, fault, says):
    path = f"{warehouse()}/t"
    table = Table.create(
        path, "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "1"}, storage_options=s3.options(proxy.port)
    )
    table.write(cities(range(10)))
    identity = str(uuid.uuid4())
    proxy.rule = lambda request: fault if request.method == "PUT" and "/manifest/" in request.path else None
    with pytest.raises(CredentialsRefused, match=says):
        table.write(cities([10]), commit_id=identity)
    assert proxy.done[fault] < 5, "no use to ask again"
    proxy.rule = lambda _: None
    assert table.scan().count() == 10
    assert table.write(cities([10]), commit_id=identity).rows == 1
    assert (table.scan().count(), table.fsck("deep").problems) == (11, ())


@pytest.mark.long
def test_of_writers_that_race_and_do_not_hear_of_their_success_none_loses(s3, proxy, warehouse):
    raced(s3, proxy, warehouse(), 3, 2)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_of_many_writers_that_race_and_do_not_hear_of_their_success_none_loses(s3, proxy, warehouse):
    raced(s3, proxy, warehouse(), 6, 20)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_server_that_is_killed_and_comes_back_amid_writes_and_compactions_loses_nothing(warehouse):
    with S3Server() as server:
        path, options = f"{warehouse()}/t", server.options() | {"storage.max-retries": "20"}
        table = Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "2"}, storage_options=options)
        done = threading.Event()
        acknowledged, errors = [], []

        def write():
            try:
                for number in range(1000):
                    table.write(cities(range(10 * number, 10 * number + 10)))
                    acknowledged.append(number)
                    if number % 5 == 4:
                        table.compact()
                    if done.is_set():
                        return
            except BaseException as error:  # noqa: BLE001  # looked at below
                errors.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(3):
            before = len(acknowledged)
            deadline = time.monotonic() + 60
            while len(acknowledged) < before + 3 and time.monotonic() < deadline:
                time.sleep(0.02)
            server.kill()
            time.sleep(0.5)
            server.start()
        done.set()
        writer.join(120)
        assert errors == []
        opened = Table.open(path, storage_options=options)
        assert sorted(opened.scan().to_arrow().column("id").to_pylist()) == list(range(10 * len(acknowledged)))
        assert opened.fsck("deep").problems == ()
