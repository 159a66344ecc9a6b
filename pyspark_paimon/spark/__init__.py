"""Spark data source ``paimon`` and the client that uses it over Spark Connect.

Public: ``PaimonDataSource`` (source), ``install``.
"""

from paimon_base.process import freeze_survivors_of_worker as _freeze_survivors_of_worker
from pyspark_paimon.spark.wire import session_storage as _session_storage  # noqa: F401  # registers store options of clients

_freeze_survivors_of_worker()
