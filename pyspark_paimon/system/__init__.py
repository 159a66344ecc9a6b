"""System tables: a table's metadata, and other views of its rows, under Paimon's names, columns and types, for scans like any other.

Knows what Paimon calls and counts there; does not know files of data, Spark, or how a filter is written.
Public: ``local_backend`` (opened), ``SystemBackend`` (backend), ``METADATA`` (registry).
"""
