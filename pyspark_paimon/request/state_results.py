"""What checks of a table and changes of its history answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from fileindex.base.public import public
from manifest.fsck.depth import Depth
from manifest.fsck.problem import Problem, Repair
from pyspark_paimon.request.message import Message
from pyspark_paimon.request.results import Removal

if TYPE_CHECKING:
    import pyarrow as pa


@public
class FsckResult(Message):
    """What a check of a table found.

    ``problems`` tell kind, file, state, manifest, partition and bucket, what is wrong and what to do; ``problem_count`` counts
    those beyond the limit too. ``counts`` says how much was looked at, and how many files nothing refers to (they do no harm);
    ``unchecked`` what was there but could not be looked into, as data files of another format. With ``repair`` it tells of the table
    after the repairs: ``repairs`` has each of them, or with ``dry_run`` those that would be made, ``copies`` is the folder of the files that
    they changed or removed, as these were before (None: there were none).
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

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problem_count

    def to_arrow(self) -> pa.Table:
        """A row for each problem that is left, with what to do, and for each repair (``repaired``), with the copies of what it changed."""
        import pyarrow as pa  # noqa: PLC0415  # answers travel without it

        columns = ("kind", "path", "message", "advice", "copies")
        schema = pa.schema([("repaired", pa.bool_()), *((name, pa.string()) for name in columns[:4]), ("copies", pa.list_(pa.string()))])
        rows = [
            {"repaired": isinstance(one, Repair), **{name: getattr(one, name, None) for name in columns}}
            for one in (*self.repairs, *self.problems)
        ]
        return pa.Table.from_pylist(rows, schema)


@public
class TableChangeResult(Message):
    """What a change of a table's history did; what does not apply is None, 0 or ().

    ``snapshot_id``: the snapshot that was tagged, rolled back to, or made. ``snapshots``, ``data_files``, ``manifests``: how many
    were deleted. ``tags`` were made or deleted, ``partitions`` (``day=2024-01-31``) dropped, ``repairs`` made.
    In a dry run they are those that would be, and ``removal`` tells more.
    """

    snapshot_id: int | None = None
    snapshots: int = 0
    data_files: int = 0
    manifests: int = 0
    tags: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    repairs: tuple[Repair, ...] = ()
    removal: Removal | None = None


__all__ = ["FsckResult", "TableChangeResult"]
