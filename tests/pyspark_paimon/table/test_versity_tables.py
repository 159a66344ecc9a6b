"""Tables on a second kind of S3 server (versitygw): every kind of change, races with lost answers."""

from __future__ import annotations

import pytest

from pyspark_paimon import Table
from tests.build import cities
from tests.stores.fault_proxy import FaultProxy
from tests.stores.local_server import held
from tests.stores.racing import raced
from tests.stores.versity_server import VersityServer

pytest.importorskip("obstore", reason="object stores need the extra 'objectstore'")
pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def versity():
    yield from held(VersityServer())


def test_a_table_s_whole_life(versity, warehouse):
    settings = {"bucket": "2", "file-index.bloom-filter.columns": "city", "file-index.in-manifest-threshold": "1 b"}
    path = f"{warehouse()}/t"
    table = Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options=settings, storage_options=versity.options())
    table.write(cities(range(100)))
    table.write(cities(range(50, 150), "Lima"))
    assert table.scan("city = 'Lima-70'").to_arrow().to_pylist() == [{"id": 70, "city": "Lima-70"}]
    assert table.delete("id < 10").rows == 10
    table.create_tag("kept")
    table.create_branch("trial", "kept")
    Table.open(path, branch="trial", storage_options=versity.options()).write(cities([1000]))
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert (table.scan().count(), table.scan(tag="kept").count()) == (140, 140)
    assert table.fsck("deep").problems == ()


def test_of_many_writers_that_race_and_do_not_hear_of_their_success_none_loses(versity, warehouse):
    with FaultProxy(versity.port) as proxy:
        raced(versity, proxy, warehouse(), 6, 20)
