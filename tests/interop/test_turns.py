"""We, the engine that owns the format and the peers take turns at one table; after every move all read what a model holds.

A failure tells the seed and the moves. ``PYSPARK_PAIMON_SEED`` plays another seed, ``PYSPARK_PAIMON_MOVES`` a longer game.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.interop.engine import Engine
from tests.interop.features import JAVA, PYPAIMON, RUST, TURNS, feature
from tests.interop.recording import withdraw
from tests.interop.turn_players import Java, Ours, Player, Python
from tests.interop.turn_tables import BY_NAME, CONFIGURATIONS, Configuration
from tests.interop.turns import Game

SEEDS = [int(os.environ["PYSPARK_PAIMON_SEED"])] if "PYSPARK_PAIMON_SEED" in os.environ else [1]
MOVES = int(os.environ.get("PYSPARK_PAIMON_MOVES", "25"))
NOT_PYPAIMON = {  # it refuses them
    "deletion vectors, 64 bit",
    "partial-update, sequence groups",
    "partial-update, ignored deletes",
    "partial-update, removing deletes",
    "aggregation, retracts",
}
QUICK = ["deletion vectors, 32 bit", "append, deletion vectors"]


def peers_of(configuration: Configuration) -> dict[str, str]:
    """The fixtures of the peers that know what the configuration needs, and the peers' names."""
    return {"pypaimon_rust": RUST, **({} if configuration.name in NOT_PYPAIMON else {"pypaimon": PYPAIMON})}


def marks(configuration: Configuration) -> list[pytest.MarkDecorator]:
    return [feature(configuration.name, peer, TURNS) for peer in (JAVA, *peers_of(configuration).values())]


def with_peers(request: pytest.FixtureRequest, configuration: Configuration, engine: Engine) -> list[Player]:
    """All players; a peer that cannot be had here is left out and nothing is claimed of it."""
    players: list[Player] = [Ours(), Java(engine)]
    for fixture, name in peers_of(configuration).items():
        try:
            players.append(Python(request.getfixturevalue(fixture)))
        except pytest.skip.Exception:
            withdraw(request.node, name)
    return players


@pytest.mark.parametrize("name", QUICK)
def test_java_and_we_take_a_few_turns(engine: Engine, tmp_path: Path, name: str) -> None:
    Game(BY_NAME[name], [Ours(), Java(engine)], tmp_path, seed=1).play(6)


@pytest.mark.interop
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("configuration", [pytest.param(each, id=each.name, marks=marks(each)) for each in CONFIGURATIONS])
def test_all_engines_take_turns(
    engine: Engine, request: pytest.FixtureRequest, tmp_path: Path, configuration: Configuration, seed: int
) -> None:
    Game(configuration, with_peers(request, configuration, engine), tmp_path, seed).play(MOVES)
