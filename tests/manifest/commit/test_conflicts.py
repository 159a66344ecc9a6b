"""Conflicts of a commit with the live files."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifest.commit import conflicts
from manifest.commit.conflicts import file_conflicts
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind, ManifestEntry
from manifest.store import FileStore
from tests.examples import some
from tests.manifest.commit_kit import EMPTY, data_file, make_table

NAMES = st.sampled_from(["a", "b", "c", "d", "dd", "ü"])
FILES = st.tuples(
    NAMES, st.integers(0, 1), st.sampled_from([0, 0, 0, 1, 5]), st.sampled_from([FileKind.ADD, FileKind.ADD, FileKind.DELETE])
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> FileStore:
    return make_table(tmp_path_factory.mktemp("conflicts") / "t")


def columns(store: FileStore, files: list[tuple[str, int, int, FileKind]]) -> EntryColumns:
    sample = data_file(store, name="sample")
    return EntryColumns.of(
        ManifestEntry(
            kind=kind, partition=EMPTY, bucket=bucket, total_buckets=2, file=sample.model_copy(update={"file_name": name, "level": level})
        )
        for name, bucket, level, kind in files
    )


@given(base=st.lists(FILES, max_size=5, unique_by=lambda file: file[0]), delta=st.lists(FILES, max_size=4))
@settings(max_examples=some(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_new_names_on_level_0_are_judged_like_all_others(store: FileStore, base: list, delta: list) -> None:
    live = columns(
        store, [(name, bucket, level if level == 0 else at + 1, FileKind.ADD) for at, (name, bucket, level, _) in enumerate(base)]
    )
    change = columns(store, delta)
    quick = file_conflicts(live, change, store.key)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conflicts, "_adds_unknown_names", lambda *_: False)
        assert quick == file_conflicts(live, change, store.key)


def test_most_appends_are_not_merged_with_the_live_files(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> EntryColumns:
        raise AssertionError("the live files were copied")

    live = columns(store, [("a", 0, 0, FileKind.ADD), ("b", 0, 5, FileKind.ADD)])
    change = columns(store, [("c", 0, 0, FileKind.ADD), ("d", 1, 0, FileKind.ADD)])
    monkeypatch.setattr(EntryColumns, "concat", refuse)
    assert file_conflicts(live, change, store.key) == []
    with pytest.raises(AssertionError):
        file_conflicts(live, columns(store, [("a", 1, 0, FileKind.ADD)]), store.key)
