"""Merging manifests never changes the live files, whatever the thresholds, against a dictionary as model."""

import uuid

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import ColumnRef, Compare, IsNull, Op
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileKind, ManifestEntry
from manifest.entry.live import EntryFilter, live, merge
from manifest.entry.manifest_merge import MergePolicy, merge_manifests
from sparkexpr.values.column_type import Kind
from tests.manifest.commit_kit import EMPTY, check_table, committer, data_file, live_model, make_table, message

PARTS = ["a", "b", None, ""]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return make_table(tmp_path_factory.mktemp("merge") / "t", partitions=("part",))


def policy_options(target, count, full):
    return {
        "manifest.target-file-size": f"{target} b",
        "manifest.merge-min-count": str(count),
        "manifest.full-compaction-threshold-size": f"{full} b",
    }


STEP = st.tuples(
    st.sampled_from(["add", "add", "compact", "upgrade", "overwrite", "truncate", "both"]),
    st.sampled_from(PARTS),
    st.integers(0, 1),
    st.integers(1, 3),
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(STEP, min_size=1, max_size=9),
    policy=st.sampled_from([(1, 2, 1), (1, 2, 10**9), (4000, 2, 10**9), (5000, 3, 6000), (10**7, 2, 10**9), (10**7, 30, 10**9)]),
)
@example(steps=[("add", "a", 0, 2), ("upgrade", "a", 0, 1), ("upgrade", "a", 0, 1)], policy=(1, 2, 1))
def test_any_history_leaves_the_files_that_a_dictionary_has(tmp_path_factory, steps, policy):
    store = make_table(
        tmp_path_factory.mktemp("t") / "t", partitions=("part",), options={**policy_options(*policy), "overwrite-upgrade": "false"}
    )
    model: dict[tuple[bytes, int], dict[tuple[int, str], object]] = {}
    sequence = 0
    for action, part, bucket, count in steps:
        partition = store.partition.encode((part,))
        here = model.setdefault((partition, bucket), {})
        place = {"partition": partition, "bucket": bucket}
        new = []
        if action in {"add", "both", "overwrite"}:
            for _ in range(count):
                new.append(data_file(store, **place, seq=(sequence, sequence)))
                sequence += 1
        if action == "overwrite":
            committer(store).overwrite([message(store, new, **place)], dynamic=True)
            for other in [key for key in model if key[0] == partition]:
                model[other].clear()
        elif action == "truncate":
            committer(store).truncate(partitions=[partition])
            for other in [key for key in model if key[0] == partition]:
                model[other].clear()
            continue
        before = [*here.values(), *new] if action in {"compact", "both"} else []
        after = [data_file(store, **place, level=5, seq=(0, max(sequence - 1, 0)))] if before else []
        if action == "upgrade":
            # All files have the same keys, and files of a level may not overlap.
            free = set(range(1, 6)) - {file.level for file in here.values()}
            before = [file for file in here.values() if file.level == 0 and free][:1]
            after = [file.upgrade(max(free)) for file in before]
        if action != "overwrite":
            committer(store).commit([message(store, new, before, after, **place)])
        for file in new:
            here[file.level, file.file_name] = file
        for file in before:
            del here[file.level, file.file_name]
        for file in after:
            here[file.level, file.file_name] = file
    expected = sorted((partition, bucket, *key) for (partition, bucket), files in model.items() for key in files)
    assert live_model(store) == expected
    check_table(store)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    kills=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 7)), max_size=10),
    policy=st.builds(MergePolicy, st.sampled_from([1, 3500, 10**7]), st.integers(2, 5), st.sampled_from([1, 8000, 10**9])),
)
def test_merging_keeps_the_live_files(parts, sizes, kills, policy):
    added = [
        [
            ManifestEntry(
                kind=FileKind.ADD,
                partition=parts.partition.encode((PARTS[(n + i) % 4],)),
                bucket=0,
                total_buckets=2,
                file={"file_name": f"data-{n}-{i}", "file_size": 1, "row_count": 1, "creation_time": 0},
            )
            for i in range(size)
        ]
        for n, size in enumerate(sizes)
    ]
    manifests, alive = [], {}
    for n, entries in enumerate(added):
        alive.update({entry.file.file_name: entry for entry in entries})
        victims = {sorted(alive)[k % len(alive)] for k, at in kills if at == n}
        manifests += parts.manifests.write([*entries, *(alive.pop(name).deleted() for name in sorted(victims))])
    merged = merge_manifests(manifests, parts.manifests, policy)
    assert len(merged) <= len(manifests)

    def files(metas):
        return sorted(live(EntryColumns.concat([parts.manifests.read_meta(meta) for meta in metas])).file_name)

    assert files(merged) == files(manifests) == sorted(alive)


def entries_of(*changes):
    """+name adds, -name deletes."""
    return EntryColumns.of(
        ManifestEntry(
            kind=FileKind.ADD if change[0] == "+" else FileKind.DELETE,
            partition=EMPTY,
            bucket=0,
            total_buckets=1,
            file={"file_name": change[1:], "file_size": 1, "row_count": 1, "level": 0},
        )
        for change in changes
    )


def shown(entries):
    return [f"{'+-'[kind]}{name}" for kind, name in zip(entries.kind.tolist(), entries.file_name, strict=True)]


