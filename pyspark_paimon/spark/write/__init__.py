"""Spark jobs that write: rows, compactions, index rewrites, streams.

Tasks write files and return commit messages; the driver commits. Public: ``RowsWriter`` (writer), ``stream_writer``.
"""
