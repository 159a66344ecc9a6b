"""Work divided: splits packed into tasks by bytes, threads with a bound in bytes.

Knows neither tables nor Spark. Public: ``task_packing``, ``task_count``, ``thread_pool``, ``balance``.
"""
