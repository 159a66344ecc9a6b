"""Turns at one table: players write, compact, expire, tag, alter ... in an order drawn from a seed, and after each move all that can
read the table must see what the model holds.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark_paimon import Table
from pyspark_paimon.results.fsck_problem import Problem, ProblemKind
from tests.golden_rows import canonical
from tests.interop.turn_players import Java, Ours, Player
from tests.interop.turn_tables import Configuration, Row, World

WEIGHTS = {"write": 10, "compact": 5, "expire": 2, "tag": 1, "branch": 1, "overwrite": 1, "delete": 2, "alter": 1, "indexes": 2}
INDEXES: list[dict[str, str | None]] = [
    {"file-index.bitmap.columns": "name", "file-index.bsi.columns": None, "file-index.bloom-filter.columns": "amount"},
    {"file-index.bitmap.columns": "flag,qty", "file-index.bsi.columns": "v", "file-index.bloom-filter.columns": None},
    {"file-index.bitmap.columns": None, "file-index.range-bitmap.columns": "v,amount", "file-index.in-manifest-threshold": "1 mb"},
]
# What the engine's check finds though nobody did wrong by the engine's own lights.
EXCUSED = (
    r"a vector of .* which is not there",  # Java's full compaction of a lone file on the top level leaves the old file's vector behind
    r"manifest-list-\S+ is missing|Failed to read manifest-list-\S+",  # Java's expiry deletes the changelog of a tagged snapshot
    r"has \d+ deletes, not 0",  # pypaimon says 0 of files with deletes from a rowkind.field
)


class Game:
    """A table, its model and its players; ``play`` makes one move and checks it."""

    def __init__(self, configuration: Configuration, players: Sequence[Player], home: Path, seed: int) -> None:
        self.configuration, self.players, self.seed = configuration, list(players), seed
        self.rng = random.Random(f"{configuration.name}/{seed}")
        self.world = World(configuration)
        self.path = home / "turns.db" / f"t{seed}"
        self.tags: dict[str, list[str]] = {}
        self.tagged: dict[str, int] = {}
        self.branches: dict[str, list[str]] = {}
        self.extra: list[str] = []
        self.seen = 0
        self.log: list[str] = []
        maker = self.rng.choice(self.players)
        self.log.append(f"{maker.name} creates")
        maker.create(self.path, configuration)

    def play(self, rounds: int) -> None:
        """Moves and checks; a failure names the seed, the move and all moves before it."""
        for number in range(rounds):
            try:
                self.move()
                self.check(thorough=number % 5 == 4 or number == rounds - 1)
            except Exception as error:
                said = "\n  ".join(self.log)
                where = f"{self.configuration.name}, seed {self.seed}, move {number} at {self.path}"
                raise AssertionError(f"{where}: {error}\nMoves:\n  {said}") from error

    def move(self) -> None:
        player = self.rng.choice(self.players)
        moves = sorted(move for move in player.moves if getattr(self, f"may_{move}", lambda _: True)(player))
        move = self.rng.choices(moves, [WEIGHTS[name] for name in moves])[0]
        getattr(self, move)(player)

    def note(self, player: Player, text: str) -> None:
        self.log.append(f"{player.name} {text}")

    def write(self, player: Player) -> None:
        rows = self.world.batch(self.rng, only_adds=player.only_adds and self.configuration.kind_column is None)
        self.note(player, f"writes {len(rows)} rows")
        player.write(self.path, rows)
        self.world.write(rows)
        self.show()

    def may_overwrite(self, _: Player) -> bool:
        return not self.configuration.partitions and "changelog-producer" not in self.configuration.options

    def overwrite(self, player: Player) -> None:
        rows = [{**row, "_kind": "+I"} for row in self.world.batch(self.rng, only_adds=True)]
        self.note(player, f"overwrites with {len(rows)} rows")
        player.write(self.path, rows, overwrite=True)
        self.world.replace(rows)
        self.show()

    def show(self) -> None:
        """Where level 0 is not read, rows that were only written show after a compaction."""
        if self.configuration.hidden:
            self.compact(self.rng.choice([player for player in self.players if "compact" in player.moves]))

    def may_compact(self, _: Player) -> bool:
        return self.has_snapshot()

    def compact(self, player: Player) -> None:
        full = self.rng.random() < 0.5
        self.note(player, f"compacts, full={full}")
        player.compact(self.path, full=full)

    def expire(self, player: Player) -> None:
        keep = self.rng.randint(1, 4)
        self.note(player, f"expires all but {keep}")
        player.expire(self.path, keep)

    def snapshots(self) -> list[int]:
        return sorted(Table.open(self.path).snapshots()["snapshot_id"].to_pylist())

    def has_snapshot(self) -> bool:
        return bool(self.snapshots())

    def may_tag(self, _: Player) -> bool:
        """A tag is read by its snapshot's schema, so that nobody tags between a change of columns and the next commit."""
        snapshots = Table.open(self.path).snapshots()
        newest = snapshots["schema_id"].to_pylist()[-1:]
        return len(self.tags) < 3 and newest == [Table.open(self.path).table_schema.id]

    def tag(self, player: Player) -> None:
        name = f"tag-{len(self.tags)}"
        self.note(player, f"tags {name}")
        player.tag(self.path, name)
        self.tags[name] = self.rows()
        self.tagged[name] = self.snapshots()[-1]

    def may_branch(self, player: Player) -> bool:
        return len(self.branches) < 2 and bool(self.branchable(player))

    def branchable(self, player: Player) -> list[str]:
        """Tags to branch from; all but we copy the file of the tag's snapshot and fail when it has expired."""
        kept = set(self.snapshots())
        return sorted(tag for tag, snapshot in self.tagged.items() if isinstance(player, Ours) or snapshot in kept)

    def branch(self, player: Player) -> None:
        name, tag = f"branch{len(self.branches)}", self.rng.choice(self.branchable(player))
        self.note(player, f"makes {name} from {tag}")
        player.branch(self.path, name, tag)
        self.branches[name] = self.tags[tag]

    def may_delete(self, player: Player) -> bool:
        if not self.configuration.keys:
            return isinstance(player, Ours) or self.configuration.options.get("deletion-vectors.enabled") == "true"
        return isinstance(player, Ours) and "-D" in self.configuration.kinds and self.configuration.kind_column is None

    def delete(self, player: Player) -> None:
        value = self.rng.randint(-5, 60)
        numbers = [row["qty"] for row in self.world.rows() if row["qty"] is not None]
        value = self.rng.choice(numbers) if numbers else value
        self.note(player, f"deletes qty = {value}")
        if self.has_snapshot():
            player.delete(self.path, "qty", value)
        self.world.delete(lambda row: row["qty"] == value)

    def may_alter(self, _: Player) -> bool:
        return self.configuration.changes_schema

    def alter(self, player: Player) -> None:
        if len(self.extra) == 2:
            name = self.extra.pop(0)
            self.note(player, f"drops {name}")
            player.drop_column(self.path, name)
            self.world.drop_column(name)
        else:
            name = f"c{len(self.log)}"
            self.note(player, f"adds {name}")
            player.add_column(self.path, name, "INT")
            self.world.add_column(name, "INT")
            self.extra.append(name)

    def may_indexes(self, _: Player) -> bool:
        return "file-index.bitmap.columns" in self.configuration.options and self.has_snapshot()

    def indexes(self, player: Player) -> None:
        options = self.rng.choice(INDEXES)
        self.note(player, f"rewrites indexes {options}")
        player.indexes(self.path, options)

    def rows(self) -> list[str]:
        return sorted(canonical(row) for row in self.world.rows())

    def check(self, *, thorough: bool) -> None:
        """Every reader sees the model's rows, tags and branches are kept, changelogs are one, and nothing is wrong with the files."""
        wanted = self.rows()
        for reader in self.players:
            same(reader.name, reader.read(self.path), wanted)
        if "changelog-producer" in self.configuration.options:
            self.check_changelogs()
        if not thorough:
            return
        for reader in self.players:
            for name, rows in self.tags.items():
                same(f"{reader.name} at {name}", reader.read(self.path, tag=name), rows)
            for name, rows in self.branches.items():
                same(f"{reader.name} on {name}", reader.read(self.path, branch=name), rows)
            if isinstance(reader, Java):
                problems = [text for text in reader.engine.fsck(self.path) if not any(re.search(known, text) for known in EXCUSED)]
                assert problems == [], problems
        found = [problem for problem in Table.open(self.path).fsck("deep").problems if not self.is_excused(problem)]
        assert not found, found

    def is_excused(self, problem: Problem) -> bool:
        """Whether a problem that our check finds, too, is one that another engine makes; see ``EXCUSED``."""
        if problem.kind is ProblemKind.MANIFEST_LIST and problem.path.endswith("-changelog") and problem.message == "is missing":
            return any("Java" in line and "expires" in line for line in self.log)
        is_pypaimons = re.search(r"/data-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+\.parquet$", problem.path)  # ours tell their commit
        return problem.kind is ProblemKind.DELETE_COUNT and bool(is_pypaimons) and problem.message.endswith("its manifest says 0")

    def check_changelogs(self) -> None:
        readers = [reader for reader in self.players if hasattr(reader, "changelog")]
        for number in (number for number in self.snapshots() if number > self.seen):
            found: list[Any] = [reader.changelog(self.path, number) for reader in readers]
            assert all(other == found[0] for other in found), (
                f"changelog of snapshot {number}: {[reader.name for reader in readers]} read {found}"
            )
            self.seen = number


def same(who: str, found: list[str], wanted: list[str]) -> None:
    if found != wanted:
        more, less = [line for line in found if line not in wanted], [line for line in wanted if line not in found]
        raise AssertionError(f"{who}: {len(found)} rows, not {len(wanted)}; too many: {more[:3]}; missing: {less[:3]}")


__all__ = ["Game", "Row"]
