"""The simulated tables are what a writer would have made, and every step of the measurement finds what it should."""

import pytest

from benchmarks import metadata_scaling
from manifest.store import FileStore

FILES = 2000


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("simulated") / "t")
    metadata_scaling.make(path, FILES, 20)
    return path


def test_a_simulated_table_has_the_files_that_its_rules_say(simulated):
    store = FileStore.open(simulated)
    entries = store.live_entries(store.snapshots.latest())
    assert len(set(entries.file_name)) == len(entries) == FILES
    assert len(entries.partition_codes[1]) == metadata_scaling.PARTITIONS
    assert sorted(set(entries.bucket.tolist())) == list(range(metadata_scaling.BUCKETS))
    for file in entries.files()[:50]:
        low, high = (store.key.decode(key)[0] for key in (file.min_key, file.max_key))
        assert low == int(file.file_name[5:13]) * 2_654_435_761 % metadata_scaling.KEYS
        assert low < high
        assert file.value_stats.min_values != file.value_stats.max_values


def test_every_step_answers(simulated):
    found = {name: step(simulated)[1] for name, step in metadata_scaling.STEPS.items()}
    assert found["plan, partition, cold"] == FILES // metadata_scaling.PARTITIONS
    assert found["plan, no filter, cold"] == FILES
    assert 0 < found["plan, partition + key, cold"] <= found["plan, partition, cold"]
    assert found["commit of one file, cold"] == 21
    assert found["expire 10 snapshots"] == 10
