"""Every kind of table, made by Paimon's engine and read by us, and made by us and read by Paimon's engine.

Each test makes the same table twice, step by step with the same rows, and asks both engines about both: rows with and without
filters, kept files, answers of indexes, and a check by Paimon's readers of every file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.agreement import agree
from tests.interop.engine import Engine
from tests.interop.features import JAVA, OURS_READS, READS_OURS, feature
from tests.interop.players import made_by_java, made_by_us
from tests.interop.specs import Spec
from tests.interop.specs_golden import GOLDEN
from tests.interop.specs_more import MORE

SPECS = {spec.name: spec for spec in (*GOLDEN, *MORE)}
FAST = {
    *("dv_parts", "pk_dv64", "pk_thin", "pk_dynamic", "pk_seq", "pk_partial_group", "pk_agg_retract", "parts_text"),
    *("append_idx", "append_map", "append_dv", "evolved", "all_types", "multiset"),
}
"""Tables of the main features, made and compared in every run; the others by `make interop`."""


def case(spec: Spec, *marks: pytest.MarkDecorator) -> object:
    proves = [feature(spec.feature, JAVA, direction) for direction in (READS_OURS, OURS_READS)]
    return pytest.param(spec, marks=[*proves, *marks], id=spec.name)


LONG = (pytest.mark.interop, pytest.mark.long)


@pytest.mark.parametrize("spec", [case(spec, *(() if spec.name in FAST else LONG)) for spec in SPECS.values()])
@pytest.mark.sampled(3)
def test_both_engines_make_the_same_table_and_read_each_others(engine: Engine, spec: Spec, tmp_path: Path) -> None:
    java = agree(engine, made_by_java(engine, spec, tmp_path / "java"), filters=2, unordered=spec.unordered, unasked=spec.unasked)
    ours = agree(engine, made_by_us(spec, tmp_path / "ours"), filters=2, unordered=spec.unordered, unasked=spec.unasked)
    assert ours == java


@pytest.mark.interop
@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize("spec", [case(spec) for spec in SPECS.values()])
def test_other_rows_and_more_filters(engine: Engine, spec: Spec, seed: int, tmp_path: Path) -> None:
    java = agree(
        engine, made_by_java(engine, spec, tmp_path / "java", seed), filters=16, seed=seed, unordered=spec.unordered, unasked=spec.unasked
    )
    ours = agree(engine, made_by_us(spec, tmp_path / "ours", seed), filters=16, seed=seed, unordered=spec.unordered, unasked=spec.unasked)
    assert ours == java


def test_the_rows_of_a_seed_are_always_the_same() -> None:
    assert set(SPECS) >= FAST
    for spec in SPECS.values():
        assert spec.drawn(3) == spec.drawn(3)
