"""Iceberg metadata of a table, read without the code that writes it."""

from __future__ import annotations

import json
from typing import Any

from manifest.avro.container import read_container
from manifest.store import FileStore
from pyspark_paimon import Table


def latest_metadata(table: Table, directory: str = "metadata") -> dict[str, Any]:
    """The metadata that the version hint names."""
    store = FileStore.open(table.path)
    version = int(store.file_io.read(f"{store.root}/{directory}/version-hint.text"))
    return json.loads(store.file_io.read(f"{store.root}/{directory}/v{version}.metadata.json"))


def versions(table: Table) -> list[int]:
    """The versions that are there."""
    store = FileStore.open(table.path)
    names = [found.name for found in store.file_io.list(f"{store.root}/metadata")]
    return sorted(int(name.split(".")[0][1:]) for name in names if name.endswith(".metadata.json"))


def records(table: Table, path: str) -> list[dict[str, Any]]:
    """The records of an Avro file."""
    return read_container(path, FileStore.open(table.path).file_io.read(path)).records()


def manifests(table: Table, metadata: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The manifests of the current snapshot."""
    found = metadata or latest_metadata(table)
    current = next(one for one in found["snapshots"] if one["snapshot-id"] == found["current-snapshot-id"])
    return records(table, current["manifest-list"])


def live_paths(table: Table) -> list[str]:
    """The data files that readers of Iceberg see."""
    data = [manifest["manifest_path"] for manifest in manifests(table) if manifest["content"] == 0]
    entries = [entry for path in data for entry in records(table, path)]
    return sorted(entry["data_file"]["file_path"] for entry in entries if entry["status"] != 2)


def vectors(table: Table) -> dict[str, dict[str, Any]]:
    """The deletion vectors that readers apply, by the data file."""
    deletes = [manifest["manifest_path"] for manifest in manifests(table) if manifest["content"] == 1]
    entries = [entry["data_file"] for path in deletes for entry in records(table, path) if entry["status"] != 2]
    assert len({entry["referenced_data_file"] for entry in entries}) == len(entries)
    return {entry["referenced_data_file"]: entry for entry in entries}


def expected_paths(table: Table) -> list[str]:
    """The data files of the newest snapshot that they should see."""
    store = FileStore.open(table.path)
    keyed = bool(store.schema.primary_keys)
    lowest = (1 if store.options.raw.get("metadata.iceberg.format-version") == "3" else store.options.max_level) if keyed else 0
    entries = store.live_entries(store.snapshots.latest()).entries()
    return sorted(store.physical_files(entry.partition, entry.bucket, entry.file)[0] for entry in entries if entry.file.level >= lowest)


def check_files(table: Table) -> None:
    """Assert that the metadata is that of the newest snapshot, file for file."""
    newest = table.snapshots().column("snapshot_id").to_pylist()[-1]
    metadata = latest_metadata(table)
    assert metadata["current-snapshot-id"] == metadata["last-sequence-number"] == newest
    paths = live_paths(table)
    assert len(paths) == len(set(paths))
    assert paths == expected_paths(table)
    numbers = [
        [one[name] for name in one if name.startswith(("added_", "existing_")) and "files_count" in name]
        for one in manifests(table, metadata)
        if one["content"] == 0
    ]
    assert sum(map(sum, numbers)) == len(paths)
