"""Results of table checks and changes of table history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from paimon_base.public import public
from paimon_base.texts import count_text, list_text, size_text
from pyspark_paimon.results.fsck_depth import Depth
from pyspark_paimon.results.fsck_problem import Problem, Repair
from pyspark_paimon.results.message import Result
from pyspark_paimon.results.results import Removal, deleted_text, dry_run_text

if TYPE_CHECKING:
    import pyarrow as pa


_SINGULAR = {"branches": "branch", "file indexes": "file index", "bytes of unreferenced files": "byte of unreferenced files"}


@public
class FsckResult(Result):
    """Result of a table check.

    ``problems``: kind, file, state, manifest, partition, bucket, message and advice.
    ``problem_count`` includes problems beyond the limit.
    ``counts``: number of checked objects, and of unreferenced files (which are harmless).
    ``unchecked``: objects that cannot be checked, such as data files of another format.
    With ``repair``, all members describe the table after the repairs.
    ``repairs``: repairs made, or planned with ``dry_run``.
    ``copies``: folder with the original files that the repairs changed or removed. None: no such files.
    """

    depth: Depth
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    counts: dict[str, int] = Field(default_factory=dict)
    unchecked: dict[str, int] = Field(default_factory=dict)
    repairs: tuple[Repair, ...] = ()
    copies: str | None = None
    dry_run: bool = False
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return the verdict, the depth, and counts of checked objects.

        >>> print(FsckResult(depth=Depth.QUICK, counts={"data files": 3, "manifests": 0}))
        clean (quick, 0.00 s): 3 data files
        """
        verdict = "clean" if self.clean else count_text(self.problem_count, "problem")
        repaired = f"{count_text(len(self.repairs), 'repair')} {'possible' if self.dry_run else 'made'}" if self.repairs else None
        counted = list_text(
            *(count_text(count, _SINGULAR.get(what, what.removesuffix("s")), what) for what, count in self.counts.items() if count)
        )
        unchecked = list_text(*(f"{count:,} {what}" for what, count in self.unchecked.items()))
        text = f"{list_text(verdict, repaired)} ({self.depth}, {self.seconds:.2f} s): {counted or 'nothing to check'}"
        return f"{text}; not checked: {unchecked}" if unchecked else text

    @property
    def clean(self) -> bool:
        """Whether the check found no problem."""
        return not self.problem_count

    def to_arrow(self) -> pa.Table:
        """Return a row for each remaining problem and each repair.

        Repairs have ``repaired`` set, and the copies of changed files.
        """
        import pyarrow as pa  # noqa: PLC0415  # decoding a result does not need pyarrow

        columns = ("kind", "path", "message", "advice", "copies")
        schema = pa.schema([("repaired", pa.bool_()), *((name, pa.string()) for name in columns[:4]), ("copies", pa.list_(pa.string()))])
        rows = [
            {"repaired": isinstance(entry, Repair), **{name: getattr(entry, name, None) for name in columns}}
            for entry in (*self.repairs, *self.problems)
        ]
        return pa.Table.from_pylist(rows, schema)


@public
class TypeChangeResult(Result):
    """Result of a dry run of ``Table.change_type``.

    ``values``: values of the column in the newest snapshot, without nulls. ``changed``: values that another value or null would replace.
    ``unreadable``: values that would make reads fail.

    >>> print(TypeChangeResult(values=10, changed=2, unreadable=1))
    2 of 10 values would change, 1 could not be read
    """

    values: int
    changed: int
    unreadable: int

    def __str__(self) -> str:
        """Return the numbers of values."""
        return f"{self.changed:,} of {count_text(self.values, 'value')} would change, {self.unreadable:,} could not be read"


@public
class TableChangeResult(Result):
    """Result of a change of a table's history.

    Unused members have the values None, 0 or ().
    ``snapshot_id``: snapshot tagged, rolled back to, or created.
    ``snapshots``, ``data_files``, ``manifests``: number of deleted objects.
    ``tags``: tags created or deleted. ``partitions`` (``day=2024-01-31``): partitions dropped. ``repairs``: repairs made.
    ``done``: what happened to branches and consumers, as texts.
    In a dry run these are the planned changes, and ``removal`` has details.
    """

    snapshot_id: int | None = None
    snapshots: int = 0
    data_files: int = 0
    manifests: int = 0
    tags: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    repairs: tuple[Repair, ...] = ()
    done: tuple[str, ...] = ()
    removal: Removal | None = None

    def __str__(self) -> str:
        """Return the snapshot and what was created or deleted.

        >>> print(TableChangeResult(snapshot_id=2, snapshots=1, data_files=3, manifests=4))
        snapshot 2, 1 snapshot with 3 data files and 4 manifests deleted
        """
        if self.removal is not None:
            return dry_run_text(self.removal)
        deleted = self.snapshots or self.data_files or self.manifests
        changes = list_text(
            None if self.snapshot_id is None else f"snapshot {self.snapshot_id}",
            f"{count_text(self.snapshots, 'snapshot')} with {deleted_text(self.data_files, self.manifests)}" if deleted else None,
            f"tags {', '.join(self.tags)}" if self.tags else None,
            f"partitions {', '.join(self.partitions)}" if self.partitions else None,
            f"{count_text(len(self.repairs), 'repair')}" if self.repairs else None,
            *self.done,
        )
        return changes or "nothing to do"


