"""One table on HDFS: Paimon's Java engine and this package read and write it in turns, and at once."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator

import pytest

from pyspark_paimon import Table
from tests.build import cities
from tests.interop.engine import Engine, EngineError
from tests.interop.engine_build import EngineUnavailable

pytestmark = [pytest.mark.interop, pytest.mark.long, pytest.mark.timeout(600)]

FIELDS = {"id": "BIGINT NOT NULL", "city": "STRING"}
OPTIONS = {"bucket": "2", "file-index.bloom-filter.columns": "city", "file-index.in-manifest-threshold": "1 b"}
VECTORS = {"deletion-vectors.enabled": "true"}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    try:
        running = Engine.start()
    except EngineUnavailable as missing:
        pytest.skip(str(missing))
    yield running
    running.stop()


def lines(ids, city):
    return cities(ids, city).to_pylist()


def by_id(found):
    return sorted(found, key=lambda row: row["id"])


@pytest.mark.parametrize("vectors", [{}, VECTORS], ids=["merged", "deletion vectors"])
def test_each_reads_what_the_other_does(engine, hdfs, vectors):
    path = f"{hdfs.uri()}/{uuid.uuid4()}/t"
    engine.create(path, FIELDS, primary_keys=["id"], options=OPTIONS | vectors)
    engine.write(path, lines(range(200), "Oslo"))
    table = Table.open(path)
    expected = {row["id"]: row for row in lines(range(200), "Oslo")}

    def agree():
        wanted = [expected[key] for key in sorted(expected)]
        assert by_id(table.scan().to_arrow().to_pylist()) == wanted == by_id(engine.dump(path))
        assert (table.fsck("deep").problems, engine.fsck(path)) == ((), [])

    agree()
    table.write(cities(range(150, 250), "Lima"))
    table.delete("id < 20")
    expected |= {row["id"]: row for row in lines(range(150, 250), "Lima")}
    expected = {key: row for key, row in expected.items() if key >= 20}
    agree()
    engine.compact(path, full=True)
    agree()
    table.create_tag("kept")
    engine.write(path, [row | {"_kind": "-D"} for row in lines(range(20, 30), "Oslo")])
    table.compact(full=True)
    expected = {key: row for key, row in expected.items() if key >= 30}
    agree()


def test_both_write_at_once_and_no_row_is_lost(engine, hdfs):
    path = f"{hdfs.uri()}/{uuid.uuid4()}/t"
    options = {
        "bucket": "1",
        "write-only": "true",
        "commit.max-retries": "100",
        "snapshot.num-retained.min": "200",
        "snapshot.num-retained.max": "500",
    }
    table = Table.create(path, "id BIGINT, city STRING", primary_keys=["id"], options=options)
    acknowledged = []

    def ours():
        for number in range(12):
            table.write(cities([number], "ours"))
            acknowledged.append(number)

    writer = threading.Thread(target=ours)
    writer.start()
    given_up = []
    for number in range(100, 112):
        try:
            engine.write(path, lines([number], "theirs"))
        except EngineError as error:  # its row must not be there
            given_up.append(str(error))
        else:
            acknowledged.append(number)
    writer.join()
    assert len(acknowledged) > 12
    assert not [error for error in given_up if "commit" not in error.lower()]
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == sorted(acknowledged)
    assert sorted(row["id"] for row in engine.dump(path)) == sorted(acknowledged)
    assert table.fsck("deep").problems == ()
