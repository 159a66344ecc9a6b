"""Execution of SQL statements that Spark leaves to us.

Spark does not pass these statements to Python data sources.
This package parses them and calls the methods of ``Table`` and ``Catalog``. It knows Spark's session and SQL, not files or jobs.
Public: ``run``.
"""
