"""Paimon tables in the pandas API on Spark: ``read_paimon`` and ``to_paimon``.

Rows stay in Spark. A call imports pandas on Spark, which needs a supported pandas (PySpark 4.3: below 3.1).

>>> import pyspark_paimon.pandas as pp
>>> psdf = pp.read_paimon("/warehouse/flights", filter="dest = 'BOS'", index_col="flight_id")  # doctest: +SKIP
>>> pp.to_paimon(psdf.assign(late=psdf.delay > 15), "/warehouse/flights")  # doctest: +SKIP
WriteResult(rows=1240, ...)
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from lsm.rows_in.policy import MissingColumns
from manifest.io.paths import MAIN_BRANCH
from paimon_base.errors import InvalidArgument, UnsupportedType
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.request.requests import Mode
from pyspark_paimon.results.results import WriteResult
from pyspark_paimon.spark.wire.errors import SparkUnavailable
from pyspark_paimon.table.table import Table
from pyspark_paimon.typing import Filter, SparkSession
from sparkexpr.values.column_type import Kind

if TYPE_CHECKING:
    import pyspark.pandas as ps

FIRST_UNKNOWN_PANDAS = (3, 1)
"""First pandas version that the pandas API of PySpark 4.3 does not support."""


def read_paimon(
    path: str | os.PathLike[str],
    *,
    spark: SparkSession | None = None,
    columns: Sequence[str] | None = None,
    filter: Filter = None,  # noqa: A002  # as in Table.scan
    limit: int | None = None,
    order_by: str | Sequence[str] | None = None,
    snapshot: int | None = None,
    tag: str | None = None,
    timestamp: int | datetime | None = None,
    branch: str = MAIN_BRANCH,
    index_col: str | Sequence[str] | None = None,
) -> ps.DataFrame:
    """Return a pandas-on-Spark DataFrame of one snapshot.

    Args:
        path: Path of the table, as the session's server reaches it.
        spark: Session. None: the active session.
        columns: As in ``Table.scan``.
        filter: As in ``Table.scan``.
        limit: As in ``Table.scan``.
        order_by: As in ``Table.scan``.
        snapshot: As in ``Table.scan``.
        tag: As in ``Table.scan``.
        timestamp: As in ``Table.scan``.
        branch: Branch of the table.
        index_col: Column or columns of the index. They are read even if ``columns`` lacks them. None: the default index, which costs
            a pass over the rows. The primary key is a better index, and ``to_paimon`` writes it back.

    Raises:
        SparkUnavailable: There is no session, or pandas on Spark cannot be imported. The message says what to install.
        UnsupportedType: A column has the type TIME, which pandas on Spark lacks.
        TableNotFound, UnknownColumn, InvalidArgument, InvalidFilter, SnapshotNotFound: As in ``Table.scan``.
    """
    pandas_on_spark()
    table = Table.open(path, spark=spark or _active_session(), branch=branch)
    index = [index_col] if isinstance(index_col, str) else list(index_col or ())
    scan = table.scan(filter, _with_index(columns, index), limit, order_by=order_by, snapshot=snapshot, tag=tag, timestamp=timestamp)
    types = scan.table_schema.column_types
    for name in scan.schema.names:
        if types[name].kind is Kind.TIME:
            raise UnsupportedType(f"column '{name}' has type TIME, which pandas on Spark does not support: leave it out of columns")
    return scan.to_spark().pandas_api(index_col=[resolve(name, types) for name in index] or None)


def to_paimon(
    psdf: ps.DataFrame,
    path: str | os.PathLike[str],
    *,
    mode: Mode | None = None,
    partition: Mapping[str, object] | None = None,
    order_by: str | None = None,
    options: Mapping[str, str] | None = None,
    commit_id: str | None = None,
    branch: str = MAIN_BRANCH,
    index_col: str | Sequence[str] | None = None,
    missing: MissingColumns = "refuse",
) -> WriteResult:
    """Write a pandas-on-Spark DataFrame to an existing table.

    Columns and named index levels are matched by name. Categories are written as their values. A ``datetime64`` is an instant in a column
    WITH LOCAL TIME ZONE; in one without, it is the wall-clock time of the session's zone.

    Args:
        psdf: Rows to write.
        path: Path of the table. ``Table.create`` creates one.
        mode: As in ``Table.write``.
        partition: As in ``Table.write``.
        order_by: As in ``Table.write``.
        options: As in ``Table.write``.
        commit_id: As in ``Table.write``.
        branch: Branch of the table.
        index_col: Columns for the levels of the index. None: a level is written to the column of its name. Levels without a name, such as
            the default index, are not written.
        missing: As in ``Table.write``.

    Raises:
        SparkUnavailable: pandas on Spark cannot be imported. The message says what to install.
        InvalidArgument: ``psdf`` is another kind of frame, or ``index_col`` does not fit its index.
        SchemaMismatch: The table lacks a column or index level, or has it with an incompatible type.
        TableNotFound, NullInKey, UnsupportedOption, CommitConflict: As in ``Table.write``.
    """
    if not isinstance(psdf, pandas_on_spark().DataFrame):
        raise InvalidArgument(f"psdf must be a pandas-on-Spark DataFrame, not {type(psdf).__name__}; Table.write accepts other containers")
    from pyspark_paimon.frames.pandas_frames import spark_frame  # noqa: PLC0415  # it needs pandas on Spark

    table = Table.open(path, spark=psdf.spark.frame().sparkSession, branch=branch)
    frame = spark_frame(psdf, table.schema, index_col)
    return table.write(frame, mode, partition=partition, order_by=order_by, options=options, commit_id=commit_id, missing=missing)


def pandas_on_spark() -> ModuleType:
    """Import ``pyspark.pandas``. Raises ``SparkUnavailable`` if that fails."""
    # PySpark warns of pandas 3 and of environment variables. That would stop a program that turns warnings into errors.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return import_module("pyspark.pandas")
        except (ImportError, SystemExit) as error:  # with SPARK_TESTING set, PySpark exits
            raise SparkUnavailable(_import_advice(error)) from error


def _import_advice(error: BaseException) -> str:
    try:
        import pandas  # noqa: PLC0415, ICN001  # only its version
    except ImportError:
        return "the pandas API on Spark needs pandas, which is not installed: pip install 'pandas>=2.2,<3.1'"
    version = tuple(int(part) for part in pandas.__version__.split(".")[:2] if part.isdigit())
    if version >= FIRST_UNKNOWN_PANDAS:
        return (
            f"the pandas API on Spark does not work with pandas {pandas.__version__}: pip install 'pandas<3.1'. "
            "Table.scan(...).to_spark() and to_pandas() work with any pandas"
        )
    return f"the pandas API on Spark cannot be imported ({error}); install pyspark-paimon[spark], or pyspark-paimon[client]"


def _active_session() -> SparkSession:
    from pyspark import sql  # noqa: PLC0415  # as above

    session: SparkSession | None = sql.SparkSession.getActiveSession()
    if session is None:
        raise SparkUnavailable("there is no active Spark session: call pyspark_paimon.spark_session(), or give one as spark=")
    return session


def _with_index(columns: Sequence[str] | None, index: Sequence[str]) -> Sequence[str] | None:
    """Return the columns to read, including index columns."""
    if columns is None or isinstance(columns, str):  # the scan refuses a string, with a hint
        return columns
    lower_names = {name.lower() for name in columns}
    return [*columns, *(name for name in index if name.lower() not in lower_names)]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


__all__ = ["pandas_on_spark", "read_paimon", "to_paimon"]
