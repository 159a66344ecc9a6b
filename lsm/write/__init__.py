"""Writing a table: a writer for each bucket, one budget of memory for all, commit messages at the end.

Nothing is visible before the messages are committed. Public: ``TableWrite`` (table_write), ``MergeTreeWriter``,
``AppendOnlyWriter``.
"""
