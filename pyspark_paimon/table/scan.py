"""``Scan``: what to read, pinned to a snapshot when it is made, read when a terminal method is called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fileindex.base.errors import InvalidArgument, UnknownColumn
from fileindex.base.lazy import LazyModule
from fileindex.base.public import public
from fileindex.predicate.tree import And
from lsm.arrow.text_form import coded_texts
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import arrow_schema
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.jobs.incremental import change_columns, scan_fields
from pyspark_paimon.request.arguments import CheckedMethods
from pyspark_paimon.request.backend import ScanRequest
from pyspark_paimon.request.counters import ScanCounters, ScanTally
from pyspark_paimon.request.executor import Backend
from pyspark_paimon.request.validate import projection, text_columns
from pyspark_paimon.table.engine_choice import check_session
from pyspark_paimon.table.readable import Readable
from pyspark_paimon.typing import Filter, SparkSession

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

    from lsm.scan.plan import ScanPlan
    from lsm.scan.splits import DataSplit
    from pyspark_paimon.jobs import aggregates, ordering
    from pyspark_paimon.views import explain as views
else:
    aggregates = LazyModule("pyspark_paimon.jobs.aggregates")
    ordering = LazyModule("pyspark_paimon.jobs.ordering")
    views = LazyModule("pyspark_paimon.views.explain")


@public
@dataclass(frozen=True, repr=False, eq=False)
class Scan(CheckedMethods, Readable):
    """A lazy read of one snapshot; made by ``Table.scan``. Every terminal method may be called repeatedly and agrees with the others.

    All of them raise ``SnapshotExpired`` if the pinned snapshot was expired meanwhile, and ``CorruptFile`` naming a file
    that is not what its metadata promise.

    >>> from pyspark_paimon.example import cities
    >>> scan = cities().scan("id >= 2", columns=["id", "city"])
    >>> scan.count(), scan.snapshot_id, scan.to_arrow()["city"].to_pylist(), sum(batch.num_rows for batch in scan.to_batches())
    (2, 1, ['Lima', 'Rome'], 2)
    >>> scan.to_pandas()["id"].sum()
    np.int64(5)
    >>> [len(split.files) for split in scan.plan().splits], scan.explain().stages[-1].kept
    ([1], 2)
    """

    _backend: Backend
    _request: ScanRequest
    table_schema: TableSchema
    _filter_text: str | None = None
    _tally: ScanTally = field(default_factory=ScanTally, init=False)

    @property
    def counters(self) -> ScanCounters | None:
        """What the last read that came to an end counted, of ``to_arrow``, ``to_pandas``, ``to_batches`` and the like; None before.

        >>> from pyspark_paimon.example import cities
        >>> scan = cities().scan("id >= 2")
        >>> scan.to_arrow().num_rows, scan.counters.rows, scan.counters.files, scan.counters.rows_decoded
        (2, 2, 1, 3)
        """
        return self._tally.counters

    @property
    def snapshot_id(self) -> int | None:
        """Id of the pinned snapshot; None if the table was empty."""
        return self._request.snapshot_id

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        return arrow_schema(scan_fields(self.table_schema, self._request.columns))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, a batch at a time, in bounded memory; in no order unless the scan has one, whose rows are held until they are sorted."""
        return self._backend.read(self._request, tally=self._tally)

    def to_arrow(self, *, dictionaries: bool | Sequence[str] = False) -> pa.Table:
        """The rows as one Arrow table; ``dictionaries``: text columns as dictionaries, all or these, which takes less time and memory for few values.

        Raises ``InvalidArgument`` where such a column holds no texts, ``UnknownColumn``.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan("id < 3", columns=["country"]).to_arrow(dictionaries=True)["country"].type
        DictionaryType(dictionary<values=string, indices=int32, ordered=0>)
        """
        coded = text_columns(dictionaries, self.schema)
        if not coded:
            return pa.Table.from_batches(self._backend.read(self._request, keeps_all=True, tally=self._tally), self.schema)
        request = self._request if self._request.order_by else self._request.model_copy(update={"dictionaries": coded})
        return coded_texts(self._backend.read(request, keeps_all=True, tally=self._tally), self.schema, coded)

    def to_pandas(self, *, dictionaries: bool | Sequence[str] = False, **options: Any) -> pd.DataFrame:
        """The rows as a pandas DataFrame, texts as categories where ``to_arrow`` gives dictionaries; ``options`` go to ``pyarrow.Table.to_pandas``."""
        frame: pd.DataFrame = self.to_arrow(dictionaries=dictionaries).to_pandas(**options)
        return frame

    def to_spark(self, spark: SparkSession | None = None, *, native: bool = True) -> DataFrame:
        """The rows as a lazy Spark DataFrame that reads this very snapshot, of ``spark`` or of the table's own session.

        Files that need no merging are read by Spark's own Parquet reader, as far as rows, types and values are certain to be the
        same; ``native=False`` has this package read everything. Either way the frame has the same schema and rows, in no order.
        If the snapshot expires, later actions on the frame fail: with ``SnapshotExpired`` when this package reads, with Spark's
        own error (a missing path or file) when Spark does.

        Raises ``InvalidArgument`` if the table was opened without a session and none is given.
        """
        if spark is not None:
            check_session(spark)
        return self._backend.frame(self._request, spark, native=native)

    def count(self) -> int:
        """Number of rows; files that metadata or indexes answer for are not read."""
        return self._backend.count(self._request)

    def aggregate(self, wanted: aggregates.Wanted, *, by: str | Sequence[str] = ()) -> pa.Table:
        """Counts, extremes and sums: ``{"n": "count", "amount": ["min", "max", "sum"]}`` gives ``n``, ``amount_min``, ``amount_max``, ``amount_sum``.

        A name that is no column counts rows, a column's ``count`` leaves nulls out. There is one row, or one for each value of the
        partition columns ``by``, in their order. As in Spark NaN is the greatest value, sums are BIGINT, DOUBLE, or DECIMAL with ten
        digits more. Data files are opened only where statistics, deletion vectors and ``bsi`` indexes do not tell; an order of the
        scan means nothing here.

        Raises ``InvalidArgument`` for what is no aggregate of a column, for ``by`` of another column and for a scan with a limit,
        ``UnknownColumn``, ``OutOfRange`` for a sum that its type does not hold.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan("country <> 'NO'").aggregate({"n": "count", "id": ["min", "max", "sum"]}).to_pylist()
        [{'n': 2, 'id_min': 2, 'id_max': 3, 'id_sum': 5}]
        """
        if self._request.limit is not None:
            raise InvalidArgument("aggregate: a scan with a limit has no certain rows; head() gives them to aggregate")
        columns, counts = aggregates.aggregates_of(wanted, self.table_schema)
        groups = aggregates.groups_of(by, self.table_schema)
        request = self._request.model_copy(update={"columns": (), "order_by": (), "aggregates": columns})
        return aggregates.aggregate_table(self._backend.aggregate(request), columns, counts, groups, self.table_schema)

    def plan(self) -> ScanPlan:
        """The splits to read and the funnel's report, drawn in a notebook; nothing but metadata is read."""
        from pyspark_paimon.report.plan_picture import PictureOfPlan  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.request.scan_questions import PlanScan  # noqa: PLC0415  # as above

        plan = self._backend.ask(PlanScan(request=self._request))
        return PictureOfPlan(plan.snapshot_id, plan.splits, plan.report, self.table_schema)

    def explain(self, *, analyze: bool = True) -> views.Explanation:
        """What each stage of the funnel kept and dropped; with ``analyze`` the rows are read to see the stages at read time too."""
        from pyspark_paimon.request.scan_questions import MeasureScan  # noqa: PLC0415  # see test_imports

        plan = self.plan()
        read = self._backend.ask(MeasureScan(request=self._request)) if analyze else ()
        return views.Explanation.of(repr(self), plan, read, self._backend.readers(self._request, plan))

    def read(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """The rows of one of ``plan().splits``, in no order, here or in another process that was sent the scan and the split.

        Raises ``InvalidArgument`` on Spark, which reads splits in its own tasks.
        """
        return self._backend.read_split(self._request, split)

    def narrowed(self, filter: Filter) -> Scan:  # noqa: A002  # Arrow's and pandas' word
        """The rows of this scan for which ``filter``, as in ``Table.scan``, is true, too.

        Raises ``InvalidFilter``, ``UnknownColumn``, ``InvalidArgument`` for a scan with a limit: which rows it has is not known before.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan("id > 1").narrowed("id < 3").count()
        1
        """
        more = bind_filter(filter, self.table_schema.column_types)
        if more is None:
            return self
        if self._request.limit is not None:
            raise InvalidArgument("a scan with a limit takes no more conditions")
        held = self._request.predicate
        text = " AND ".join(f"({part})" for part in (self._filter_text, filter) if part is not None)
        return replace(
            self, _request=self._request.model_copy(update={"predicate": more if held is None else And((held, more))}), _filter_text=text
        )

    def projected(self, columns: Sequence[str]) -> Scan:
        """This scan with these of its columns, in that order. Raises ``UnknownColumn``."""
        names = self._request.columns
        chosen = (
            change_columns(columns, self.table_schema) if self._request.incremental is not None else projection(columns, self.table_schema)
        )
        if missing := [name for name in chosen if name not in names]:
            raise UnknownColumn(missing[0], names)
        return replace(self, _request=self._request.model_copy(update={"columns": chosen}))

    def limited(self, rows: int) -> Scan:
        """The first ``rows`` rows of this scan."""
        limit = rows if self._request.limit is None else min(rows, self._request.limit)
        return replace(self, _request=self._request.model_copy(update={"limit": limit}))

    def _read(self) -> Scan:
        return self

    def _repr_html_(self) -> str:
        from pyspark_paimon.html.card import Grid, card, or_error  # noqa: PLC0415  # few scans are drawn

        columns = [(field.name, field.type) for field in self.schema]
        return or_error("Scan", lambda: card(repr(self), grids=[Grid.of(("column", "type"), columns)]))

    def __repr__(self) -> str:
        parts = [self._backend.path, f"snapshot={self.snapshot_id}"]
        if self._filter_text is not None:
            parts.append(f"filter={self._filter_text!r}")
        if self._request.incremental is not None:
            parts[1] = f"snapshots={self._request.incremental.start_id}..{self.snapshot_id} ({self._request.incremental.mode})"
        if self._request.columns != self.table_schema.names:
            parts.append(f"columns={list(self._request.columns)}")
        if self._request.order_by:
            parts.append(f"order_by={ordering.order_text(self._request.order_by)!r}")
        if self._request.limit is not None:
            parts.append(f"limit={self._request.limit}")
        return f"Scan({', '.join(parts)})"


__all__ = ["Scan"]
