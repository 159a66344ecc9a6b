"""The pandas API on Spark over Paimon tables: ``read_paimon`` and ``to_paimon``, as ``pyspark.pandas`` has them for other formats.

pandas on Spark itself is imported when a function is called, and it needs a pandas that it knows (PySpark 4.3: below 3.1).
The rows stay with Spark; nothing here collects them.

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

from fileindex.base.column_type import Kind
from fileindex.base.errors import InvalidArgument, UnsupportedType
from manifest.io.paths import MAIN_BRANCH
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.request.backend import Mode
from pyspark_paimon.request.results import WriteResult
from pyspark_paimon.spark.wire.errors import SparkUnavailable
from pyspark_paimon.table.table import Table
from pyspark_paimon.typing import Filter, SparkSession

if TYPE_CHECKING:
    import pyspark.pandas as ps

FIRST_UNKNOWN_PANDAS = (3, 1)
"""The first pandas that the pandas API of PySpark 4.3 cannot be imported with."""


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
    """A pandas-on-Spark DataFrame of one snapshot of the table at ``path``; arguments not named here are those of ``Table.scan``.

    ``path`` is where the session's server sees the table; ``spark`` is a session, by default the active one. ``index_col`` names the column
    or columns that become the index, and which are read whether or not ``columns`` names them. Without it the frame has a default
    index, whose numbering costs a pass over the rows; the primary key makes a better index, and ``to_paimon`` writes it back.

    Raises:
        SparkUnavailable: there is no session, or pandas on Spark cannot be imported; the message tells what to install.
        UnsupportedType: a column's type is none of pandas on Spark's (TIME).
        TableNotFound, UnknownColumn, InvalidArgument, InvalidFilter, SnapshotNotFound: as ``Table.scan`` does.
    """
    pandas_on_spark()
    table = Table.open(path, spark=spark or _active_session(), branch=branch)
    index = [index_col] if isinstance(index_col, str) else list(index_col or ())
    scan = table.scan(filter, _with_index(columns, index), limit, order_by=order_by, snapshot=snapshot, tag=tag, timestamp=timestamp)
    types = scan.table_schema.column_types
    for name in scan.schema.names:
        if types[name].kind is Kind.TIME:
            raise UnsupportedType(f"column '{name}' is a TIME, which pandas on Spark does not know; leave it out of columns")
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
) -> WriteResult:
    """Write a pandas-on-Spark DataFrame to the table at ``path``; arguments not named here are those of ``Table.write``.

    The table must exist: ``Table.create`` makes it, for only it can be told of keys and options. Columns are matched by name, and so are
    the named levels of the index. Categories are written as their values; a ``datetime64`` is an instant in a column WITH LOCAL TIME
    ZONE, and the wall-clock time of the session's zone in one without.

    ``index_col`` names the columns that the levels of the index become. Without it a level is written to the column of its name;
    levels without name, as the default index is, are not written.

    Raises:
        SparkUnavailable: pandas on Spark cannot be imported; the message tells what to install.
        InvalidArgument: ``psdf`` is no such frame, or ``index_col`` does not fit its index.
        SchemaMismatch: a column or a level of the index is none of the table's, or of an incompatible type.
        TableNotFound, NullInKey, UnsupportedOption, CommitConflict: as ``Table.write`` does.
    """
    if not isinstance(psdf, pandas_on_spark().DataFrame):
        raise InvalidArgument(f"to_paimon takes a pandas-on-Spark DataFrame, not {type(psdf).__name__}; Table.write takes others")
    from pyspark_paimon.frames.pandas_frames import spark_frame  # noqa: PLC0415  # after the check of what can be imported

    table = Table.open(path, spark=psdf.spark.frame().sparkSession, branch=branch)
    frame = spark_frame(psdf, table.schema, index_col)
    return table.write(frame, mode, partition=partition, order_by=order_by, options=options, commit_id=commit_id)


def pandas_on_spark() -> ModuleType:
    """The module ``pyspark.pandas``. Raises ``SparkUnavailable`` where it cannot be imported.

    What PySpark says on import about pandas 3 and about its own environment variables is left unsaid, so that it cannot stop
    a program that turns warnings into errors.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return import_module("pyspark.pandas")  # slow, and not everyone's
        except (ImportError, SystemExit) as error:  # PySpark under SPARK_TESTING exits
            raise SparkUnavailable(_why_not(error)) from error


def _why_not(error: BaseException) -> str:
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
        raise SparkUnavailable("there is no Spark session: make one by pyspark_paimon.spark_session(), or hand one in as spark=")
    return session


def _with_index(columns: Sequence[str] | None, index: Sequence[str]) -> Sequence[str] | None:
    """The columns to read, with those of the index."""
    if columns is None or isinstance(columns, str):  # a text is refused by the scan, with a hint
        return columns
    there = {name.lower() for name in columns}
    return [*columns, *(name for name in index if name.lower() not in there)]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


__all__ = ["pandas_on_spark", "read_paimon", "to_paimon"]
