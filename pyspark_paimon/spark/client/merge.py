"""Merge over Spark.

The driver merges a source that fits into a message. Spark joins all other sources with the table and computes the resulting rows with
their row kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from lsm.arrow.row_kind import ROW_KIND
from lsm.rows_in.conform import conform
from lsm.write.new_version import NewVersion
from manifest.io.errors import SchemaMismatch, UnsupportedTable
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from pyspark_paimon.filter.columns import SOURCE, TARGET
from pyspark_paimon.frames.fetched_rows import fetch_rows
from pyspark_paimon.frames.spark_functions import functions_of, quote_name, text_sql
from pyspark_paimon.frames.spark_types import arrow_for_spark, spark_schema, spark_type
from pyspark_paimon.request.bound import Value
from pyspark_paimon.request.merge import Clause, MergeRequest
from pyspark_paimon.request.requests import EVERY_LEVEL, DeleteRequest, ScanRequest, SparkRows, WriteRequest
from pyspark_paimon.results.results import MergeResult, Outcome, WriteResult
from pyspark_paimon.spark.client.estimate import fetch_if_small
from pyspark_paimon.spark.client.expression_sql import column_sql, new_version_sql, raise_sql, scalar_sql, spark_sql
from pyspark_paimon.spark.client.ownership import Target
from pyspark_paimon.spark.client.staging import Staged, refuse_case_twins, stage_row_kinds
from sparkexpr.expression.tree import ColumnValue, FunctionCall
from sparkexpr.values.column_type import FLOATS, WITH_PARTS

_CLAUSE, _KEY, _TAKEN = "__paimon_clause", "__paimon_key_", "__paimon_taken"
_KINDS = {"update": "+U", "delete": "-D", "insert": "+I"}
_PLACES = {"matched": "t IS NOT NULL AND s IS NOT NULL", "not matched": "t IS NULL", "not matched by source": "s IS NULL"}
_JOINS = {(False, False): "inner", (False, True): "right", (True, False): "left", (True, True): "full"}


@dataclass(frozen=True)
class MergeFrame:
    """Merge of a DataFrame source, computed by Spark.

    Both sides are structs, ``t`` and ``s``, so that their column names do not clash. Invalid results raise the typed error in Spark: two
    source rows change one row, or a value does not fit.

    Args:
        schema: Schema of the table.
        merge: Join conditions and clauses of the merge.
        target: DataFrame of the table's rows, all columns.
        source: DataFrame of the source.
        source_schema: Arrow schema of the source.
    """

    schema: TableSchema
    merge: MergeRequest
    target: Any
    source: Any
    source_schema: pa.Schema

    def rows(self) -> Any:
        """Return the rows to write, with ``ROW_KIND``.

        Append tables get no ``ROW_KIND``. Raises ``SchemaMismatch`` for types that do not fit.
        """
        for clause in self.merge.clauses:
            self._refuse_types(clause)
        pairs = self._join().withColumn(_CLAUSE, self._expr(self._decide())).where(f"{_CLAUSE} IS NOT NULL")
        kinds = " ".join(f"WHEN {number} THEN '{_KINDS[clause.action]}'" for number, clause in enumerate(self.merge.clauses))
        columns = [self._expr(self._column(name)).alias(name) for name in self.schema.names]
        changed_rows = pairs.select(*columns, self._expr(f"CASE {_CLAUSE} {kinds} END").alias(ROW_KIND))
        if not self.schema.kind.has_row_kinds:
            return changed_rows.drop(ROW_KIND)
        return self._once(changed_rows if self.merge.join.finds_keys(self.schema) else self._refuse_existing_keys(changed_rows))

    def _expr(self, text: str) -> Any:
        return functions_of(self.target).expr(text)

    def _join(self) -> Any:
        """Join both sides and keep unmatched rows for clauses.

        Separate key columns join the sides.
        """
        keys: dict[str, list[str]] = {
            TARGET: [quote_name(name) for name, _ in self.merge.join.pairs],
            SOURCE: [
                self._fit(quote_name(name), target_name, self.source_schema.field(name).type) for target_name, name in self.merge.join.pairs
            ],
        }
        sides = [
            frame.select(
                self._expr(f"struct({', '.join(map(quote_name, frame.columns))}) AS {side}"),
                *(self._expr(f"{key} AS {_KEY}{side}{position}") for position, key in enumerate(keys[side])),
            )
            for side, frame in ((TARGET, self.target), (SOURCE, self.source))
        ]
        terms = [f"{_KEY}{TARGET}{position} = {_KEY}{SOURCE}{position}" for position in range(len(self.merge.join.pairs))]
        terms += [spark_sql(condition) for condition in self.merge.join.conditions]
        whens = {clause.when for clause in self.merge.clauses}
        kind = _JOINS["not matched by source" in whens, "not matched" in whens]
        return sides[0].join(sides[1], self._expr(" AND ".join(terms)), kind)

    def _decide(self) -> str:
        """Return SQL for the number of the first matching clause.

        Null: no clause applies.
        """
        whens = []
        for number, clause in enumerate(self.merge.clauses):
            condition = "" if clause.condition is None else f" AND {spark_sql(clause.condition)}"
            whens.append(f"WHEN {_PLACES[clause.when]}{condition} THEN {number}")
        return f"CASE {' '.join(whens)} END"

    def _column(self, name: str) -> str:
        """Return SQL for a column of the rows to write.

        The value has the table's type. Columns that an insert omits are null: the writer sets their defaults.
        """
        whens = []
        for number, (clause, version) in enumerate(zip(self.merge.clauses, self._versions, strict=True)):
            if version is not None:
                whens.append(f"WHEN {number} THEN {new_version_sql(version, self.schema, name, self._old, partial(self._new, clause))}")
            elif name in clause.values:
                whens.append(f"WHEN {number} THEN {self._value(name, clause.values[name])}")
            elif clause.action != "insert":
                whens.append(f"WHEN {number} THEN {self._old(name)}")
        return (
            f"CASE {_CLAUSE} {' '.join(whens)} ELSE CAST(NULL AS {self._type(name)}) END" if whens else f"CAST(NULL AS {self._type(name)})"
        )

    @cached_property
    def _versions(self) -> list[NewVersion | None]:
        """New-version rules of each clause.

        None: a row with the new values is sufficient.
        """
        return [clause.new_version(self.schema) if clause.action == "update" else None for clause in self.merge.clauses]

    def _old(self, name: str) -> str:
        return column_sql(f"t.{name}")

    def _new(self, clause: Clause, name: str) -> str:
        return self._value(name, clause.values[name]) if name in clause.values else self._old(name)

    def _value(self, name: str, value: Value) -> str:
        if not isinstance(value, pa.Scalar):
            return self._fit(spark_sql(value), name, self._arrow(value))
        if not value.is_valid:
            return f"CAST(NULL AS {self._type(name)})"
        if self.schema.field(name).type.is_nested:
            raise InvalidArgument(f"column '{name}' is {self.schema.field(name).type}; over a DataFrame it is set to a column of it")
        return scalar_sql(value, self.schema.column_types[name])

    def _fit(self, sql: str, name: str, source_type: pa.DataType) -> str:
        """Cast ``sql`` to a column's type.

        ``source_type`` is the Arrow type of ``sql``. A value that does not fit raises ``SchemaMismatch`` in Spark.
        """
        column_type = self.schema.field(name).type
        # The writer checks the range of integers: all branches of a CASE get one common integer type.
        if (
            source_type == column_type.arrow
            or column_type.is_nested
            or (pa.types.is_integer(source_type) and pa.types.is_integer(column_type.arrow))
        ):
            return sql
        fitted = f"try_cast({sql} AS {self._type(name)})"
        lost = "" if self.schema.column_types[name].kind in FLOATS else f" OR NOT ({fitted} <=> {sql})"
        before, behind = text_sql(f"column '{name}': "), text_sql(f" is not a valid {column_type}")
        message = f"concat({before}, cast({sql} AS STRING), {behind})"
        return f"CASE WHEN {sql} IS NULL THEN NULL WHEN {fitted} IS NULL{lost} THEN {raise_sql(SchemaMismatch, message)} ELSE {fitted} END"

    def _type(self, name: str) -> str:
        text: str = spark_type(self.schema.field(name).type).simpleString()
        return text

    def _arrow(self, value: Value) -> pa.DataType:
        if isinstance(value, FunctionCall) and value.type.kind in WITH_PARTS:
            from sparkexpr.expression.compute import compute  # noqa: PLC0415  # few calls need it

            return compute(value, lambda column: pa.nulls(0, self._arrow(column)), 0).type
        if not isinstance(value, ColumnValue) or value.key is not None:
            return value.type.arrow
        side, name = value.name.split(".", 1)
        return (self.schema.arrow if side == TARGET else self.source_schema).field(name).type

    def _refuse_types(self, clause: Clause) -> None:
        """Raise ``SchemaMismatch`` for missing columns and incompatible types."""
        type_by_name = {} if clause.action == "insert" else dict(zip(self.schema.names, self.schema.arrow.types, strict=True))
        type_by_name |= {name: value.type if isinstance(value, pa.Scalar) else self._arrow(value) for name, value in clause.values.items()}
        conform(pa.schema(list(type_by_name.items())).empty_table(), self.schema)

    def _refuse_existing_keys(self, changed_rows: Any) -> Any:
        """Make an insert with an existing key raise ``InvalidArgument``.

        Spark raises the error when it computes ``ROW_KIND``.
        """
        keys = [self._expr(f"{quote_name(name)} AS {_TAKEN}{position}") for position, name in enumerate(self.schema.primary_keys)]
        existing = self.target.select(*keys)
        same = [f"{quote_name(name)} = {_TAKEN}{position}" for position, name in enumerate(self.schema.primary_keys)]
        joined = changed_rows.join(existing, self._expr(" AND ".join([f"{ROW_KIND} = '+I'", *same])), "left")
        message = self._error_text("merge: a source row matches no table row, but the table has its key ", ": match by the key")
        return joined.withColumn(
            ROW_KIND, self._expr(f"CASE WHEN {_TAKEN}0 IS NOT NULL THEN {raise_sql(InvalidArgument, message)} ELSE {ROW_KIND} END")
        ).drop(*(f"{_TAKEN}{position}" for position in range(len(keys))))

    def _once(self, changed_rows: Any) -> Any:
        """Make a second row with one key raise ``InvalidArgument``.

        Spark raises the error when it computes ``ROW_KIND``.
        """
        window = f"OVER (PARTITION BY {', '.join(self._alike(name) for name in self.schema.primary_keys)})"
        twice = self._error_text("merge: two rows of the source match the row ")
        inserted = self._error_text("merge: two rows of the source are inserted with the key ")
        return changed_rows.withColumn(
            ROW_KIND,
            self._expr(
                f"CASE WHEN count_if({ROW_KIND} <> '+I') {window} > 1 THEN {raise_sql(InvalidArgument, twice)} "
                f"WHEN count(*) {window} > 1 THEN {raise_sql(InvalidArgument, inserted)} ELSE {ROW_KIND} END"
            ),
        )

    def _alike(self, name: str) -> str:
        """Return SQL that compares keys by their stored value."""
        # Spark treats -0.0 and 0.0 as equal, but they are different keys.
        floats = self.schema.column_types[name].kind in FLOATS
        return f"CAST({quote_name(name)} AS STRING)" if floats else quote_name(name)

    def _error_text(self, before: str, behind: str = "") -> str:
        keys: Sequence[str] = self.schema.primary_keys
        shown = ", ', ', ".join(f"{text_sql(f'{name} = ')}, CAST({quote_name(name)} AS STRING)" for name in keys)
        return f"concat({text_sql(before)}, {shown}, {text_sql(behind)})"


def merge_source(spark: Any, merge_request: MergeRequest, schema: TableSchema) -> pa.Table | SparkRows:
    """Return the source as Arrow rows or as a DataFrame.

    The driver merges Arrow rows. Spark joins a DataFrame with the table.

    Only the driver changes rows of append tables, in their files. Raises ``UnsupportedTable`` if the source is too large for that.
    """
    source, in_place = (
        merge_request.source,
        schema.kind.changes_files and any(clause.action != "insert" for clause in merge_request.clauses),
    )
    if in_place and isinstance(source, SparkRows):
        source = fetch_rows(source.frame.limit(thresholds.held_merge_rows + 1))
    if isinstance(source, SparkRows) and (fetched := _fetch(source, merge_request)) is not None:
        source = fetched
    if isinstance(source, SparkRows) or (source.num_rows <= thresholds.held_merge_rows and source.nbytes <= thresholds.held_merge_bytes):
        return source
    if in_place:
        raise UnsupportedTable(
            f"merge changes rows of a table without primary key from a source of at most "
            f"{thresholds.held_merge_rows} rows and {thresholds.held_merge_bytes >> 20} MiB over Spark; merge a part at a time, or open the table without spark=..."
        )
    frame = spark.createDataFrame(source)
    return SparkRows(frame, arrow_for_spark(frame.schema))


def _fetch(source: SparkRows, merge_request: MergeRequest) -> pa.Table | None:
    """Fetch the rows of a small DataFrame.

    None: the DataFrame is large or of unknown size, or a clause concerns rows without match in the source.
    """
    if any(clause.when == "not matched by source" for clause in merge_request.clauses):
        return None
    # Few keys match few files: the driver merges them without a join in Spark.
    rows = fetch_if_small(source, max_rows=thresholds.fetched_merge_rows, max_bytes=thresholds.fetched_merge_bytes)
    return rows if rows is not None and rows.nbytes <= thresholds.held_merge_bytes else None


def stage_merge(
    spark: Any,
    frame_of: Callable[[ScanRequest, Any], Any],
    target: Target,
    request: DeleteRequest,
    merge_request: MergeRequest,
    *,
    stored: TableSchema,
) -> Staged:
    """Return the job that writes the merged rows.

    Spark computes them on the target's snapshot. The source is a DataFrame. ``stored``: schema of the stored rows, which the target's
    schema may extend.
    """
    schema, kind = target.schema, target.schema.kind
    scan = ScanRequest(columns=stored.names, snapshot_id=target.snapshot_id, schema_id=stored.id, options=EVERY_LEVEL)
    write = WriteRequest(
        commit_id=request.commit_id,
        batch_id=request.batch_id,
        pending=merge_request.pending,
        mode=kind.write_mode,
        row_kinds=kind.has_row_kinds,
        operation="merge",
        properties=request.properties,
        options=request.options,
    )
    source: SparkRows = merge_request.source
    refuse_case_twins(spark, schema.names, "table")
    refuse_case_twins(spark, source.schema.names, "source")
    frame = frame_of(scan, None)
    if stored.fields != schema.fields:
        nullable = [replace(field, type=field.type.with_nullable(nullable=True)) for field in schema.fields]
        frame = frame.to(spark_schema(nullable))  # also adds fields inside of structs
    rows = MergeFrame(schema, merge_request, frame, source.frame, source.schema).rows()
    return stage_row_kinds(
        spark, rows, target, write, verb="merged", stored_columns=schema.names, reads_all=merge_request.reads_all(schema)
    )


def merge_result(write_result: WriteResult, outcome: Outcome | None) -> MergeResult:
    """Return the merge result with the counts of its commit.

    All counts are 0 for a replayed commit.
    """
    stored = {} if outcome is None or write_result.replayed else outcome.counts
    counts = {name: stored.get(name, 0) for name in ("updated", "deleted", "inserted")}
    if not any(counts.values()):  # without row kinds all rows are inserts
        counts["inserted"] = stored.get("rows", 0)
    return MergeResult.model_validate({**dict(write_result), **counts, "rows": sum(counts.values())})