@public
class Holder(Result):
    """What keeps files with rows that a purge removed from the newest state.

    ``kind``: ``snapshot``, ``tag``, ``branch``, ``changelog``, ``consumer`` (its snapshots cannot expire), ``unreferenced`` (files of
    running or killed writes, which cannot be searched), or ``copies`` (files that a repair of the table replaced, in ``_repair``).
    ``name``: name of the tag, branch or consumer, or id of the snapshot. ``files``: number of files.
    """

    kind: str
    name: str
    files: int

    def __str__(self) -> str:
        """Return the kind, the name and the number of files.

        >>> print(Holder(kind="tag", name="v1", files=2))
        tag 'v1' (2 files)
        """
        return f"{self.kind} '{self.name}' ({count_text(self.files, 'file')})"


@public
class PurgeResult(Result):
    """Result of a purge.

    ``rows``: rows deleted from the newest state. ``files``: data files rewritten because they stored matching rows.
    ``snapshots``: expired snapshots. ``snapshot_id``: first snapshot without the rows. None: the table is empty, or a dry run.
    ``holders``: what still keeps matching rows on storage.
    """

    rows: int = 0
    files: int = 0
    snapshots: int = 0
    snapshot_id: int | None = None
    holders: tuple[Holder, ...] = ()
    dry_run: bool = False
    seconds: float = 0.0

    @property
    def gone(self) -> bool:
        """Whether no file of the table stores a matching row any more."""
        return not self.holders and not self.dry_run

    def __str__(self) -> str:
        """Return the verdict and the counts.

        >>> print(PurgeResult(rows=2, files=1, snapshots=3, snapshot_id=9, holders=(Holder(kind="tag", name="v1", files=2),)))
        still held by tag 'v1' (2 files): 2 rows deleted, 1 file rewritten, 3 snapshots expired, 0.00 s
        """
        if self.dry_run:
            return f"would delete {count_text(self.rows, 'row')} held by {list_text(*map(str, self.holders)) or 'no file'}"
        verdict = "gone" if self.gone else f"still held by {list_text(*map(str, self.holders))}"
        changes = f"{count_text(self.rows, 'row')} deleted, {count_text(self.files, 'file')} rewritten"
        return f"{verdict}: {changes}, {count_text(self.snapshots, 'snapshot')} expired, {self.seconds:.2f} s"


@public
class MissingFilesResult(Result):
    """Data files that do not exist, and were removed from the newest state.

    ``paths``: paths of the files. ``rows``: rows in them. ``snapshot_id``: snapshot without them. None: no file is missing, or a dry run.
    """

    paths: tuple[str, ...] = ()
    rows: int = 0
    snapshot_id: int | None = None
    dry_run: bool = False

    def __str__(self) -> str:
        """Return the numbers of files and rows.

        >>> print(MissingFilesResult(paths=("/w/t/bucket-0/data-1.parquet",), rows=3, snapshot_id=4))
        1 missing file with 3 rows removed, snapshot 4
        """
        if not self.paths:
            return "no file is missing"
        counted = f"{count_text(len(self.paths), 'missing file')} with {count_text(self.rows, 'row')}"
        return f"would remove {counted}" if self.dry_run else f"{counted} removed, snapshot {self.snapshot_id}"


@public
class CopyResult(Result):
    """Result of a copy of a table's files.

    ``rows``: 0 for a copy with history. ``snapshot_id``: newest snapshot of the new table. None: the source has no rows.
    """

    files: int = 0
    rows: int = 0
    bytes: int = 0
    snapshot_id: int | None = None
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return the counts.

        >>> print(CopyResult(files=2, rows=5, bytes=1000, snapshot_id=1, seconds=0.1))
        2 files with 5 rows and 1000 B copied, 0.10 s, snapshot 1
        """
        if self.snapshot_id is None:
            return "no file to copy"
        rows = f"with {count_text(self.rows, 'row')} and " if self.rows else "and "
        copied = f"{count_text(self.files, 'file')} {rows}{size_text(self.bytes)}"
        return f"{copied} copied, {self.seconds:.2f} s, snapshot {self.snapshot_id}"
