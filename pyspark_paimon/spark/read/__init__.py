"""Spark jobs that read.

Scans, streams, checks, and files for Spark's own Parquet reader.

Public: ``PaimonReader`` (reader), ``native_files``.
"""
