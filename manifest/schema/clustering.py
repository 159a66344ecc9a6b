"""Clustering of append tables (``clustering.columns`` and related options)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from manifest.options.core_options import CoreOptions
from manifest.schema.table_schema import BucketMode, TableSchema
from paimon_base.errors import UnsupportedOption, not_a_column
from sparkexpr.values.column_type import Kind

CurveName: TypeAlias = Literal["order", "zorder", "hilbert"]

_COLUMNS, _STRATEGY, _INCREMENTAL = "clustering.columns", "clustering.strategy", "clustering.incremental"
NO_ORDER = frozenset({Kind.ARRAY, Kind.MAP, Kind.MULTISET, Kind.ROW, Kind.VECTOR, Kind.VARIANT, Kind.BLOB})
"""Types without a sort order."""

MAX_COLUMNS = 8
"""Maximal number of columns on a curve. With more, none would have an effect."""

_FEW = 5


def clustering_strategy(options: CoreOptions) -> CurveName:
    """Return the sort method for several columns.

    From the option, or by the number of columns. Raises ``UnsupportedOption``.
    """
    match options.clustering_strategy:
        case "order":
            return "order"
        case "zorder":
            return "zorder"
        case "hilbert":
            return "hilbert"
        case "auto":
            count = len(options.clustering_columns)
            return "order" if count <= 1 else "zorder" if count < _FEW else "hilbert"
        case other:
            raise UnsupportedOption(_STRATEGY, f"'{other}' is not a strategy; use one of: auto, order, zorder, hilbert")


def check_clustering(schema: TableSchema) -> None:
    """Raise ``UnsupportedOption`` for invalid clustering columns.

    >>> from manifest.schema.validation import build_schema
    >>> build_schema("id INT, v INT", primary_keys=["id"], options={"clustering.columns": "v", "clustering.incremental": "true"})
    Traceback (most recent call last):
    ...
    pyspark_paimon.UnsupportedOption: option 'clustering.incremental': needs a table without a primary key and without buckets \
('bucket' = -1)
    """
    core = schema.core
    strategy = clustering_strategy(core)
    for name in core.clustering_columns:
        if name not in schema.names:
            raise UnsupportedOption(_COLUMNS, not_a_column(name, schema.names))
        if name in schema.partition_keys or schema.field(name).type.kind in NO_ORDER:
            raise UnsupportedOption(_COLUMNS, f"'{name}' is a partition column or has a type without an order")
    if strategy != "order" and len(core.clustering_columns) > MAX_COLUMNS:
        raise UnsupportedOption(_COLUMNS, f"strategy '{strategy}' supports at most {MAX_COLUMNS} columns")
    if core.clustering_incremental and schema.bucket_mode is not BucketMode.BUCKET_UNAWARE:
        raise UnsupportedOption(_INCREMENTAL, "needs a table without a primary key and without buckets ('bucket' = -1)")
    if core.clustering_incremental and not core.clustering_columns:
        raise UnsupportedOption(_INCREMENTAL, f"needs '{_COLUMNS}', by which rows are sorted")
