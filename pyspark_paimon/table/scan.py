"""Class ``Scan``, a lazy read of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from fileindex.predicate.tree import And
from lsm.arrow.text_form import coded_texts
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import arrow_schema
from paimon_base.errors import InvalidArgument, UnknownColumn
from paimon_base.lazy import LazyModule
from paimon_base.plugins import plugin
from paimon_base.public import public
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.jobs.incremental import change_columns, scan_fields
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.request.validate import CheckedMethods, projection, text_columns
from pyspark_paimon.results.counters import ScanCounters, ScanTally
from pyspark_paimon.table.engine_choice import check_session
from pyspark_paimon.table.readable import Readable
from pyspark_paimon.typing import Filter, SparkSession

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

    from lsm.aggregate.summary import RowSummary
    from lsm.scan.plan import ScanPlan
    from lsm.scan.splits import DataSplit
    from pyspark_paimon.filter import scope as scopes
    from pyspark_paimon.jobs import aggregates, grouping, ordering
    from pyspark_paimon.table.outputs import Outputs
    from pyspark_paimon.views import explain as views

    _Summarise: TypeAlias = Callable[[ScanRequest], dict[bytes, RowSummary]]
    _Group: TypeAlias = Callable[[ScanRequest, grouping.Grouping], pa.Table]
else:
    scopes = LazyModule("pyspark_paimon.filter.scope")
    aggregates = LazyModule("pyspark_paimon.jobs.aggregates")
    grouping = LazyModule("pyspark_paimon.jobs.grouping")
    ordering = LazyModule("pyspark_paimon.jobs.ordering")
    views = LazyModule("pyspark_paimon.views.explain")


class _NeedsRows(Exception):
    """Metadata and indexes do not answer."""


@public
@dataclass(frozen=True, repr=False, eq=False)
class Scan(CheckedMethods, Readable):
    """A lazy read of one snapshot, returned by ``Table.scan``.

    The snapshot is pinned when the scan is created. Terminal methods may be called repeatedly and give consistent results. They raise
    ``SnapshotExpired`` if the pinned snapshot has expired, and ``CorruptFile`` for a file that contradicts its metadata.

    >>> from pyspark_paimon.example import cities
    >>> scan = cities().scan("id >= 2", columns=["id", "city"])
    >>> scan.count(), scan.snapshot_id, scan.to_arrow()["city"].to_pylist(), sum(batch.num_rows for batch in scan.to_batches())
    (2, 1, ['Lima', 'Rome'], 2)
    >>> scan.to_pandas()["id"].sum()
    np.int64(5)
    >>> [len(split.files) for split in scan.plan().splits], scan.explain().stages[-1].kept
    ([1], 2)
    """

    _engine: Engine
    _request: ScanRequest
    table_schema: TableSchema
    _filter_text: str | None = None
    _outputs: Outputs | None = None
    _tally: ScanTally = field(default_factory=ScanTally, init=False)

    if not TYPE_CHECKING:  # type checkers report unknown names by themselves

        def __getattr__(self, name: str) -> Any:
            from pyspark_paimon.table.other_names import missing_text  # noqa: PLC0415  # seldom needed

            raise AttributeError(missing_text(type(self), name), name=name, obj=self)

    @property
    def counters(self) -> ScanCounters | None:
        """Counters of the last completed read; None before the first.

        Reads are ``to_arrow``, ``to_pandas``, ``to_batches`` and similar methods.

        >>> from pyspark_paimon.example import cities
        >>> scan = cities().scan("id >= 2")
        >>> scan.to_arrow().num_rows, scan.counters.rows, scan.counters.files, scan.counters.rows_decoded
        (2, 2, 1, 3)
        """
        return self._tally.counters

    @property
    def snapshot_id(self) -> int | None:
        """Id of the pinned snapshot.

        None: the table was empty.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan().snapshot_id
        1
        """
        return self._request.snapshot_id

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan(columns=["city"]).schema.names
        ['city']
        """
        return arrow_schema(scan_fields(self.table_schema, self._request.columns)) if self._outputs is None else self._outputs.arrow

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, in bounded memory.

        The order is arbitrary, unless the scan has an order. A sorted scan holds its rows in memory.

        >>> from pyspark_paimon.example import cities
        >>> [batch.num_rows for batch in cities().scan("id > 1").to_batches()]
        [2]
        """
        return self._computed(self._engine.read(self._request, tally=self._tally))

    def _computed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches if self._outputs is None else self._outputs.apply(batches)

    def to_arrow(self, *, dictionaries: bool | Sequence[str] = False) -> pa.Table:
        """Return the rows as one Arrow table.

        Args:
            dictionaries: True: return text columns with few distinct values as dictionaries, which takes less time and memory.
                A list: these text columns.

        Raises:
            InvalidArgument: A column in ``dictionaries`` is not a text column.
            UnknownColumn: There is no such column.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan("id < 3", columns=["country"]).to_arrow(dictionaries=True)["country"].type
        DictionaryType(dictionary<values=string, indices=int32, ordered=0>)
        """
        coded = text_columns(dictionaries, self.schema)
        if not coded:
            return pa.Table.from_batches(self._computed(self._engine.read(self._request, keeps_all=True, tally=self._tally)), self.schema)
        request = (
            self._request
            if self._request.order_by or self._outputs is not None
            else self._request.model_copy(update={"dictionaries": coded})
        )
        batches = self._computed(self._engine.read(request, keeps_all=True, tally=self._tally))
        return coded_texts(batches, self.schema, coded, choose=dictionaries is True)

    def to_pandas(self, *, dictionaries: bool | Sequence[str] = False, **options: Any) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame.

        Args:
            dictionaries: As for ``to_arrow``; dictionaries become categories.
            **options: Arguments of ``pyarrow.Table.to_pandas``.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan(columns=["city"], order_by="id").to_pandas()["city"].tolist()
        ['Oslo', 'Lima', 'Rome']
        """
        frame: pd.DataFrame = self.to_arrow(dictionaries=dictionaries).to_pandas(**options)
        return frame

    def to_spark(self, spark: SparkSession | None = None, *, native: bool = True, exact: bool = True) -> DataFrame:
        """Return the rows as a lazy Spark DataFrame.

        The frame reads the pinned snapshot. Its rows have no order. If the snapshot expires, later actions on the frame fail. Files
        read by this package raise ``SnapshotExpired``; files read by Spark raise Spark's error (a missing path or file).

        Args:
            spark: Session of the frame. None: the session of the table.
            native: Let Spark's Parquet reader read files that need no merging, where its rows, types and values are certain to
                be the same.
                False: this package reads everything. Schema and rows of the frame do not depend on it.
            exact: False: where no index or key finds the rows of the filter, Spark's reader reads whole files, and the frame may have
                rows that do not match. Filter it again.

        Raises:
            InvalidArgument: The table was opened without a session, and ``spark`` is None.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan("id = 1").to_spark(spark).count()  # doctest: +SKIP
        1
        """
        if spark is not None:
            check_session(spark)
        request = self._request if exact else self._request.model_copy(update={"exact": False})
        frame = self._engine.frame(request, spark, native=native)
        return frame if self._outputs is None else self._outputs.select(frame)

    def count(self) -> int:
        """Return the number of rows.

        Files that metadata or indexes can count are not read.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan("country = 'NO'").count()
        1
        """
        rows = self._engine.count(self._request)
        return rows if self._outputs is None or self._outputs.limit is None else min(rows, self._outputs.limit)

    def aggregate(self, wanted: aggregates.Wanted, *, by: str | Sequence[str] | Mapping[str, Any] = ()) -> pa.Table:
        """Return counts, minima, maxima, sums and averages.

        The result has one row, or one for each group of ``by``, in the order of the groups. As in Spark, NaN is the
        greatest value, and sums are BIGINT, DOUBLE, or DECIMAL with ten more digits. Averages are DOUBLE, or DECIMAL with four more. Data files are read only where statistics,
        deletion vectors and ``bsi`` indexes are not sufficient. ``bitmap`` indexes count the rows of each value of their column, and its
        distinct values. The order of the scan is ignored.

        Args:
            wanted: Functions by column: ``{"n": "count", "amount": ["min", "max", "sum"]}`` gives ``n``, ``amount_min``,
                ``amount_max`` and ``amount_sum``; also ``avg`` (or ``mean``) and ``count_distinct``. Parts of columns (``"s.a"``) have functions, too.
                ``count`` of a name that is not a column counts rows; ``count`` and ``count_distinct`` of a column ignore nulls.
                A computed column of the scan hides the stored column of its name, here and in ``by``.
            by: Columns and parts of columns to group by, or expressions by name. Groups of partition columns need no rows. Nulls
                are a group, NaN is a group, and -0.0 equals 0.0.

        Raises:
            InvalidArgument: A function does not apply to its column, ``by`` has a column of a nested type, or the scan has a limit.
            UnknownColumn: There is no such column.
            InvalidFilter: An expression of ``by`` is not supported.
            OutOfRange: A sum overflows its type.
            OutOfMemory: The groups are too many for this process.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan("country <> 'NO'").aggregate({"n": "count", "id": ["min", "sum", "avg"]}).to_pylist()
        [{'n': 2, 'id_min': 2, 'id_sum': 5, 'id_avg': 2.5}]
        >>> cities().scan().aggregate({"country": "count_distinct"}).to_pylist()
        [{'country_count_distinct': 3}]
        >>> cities().scan().aggregate({"n": "count"}, by={"even": "id % 2 = 0"}).to_pylist()
        [{'even': False, 'n': 2}, {'even': True, 'n': 1}]
        """
        if self._limit is not None:
            raise InvalidArgument(
                "aggregate: the rows of a scan with a limit are not determined; remove the limit, or aggregate the rows of head()"
            )
        return self._aggregate(wanted, by, self._engine.aggregate, self._engine.group)

    def _aggregate(self, aggregations: aggregates.Wanted, by: Any, summarise: _Summarise, group: _Group) -> pa.Table:
        scope = scopes.ColumnScope(self.table_schema) if self._outputs is None else self._outputs.scope
        measures = aggregates.Measures.of(aggregations, scope)
        columns, distinct = measures.stored, measures.distinct
        partitions = None if columns is None or (distinct and by) else aggregates.partitions_of(by, scope, self.table_schema)
        numbers: dict[str, pa.Array] = {}
        if partitions is None or distinct:
            keyed = grouping.Grouping.of(by, measures, scope, self.table_schema)
            rows = self._request.model_copy(update={"order_by": ()})

            def folded(keyed: grouping.Grouping) -> pa.Table:
                return group(rows.model_copy(update={"columns": keyed.columns}), keyed)

            numbers = {name: keyed.distinct_values(folded(keyed.with_values_of(name))) for name in distinct}
            if partitions is None:
                return keyed.result(folded(keyed), numbers)
        computed = (
            aggregates.computed_aggregates((columns[name], functions) for name, functions in measures.functions.items()) if columns else {}
        )
        request = self._request.model_copy(update={"columns": (), "order_by": (), "aggregates": computed})
        summaries = summarise(request) if computed or measures.row_counts else {}
        return aggregates.aggregate_table(summaries, measures, partitions, self.table_schema, distinct=numbers)

    def _rows_if_small(self, max_bytes: int) -> pa.Table | None:
        """Return the rows. None: their files have more than ``max_bytes``, or they are too large for an answer."""
        from pyspark_paimon.request.scan_questions import ReadRows, answer_if_small  # noqa: PLC0415  # see test_imports

        rows = answer_if_small(self._engine.ask, ReadRows(request=self._request), max_bytes)
        return rows if rows is None or rows.num_rows else self.schema.empty_table()  # an answer without rows has no columns

    def _aggregate_cheaply(self, functions: aggregates.Wanted, by: Any = ()) -> pa.Table | None:
        """Return the result of ``aggregate``. None: computing it needs many files."""
        from pyspark_paimon.request.plan_json import summaries_from_json  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.request.scan_questions import AggregateCheaply, GroupCheaply  # noqa: PLC0415  # as above

        def summarise(request: ScanRequest) -> dict[bytes, RowSummary]:
            answer = self._engine.ask(AggregateCheaply(request=request))
            if answer is None:
                raise _NeedsRows
            return summaries_from_json([answer], request.aggregates)

        def group(request: ScanRequest, keyed: grouping.Grouping) -> pa.Table:
            keys = keyed.counted_keys
            if keys is None or any(key.key is not None for key in keys):
                raise _NeedsRows
            question = GroupCheaply(request=request, by=tuple(key.name for key in keys), counted=tuple(keyed.parts))
            answer = self._engine.ask(question)
            if answer is None:
                raise _NeedsRows
            return answer

        try:
            return self._aggregate(functions, by, summarise, group)
        except _NeedsRows:
            return None

    def plan(self) -> ScanPlan:
        """Return the splits to read and the pruning report.

        Only metadata is read. A notebook shows the plan as a picture.

        >>> from pyspark_paimon.example import cities
        >>> len(cities().scan("id = 1").plan().splits), len(cities().scan("id = 99").plan().splits)
        (1, 0)
        """
        from pyspark_paimon.request.scan_questions import PlanScan  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.views.plan_picture import PlanPicture  # noqa: PLC0415  # as above

        plan = self._engine.ask(PlanScan(request=self._request))
        return PlanPicture(plan.snapshot_id, plan.splits, plan.report, self.table_schema)

    def explain(self, *, analyze: bool = True) -> views.Explanation:
        """Return what each stage of pruning kept and dropped.

        Args:
            analyze: Also read the rows, to report the stages at read time.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan("id >= 2").explain().stages[-1].kept
        2
        """
        measured = self._engine.explain(self._request, analyze=analyze)
        return views.Explanation.of(repr(self), measured.plan, measured.stages, measured.readers)

    def read(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one of ``plan().splits``.

        The rows have no order. The scan and the split can be pickled and sent to another process.

        Args:
            split: Split of this scan's plan.

        Raises:
            InvalidArgument: The table was opened with Spark, which reads splits in its own tasks.

        >>> from pyspark_paimon.example import cities
        >>> scan = cities().scan("id >= 2")
        >>> [batch.num_rows for split in scan.plan().splits for batch in scan.read(split)]
        [2]
        """
        return self._computed(self._engine.read_split(self._request, split))

    def narrowed(self, filter: Filter) -> Scan:  # noqa: A002  # Arrow's and pandas' word
        """Return this scan with a further filter.

        Args:
            filter: As for ``Table.scan``.

        Raises:
            InvalidFilter, UnknownColumn: The filter is not valid.
            InvalidArgument: The scan has a limit, so its rows are not determined.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan("id > 1").narrowed("id < 3").count()
        1
        """
        more = bind_filter(filter, self.table_schema.column_types)
        if more is None:
            return self
        if self._outputs is not None:
            raise InvalidArgument("a scan with computed columns cannot be filtered further; give the whole filter to scan()")
        if self._request.limit is not None:
            raise InvalidArgument("a scan with a limit cannot be filtered further; apply the filter before the limit")
        predicate = self._request.predicate
        text = " AND ".join(f"({part})" for part in (self._filter_text, filter) if part is not None)
        return replace(
            self,
            _request=self._request.model_copy(update={"predicate": more if predicate is None else And((predicate, more))}),
            _filter_text=text,
        )

    def projected(self, columns: Sequence[str]) -> Scan:
        """Return this scan with some of its columns.

        Raises:
            UnknownColumn: The scan has no such column.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan().projected(["city", "id"]).schema.names
        ['city', 'id']
        """
        if self._outputs is not None:
            outputs = self._outputs.projected(columns)
            return replace(self, _request=self._request.model_copy(update={"columns": outputs.columns}), _outputs=outputs)
        names = self._request.columns
        selected = (
            change_columns(columns, self.table_schema)
            if self._request.incremental is not None
            else projection(columns, self.table_schema, metadata=True)
        )
        if missing := [name for name in selected if name not in names]:
            raise UnknownColumn(missing[0], names)
        return replace(self, _request=self._request.model_copy(update={"columns": selected}))

    def limited(self, rows: int) -> Scan:
        """Return this scan with at most ``rows`` rows.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan().limited(2).count()
        2
        """
        limit = rows if self._limit is None else min(rows, self._limit)
        if self._outputs is not None and self._outputs.order:
            return replace(self, _outputs=replace(self._outputs, limit=limit))
        return replace(self, _request=self._request.model_copy(update={"limit": limit}))

    @property
    def _limit(self) -> int | None:
        return self._outputs.limit if self._outputs is not None and self._outputs.order else self._request.limit

    def _read(self) -> Scan:
        return self

    def _repr_html_(self) -> str:
        cards, columns = plugin("page", "cards"), [(field.name, field.type) for field in self.schema]
        text: str = cards.or_error("Scan", lambda: cards.card(repr(self), grids=[cards.Grid.of(("column", "type"), columns)]))
        return text

    def __repr__(self) -> str:
        parts = [self._engine.path, f"snapshot={self.snapshot_id}"]
        if self._filter_text is not None:
            parts.append(f"filter={self._filter_text!r}")
        if self._request.incremental is not None:
            parts[1] = f"snapshots={self._request.incremental.start_id}..{self.snapshot_id} ({self._request.incremental.mode})"
        if self._outputs is not None:
            computed = {name: str(value) for name, value in self._outputs.expressions.items()}
            parts.append(f"columns={computed}")
        elif self._request.columns != self.table_schema.names:
            parts.append(f"columns={list(self._request.columns)}")
        order = self._request.order_by if self._outputs is None or not self._outputs.order else [by.column for by in self._outputs.order]
        if order:
            parts.append(f"order_by={ordering.order_text(order)!r}")
        if self._limit is not None:
            parts.append(f"limit={self._limit}")
        return f"Scan({', '.join(parts)})"
