"""Types of the arguments of the public API.

The libraries behind them are optional or ship no types, so small protocols describe what they are. They exist for editors and type
checkers; the methods themselves decide at run time.

>>> from pyspark_paimon.typing import Filter
>>> def cities_where(filter: Filter) -> int:
...     from pyspark_paimon.example import cities
...     return cities().scan(filter).count()
>>> cities_where("country = 'NO'")
1
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Protocol, TypeAlias

from fileindex.predicate.tree import Predicate

# A union with a class of a library without types (pyarrow) is Any to a type checker: it would accept everything.


class ArrowStream(Protocol):
    """Rows of pyarrow, pandas, polars, or a `Scan`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule of the Arrow C stream."""


class ArrowDataset(Protocol):
    """A ``pyarrow.dataset.Dataset``."""

    def scanner(self) -> Any:
        """Return a scanner of the rows."""


class PolarsLazyFrame(Protocol):
    """A ``polars.LazyFrame``."""

    def collect_schema(self) -> Any:
        """Return the schema."""

    def collect(self) -> Any:
        """Return the rows."""


class SparkDataFrame(Protocol):
    """A DataFrame of Spark, classic or Connect."""

    @property
    def schema(self) -> Any:
        """Schema of Spark."""

    def toArrow(self) -> Any:  # noqa: N802  # Spark's name
        """Return the rows."""


class PandasOnSparkDataFrame(Protocol):
    """A ``pyspark.pandas.DataFrame``."""

    def to_spark(self) -> Any:
        """Return the rows as a Spark DataFrame."""


class ArrowExpression(Protocol):
    """A ``pyarrow.compute.Expression``."""

    def isin(self, values: Any, /) -> Any:
        """Return an expression that tests for any of the values."""

    def is_valid(self) -> Any:
        """Return an expression that tests for values other than null."""


class PolarsExpression(Protocol):
    """A ``polars.Expr``."""

    def is_between(self, lower_bound: Any, upper_bound: Any) -> Any:
        """Return an expression that tests for a range."""


class SparkColumn(Protocol):
    """A ``Column`` of Spark, classic or Connect."""

    def eqNullSafe(self, other: Any, /) -> Any:  # noqa: N802  # Spark's name
        """Return an expression that tests for equality, null included."""

    def isNotNull(self) -> Any:  # noqa: N802  # as above
        """Return an expression that tests for values other than null."""


class ArrowSchema(Protocol):
    """A ``pyarrow.Schema``."""

    @property
    def names(self) -> Any:
        """Names of the columns."""

    def get_field_index(self, name: Any, /) -> int:
        """Return the position of a column."""


class ArrowType(Protocol):
    """A ``pyarrow.DataType``."""

    @property
    def bit_width(self) -> int:
        """Size of a value."""

    def to_pandas_dtype(self) -> Any:
        """Return the type of NumPy."""


class SparkStructType(Protocol):
    """A ``StructType`` of Spark."""

    def fieldNames(self) -> Any:  # noqa: N802  # Spark's name
        """Return the names of the columns."""


class SparkType(Protocol):
    """A ``DataType`` of Spark."""

    def simpleString(self) -> str:  # noqa: N802  # Spark's name
        """Return the type as text."""


class SparkSession(Protocol):
    """A session of Spark, classic or Connect."""

    @property
    def conf(self) -> Any:
        """Settings."""

    @property
    def read(self) -> Any:
        """Reader of DataFrames."""


# Type checkers infer dict[str, object] for a dict of lists of several types: a narrower value type would refuse it.
LocalRows: TypeAlias = ArrowStream | ArrowDataset | PolarsLazyFrame | Mapping[str, object] | Iterable[ArrowStream | Mapping[str, object]]
"""Rows of this process: Arrow, pandas or polars, a dict of lists, a list of dicts, or an iterable of Arrow batches."""

Data: TypeAlias = LocalRows | SparkDataFrame | PandasOnSparkDataFrame
"""Rows to write: those of this process, or a DataFrame of Spark."""

Keys: TypeAlias = LocalRows | Iterable[object]
"""Primary keys: rows with the columns of the key, one key as a dict, values of a single key column, or tuples."""

Expression: TypeAlias = str | SparkColumn | ArrowExpression
"""An expression over columns: SQL text, a Column of Spark, or an expression of Arrow."""

Filter: TypeAlias = Expression | PolarsExpression | Predicate | None
"""A condition on rows: an expression, also of polars. None: all rows."""

Schema: TypeAlias = str | ArrowSchema | SparkStructType
"""Columns of a new table: DDL text, a schema of Arrow, or a StructType of Spark."""

ColumnPath: TypeAlias = str | Sequence[str]
"""A column's name or, for a nested field, its path: ``["address", "city"]``, ``["tags", "element", "name"]``."""

Type: TypeAlias = str | ArrowType | SparkType
"""A column's type: DDL text (``"DECIMAL(10, 2)"``), a type of Arrow, or one of Spark."""

Time: TypeAlias = int | str | date
"""A moment: milliseconds since the epoch, a date or datetime, or ISO text of one."""


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


__all__ = [
    "ArrowDataset",
    "ArrowExpression",
    "ArrowSchema",
    "ArrowStream",
    "ArrowType",
    "ColumnPath",
    "Data",
    "Expression",
    "Filter",
    "Keys",
    "LocalRows",
    "PandasOnSparkDataFrame",
    "PolarsExpression",
    "PolarsLazyFrame",
    "Schema",
    "SparkColumn",
    "SparkDataFrame",
    "SparkSession",
    "SparkStructType",
    "SparkType",
    "Time",
    "Type",
]
