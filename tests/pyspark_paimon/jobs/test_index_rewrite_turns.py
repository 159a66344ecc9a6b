"""Rewrites of file indexes among writes, deletes, compactions and expiries, in turn and at once: rows and files stay right."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.store import FileStore
from paimon_base.errors import UnsupportedOption
from pyspark_paimon import CommitConflict, Table
from tests.examples import some

FAR = 2**62
CHOICES = (
    {"file-index.bitmap.columns": "city"},
    {"file-index.bitmap.columns": "city,n", "file-index.bitmap.city.version": "1"},
    {"file-index.bsi.columns": "n", "file-index.bloom-filter.columns": "city", "file-index.bloom-filter.city.items": "30"},
    {},
)
PLACES = ({"file-index.in-manifest-threshold": "1 mb"}, {"file-index.in-manifest-threshold": "1 b"})
LAYOUTS = {
    "append": ((), {}),
    "append with deletion vectors": ((), {"deletion-vectors.enabled": "true"}),
    "primary key": (("id",), {"bucket": "2"}),
    "deletion vectors": (("id",), {"bucket": "2", "deletion-vectors.enabled": "true"}),
}


def chosen(table, chance):
    """Other index options, in the place of those that there are."""
    present = {key: None for key in table.options if key.startswith("file-index.")}
    return {**present, **chance.choice(CHOICES), **chance.choice(PLACES)}


def batch(ids, stamp):
    return pa.table({"id": list(ids), "city": [f"city-{(at + stamp) % 7}" for at in ids], "n": pa.array([stamp] * len(ids), pa.int32())})


def check_files(table):
    """Every file that an entry names is there, and no index file besides."""
    store = FileStore.open(table.path)
    entries = store.live_entries(store.snapshots.latest()).entries()
    for entry in entries:
        assert all(map(store.file_io.exists, store.physical_files(entry.partition, entry.bucket, entry.file)))
    assert table.fsck("deep").problems == ()
    orphans = [orphan.path for orphan in table.list_orphan_files(FAR)]
    assert [path for path in orphans if path.endswith(".index")] == []


def check(table, model):
    found = {row["id"]: (row["city"], row["n"]) for row in table.scan().to_arrow().to_pylist()}
    assert found == model
    for city in ("city-0", "city-5", "nowhere"):
        wanted = sorted(key for key, row in model.items() if row[0] == city)
        assert sorted(table.scan(f"city = '{city}'").to_arrow()["id"].to_pylist()) == wanted
    for n in (1, 4):
        assert table.scan(f"n <= {n}").count() == sum(row[1] <= n for row in model.values())


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.sampled(2)
def test_rows_are_right_after_any_turns(create, layout, seed) -> None:
    keys, options = LAYOUTS[layout]
    chance = random.Random(f"{layout}{seed}")
    table = create("id BIGINT, city STRING, n INT", primary_keys=keys, options=options)
    model: dict[int, tuple[str, int]] = {}
    for stamp in range(some(5)):
        first = chance.randrange(40) if keys else stamp * 10
        ids = range(first, first + 10)
        table.write(batch(ids, stamp))
        model |= {at: (f"city-{(at + stamp) % 7}", stamp) for at in ids}
        match chance.randrange(6):
            case 0:
                table.compact(full=True)
            case 1:
                low = chance.randrange(stamp * 10 + 10)
                table.delete(f"id BETWEEN {low} AND {low + 3}")
                model = {key: row for key, row in model.items() if not low <= key <= low + 3}
            case 2:
                table.expire_snapshots(retain_min=1, retain_max=1, older_than=FAR)
            case _:
                table.alter_options(chosen(table, chance))
                table.rewrite_file_index()
                assert table.rewrite_file_index().rewritten == 0
        if stamp % 4 == 3:
            check(table, model)
    check(table, model)
    check_files(table)


@pytest.mark.parametrize("layout", ["append", "deletion vectors"])
@pytest.mark.sampled(2)
def test_rows_are_right_whatever_happens_at_once(create, layout) -> None:
    keys, options = LAYOUTS[layout]
    path = create("id BIGINT, city STRING, n INT", primary_keys=keys, options={**options, "compaction.min.file-num": "2"}).path
    errors: list[Exception] = []

    def writing():
        for stamp in range(8):
            Table.open(path).write(batch(range(stamp * 10, stamp * 10 + 10), stamp))

    def compacting():
        for _ in range(5):
            Table.open(path).compact(full=True)

    def rewriting(seed):
        chance = random.Random(seed)
        table = Table.open(path)
        for _ in range(5):
            table.alter_options(chosen(table, chance))
            table.rewrite_file_index()

    def guarded(work, *arguments):
        try:
            work(*arguments)
        except (CommitConflict, UnsupportedOption):  # the other one set options between the look at them and the change
            pass
        except Exception as error:  # noqa: BLE001  # raised below, in the test's own thread
            errors.append(error)

    jobs = [(writing,), (compacting,), (rewriting, 1), (rewriting, 2)]
    threads = [threading.Thread(target=guarded, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    table = Table.open(path)
    table.rewrite_file_index()
    check(table, {at: (f"city-{(at + at // 10) % 7}", at // 10) for at in range(80)})
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=FAR)
    table.remove_orphan_files(FAR)
    check_files(table)
    check(table, {at: (f"city-{(at + at // 10) % 7}", at // 10) for at in range(80)})
    assert len(list(Path(path).rglob("*.index"))) == sum(
        place not in {None, "embedded"} for place in table.files()["file_index"].to_pylist()
    )
