"""Methods of ``Table`` that copy, purge and repair its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from fileindex.predicate.tree import TRUE
from manifest.io.paths import MAIN_BRANCH, split_branch
from manifest.storage.schemes import scheme_of
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from paimon_base.plugins import plugin
from pyspark_paimon.request.partition_spec import partition_filter
from pyspark_paimon.request.requests import DeleteRequest
from pyspark_paimon.request.validate import check_options, commit_identity
from pyspark_paimon.table.engine_choice import engine_for
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.typing import Filter

if TYPE_CHECKING:
    from manifest.io.file_io import FileIO
    from pyspark_paimon.operations import copy_files, copy_history, missing_files, purge
    from pyspark_paimon.request.engine import Engine
    from pyspark_paimon.results.state_results import CopyResult, MissingFilesResult, PurgeResult, TableChangeResult
else:
    copy_files = LazyModule("pyspark_paimon.operations.copy_files")
    copy_history = LazyModule("pyspark_paimon.operations.copy_history")
    missing_files = LazyModule("pyspark_paimon.operations.missing_files")
    purge = LazyModule("pyspark_paimon.operations.purge")


class TableFiles(TableRole):
    """Methods that work on files as a whole.

    >>> from pyspark_paimon.example import cities
    >>> cities().remove_unexisting_files().paths
    ()
    """

    def copy_to(
        self,
        path: str | os.PathLike[str],
        *,
        filter: Filter = None,  # noqa: A002  # as in scan
        history: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> CopyResult:
        """Copy the newest state into a new table, file by file.

        No row is decoded. Data files, their indexes, deletion vectors and hash indexes keep their names, and all versions of the schema
        are copied. The new table has one snapshot and no tags, branches or changelogs. A temporary tag keeps the files meanwhile.
        Paimon's procedure ``copy`` does this.

        Args:
            path: Directory of the new table, on any storage.
            filter: Copy only partitions whose columns satisfy this filter.
            history: Copy snapshots, changelogs, tags, branches and consumers, too, each as it is. A repeat copies what is new, and removes
                snapshots and tags that the table no longer has. Their files are orphans of the copy.
            storage_options: Access to the object store of ``path``, as in ``Table.open``. None: the table's own on the same kind of storage.

        Raises:
            TableExists: Something else is at ``path``. Without ``history`` a copy that was killed is there, too: delete it first.
            InvalidArgument, InvalidFilter, UnknownColumn: An argument is not valid.
            UnsupportedTable: The table reads another branch, or has global indexes. With ``history``: the table is a branch, or has files
                or snapshots elsewhere.
            CorruptFile: A file is missing or has another size. Nothing is committed.
            CommitGaveUp: Snapshots expire faster than they are copied.

        >>> import tempfile
        >>> from pyspark_paimon import Table
        >>> from pyspark_paimon.example import cities
        >>> target = f"{tempfile.mkdtemp()}/copy"
        >>> done = cities().copy_to(target)
        >>> done.files, done.snapshot_id, Table.open(target).count()
        (1, 1, 3)
        """
        target, storages = self._beside(path, storage_options)
        if not history:
            predicate = partition_filter(filter, self.table_schema, "a copy")
            return copy_files.copy_table(self._engine, target, predicate, commit_identity(None), storages)
        if filter is not None:
            raise InvalidArgument("copy_to: history=True copies all rows; leave out 'filter', or copy the newest state alone")
        return self._engine.run(copy_history.CopyHistory(target=target.path).with_storage(storages[1]))

    def _beside(
        self, path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None
    ) -> tuple[Engine, tuple[FileIO | None, FileIO | None]]:
        """Return the engine of another table, and the storages of both that this process reaches."""
        engine = self._engine
        if engine.spark is not None:
            return engine_for(path, engine.spark, storage_options=storage_options), (None, None)
        from pyspark_paimon.local.engine import LocalEngine  # noqa: PLC0415  # loads the storage engine

        file_io = engine.file_io if isinstance(engine, LocalEngine) else None  # a system table is refused by its first operation
        shared = storage_options is None and scheme_of(os.fspath(path)) == scheme_of(engine.path)
        target = LocalEngine(path, file_io=file_io if shared else None, storage_options=storage_options)
        return target, (file_io, target.file_io)

    def purge_files(self, *, dry_run: bool = False) -> PurgeResult:
        """Delete all rows, and everything that keeps files.

        Branches, tags and consumers are deleted first, then the rows with all snapshots, changelogs and orphan files, as ``purge`` does.
        Schema and options stay. Files of running writes stay, as for ``remove_orphan_files``. A call that was interrupted is finished by
        the next one. Paimon's procedure ``purge_files`` does this.

        Args:
            dry_run: Count the rows and list what holds them, and change nothing.

        Raises:
            InvalidArgument: The table is opened as a branch.
            UnsupportedTable: The table has row ids (``row-tracking.enabled``).
            CommitConflict: Other commits won every retry. Call it again.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> tag = table.create_tag("v1")
        >>> table.purge_files().gone, table.tags().num_rows, table.count()
        (True, 0, 0)
        """
        branch = split_branch(self._engine.path)[1]
        if branch != MAIN_BRANCH:
            raise InvalidArgument(f"purge_files: {self._engine.path} is a branch; delete it by delete_branch('{branch}') of the table")
        from pyspark_paimon.operations.change_rows import DeleteRows  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.table.keyed import count_change  # noqa: PLC0415  # as above

        options = check_options(self._write_options(None))
        request = DeleteRequest(commit_id=commit_identity(None), first_run=True, predicate=TRUE, options=options)
        count = partial(count_change, self._engine, DeleteRows(request=request))
        return purge.purge_files(self._engine, self.table_schema, request, count, dry_run=dry_run)

    def remove_unexisting_files(self, *, dry_run: bool = False) -> MissingFilesResult:
        """Remove data files that do not exist from the newest state.

        Their rows are lost; the other rows can be read again. Older snapshots and tags still need the files. Only the existence of data
        files is checked; ``fsck`` checks more. If a backup has the files, restore them instead. Paimon's procedure of this name does this.

        Args:
            dry_run: Report the files, and change nothing.

        Returns:
            A result with the ``paths`` of the files, and the number of ``rows`` in them.

        Raises:
            UnsupportedTable: Several files have the columns of a row (``data-evolution.enabled``).
            CommitGaveUp: Other commits won every retry. Nothing is changed.

        >>> from pathlib import Path
        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> for file in Path(table.path).glob("bucket-*/*.parquet"):
        ...     file.unlink()
        >>> table.remove_unexisting_files().rows, table.count()
        (3, 0)
        """
        return self._engine.run(missing_files.RemoveUnexistingFiles(commit_id=commit_identity(None), dry_run=dry_run))

    def repair_earliest_snapshot(self, snapshot: int, *, dry_run: bool = False) -> TableChangeResult:
        """Make the first snapshot behind a gap the oldest one.

        A snapshot file that was lost leaves a gap in the history, which expiry and streams do not pass. The snapshots before the gap are
        removed. Copies of their files stay in ``_repair``; their data files are orphans. The newest state and all tags stay.
        Newer versions of Paimon have a procedure of this name.

        Args:
            snapshot: Id of the first snapshot behind the last gap.
            dry_run: Report the repair, and change nothing.

        Raises:
            InvalidArgument: The snapshot does not exist or follows no gap, a later one is missing, or a consumer reads an older one.

        >>> from pathlib import Path
        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> snapshots = [table.delete(f"id = {number}").snapshot_id for number in (1, 2)]
        >>> Path(table.path, "snapshot", "snapshot-2").unlink()
        >>> table.repair_earliest_snapshot(3).snapshots, table.snapshots()["snapshot_id"].to_pylist()
        (1, [3])
        """
        repair = plugin("request", "remove-snapshots-before-gap")(snapshot_id=snapshot, dry_run=dry_run)
        result: TableChangeResult = self._engine.run(repair)
        return result
