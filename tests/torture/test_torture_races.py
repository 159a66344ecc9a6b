"""A few rounds of races on every push, and what judges them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from pyspark_paimon import Table
from tests.torture import watched
from tests.torture.races import CONFIGURATIONS, expected, played


@pytest.mark.parametrize("configuration", ["dynamic buckets", "append, vectors"])
@pytest.mark.sampled(2)
def test_what_is_acknowledged_is_there_once(tmp_path: Path, configuration: str) -> None:
    verdict, detail = played(5, configuration, tmp_path / "race")
    assert verdict == "right", detail


def test_readers_beside_overwrites_and_upserts_see_whole_states_alone(tmp_path: Path) -> None:
    verdict, detail = played(1, "readers beside a writer, deletion vectors", tmp_path / "race")
    assert verdict == "right", detail


def test_a_reader_tells_of_empty_and_half_states(tmp_path: Path) -> None:
    watched.make("deletion vectors", tmp_path / "t")
    table = Table.open(tmp_path / "t")
    (tmp_path / "done").touch()
    for deleted, told in (("k < 5", "55 rows of states [0]"), ("k >= 0", "0 rows of states []")):
        table.delete(deleted)
        watched.read(tmp_path / "t", tmp_path / "done", tmp_path / "log")
        assert told in json.loads((tmp_path / "log").read_text())["wrong"]


def test_the_model_follows_each_process_and_adds_up_what_all_do() -> None:
    log = [
        {"call": "write", "values": [[1, 2, 5], [1, 3, 6]]},
        {"call": "update", "keys": [3, 7], "owner": 1},
        {"call": "count up"},
        {"call": "lost", "of": "delete"},
        {"call": "delete", "keys": [2], "owner": 1},
    ]
    assert expected(CONFIGURATIONS["deduplicate"], [log, [{"call": "count up"}]]) == Counter([(1, 3, 7), (0, -1, 2)])
    adds = [{"call": "add", "values": [[0, 2, 5]]}]
    assert expected(CONFIGURATIONS["aggregation"], [adds, adds]) == Counter([(0, 2, 10), (0, -1, 0)])
