"""Table writes and compactions.

Each bucket has its own writer; all writers share one memory budget. Nothing is visible before the messages are committed.
Public: ``TableWrite`` (table_write), ``CompactionJob`` (compaction_job), ``MergeTreeWriter``, ``AppendOnlyWriter``.
"""
