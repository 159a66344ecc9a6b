"""Files to check one by one, in serialisable form.

Also checks their existence and size.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from manifest.entry.data_file import ManifestEntry
from manifest.entry.index_manifest import IndexManifestEntry
from manifest.io.paths import escape, partition_text
from manifest.store import FileStore
from paimon_base.errors import PaimonError
from pyspark_paimon.results.fsck_problem import Findings, Origin, ProblemKind


class DataUnit(BaseModel):
    """A data or changelog file with its side files.

    ``hashes`` is the hash index of its dynamic bucket.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: Literal["data", "changelog"]
    origin: Origin
    entry: ManifestEntry
    manifest: str | None = None
    hashes: IndexManifestEntry | None = None

    @property
    def size(self) -> int:
        """Bytes to read."""
        return self.entry.file.file_size


class IndexUnit(BaseModel):
    """A deletion-vector or hash index file.

    ``rows`` has the row counts of the data files of its vectors.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: Literal["index"] = "index"
    origin: Origin
    entry: IndexManifestEntry
    manifest: str | None = None
    rows: dict[str, int] = Field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes to read."""
        return self.entry.file_size


Unit = DataUnit | IndexUnit


def place_of(store: FileStore, partition: bytes, bucket: int) -> tuple[str, int]:
    """Return a partition as in paths, and the bucket.

    Raises ``CorruptFile`` for bytes that are not a partition.
    """
    paths = store.paths
    values = store.partition.decode(partition)
    texts = (
        f"{escape(key)}={escape(partition_text(value, kind, paths.default_partition, legacy=paths.legacy_names))}"
        for key, value, kind in zip(paths.partition_keys, values, paths.partition_types, strict=True)
    )
    return "/".join(texts), bucket


def is_whole(store: FileStore, unit: Unit, findings: Findings) -> bool:
    """Return whether file and side files exist with correct size.

    Adds problems to ``findings``.
    """
    entry = unit.entry
    try:
        partition_and_bucket = place_of(store, entry.partition, entry.bucket)
        if isinstance(entry, ManifestEntry):
            path, *side_files = store.physical_files(entry.partition, entry.bucket, entry.file)
            size = entry.file.file_size
        else:
            path, side_files = (
                store.paths.index(entry.file_name, store.partition.decode(entry.partition), entry.bucket, entry.external_path),
                [],
            )
            size = entry.file_size
    except (PaimonError, ValueError) as error:
        name = entry.file.file_name if isinstance(entry, ManifestEntry) else entry.file_name
        findings.add(ProblemKind.ENTRY, name, f"has an invalid partition ({error})", unit.origin, manifest=unit.manifest)
        return False
    if side_files:
        findings.counts["side files"] += len(side_files)
    findings.counts[f"{unit.unit} files"] += 1
    wrong = [wrong for side_file in side_files if (wrong := _file_problem(store, side_file, None))]
    file_problem = _file_problem(store, path, size)
    for kind, file, message in (*wrong, *([file_problem] if file_problem else ())):
        findings.add(kind, file, message, unit.origin, manifest=unit.manifest, partition_and_bucket=partition_and_bucket)
    return file_problem is None


def _file_problem(store: FileStore, path: str, size: int | None) -> tuple[ProblemKind, str, str] | None:
    """Return problem kind, file and message, None if correct.

    ``size`` None accepts any size.
    """
    try:
        actual = store.file_io.size(path)
    except FileNotFoundError:
        return ProblemKind.MISSING_FILE, path, "is missing"
    except (OSError, PaimonError) as error:  # PaimonError: a server may not open the path
        return ProblemKind.MISSING_FILE, path, f"cannot be reached ({error})"
    if size is not None and actual != size:
        return ProblemKind.FILE_SIZE, path, f"has {actual:,} bytes, but its manifest records {size:,}"
    return None
