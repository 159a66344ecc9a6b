"""Tables on a real server of Azure's protocol (Azurite): every kind of change, lost answers, large files, races."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pytest

from manifest.io.errors import FileMissing, StorageDenied, StorageError
from manifest.storage import faults
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Catalog, Table
from tests.build import cities
from tests.stores.azure_server import ACCOUNT, CONTAINER, KEY
from tests.stores.fault_proxy import BUSY, DROP, TRUNCATE, FaultProxy
from tests.stores.racing import raced

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

PLACES = (f"az://{CONTAINER}", f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net")


@pytest.fixture
def proxy(azure):
    with FaultProxy(azure.port) as proxy:
        yield proxy


def made(path, options):
    settings = {"bucket": "2", "file-index.bloom-filter.columns": "city", "file-index.in-manifest-threshold": "1 b"}
    return Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options=settings, storage_options=options)


@pytest.mark.parametrize("place", PLACES)
def test_a_table_s_whole_life(azure, place):
    table = made(f"{place}/{uuid.uuid4()}/t", azure.options())
    table.write(cities(range(100)))
    table.write(cities(range(50, 150), "Lima"))
    assert table.scan("city = 'Lima-70'").to_arrow().to_pylist() == [{"id": 70, "city": "Lima-70"}]
    assert table.delete("id < 10").rows == 10
    table.create_tag("kept")
    table.create_branch("trial", "kept")
    Table.open(table.path, branch="trial", storage_options=azure.options()).write(cities([1000]))
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert (table.scan().count(), table.scan(tag="kept").count()) == (140, 140)
    assert table.fsck("deep").problems == ()


def test_the_environment_s_credentials_reach_it(azure, monkeypatch):
    for name, value in azure.environment().items():
        monkeypatch.setenv(name, value)
    catalog = Catalog(f"{PLACES[0]}/{uuid.uuid4()}")
    catalog.create_database("empty")
    catalog.create_table("default.t", "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "1"}).write(cities([1]))
    assert catalog.table("t").scan().count() == 1
    catalog.drop_database("empty")
    assert catalog.list_databases() == ["default"]


def test_what_goes_wrong_is_named(azure):
    table = made(f"{PLACES[1]}/{uuid.uuid4()}/t", azure.options())
    wrong = azure.options() | {"azure.account-key": KEY.replace("Eby8", "Eby9")}
    with pytest.raises(StorageDenied, match=r"403 AuthorizationFailure[^\n]*abfss://tests@") as caught:
        Table.open(table.path, storage_options=wrong)
    assert KEY not in str(caught.value)
    with pytest.raises(FileMissing, match="no such bucket or container"):
        Table.open("az://there-is-none/t", storage_options=azure.options())
    with pytest.raises(InvalidArgument, match=r"az://tests: storage_options.*Invalid Access Key") as caught:
        Table.open("az://tests/t", storage_options=azure.options() | {"azure.account-key": "no-key"})
    assert "no-key" not in str(caught.value)
    plain = {name: value for name, value in azure.options().items() if name != "azure.endpoint"} | {"azure.endpoint": "ftp://127.0.0.1:1/x"}
    with pytest.raises(StorageError, match="az://tests"):
        Table.open("az://tests/t", storage_options=plain | {"storage.max-retries": "0"})


@pytest.mark.parametrize("fault", [BUSY, DROP, TRUNCATE])
def test_what_passes_is_no_error(azure, proxy, fault, monkeypatch):
    monkeypatch.setattr(faults, "_FIRST_WAIT", 0.001)
    proxy.rule = lambda request: fault if request.number == 1 else None
    table = made(f"{PLACES[0]}/{uuid.uuid4()}/t", azure.options(proxy.port))
    for number in range(3):
        table.write(cities(range(10 * number, 10 * number + 10)))
    table.compact(full=True)
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == list(range(30))
    assert proxy.done[fault] > 10
    proxy.rule = lambda _: None
    assert table.fsck("deep").problems == ()


def test_a_large_file_is_uploaded_in_parts_and_one_that_is_given_up_is_not_there(azure):
    options = {"file.compression": "none", "parquet.enable.dictionary": "false"}
    path = f"{PLACES[0]}/{uuid.uuid4()}/t"
    table = Table.create(path, "id BIGINT, data BYTES", options=options, storage_options=azure.options())
    random = np.random.default_rng(0)
    batches = [pa.record_batch({"id": [at], "data": [random.bytes(1 << 20)]}) for at in range(24)]

    def broken():
        yield from batches
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        table.write(broken())
    assert not table._engine._file_io.is_directory(f"{path}/bucket-0")
    table.write(pa.Table.from_batches(batches))
    assert table.scan().count() == 24
    assert table.fsck("deep").problems == ()


@pytest.mark.timeout(900)
def test_of_writers_that_race_and_do_not_hear_of_their_success_none_loses(azure, proxy):
    raced(azure, proxy, f"{PLACES[0]}/{uuid.uuid4()}", 6, 20)
