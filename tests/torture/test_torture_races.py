"""Two rounds of races on every push, and the model that judges them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.torture.races import CONFIGURATIONS, expected, played


@pytest.mark.parametrize("configuration", ["dynamic buckets", "append, vectors"])
def test_what_is_acknowledged_is_there_once(tmp_path: Path, configuration: str) -> None:
    verdict, detail = played(5, configuration, tmp_path / "race")
    assert verdict == "right", detail


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
