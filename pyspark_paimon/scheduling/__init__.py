"""Division of work among tasks and threads, by bytes.

This package knows neither tables nor Spark.
Public: ``task_packing``, ``thread_pool``.
"""
