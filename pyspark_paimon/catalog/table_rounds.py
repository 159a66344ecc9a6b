"""Care for all tables of a database or catalog, several at a time.

Each table is opened, cared for and forgotten in one thread of this process. An error ends the work on its table only.
Memory: each table takes what the operation takes alone, so ``threads`` multiplies it.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, TypeAlias

from manifest.entry.data_file import wall_clock_millis
from paimon_base.errors import InvalidArgument
from paimon_base.log import logger_of
from pyspark_paimon.results.fsck_depth import Depth
from pyspark_paimon.results.tables_result import Status, TableOutcome, TablesResult
from pyspark_paimon.scheduling.thread_pool import interleave
from pyspark_paimon.table.table import Table
from pyspark_paimon.typing import Time

_LOG = logger_of(__name__)
_TABLES_AT_A_TIME = 2
_Answer: TypeAlias = tuple[Status, str, dict[str, float]]
FsckDepth: TypeAlias = Depth | Literal["quick", "footers", "deep"]
_Care: TypeAlias = Callable[[Table], _Answer]
OnOutcome: TypeAlias = Callable[[TableOutcome], object]


class TableRounds:
    """Operations on all tables of a catalog, for ``AnyCatalog``.

    Each takes ``database`` (None: all), ``threads`` (tables at a time) and ``on_outcome``, which is called with each outcome in order.
    """

    @abstractmethod
    def list_databases(self) -> list[str]:
        """Return the names of the databases, sorted."""

    @abstractmethod
    def list_tables(self, database: str | None = None) -> list[str]:
        """Return the names of a database's tables, sorted."""

    @abstractmethod
    def table(self, name: str) -> Table:
        """Open a table."""

    def maintenance(
        self,
        database: str | None = None,
        *,
        full: bool = False,
        dry_run: bool = False,
        threads: int = _TABLES_AT_A_TIME,
        on_outcome: OnOutcome | None = None,
    ) -> TablesResult:
        """Run ``Table.maintenance`` on every table.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> catalog = Catalog(tempfile.mkdtemp())
        >>> for name in ("orders", "people"):
        ...     rows = catalog.create_table(name, "id BIGINT").write([{"id": 1}]).rows
        >>> [(outcome.table, outcome.status) for outcome in catalog.maintenance(full=True).tables]
        [('default.orders', 'ok'), ('default.people', 'ok')]
        """
        return self._round("maintain", partial(_maintain, full=full, dry_run=dry_run), database, threads, on_outcome)

    def fsck(
        self,
        database: str | None = None,
        depth: FsckDepth = Depth.FOOTERS,
        *,
        threads: int = _TABLES_AT_A_TIME,
        on_outcome: OnOutcome | None = None,
    ) -> TablesResult:
        """Run ``Table.fsck`` on every table, without repairs."""
        return self._round("fsck", partial(_check, depth=depth), database, threads, on_outcome)

    def expire_snapshots(
        self,
        database: str | None = None,
        *,
        retain: int | None = None,
        older_than: Time | None = None,
        dry_run: bool = False,
        threads: int = _TABLES_AT_A_TIME,
        on_outcome: OnOutcome | None = None,
    ) -> TablesResult:
        """Run ``Table.expire_snapshots`` on every table. ``retain``: number of snapshots to keep; None: the table's options."""
        expire = partial(_expire, retain=retain, older_than=older_than, dry_run=dry_run)
        return self._round("expire", expire, database, threads, on_outcome)

    def inspect(
        self, database: str | None = None, *, threads: int = _TABLES_AT_A_TIME, on_outcome: OnOutcome | None = None
    ) -> TablesResult:
        """Report rows, files, bytes, files of level 0 and the age of the newest snapshot of every table."""
        return self._round("inspect", _inspect, database, threads, on_outcome)

    def _round(self, operation: str, care: _Care, database: str | None, threads: int, on_outcome: OnOutcome | None) -> TablesResult:
        if threads < 1:
            raise InvalidArgument(f"{operation}: threads must be at least 1, not {threads}")
        started = time.perf_counter()
        sources: list[Callable[[], Iterator[TableOutcome]]] = []
        for name in [database] if database is not None else self.list_databases():
            try:
                sources += [partial(self._cared, f"{name}.{table}", care) for table in self.list_tables(name)]
            except Exception as error:  # the other databases go on
                if database is not None:
                    raise
                sources.append(partial(_failed, name, error, 0.0))
        outcomes = []
        for outcome in interleave(sources, threads):
            outcomes.append(outcome)
            if on_outcome is not None:
                on_outcome(outcome)
        seconds = time.perf_counter() - started
        return TablesResult(operation=operation, tables=tuple(outcomes), seconds=seconds, ended_millis=wall_clock_millis())

    def _cared(self, name: str, care: _Care) -> Iterator[TableOutcome]:
        started = time.perf_counter()
        try:
            status, text, figures = care(self.table(name))
        except Exception as error:  # noqa: BLE001  # whatever it is, the other tables go on
            _LOG.warning("%s failed", name, exc_info=True)
            yield from _failed(name, error, time.perf_counter() - started)
            return
        yield TableOutcome(table=name, status=status, text=text, figures=figures, seconds=round(time.perf_counter() - started, 3))


def _failed(name: str, error: Exception, seconds: float) -> Iterator[TableOutcome]:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    yield TableOutcome(table=name, status="failed", text=text, seconds=round(seconds, 3))


def _maintain(table: Table, *, full: bool, dry_run: bool) -> _Answer:
    result = table.maintenance(full=full, dry_run=dry_run)
    compacted, expired = result.compacted, result.expired
    figures: dict[str, float] = {
        "failed_steps": len(result.errors),
        "compacted_files": 0 if compacted is None or compacted.snapshot_id is None else compacted.files_before,
        "expired_snapshots": 0 if expired is None else expired.snapshots,
        "orphan_bytes": result.orphan_bytes,
    }
    return "problems" if result.errors else "ok", str(result), figures


def _check(table: Table, *, depth: FsckDepth) -> _Answer:
    result = table.fsck(depth)
    first = f"; first: {result.problems[0]}" if result.problems else ""
    return "ok" if result.clean else "problems", f"{result}{first}", {"problems": result.problem_count}


def _expire(table: Table, *, retain: int | None, older_than: Time | None, dry_run: bool) -> _Answer:
    result = table.expire_snapshots(retain_min=retain, retain_max=retain, older_than=older_than, dry_run=dry_run)
    return "ok", str(result), {"expired_snapshots": result.snapshots, "deleted_data_files": result.data_files}


def _inspect(table: Table) -> _Answer:
    import pyarrow.compute as pc  # noqa: PLC0415  # a catalog of a server needs no kernels

    snapshots, files = table.snapshots(), table.files()
    figures: dict[str, float] = {
        "rows": pc.sum(files["row_count"]).as_py() or 0,
        "files": files.num_rows,
        "bytes": pc.sum(files["file_size"]).as_py() or 0,
        "level_0_files": pc.sum(pc.equal(files["level"], 0)).as_py() or 0,
        "snapshots": snapshots.num_rows,
    }
    if snapshots.num_rows:
        newest: int = snapshots["commit_time"].cast("int64")[-1].as_py()
        figures["snapshot_age_seconds"] = max(wall_clock_millis() - newest, 0) / 1000
    return "ok", ", ".join(f"{value:,.0f} {name.replace('_', ' ')}" for name, value in figures.items()), figures
