"""Rounds of 2 GiB and more: every fold takes wide types, and the result has the types of the table again."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lsm.keys.sort import SortKey
from lsm.merge.function import Deduplicate
from lsm.merge.merge_iterator import merge_runs, narrow, widen
from tests.lsm import merge_kit
from tests.lsm.merge.test_merge_models import aggregations, check, check_partial_update, histories
from tests.lsm.merge_kit import table_of


def _wide_table(*args: Any) -> Any:
    rows = table_of(*args)
    wide = widen(rows)
    back = narrow(wide, rows.schema)
    assert (back.schema.types, repr(back.to_pylist())) == (rows.schema.types, repr(rows.to_pylist()))
    return wide


@settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.data())
def test_folds_of_wide_rows_are_the_models(data: st.DataObject) -> None:
    with patch("lsm.merge.merge_iterator._LONGEST", -1), patch.object(merge_kit, "table_of", _wide_table):
        if data.draw(st.booleans()):
            check_partial_update(data)
        else:
            model = data.draw(aggregations())
            check(model, [data.draw(histories(model, number)) for number in range(data.draw(st.integers(1, 4)))])


def _run(text: pa.Array, *, sequence: int) -> Any:
    yield pa.table({"k": [1], "_SEQUENCE_NUMBER": [sequence], "_VALUE_KIND": pa.array([0], pa.int8()), "t": text})


@pytest.mark.parametrize(("size", "most"), [(10, 20), pytest.param(300_000_000, 2**31 - 1, marks=pytest.mark.long)])
def test_versions_of_a_key_that_are_larger_together_than_an_array_are_merged(size: int, most: int) -> None:
    text = pa.array(["x" * size])
    with patch("lsm.merge.merge_iterator._LONGEST", most):
        (found,) = merge_runs([_run(text, sequence=at) for at in range(8)], SortKey(("k",)), Deduplicate())
    assert found.schema.types == [pa.int64(), pa.int64(), pa.int8(), pa.string()]
    assert found.column("_SEQUENCE_NUMBER").to_pylist() == [7]
    assert found.column("t").chunk(0).equals(text)


def test_a_round_of_dictionaries_and_plain_texts_stays_plain() -> None:
    """A dictionary with nulls would be bounded too widely by the encoder."""
    coded, plain = pa.array(["a"]).dictionary_encode(), pa.array([None], pa.string())
    for first, second in ((coded, plain), (plain, coded)):
        (found,) = merge_runs([_run(first, sequence=0), _run(second, sequence=1)], SortKey(("k",)), Deduplicate())
        assert found.schema.field("t").type == pa.string()
        assert found.column("t").to_pylist() == second.to_pylist()
