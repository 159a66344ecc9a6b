"""Values of each kind into columns of each type are stored exactly or refused by name, under each policy."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from lsm.rows_in import conform, constrain
from paimon_base.hidden_nulls import cast_nested
from tests.oracle.borders import Border, Policy, draw_border, run, shrink
from tests.oracle.containers import SOURCES
from tests.oracle.meanings import ATOMS, Type


@pytest.mark.parametrize("seed", range(4))
def test_values_are_stored_exactly_or_refused(seed: int) -> None:
    _check(seed, 24)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_values_are_stored_exactly_or_refused() -> None:
    for seed in range(1000, 1100):
        _check(seed, 100)


def _check(seed: int, cases: int) -> None:
    wrong = run(seed, cases)
    if wrong is not None:
        border, text = shrink(wrong)
        pytest.fail(f"{text}\nThis script repeats it:\n{border.script()}")


WRONG: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "casts-wrap": (conform, "lossless_cast", lambda column, target: cast_nested(column, target, safe=False)),
    "long-texts-are-stored": (constrain, "_overlong", lambda *_: None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["casts-wrap", "long-texts-are-stored"])
def test_a_wrong_cast_is_found(name: str) -> None:
    module, function, wrong = WRONG[name]
    with patch.object(module, function, wrong):
        found = next(border for seed in range(20) if (border := run(seed, 40)) is not None)
        border, text = shrink(found)
        scope: dict[str, object] = {"print": lambda text: scope.update(printed=text)}
        exec(border.script(), scope)
        assert scope["printed"] == text
    assert len(border.values) == 1
    assert border.policy == Policy()


def test_every_type_source_and_policy_is_drawn() -> None:
    draw = random.Random(1)
    drawn = [draw_border(draw) for _ in range(1500)]
    assert {border.source for border in drawn} == set(SOURCES)
    assert {name for border in drawn for name in ATOMS if border.type.has(name)} == set(ATOMS)
    assert {_depth(border.type) for border in drawn} == {0, 1, 2, 3}
    for name in vars(Policy()):
        assert len({getattr(border.policy, name) for border in drawn}) > 1


def _depth(kind: Type) -> int:
    return 1 + max(map(_depth, kind.parts)) if kind.parts else 0


def test_texts_in_views_are_stored_inside_of_maps() -> None:
    text_map = Type("MAP", (Type("ROW", (Type("ARRAY", (Type("BYTES"),)),)),))
    assert Border(text_map, text_map, ([("k", {"f0": [b"a", None]})], None), "view").failure() is None