def test_live_files_ignore_the_order_of_entries():
    assert shown(live(entries_of("-a", "+a", "+b"))) == ["+b"]
    assert shown(live(entries_of("+a", "+b"))) == ["+a", "+b"]
    assert shown(live(entries_of("-a"))) == []


def test_merging_keeps_unmatched_deletes_and_finds_double_adds():
    assert shown(merge(entries_of("+a", "-a", "-b", "+c")).entries) == ["-b", "+c"]
    assert shown(merge(entries_of("-b")).unmatched_deletes) == ["-b"]
    assert merge(entries_of("+a", "+b", "+a")).twice == (2,)
    assert merge(entries_of("-a", "+a")).twice == (1,)
    assert merge(entries_of("+a", "-a", "-a")).entries.kind.tolist() == [FileKind.DELETE]


def test_small_manifests_wait_until_there_are_enough(tmp_path):
    store = make_table(tmp_path / "t", options={"manifest.merge-min-count": "4"})
    counts = []
    for number in range(8):
        committer(store).commit([message(store, [data_file(store, seq=(number, number))])])
        counts.append(len(store.manifest_metas(store.snapshots.latest())))
    assert counts == [1, 2, 3, 4, 2, 3, 4, 2]


def test_a_full_merge_leaves_untouched_partitions_alone(parts):
    def write(part, *kinds):
        partition = parts.partition.encode((part,))
        file = {"file_name": f"data-{part}", "file_size": 1, "row_count": 1, "creation_time": 0}
        return parts.manifests.write(ManifestEntry(kind=kind, partition=partition, bucket=0, total_buckets=2, file=file) for kind in kinds)

    untouched, added, deleted = write("z", FileKind.ADD), write("a", FileKind.ADD), write("a", FileKind.DELETE)
    merged = merge_manifests([*untouched, *added, *deleted], parts.manifests, MergePolicy(1, 30, 1))
    assert merged == untouched


def test_manifests_are_pruned_before_they_are_read(tmp_path):
    store = make_table(tmp_path / "t", partitions=("part",), options={"manifest.merge-min-count": "100", "bucket": "4"})
    partitions = {text: store.partition.encode((text,)) for text in ("a", "b", "c", None)}
    for number, (text, partition) in enumerate(partitions.items()):
        level = 5 if text == "b" else 0
        new = data_file(store, partition=partition, bucket=number, level=level)
        committer(store).commit([message(store, (), (), [new], partition=partition, bucket=number)])
    latest = store.snapshots.latest()

    def scan(**wanted):
        filtered = EntryFilter(**wanted)
        listed = store.manifest_metas(latest)
        kept = len(filtered.manifests(listed, store.partition, store.paths.manifests))
        found = store.live_entries(latest, filtered)
        return [store.partition.decode(p)[0] for p in found.partition], (kept, len(listed) - kept)

    column = ColumnRef("part")
    assert scan() == (["a", "b", "c", None], (4, 0))
    assert scan(predicate=Compare(column, Op.EQ, "b")) == (["b"], (1, 3))
    assert scan(predicate=Compare(column, Op.GT, "b")) == (["c"], (1, 3))
    assert scan(predicate=IsNull(column)) == ([None], (1, 3))
    assert scan(predicate=Compare(ColumnRef("id"), Op.EQ, 1)) == (["a", "b", "c", None], (4, 0))
    assert scan(partitions=[partitions["a"], partitions[None]]) == (["a", None], (2, 2))
    assert scan(partitions=[]) == ([], (0, 4))
    assert scan(buckets={2, 9}) == (["c"], (1, 3))
    assert scan(min_level=1) == (["b"], (1, 3))
    assert store.partition.types[0].kind is Kind.VARCHAR


def test_statistics_of_partitions_are_never_truncated(tmp_path):
    store = make_table(tmp_path / "t", partitions=("part",))
    long = "x" * 5000 + str(uuid.uuid4())
    stats = store.partition.stats([store.partition.encode((text,)) for text in (long, "a", None, None)])
    assert store.partition.decode(stats.min_values) == ("a",)
    assert store.partition.decode(stats.max_values) == (long,)
    assert stats.null_counts == (2,)


def test_identities_are_made_of_entries_alone_that_share_a_file_name(monkeypatch):
    """Most manifests that merge have nothing but additions."""
    asked = []
    identities = EntryColumns.identities
    monkeypatch.setattr(
        EntryColumns, "identities", lambda self, rows=None: asked.append(len(self if rows is None else rows)) or identities(self, rows)
    )
    added = [
        ManifestEntry(
            kind=FileKind.ADD, partition=EMPTY, bucket=0, total_buckets=2, file=DataFileMeta(file_name=f"f{n}", file_size=1, row_count=1)
        )
        for n in range(9)
    ]
    gone = added[4].model_copy(update={"kind": FileKind.DELETE})
    assert len(merge(EntryColumns.of(added)).entries) == 9
    assert asked == []
    merged = merge(EntryColumns.of([*added, gone])).entries
    assert [entry.file.file_name for entry in merged.entries()] == [entry.file.file_name for entry in added if entry is not added[4]]
    assert asked == [2]
