"""Tasks that read: partitions of a scan, files for Spark's own Parquet reader, streams, checks.

Public: ``PaimonReader`` (reader), ``native_files``.
"""
