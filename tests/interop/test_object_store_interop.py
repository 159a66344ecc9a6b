"""One table on an S3 server: what each engine does there the others read, in turns, with deletion vectors, deletes and compactions.

Turns, not races: Java's and pypaimon's commits look whether a snapshot's name is free and rename over it, which nobody's conditional put protects from.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyspark_paimon import Table
from tests.build import cities
from tests.interop.engine import Engine
from tests.interop.engine_build import EngineUnavailable
from tests.stores.s3_server import fetched

pytestmark = [pytest.mark.interop, pytest.mark.long]

FIELDS = {"id": "BIGINT NOT NULL", "city": "STRING"}
OPTIONS = {"bucket": "2", "file-index.bloom-filter.columns": "city", "file-index.in-manifest-threshold": "1 b"}
VECTORS = {"deletion-vectors.enabled": "true"}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The Java engine with its plugin for S3, a jar of 96 MB."""
    try:
        running = Engine.start(fetched("org.apache.paimon:paimon-s3:1.4.2"))
    except EngineUnavailable as missing:
        pytest.skip(str(missing))
    yield running
    running.stop()


@pytest.fixture
def storage(s3):
    return s3.options() | {"s3.endpoint.region": "us-east-1"}


@pytest.fixture
def peer(pypaimon, storage):
    pypaimon.ask("reach", storage=storage | {"s3.region": "us-east-1"})
    return pypaimon


def lines(ids, city):
    return cities(ids, city).to_pylist()


def by_id(found):
    return sorted(found, key=lambda row: row["id"])


@pytest.mark.parametrize("vectors", [{}, VECTORS], ids=["merged", "deletion vectors"])
def test_java_and_pypaimon_read_what_we_do_on_s3(engine, peer, storage, warehouse, vectors):
    path = f"{warehouse()}/shop.db/ours"
    table = Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options=OPTIONS | vectors, storage_options=storage)
    expected = {}

    def agree(*, with_pypaimon=True):
        wanted = [expected[key] for key in sorted(expected)]
        assert by_id(table.scan().to_arrow().to_pylist()) == wanted
        assert by_id(engine.dump(path, storage=storage)) == wanted
        assert engine.fsck(path, storage=storage) == []
        if with_pypaimon:
            assert by_id(peer.read(path).to_pylist()) == wanted

    table.write(cities(range(200), "Oslo"))
    expected |= {row["id"]: row for row in lines(range(200), "Oslo")}
    agree()
    table.compact(full=True)
    table.write(cities(range(150, 250), "Lima"))
    expected |= {row["id"]: row for row in lines(range(150, 250), "Lima")}
    agree()
    table.delete("id < 20")
    expected = {key: row for key, row in expected.items() if key >= 20}
    agree()
    table.create_tag("kept")
    table.compact(full=True)
    agree()
    assert engine.dump(path, {"op": "=", "col": "city", "value": "Lima-222"}, storage=storage) == [expected[222]]
    assert table.fsck("deep").problems == ()


@pytest.mark.parametrize("vectors", [{}, VECTORS], ids=["merged", "deletion vectors"])
def test_we_read_what_java_does_on_s3_and_go_on_in_turns(engine, peer, storage, warehouse, vectors):
    path = f"{warehouse()}/shop.db/theirs"
    engine.create(path, FIELDS, primary_keys=["id"], options=OPTIONS | vectors, storage=storage)
    engine.write(path, lines(range(200), "Oslo"), storage=storage)
    engine.compact(path, full=True, storage=storage)
    engine.write(path, [row | {"_kind": "+I"} for row in lines(range(150, 250), "Lima")], storage=storage)
    engine.write(path, [row | {"_kind": "-D"} for row in lines(range(20), "Oslo")], storage=storage)
    expected = {row["id"]: row for row in lines(range(20, 150), "Oslo") + lines(range(150, 250), "Lima")}
    table = Table.open(path, storage_options=storage)

    def agree():
        wanted = [expected[key] for key in sorted(expected)]
        assert by_id(table.scan().to_arrow().to_pylist()) == wanted
        assert by_id(engine.dump(path, storage=storage)) == wanted
        assert by_id(peer.read(path).to_pylist()) == wanted
        assert table.fsck("deep").problems == ()
        assert engine.fsck(path, storage=storage) == []

    agree()
    assert table.scan("city = 'Lima-222'").to_arrow().to_pylist() == [expected[222]]
    table.write(cities(range(240, 300), "Rome"))
    table.delete("id = 25")
    expected |= {row["id"]: row for row in lines(range(240, 300), "Rome")}
    del expected[25]
    agree()
    engine.compact(path, full=True, storage=storage)
    agree()


def test_we_read_what_pypaimon_writes_on_s3(engine, peer, storage, warehouse):
    path = f"{warehouse()}/shop.db/theirs"
    fields = [{"name": name, "type": kind} for name, kind in FIELDS.items()]
    peer.create(path, {"fields": fields, "primaryKeys": ["id"], "options": {"bucket": "2"}})
    peer.write(path, cities(range(100), "Oslo"))
    peer.write(path, cities(range(50, 120), "Lima"))
    expected = lines(range(50), "Oslo") + lines(range(50, 120), "Lima")
    table = Table.open(path, storage_options=storage)
    assert by_id(table.scan().to_arrow().to_pylist()) == expected
    table.write(cities([7], "Rome"))
    table.compact(full=True)
    expected[7] = {"id": 7, "city": "Rome-7"}
    assert by_id(peer.read(path).to_pylist()) == expected == by_id(engine.dump(path, storage=storage))
    assert table.fsck("deep").problems == ()
