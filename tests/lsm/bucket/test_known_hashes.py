"""Hashes are found wherever they are: in files that are looked through or sorted, in runs that were merged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.bucket import dynamic
from lsm.bucket.dynamic import KnownHashes
from paimon_base.thresholds import use_thresholds

_HASH = st.one_of(st.integers(-5, 5), st.integers(-(2**31), 2**31 - 1), st.sampled_from([-(2**31), 2**31 - 1, 1 << 16, -(1 << 16)]))
_HASHES = st.lists(_HASH, max_size=30)


def _array(values: list[int]) -> np.ndarray:
    return np.array(values, np.int32)


@pytest.mark.parametrize("scanned", [0, 15, 10**6])
@given(files=st.dictionaries(st.integers(0, 9), _HASHES, max_size=4), batches=st.lists(_HASHES, max_size=12))
def test_every_hash_has_the_bucket_that_it_was_given_first(scanned: int, files: dict[int, list[int]], batches: list[list[int]]) -> None:
    model: dict[int, int] = {}
    for bucket, hashes in files.items():
        for value in hashes:
            model.setdefault(value, bucket)
    with use_thresholds(scanned_hashes=scanned):
        known = KnownHashes({bucket: _array(hashes) for bucket, hashes in files.items()})
        for number, batch in enumerate(batches, 100):
            wanted = np.unique(_array(batch))
            found = known.find(wanted)
            assert found.tolist() == [model.get(value, dynamic.UNKNOWN) for value in wanted.tolist()]
            new = wanted[found == dynamic.UNKNOWN]
            buckets = number + np.arange(len(new), dtype=np.int32) % 2
            known.add(new, buckets)
            model.update(zip(new.tolist(), buckets.tolist(), strict=True))
    for bucket in {*files, *model.values()}:
        expected = {value for value, home in model.items() if home == bucket} | set(files.get(bucket, ()))
        assert known.of_bucket(bucket).tolist() == sorted(expected)


def test_runs_stay_few_however_many_batches_come() -> None:
    known = KnownHashes({})
    for batch in range(200):
        known.add(np.arange(batch * 10, batch * 10 + 10, dtype=np.int32), np.zeros(10, np.int32))
    assert len(known._runs) <= 9
