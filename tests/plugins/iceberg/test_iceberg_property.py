"""Any sequence of commits leaves metadata with which PyIceberg reads our rows, incrementally made and made anew alike."""

from __future__ import annotations

import random
import shutil

import pyarrow as pa
import pytest

from manifest.commit.file_store_commit import FileStoreCommit
from pyspark_paimon import Table
from tests.iceberg_files import check_files, expected_paths, live_paths

CITIES = ("Oslo", "Lima", "Rome", None)
OPTIONS = {
    "metadata.iceberg.storage": "table-location",
    "metadata.iceberg.compaction.min.file-num": "4",
    "metadata.iceberg.compaction.max.file-num": "6",
    "snapshot.num-retained.min": "3",
    "snapshot.num-retained.max": "5",
}


VECTORS = {
    "metadata.iceberg.format-version": "3",
    "deletion-vectors.enabled": "true",
    "deletion-vectors.bitmap64": "true",
}


class Player:
    """Makes one random commit after another; some leave no metadata, as if the process had died."""

    def __init__(self, table: Table, dice: random.Random, patch: pytest.MonkeyPatch) -> None:
        self.table, self.dice, self.patch = table, dice, patch
        self.keyed = bool(table.primary_keys)
        self.next_id, self.columns = 0, 0

    def play(self) -> str:
        moves = ["write"] * 4 + ["delete", "update", "compact", "overwrite", "drop", "restore", "alter", "expire", "rollback", "silent"]
        move = self.dice.choice(moves)
        getattr(self, move)()
        return move

    def rows(self) -> pa.Table:
        count = self.dice.randint(1, 6)
        first = self.next_id = self.dice.randint(0, 30) if self.keyed else self.next_id + 10
        cities = CITIES[: 3 if self.keyed else 4]
        city = self.dice.choice(cities)
        made = [
            {"id": at, "city": self.dice.choice(cities) if self.dice.random() < 0.3 else city, "v": self.dice.choice([None, 1.5, -2.0])}
            for at in range(first, first + count)
        ]
        return pa.Table.from_pylist(made, self.table.schema)

    def write(self) -> None:
        self.table.write(self.rows())

    def silent(self) -> None:
        with self.patch.context() as patch:
            patch.setattr(FileStoreCommit, "_write_iceberg", lambda self, newest, **_: None)
            self.dice.choice([self.write, self.delete, self.compact])()

    def delete(self) -> None:
        self.table.delete(f"id % {self.dice.randint(2, 7)} = 0")

    def update(self) -> None:
        self.table.update(f"id % {self.dice.randint(2, 7)} = 1", {"v": "v + 1"})

    def compact(self) -> None:
        self.table.compact(full=self.dice.random() < 0.5)

    def overwrite(self) -> None:
        self.table.write(self.rows(), mode="overwrite")

    def drop(self) -> None:
        self.table.drop_partitions([{"city": self.dice.choice(CITIES[:3])}])

    def _earlier(self) -> int:
        return self.dice.choice(self.table.snapshots().column("snapshot_id").to_pylist())

    def restore(self) -> None:
        if self.table.snapshots().num_rows and not self.columns:
            self.table.restore(snapshot=self._earlier())

    def rollback(self) -> None:
        if self.table.snapshots().num_rows > 1 and not self.columns:
            self.table.rollback_to(snapshot=self._earlier())

    def alter(self) -> None:
        if self.columns < 3 and self.dice.random() < 0.3:
            self.columns += 1
            self.table.add_column(f"extra{self.columns}", self.dice.choice(["INT", "ARRAY<STRING>", "ROW<a INT>"]))
            self.write()

    def expire(self) -> None:
        self.table.expire_snapshots(retain_min=1, retain_max=self.dice.randint(1, 3))


@pytest.mark.slow
@pytest.mark.local_files
@pytest.mark.parametrize(("keyed", "version"), [(False, 2), (False, 3), (True, 2), (True, 3)], ids=str)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 40))])
def test_random_commits_read_equal(create, iceberg, monkeypatch, keyed, version, seed) -> None:  # noqa: PLR0917
    dice = random.Random(f"iceberg {keyed} {version} {seed}")
    columns = f"id BIGINT NOT NULL, city STRING{' NOT NULL' if keyed else ''}, v DOUBLE"
    table = create(
        columns, primary_keys=["id", "city"] if keyed else (), partition_keys=["city"], options=OPTIONS | (VECTORS if version == 3 else {})
    )
    player = Player(table, dice, monkeypatch)
    moves = []
    for _ in range(25 if seed else 12):
        moves.append(player.play())
        if not table.snapshots().num_rows:
            continue
        table.write(player.rows())  # completes what a silent commit or a change without a snapshot left
        check_files(table)
        if dice.random() < 0.3:
            if keyed:
                table.compact(full=True)
            iceberg.check(table)
            assert live_paths(table) == expected_paths(table), moves
    incremental = live_paths(table)
    shutil.rmtree(f"{table.path}/metadata")
    table.write(player.rows())
    check_files(table)
    if not keyed:
        assert {*incremental} <= {*live_paths(table)}
