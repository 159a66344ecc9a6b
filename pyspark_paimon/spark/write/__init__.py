"""Tasks that write: rows into buckets, compactions, index rewrites, streaming sinks.

Each hands its commit messages to the driver. Public: ``RowsWriter`` (writer), ``stream_writer``.
"""
