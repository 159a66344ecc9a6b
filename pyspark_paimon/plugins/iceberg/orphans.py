"""Iceberg files that no version of the metadata needs. Killed publications leave them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from manifest.io.file_io import FileStatus
from manifest.io.paths import local_form
from manifest.schema.iceberg_schema import IcebergOptions, metadata_directory
from manifest.store import FileStore
from paimon_base.errors import CorruptFile
from pyspark_paimon.plugins.iceberg.manifests import IcebergManifest, IcebergManifests
from pyspark_paimon.plugins.iceberg.metadata import TableMetadata
from pyspark_paimon.plugins.iceberg.vectors import POSITION_DELETES

_MANIFEST = re.compile(r".+-m\d+\.avro|snap-.+\.avro|.+-dv\.puffin")
_VERSION = re.compile(r"v\d+\.metadata\.json")
_NATIVE_VERSION = re.compile(r"\d+-[0-9a-f-]{36}(?:\.gz)?\.metadata\.json(?:\.gz)?")


def list_files(store: FileStore) -> tuple[str, list[FileStatus]]:
    """Return the directory of the metadata, and its manifests and lists."""
    directory = metadata_directory(store.options, store.root)
    listed = store.file_io.list(directory)
    if not directory.startswith(f"{store.root}/") and _is_of_iceberg(store, directory, listed):
        return directory, []
    return directory, [status for status in listed if not status.is_dir and _MANIFEST.fullmatch(status.name)]


def _is_of_iceberg(store: FileStore, directory: str, listed: Sequence[FileStatus]) -> bool:
    """Return whether Iceberg itself has a table of the same name here: its catalogs name versions by numbers and UUIDs."""
    if any(_NATIVE_VERSION.fullmatch(status.name) for status in listed):
        return True
    versions = [status.name for status in listed if _VERSION.fullmatch(status.name)]
    with suppress(FileNotFoundError):  # replaced meanwhile
        parsed = [TableMetadata.parse(store.file_io.read(f"{directory}/{name}")) for name in versions]
        return any(metadata is not None and metadata.is_native(directory, store.root) for metadata in parsed)
    return False


def needed_names(store: FileStore) -> set[str]:
    """Return the names of manifests and lists that some version needs.

    Raises ``CorruptFile`` for a version that cannot be read.
    """
    directory = metadata_directory(store.options, store.root)
    reader = IcebergManifests(store.file_io, directory, "", store.partition, IcebergOptions.of(store.options), 0, {})
    lists: set[str] = set()
    for status in store.file_io.list(directory):
        if _VERSION.fullmatch(status.name):
            path = f"{directory}/{status.name}"
            with suppress(FileNotFoundError):  # replaced meanwhile
                metadata = TableMetadata.parse(store.file_io.read(path))
                if metadata is None:
                    raise CorruptFile(path, "is not metadata of Iceberg")
                lists |= {local_form(snapshot["manifest-list"]) for snapshot in metadata.snapshots}
    manifests: dict[str, IcebergManifest] = {}
    for path in lists:
        with suppress(FileNotFoundError):
            manifests |= {local_form(manifest_file.manifest_path): manifest_file for manifest_file in reader.read_list(path)}
    vectors: set[str] = set()
    for manifest in manifests.values():
        if manifest.content == POSITION_DELETES:
            with suppress(FileNotFoundError):
                vectors |= {local_form(entry["data_file"]["file_path"]) for entry in reader.read(manifest)}
    return {path.rpartition("/")[2] for path in (*lists, *manifests, *vectors)}
