"""Spark's data source: its name, its two entrances (schema questions and readers or writers), and how it reaches a server.

Public: ``PaimonDataSource`` (source), ``install``.
"""

from pyspark_paimon.spark.wire import session_storage as _session_storage  # noqa: F401  # processes of a server find what clients gave
